/** What a person said, or what a program told the model. */
import type { TranscriptMessage } from "turnloop";
import type { ReactElement } from "react";
import { textOf } from "../text.ts";

interface Props {
  readonly message: TranscriptMessage;
  onEdit(message: string, text: string): void;
}

export function UserMessage({ message, onEdit }: Props): ReactElement {
  const text = textOf(message.parts);
  const isPerson = message.role === "user" && message.source?.kind === "user";
  return (
    <article className={isPerson ? "message user" : "message context"}>
      <h3 className="visually-hidden">{isPerson ? "You" : `Context from ${message.source?.kind ?? "the page"}`}</h3>
      <p className="plain">{text}</p>
      {isPerson && (
        <button type="button" className="link edit" onClick={() => onEdit(message.id, text)}>
          Edit in a copy
        </button>
      )}
    </article>
  );
}
