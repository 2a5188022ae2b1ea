/** What a person said, or what a program told the model. */
import type { TranscriptMessage } from "turnloop";
import type { ReactElement } from "react";
import { textOf } from "../text.ts";

export function UserMessage({ message }: { readonly message: TranscriptMessage }): ReactElement {
  const isPerson = message.role === "user" && message.source?.kind === "user";
  return (
    <article className={isPerson ? "message user" : "message context"}>
      <h3 className="visually-hidden">{isPerson ? "You" : `Context from ${message.source?.kind ?? "the page"}`}</h3>
      <p className="plain">{textOf(message.parts)}</p>
    </article>
  );
}
