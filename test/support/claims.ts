/** A storage with claims, as several processes share it: a lease for each session, held by one at a time. */
import { memoryStorage, TurnloopError, type Claim, type SessionStorage } from "turnloop";
import { deferred } from "./wait.ts";

export interface ClaimingStorage extends SessionStorage {
  claim: NonNullable<SessionStorage["claim"]>;
  /** What was asked and granted, in order: `fail s`, `granted s`, `released s`, `stolen s`, `left s` (a waiting that was given up). */
  readonly told: readonly string[];
  /** Whether anybody holds it. */
  held(id: string): boolean;
  /** The next claim is granted only after this is called, whatever its signal says. */
  delay(): () => void;
}

interface Holder {
  readonly lost: ReturnType<typeof deferred<void>>;
}

export function claimingStorage(inner: SessionStorage = memoryStorage()): ClaimingStorage {
  const told: string[] = [];
  const holders = new Map<string, Holder>();
  const waiting = new Map<string, (() => void)[]>();
  let delayed: Promise<unknown> | undefined;

  function grant(id: string): Claim {
    const holder: Holder = { lost: deferred() };
    holders.set(id, holder);
    told.push(`granted ${id}`);
    return {
      lost: holder.lost.promise,
      async release() {
        if (holders.get(id) !== holder) return;
        holders.delete(id);
        told.push(`released ${id}`);
        waiting.get(id)?.shift()?.();
      },
    };
  }

  return {
    ...inner,
    told,
    held: (id) => holders.has(id),
    delay() {
      const gate = deferred();
      delayed = gate.promise;
      return () => gate.resolve();
    },
    async claim(id, { mode, signal }) {
      told.push(`${mode} ${id}`);
      const late = delayed;
      delayed = undefined;
      await late;
      const holder = holders.get(id);
      if (!holder) return grant(id);
      if (mode === "steal") {
        told.push(`stolen ${id}`);
        const claim = grant(id);
        holder.lost.resolve();
        return claim;
      }
      if (mode === "fail") throw new TurnloopError("SESSION_CLAIMED", `another holds the session ${id}`);
      const turn = deferred();
      const go = (): void => turn.resolve();
      const queue = waiting.get(id) ?? [];
      waiting.set(id, [...queue, go]);
      const leave = (): void => {
        waiting.set(
          id,
          waiting.get(id)!.filter((other) => other !== go),
        );
        told.push(`left ${id}`);
        turn.reject(signal!.reason);
      };
      signal?.addEventListener("abort", leave, { once: true });
      await turn.promise;
      signal?.removeEventListener("abort", leave);
      return grant(id);
    },
  };
}
