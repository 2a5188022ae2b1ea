/** Lets a tool's body run for a time, and no longer. */
import type { Clock, ToolExecution, ToolOutcome } from "../core.ts";
import { stopwatch } from "./stopwatch.ts";

/**
 * When the time is over the body's signal aborts with the error, and the call fails with it at once, whether the body
 * hears it or not. While the call waits for a person, or for a client to take it, the time stands.
 */
export async function limited(
  { agent, callId, signal }: ToolExecution,
  clock: Clock,
  ms: number,
  run: (patch: { readonly signal: AbortSignal }) => Promise<ToolOutcome>,
  error: () => Error,
): Promise<ToolOutcome> {
  const over = new AbortController();
  const { promise, reject } = Promise.withResolvers<never>();
  const time = stopwatch(clock, ms, () => {
    over.abort(error());
    reject(over.signal.reason as Error);
  });
  const look = (): void => {
    const waits = agent.interactions.some((one) => one.callId === callId && one.claimedBy === undefined);
    if (waits) time.hold();
    else time.run();
  };
  const off = agent.subscribe(look);
  look();
  try {
    return await Promise.race([run({ signal: AbortSignal.any([signal, over.signal]) }), promise]);
  } finally {
    off();
    time.end();
  }
}
