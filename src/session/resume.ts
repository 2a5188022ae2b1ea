/** Takes up a turn in which a host has died: what cannot be run again is answered, and the rest is left to run. */
import { writeCall, writeResult } from "./close.ts";
import type { Log } from "./log.ts";
import { askedBy, canGoOn } from "./parking.ts";
import { afterDeath } from "./repair.ts";
import { unansweredCalls } from "./state.ts";

/** How often a turn is run at most, however far it came each time. */
const ATTEMPTS = 3;

/**
 * Marks the open turn as resumed and closes what died with its host: an answer that was being streamed, and bodies
 * that may not run twice. False when the turn must end instead: it was cancelled, was run often enough, has
 * nothing to run, or is another session's.
 */
export function resumeTurn(log: Log, idempotent: (tool: string) => boolean): boolean {
  const { open } = log.state;
  if (!open || open.cancelled !== undefined || open.attempt >= ATTEMPTS) return false;
  if (open.trigger.kind === "injection" || open.seq < (log.session.header.seedLength ?? 0)) return false;
  log.write("turn/resumed", { turn: open.number, attempt: open.attempt + 1 });
  for (const call of unansweredCalls(log.state)) {
    if (canGoOn(log.state, call, idempotent)) continue;
    for (const { request, resolved } of askedBy(log.state, call)) {
      if (!resolved) log.write("interaction/resolved", { id: request.id, outcome: "cancelled" });
    }
    writeCall(log, call);
    writeResult(log, call, afterDeath(call));
  }
  if (open.step && !open.step.settled) log.write("step/end", { turn: open.number, step: open.step.number });
  return true;
}
