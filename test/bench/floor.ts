/** The floor: about the least that a loop can do that keeps a log. It checks nothing, stores nothing, survives nothing. */
import type { ModelChunk } from "turnloop";
import type { Stream } from "./mock.ts";

export interface FloorEvent {
  readonly seq: number;
  readonly type: string;
  readonly data: unknown;
}

export interface FloorParts {
  readonly stream: Stream;
  readonly tool: (args: unknown, signal: AbortSignal) => unknown;
  readonly signal: AbortSignal;
}

interface FloorMessage {
  readonly role: string;
  readonly text: string;
}

/**
 * One turn, as a loop written by hand has it: asks the model and runs its tool until it calls none. Each event
 * enters the log, frozen, and is yielded.
 */
export async function* floorTurn(log: FloorEvent[], { stream, tool, signal }: FloorParts): AsyncGenerator<FloorEvent> {
  const messages: FloorMessage[] = [{ role: "user", text: "hi" }];
  const append = (type: string, data?: unknown): FloorEvent => {
    const event = Object.freeze({ seq: log.length, type, data });
    log.push(event);
    return event;
  };

  yield append("turn/start");
  for (let calls = 1; calls > 0;) {
    calls = 0;
    let text = "";
    let args = "";
    yield append("step/start");
    for await (const chunk of stream(signal)) {
      if (isCall(chunk)) calls += 1;
      else if (chunk.type === "delta" && calls > 0) args += chunk.text;
      else if (chunk.type === "delta") text += chunk.text;
      yield append("chunk", chunk);
    }
    const message = { role: "assistant", text };
    messages.push(message);
    yield append("message", message);
    if (calls > 0) {
      const result = { role: "tool", text: String(await tool(JSON.parse(args), signal)) };
      messages.push(result);
      yield append("result", result);
    }
    yield append("step/end");
  }
  yield append("turn/end");
}

function isCall(chunk: ModelChunk): boolean {
  return chunk.type === "block-start" && chunk.block.type === "tool-call";
}
