/** The right to write a session, for as long as its agent lives; and the options that say how to come by it. */
import type { Stoppable } from "../agent/stoppable.ts";
import type { LifecycleOptions } from "../agent/types.ts";
import { isDuration } from "../clock.ts";
import { TurnloopError } from "../errors.ts";
import type { Lease, Leases } from "../storage/leases.ts";

/** Takes the lease for what `use` makes, which owns it from then on. When that fails, or nothing is made, it is let go. */
export async function withLease<T>(
  leases: Leases,
  id: string,
  { claim, claimTimeoutMs }: LifecycleOptions,
  work: Stoppable,
  use: (lease: Lease) => Promise<T>,
): Promise<T> {
  const taking = leases.take(id, { mode: claim, timeoutMs: claimTimeoutMs, signal: work.signal });
  let lease: Lease;
  try {
    lease = await work.wait(taking);
  } catch (thrown) {
    taking.then(
      (late) => late.release(),
      () => {},
    );
    throw thrown;
  }
  let made: T | undefined;
  try {
    made = await use(lease);
    return made;
  } finally {
    if (made === undefined) await lease.release();
  }
}

/** Throws INVALID_OPTIONS. */
export function checkClaim({ claim, claimTimeoutMs }: LifecycleOptions): void {
  if (claim !== undefined && claim !== "fail" && claim !== "wait" && claim !== "steal")
    throw new TurnloopError("INVALID_OPTIONS", '`claim` must be "fail", "wait" or "steal"');
  if (claimTimeoutMs !== undefined && !isDuration(claimTimeoutMs))
    throw new TurnloopError("INVALID_OPTIONS", "`claimTimeoutMs` must be a number of milliseconds");
}

/** Throws INVALID_OPTIONS. */
export function checkInterrupted(interrupted: string | undefined): void {
  if (interrupted !== undefined && interrupted !== "close" && interrupted !== "continue")
    throw new TurnloopError("INVALID_OPTIONS", '`interrupted` must be "close" or "continue"');
}
