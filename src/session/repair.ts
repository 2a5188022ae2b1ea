/** What the death of a host has left open is closed. */
import { closeTurn, failedResult, type Answer } from "./close.ts";
import type { Log } from "./log.ts";
import { isParked } from "./parking.ts";
import { NOT_STARTED, OUTCOME_UNKNOWN } from "./surface.ts";

/** Ends a turn that was cut short, unless it is parked. Adds nothing to the clock: the time is that of the last event. */
export function repair(log: Log, idempotent: (tool: string) => boolean): void {
  if (isParked(log.state, idempotent)) return;
  const cancelled = log.state.open?.cancelled;
  closeTurn(log, {
    reason: cancelled === undefined ? { kind: "interrupted" } : { kind: "aborted", reason: cancelled },
    answer: afterDeath,
    time: log.at(log.seq - 1)?.time,
  });
}

/** For a call that the death of its host left without a result. */
export const afterDeath: Answer = (call) =>
  call.starts === 0
    ? failedResult("TOOL_NOT_STARTED", NOT_STARTED)
    : failedResult("TOOL_OUTCOME_UNKNOWN", OUTCOME_UNKNOWN);
