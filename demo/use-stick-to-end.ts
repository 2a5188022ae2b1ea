/** Keeps a scrolling element at its end while content is added, unless the reader has scrolled away. */
import { useEffect, useLayoutEffect, useRef, useState, type RefObject } from "react";

/** So near to the end counts as being there, in pixels. */
const NEAR = 48;
const KEYS_UP = new Set(["ArrowUp", "PageUp", "Home"]);

/** A new `anchor`, such as the reader's own next message, brings them back to the end; without one it stays at its top. */
export function useStickToEnd(
  content: unknown,
  anchor: unknown,
): {
  readonly ref: RefObject<HTMLElement | null>;
  readonly isAtEnd: boolean;
  toEnd(): void;
} {
  const ref = useRef<HTMLElement>(null);
  const sticks = useRef(true);
  const isAnchored = useRef(false);
  const [isAtEnd, setAtEnd] = useState(true);

  useEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    const listening = new AbortController();
    const { signal } = listening;
    const passive = { passive: true, signal };
    const stick = (is: boolean): void => {
      sticks.current = is;
      setAtEnd(is);
    };
    // The browser scrolls, too, when things change their size: only what a reader does lets go.
    const onUp = (isUp: boolean): void => {
      if (isUp && element.scrollHeight > element.clientHeight) stick(false);
    };
    element.addEventListener("wheel", (event) => onUp(event.deltaY < 0), passive);
    element.addEventListener("touchmove", () => onUp(true), passive);
    element.addEventListener("keydown", (event) => onUp(KEYS_UP.has(event.key)), { signal });
    element.addEventListener("pointerdown", (event) => onUp(event.target === element), { signal });
    element.addEventListener("scroll", () => distanceToEnd(element) < NEAR && stick(true), passive);

    const observer = new ResizeObserver(() => {
      if (sticks.current && isAnchored.current) scrollToEnd(element);
    });
    observer.observe(element);
    for (const child of element.children) observer.observe(child);
    return () => {
      listening.abort();
      observer.disconnect();
    };
  }, []);

  function toEnd(): void {
    sticks.current = true;
    if (ref.current) scrollToEnd(ref.current);
  }

  useLayoutEffect(() => {
    isAnchored.current = anchor !== undefined;
    if (isAnchored.current) toEnd();
  }, [anchor]);
  useLayoutEffect(() => {
    if (sticks.current && isAnchored.current && ref.current) scrollToEnd(ref.current);
  }, [content]);

  return { ref, isAtEnd, toEnd };
}

function distanceToEnd({ scrollHeight, scrollTop, clientHeight }: HTMLElement): number {
  return scrollHeight - scrollTop - clientHeight;
}

function scrollToEnd(element: HTMLElement): void {
  element.scrollTo({ top: element.scrollHeight });
}
