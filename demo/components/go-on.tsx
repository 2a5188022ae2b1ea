/** After a turn that did not end by itself: lets it go on. */
import type { Agent, TranscriptMessage } from "turnloop";
import type { ReactElement } from "react";

interface Props {
  readonly agent: Agent;
  readonly last: TranscriptMessage | undefined;
}

export function GoOn({ agent, last }: Props): ReactElement | null {
  const isFailed = last?.state === "failed";
  const isCutShort = last?.state === "interrupted" || (last?.mark?.kind === "turn-end" && !isFailed);
  if (!isFailed && !isCutShort) return null;
  return (
    <p className="go-on">
      <button type="button" onClick={() => agent.continue()}>
        {isFailed ? "Try again" : "Continue"}
      </button>
    </p>
  );
}
