/** The right to write a session, where the storage gives one: taken once for all here who need it, and let go at last. */
import { failureOf, messageOf, type Report, TurnloopError } from "../errors.ts";
import type { Clock } from "../scope.ts";
import { PATIENCE_MS } from "./recorder.ts";
import type { Claim, SessionStorage } from "./types.ts";

export interface Lease {
  /** Called once when somebody has stolen it, or had before. */
  onLost(listener: () => void): void;
  /** Never rejects; the last of those who share it gives it back. A storage that does not answer is not waited for. */
  release(): Promise<void>;
}

export interface LeaseOptions {
  readonly mode?: "fail" | "wait" | "steal" | undefined;
  /** Past it the claim fails SESSION_CLAIMED. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Leases {
  /** Joins a lease that this harness has. Rejects SESSION_CLAIMED, STORAGE_FAILED. */
  take(id: string, options?: LeaseOptions): Promise<Lease>;
}

interface Held {
  readonly claim: Claim;
  holders: number;
  lost: boolean;
  readonly listeners: Set<() => void>;
}

export function createLeases(storage: SessionStorage, clock: Clock, report: Report): Leases {
  const table = new Map<string, Held>();
  /** Claims that are answered at once, and releases: whoever needs the same session waits for them. */
  const busy = new Map<string, Promise<unknown>>();

  function keepBusy(id: string, work: Promise<unknown>): void {
    const forget = (): void => {
      if (busy.get(id) === settled) busy.delete(id);
    };
    const settled: Promise<void> = work.then(forget, forget);
    busy.set(id, settled);
  }

  /** Ends with the signal and in time, whether the storage heeds that or not. */
  async function claim(id: string, { mode = "fail", timeoutMs, signal }: LeaseOptions): Promise<Claim> {
    const stop = new AbortController();
    const inTime = new AbortController();
    const stopped = Promise.withResolvers<never>();
    stop.signal.addEventListener("abort", () => stopped.reject(stop.signal.reason), { once: true });
    const abort = (): void => stop.abort(signal!.reason);
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted) abort();
    if (timeoutMs !== undefined)
      clock.sleep(timeoutMs, inTime.signal).then(
        () => stop.abort(tooLate(id, timeoutMs)),
        () => {},
      );
    const claiming = (async () => storage.claim!(id, { mode, signal: stop.signal }))();
    try {
      return await Promise.race([claiming, stopped.promise]);
    } catch (thrown) {
      // What is granted too late is wanted by nobody.
      claiming.then(
        (late) => late.release().catch(() => {}),
        () => {},
      );
      if (TurnloopError.is(thrown) || signal?.aborted) throw thrown;
      throw new TurnloopError("STORAGE_FAILED", `the storage failed: ${messageOf(thrown)}`, { cause: thrown });
    } finally {
      inTime.abort();
      signal?.removeEventListener("abort", abort);
    }
  }

  function hold(id: string, granted: Claim): Held {
    const held: Held = { claim: granted, holders: 0, lost: false, listeners: new Set() };
    const lose = (): void => {
      // What follows a release is no loss.
      if (held.holders === 0) return;
      held.lost = true;
      if (table.get(id) === held) table.delete(id);
      for (const listener of [...held.listeners]) listener();
    };
    granted.lost.then(lose, lose);
    table.set(id, held);
    return held;
  }

  function join(id: string, held: Held): Lease {
    let own: (() => void) | undefined;
    let released: Promise<void> | undefined;
    held.holders += 1;
    return {
      onLost(listener) {
        if (held.lost) listener();
        else held.listeners.add((own = listener));
      },
      release() {
        if (!released) {
          if (own) held.listeners.delete(own);
          held.holders -= 1;
          released = held.holders === 0 ? letGo(id, held) : Promise.resolve();
        }
        return released;
      },
    };
  }

  async function letGo(id: string, held: Held): Promise<void> {
    if (table.get(id) === held) table.delete(id);
    const done = new AbortController();
    const released = (async () => held.claim.release())().catch((cause: unknown) => {
      report(failureOf("STORAGE_FAILED", "a claim was not released", cause, id));
    });
    const bounded = Promise.race([released, clock.sleep(PATIENCE_MS, done.signal).catch(() => {})]);
    keepBusy(id, bounded);
    await bounded;
    done.abort();
  }

  return {
    async take(id, options = {}) {
      if (!storage.claim) return UNCLAIMED;
      for (;;) {
        const held = table.get(id);
        if (held) return join(id, held);
        const before = busy.get(id);
        if (!before) break;
        await before;
      }
      const claiming = claim(id, options);
      if (options.mode !== "wait") keepBusy(id, claiming);
      const granted = await claiming;
      return join(id, hold(id, granted));
    },
  };
}

/** For a storage that knows no claims: the conflict of two writers is all there is. */
const UNCLAIMED: Lease = { onLost() {}, async release() {} };

function tooLate(id: string, ms: number): TurnloopError {
  return new TurnloopError(
    "SESSION_CLAIMED",
    `another writer has held the session ${id} for ${ms} ms; try again later, or steal it`,
  );
}

/** Why whoever had the lease has lost it. */
export function takenOver(id: string): TurnloopError {
  return new TurnloopError(
    "SESSION_LOST",
    `another writer has taken the session ${id}; open it again to see what it wrote`,
  );
}

/** A lease that is used before it is granted. */
export function soonGranted(granting: Promise<Lease>): Lease {
  let granted: Lease | undefined;
  let released = false;
  granting.then(
    (lease) => {
      granted = lease;
      if (released) void lease.release();
    },
    () => {},
  );
  return {
    onLost(listener) {
      granting.then(
        (lease) => lease.onLost(listener),
        (thrown: unknown) => {
          if (TurnloopError.is(thrown, "SESSION_CLAIMED")) listener();
        },
      );
    },
    async release() {
      released = true;
      await granted?.release();
    },
  };
}
