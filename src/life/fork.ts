/** Where a fork may cut a history: between turns. Loaded with the first of them. */
import { TurnloopError } from "../errors.ts";
import type { SessionEvent } from "../session/types.ts";

/**
 * The events before the cut. `at` names a `turn/end`, `before` the first user message of a turn; by default
 * the last turn that has ended is the last one. Throws INVALID_BOUNDARY.
 */
export function cutForFork(
  events: readonly SessionEvent[],
  { at, before }: { readonly at?: number | undefined; readonly before?: string | undefined },
): readonly SessionEvent[] {
  if (at !== undefined && before !== undefined) throw invalid("give `at` or `before`, not both");
  if (at !== undefined) {
    if (events[at]?.type !== "turn/end") throw invalid(`event ${at} is not the end of a turn`);
    return events.slice(0, at + 1);
  }
  if (before !== undefined) {
    const message = events.findIndex((event) => event.type === "user/message" && event.data.id === before);
    const start = events.findLastIndex((event, seq) => seq < message && event.type === "turn/start");
    const isFirst = events.slice(start, message).every((event) => event.type !== "user/message");
    if (message < 0 || start < 0 || !isFirst) throw invalid(`no turn begins with the message ${before}`);
    return events.slice(0, events.findLastIndex((event, seq) => seq < start && event.type === "turn/end") + 1);
  }
  return events.slice(0, events.findLastIndex((event) => event.type === "turn/end") + 1);
}

function invalid(what: string): TurnloopError {
  return new TurnloopError("INVALID_BOUNDARY", `a session can be cut only between turns: ${what}`);
}
