/** Tells screen readers what is new, once it is complete: a stream that is read while it grows is noise. */
import type { Interaction, TranscriptMessage } from "turnloop";
import type { ReactElement } from "react";
import { textOf } from "../text.ts";

interface Props {
  readonly messages: readonly TranscriptMessage[];
  readonly interactions: readonly Interaction[];
}

const LONGEST = 1500;

export function Announcer({ messages, interactions }: Props): ReactElement {
  const last = messages.findLast((message) => message.role === "assistant" && message.state !== "streaming");
  const asked = interactions.at(-1);
  return (
    <>
      <p className="visually-hidden" aria-live="polite">
        {last && firstOf(textOf(last.parts))}
      </p>
      <p className="visually-hidden" aria-live="assertive">
        {asked && (asked.kind === "approval" ? "A tool waits for your approval." : "A tool has a question for you.")}
      </p>
    </>
  );
}

/** Of a long answer the beginning is told; the rest is there to be read. */
function firstOf(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST).toWellFormed()}…` : text;
}
