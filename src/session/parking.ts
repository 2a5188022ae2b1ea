/** Who is waited for: what of the open turn can be left as it stands, and what of it can still be run. */
import { openInteractions, unansweredCalls, type CallState, type InteractionState, type LogState } from "./state.ts";

/** The open turn waits for a person or a client, and for nothing else. */
export function isWaiting(state: LogState): boolean {
  if (!state.open?.step?.settled) return false;
  const open = openInteractions(state);
  return (
    open.length > 0 &&
    unansweredCalls(state).every((call) => call.starts === 0 || open.some((one) => one.callId === call.block.callId))
  );
}

/**
 * The open turn can be left as it stands, for days: an answer is waited for or has come, and no body that was
 * started would be run twice by going on. `idempotent` says which tools may be run again.
 */
export function isParked(state: LogState, idempotent: (tool: string) => boolean): boolean {
  if (!state.open?.step?.settled || state.open.cancelled !== undefined) return false;
  const calls = unansweredCalls(state);
  return (
    ([...state.interactions.values()].some((one) => !one.resolved) ||
      calls.some((call) => askedBy(state, call).length > 0)) &&
    calls.every((call) => call.starts === 0 || isHeld(state, call, idempotent))
  );
}

/** Whether a call that has no result can still be run, or its answer awaited, without its body running twice unasked. */
export function canGoOn(state: LogState, call: CallState, idempotent: (tool: string) => boolean): boolean {
  return call.starts === 0 || idempotent(call.block.name) || isHeld(state, call, idempotent);
}

/** What the call has asked of somebody outside the loop. */
export function askedBy({ interactions }: LogState, { block }: CallState): InteractionState[] {
  return [...interactions.values()].filter((one) => one.request.callId === block.callId);
}

/** A started call waits for somebody outside the loop, and for nothing else. */
function isHeld(state: LogState, call: CallState, idempotent: (tool: string) => boolean): boolean {
  return askedBy(state, call).some(({ request, claimed, resolved }) =>
    request.kind === "client-tool"
      ? resolved || !claimed || idempotent(call.block.name)
      : !resolved && idempotent(call.block.name),
  );
}
