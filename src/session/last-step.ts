/** Where the last step of the open turn stands. */
import type { Log } from "./log.ts";
import type { SessionEvent } from "./types.ts";

/** What the last step of the open turn has come to. */
export interface LastStep {
  /** Its answer stands in the log. */
  readonly settled: boolean;
  /** The answer called tools. */
  readonly called: boolean;
  /** Steering has followed the answer: the model has not seen it yet. */
  readonly steered: boolean;
  /** Its request has failed, and the turn was about to end with that. */
  readonly failed: SessionEvent<"request/failed"> | undefined;
}

/** Reads back as far as that step's beginning; undefined before the first. */
export function lastStep(log: Log): LastStep | undefined {
  const { open } = log.state;
  if (!open || open.steps === 0) return undefined;
  let steered = false;
  for (let seq = log.seq - 1; seq > open.seq; seq -= 1) {
    const event = log.at(seq)!;
    if (event.type === "steering/message") steered = true;
    else if (event.type === "assistant/message") {
      const called = event.data.content.some((block) => block.type === "tool-call");
      return { settled: true, called, steered, failed: undefined };
    } else if (event.type === "request/failed") {
      return { settled: false, called: false, steered, failed: event.data.next === "fail" ? event : undefined };
    } else if (event.type === "step/start") break;
  }
  return { settled: false, called: false, steered, failed: undefined };
}
