/** What a person said, or what a program told the model. */
import type { ReactElement } from "react";
import { draftOf } from "../draft.ts";
import { Attachments } from "./attachments.tsx";
import { Icon } from "./icon.tsx";
import type { MessageProps } from "./message.tsx";

export function UserMessage({ message, isFirst, onEdit }: MessageProps): ReactElement {
  const said = draftOf(message.parts);
  const isPerson = message.role === "user" && message.source?.kind === "user";
  return (
    <article className={isPerson ? "message user" : "message context"}>
      <h2 className="visually-hidden">{isPerson ? "You" : `Context from ${message.source?.kind ?? "the page"}`}</h2>
      <div className="said">
        <Attachments files={said.files} />
        {said.text !== "" && <p className="plain">{said.text}</p>}
      </div>
      {/* A copy can be cut only between turns: what steered one stays in it. */}
      {isPerson && isFirst && (
        <p className="deeds">
          <button type="button" className="quiet" title="Edit in a copy" onClick={() => onEdit(message.id, said)}>
            <Icon name="pencil" />
            <span className="visually-hidden">Edit in a copy</span>
          </button>
        </p>
      )}
    </article>
  );
}
