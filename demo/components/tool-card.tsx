/** A tool call: what is asked, how it stands, what came of it. */
import type { Agent, ToolPart } from "turnloop";
import type { ReactElement } from "react";
import { textOf } from "../text.ts";
import { Approval } from "./approval.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { Question } from "./question.tsx";

interface Props {
  readonly card: ToolPart;
  readonly agent: Agent | undefined;
}

const STATES: Readonly<Record<ToolPart["state"], { readonly label: string; readonly icon: IconName }>> = {
  writing: { label: "Being written", icon: "loop" },
  asking: { label: "Waits for you", icon: "question" },
  running: { label: "Running", icon: "loop" },
  done: { label: "Done", icon: "check" },
  failed: { label: "Did not work", icon: "cross" },
  unknown: { label: "Outcome unknown", icon: "question" },
};

export function ToolCard({ card, agent }: Props): ReactElement {
  const { label, icon } = STATES[card.state];
  const { interaction, result } = card;
  const isAsking = interaction?.kind === "question";
  // The question itself stands below, over its answers.
  const title = isAsking ? "A question for you" : (card.call?.title ?? (card.name || "A tool"));
  return (
    <section className="tool" data-state={card.state} aria-label={`Tool: ${title}`}>
      {/* Nobody allows what they do not see. */}
      <details open={interaction?.kind === "approval" && !card.call ? true : undefined}>
        <summary>
          <span className="tool-icon">
            <Icon name={icon} />
          </span>
          <span className="tool-title">{title}</span>
          {card.call?.detail !== undefined && !isAsking && <span className="tool-detail">{card.call.detail}</span>}
          <span className="tool-state">{label}</span>
          <Icon name="chevron" />
        </summary>
        <dl className="tool-body">
          <dt>{card.name}</dt>
          <dd>
            <pre tabIndex={0}>{readable(card.arguments)}</pre>
          </dd>
          {result && (
            <>
              <dt>Result</dt>
              <dd>
                <pre tabIndex={0}>{textOf(result) || "No text"}</pre>
              </dd>
            </>
          )}
        </dl>
      </details>
      {interaction?.kind === "approval" && agent && <Approval interaction={interaction} agent={agent} />}
      {isAsking && agent && <Question key={interaction.id} interaction={interaction} agent={agent} />}
    </section>
  );
}

/** Indented once it is complete. */
function readable(args: string): string {
  try {
    return JSON.stringify(JSON.parse(args), null, 2);
  } catch {
    return args;
  }
}
