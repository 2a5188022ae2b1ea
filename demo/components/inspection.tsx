/** What the agent has done, to look into: beside the chat, or over it where there is no room. Loaded when first asked for. */
import type { Agent } from "turnloop";
import type { InspectorProps } from "turnloop/inspector";
import { useEffect, useRef, useState, type ComponentType, type ReactElement } from "react";
import { problemOf } from "../text.ts";
import { Icon } from "./icon.tsx";

interface Props {
  readonly agent: Agent | undefined;
  onClose(): void;
}

export function Inspection({ agent, onClose }: Props): ReactElement {
  const panel = useRef<HTMLElement>(null);
  const [loaded, setLoaded] = useState<{ readonly Inspector: ComponentType<InspectorProps> }>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    import("turnloop/inspector").then(setLoaded, (error: unknown) => setProblem(problemOf(error)));
  }, []);
  useEffect(() => {
    const before = document.activeElement;
    panel.current?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);

  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- Escape closes it, as its button does
    <aside
      ref={panel}
      id="inspection"
      className="inspection"
      aria-labelledby="inspection-title"
      tabIndex={-1}
      onKeyDown={({ key }) => {
        if (key === "Escape") onClose();
      }}
    >
      <header>
        <h2 id="inspection-title">What the agent did</h2>
        <button type="button" className="quiet" aria-label="Close the inspector" onClick={onClose}>
          <Icon name="cross" />
        </button>
      </header>
      <div className="inspection-body">
        {loaded && agent && <loaded.Inspector key={agent.id} of={agent} />}
        {problem !== undefined && (
          <p className="problem-line" role="alert">
            {problem}
          </p>
        )}
      </div>
    </aside>
  );
}
