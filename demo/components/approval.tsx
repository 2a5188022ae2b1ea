/** Asks a person whether a tool may run. */
import type { Agent, Interaction } from "turnloop";
import type { ReactElement } from "react";
import { useAnswer } from "../use-answer.ts";

interface Props {
  readonly interaction: Interaction;
  readonly agent: Agent;
}

export function Approval({ interaction, agent }: Props): ReactElement {
  const { answer, isSent, problem } = useAnswer(agent, interaction.id);
  return (
    <div className="ask" role="group" aria-label="Approval">
      <p>May it do that?</p>
      <div className="buttons">
        <button type="button" className="primary" disabled={isSent} onClick={() => answer({ decision: "allow" })}>
          Allow
        </button>
        <button
          type="button"
          disabled={isSent}
          onClick={() => answer({ decision: "deny", reason: "the user did not allow it" })}
        >
          Deny
        </button>
      </div>
      {problem !== undefined && <p className="problem-line">{problem}</p>}
    </div>
  );
}
