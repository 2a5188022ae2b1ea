/** Draws what is near the part of the page that is seen; in place of the rest stands its height. */
import { useEffect, useRef, useState, type ReactElement, type ReactNode } from "react";

interface Props {
  /** In pixels, of what has never been drawn. */
  readonly estimate: number;
  /** Drawn from the start, whether it is seen or not. */
  readonly startsNear: boolean;
  readonly className: string;
  children(): ReactNode;
}

/** So far beyond its edges the page counts as seen: a screen or so, for those who scroll fast. */
const MARGIN = "1200px 0px";

export function Near({ estimate, startsNear, className, children }: Props): ReactElement {
  const ref = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(startsNear);
  const [height, setHeight] = useState(estimate);

  useEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        const entry = entries.at(-1);
        if (!entry) return;
        if (entry.isIntersecting) return setNear(true);
        // Who is at work in it is not sent away.
        if (element.contains(document.activeElement)) return;
        setHeight(entry.boundingClientRect.height);
        setNear(false);
      },
      { root: element.closest(".conversation"), rootMargin: MARGIN },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  return (
    <div
      ref={ref}
      className={className}
      style={isNear ? undefined : { height }}
      aria-hidden={isNear ? undefined : true}
    >
      {isNear && children()}
    </div>
  );
}
