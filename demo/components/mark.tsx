/** Something that happened to the conversation. */
import type { TranscriptMark, TurnEndReason } from "turnloop";
import type { ReactElement } from "react";
import { draftOf, nameOf } from "../draft.ts";
import type { MessageProps } from "./message.tsx";
import { Problem } from "./problem.tsx";

export function Mark({ message, onPutBack, onSettings }: MessageProps): ReactElement | null {
  const { mark, parts, error } = message;
  if (error) return <Problem title="This turn failed" error={error} onSettings={onSettings} />;
  if (!mark) return null;
  const said = draftOf(parts);
  const text = said.text || said.files.map(nameOf).join(", ");
  return (
    <div className="mark" data-kind={mark.kind}>
      <p>{wordsFor(mark)}</p>
      {text !== "" && mark.kind === "compacted" && (
        <details>
          <summary>The summary</summary>
          <p className="plain">{text}</p>
        </details>
      )}
      {text !== "" && mark.kind !== "compacted" && (
        <>
          <q>{text}</q>
          <button type="button" className="link" onClick={() => onPutBack(said)}>
            Put it back
          </button>
        </>
      )}
    </div>
  );
}

function wordsFor(mark: TranscriptMark): string {
  switch (mark.kind) {
    case "blocked":
      return `Not passed on (${mark.reason}):`;
    case "dropped":
      return "Not sent:";
    case "compacted":
      return "From here on the model sees a summary of what is above";
    case "turn-end":
      return wordsForEnd(mark.reason);
  }
}

function wordsForEnd(reason: TurnEndReason): string {
  switch (reason.kind) {
    case "aborted":
      return "Stopped";
    case "disposed":
      return "The chat was closed while this was under way";
    case "interrupted":
      return "This was cut short when the page went away";
    case "max-tokens":
      return "The answer reached its longest length";
    case "content-filter":
      return "The provider held the rest of the answer back";
    case "stopped":
      return `Stopped by ${reason.by}: ${reason.reason}`;
    case "error":
      return reason.message;
    case "rejected":
      return reason.reason;
    case "completed":
      return "Done";
  }
}
