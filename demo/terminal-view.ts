/** Writes what happens in a session to a terminal, as it happens. */
import { styleText } from "node:util";
import type { ModelChunk, SessionEvent, TurnEndReason } from "turnloop";
import { textOf } from "./text.ts";

export interface TerminalView {
  show(event: SessionEvent): void;
  ask(question: string): void;
  note(text: string): void;
}

export function createTerminalView(write: (text: string) => void): TerminalView {
  /** What the model writes in each block of the step. */
  const blocks = new Map<number, "text" | "reasoning" | "tool-call">();

  function showChunk(chunk: ModelChunk): void {
    if (chunk.type === "block-start") {
      blocks.set(chunk.index, chunk.block.type);
      if (chunk.block.type !== "tool-call") write("\n");
    } else if (chunk.type === "delta") {
      const type = blocks.get(chunk.index) ?? "text";
      if (type === "text") write(chunk.text);
      if (type === "reasoning") write(styleText("dim", chunk.text));
    } else if (chunk.type === "block-end" && blocks.get(chunk.index) !== "tool-call") write("\n");
  }

  return {
    show(event) {
      switch (event.type) {
        case "step/start":
          return blocks.clear();
        case "assistant/chunk":
          return showChunk(event.data.chunk);
        case "steering/message":
          return write(styleText("dim", `\n(heard: ${textOf(event.data.content)})\n`));
        case "tool/call":
          return write(styleText("cyan", `\n* ${event.data.name} ${event.data.arguments}\n`));
        case "tool/result":
          return write(styleText(event.data.isError ? "red" : "green", `  = ${textOf(event.data.content)}\n`));
        case "request/failed":
          return write(styleText("red", `\n${event.data.error.message}\n`));
        case "turn/end":
          return write(styleText("dim", wordsFor(event.data.reason)));
      }
    },
    ask: (question) => write(styleText("yellow", `\n${question}\n`)),
    note: (text) => write(styleText("dim", `${text}\n`)),
  };
}

function wordsFor(reason: TurnEndReason): string {
  switch (reason.kind) {
    case "completed":
      return "";
    case "aborted":
      return `\n(${reason.reason}; /continue goes on)\n`;
    case "error":
      return `\n(failed: ${reason.message}; /continue tries again)\n`;
    default:
      return `\n(${reason.kind})\n`;
  }
}
