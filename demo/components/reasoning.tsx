/** The model's thoughts, folded. */
import type { ReactElement } from "react";
import { Icon } from "./icon.tsx";

interface Props {
  readonly text: string;
  readonly isStreaming: boolean;
}

export function Reasoning({ text, isStreaming }: Props): ReactElement | null {
  if (text.trim() === "" && !isStreaming) return null;
  return (
    <details className="reasoning">
      <summary>
        <Icon name="chevron" />
        <span className={isStreaming ? "shimmer" : undefined}>{isStreaming ? "Thinking" : "Thought"}</span>
      </summary>
      <p className="plain">{text}</p>
    </details>
  );
}
