/** A medium in memory with claims and `close`: for the parts of the port that `memoryStorage` has not. */
import { memoryStorage, TurnloopError, type Claim, type SessionStorage } from "turnloop";
import { deferred } from "./wait.ts";

interface Held {
  readonly lost: ReturnType<typeof deferred<void>>;
  free(): void;
}

/** Storage objects of one medium, each to be closed on its own. */
export function claimingMedium(): {
  open(): Promise<SessionStorage & Required<Pick<SessionStorage, "claim" | "close">>>;
} {
  const shared = memoryStorage();
  const holders = new Map<string, Held>();
  const waiting: { readonly id: string; readonly wake: () => void }[] = [];

  function take(id: string): Claim {
    const lost = deferred<void>();
    const held: Held = {
      lost,
      free() {
        if (holders.get(id) !== held) return;
        holders.delete(id);
        const next = waiting.findIndex((one) => one.id === id);
        if (next !== -1) waiting.splice(next, 1)[0]!.wake();
      },
    };
    holders.set(id, held);
    return { lost: lost.promise, release: async () => held.free() };
  }

  async function claim(
    id: string,
    { mode, signal }: { mode: "fail" | "wait" | "steal"; signal?: AbortSignal },
  ): Promise<Claim> {
    const holder = holders.get(id);
    if (holder && mode === "fail") throw new TurnloopError("SESSION_CLAIMED", `${id} is claimed; try again later`);
    if (holder && mode === "steal") holder.lost.resolve();
    if (!holder || mode === "steal") return take(id);
    return new Promise((resolve, reject) => {
      const entry = { id, wake: () => resolve(take(id)) };
      waiting.push(entry);
      signal?.addEventListener("abort", () => {
        const place = waiting.indexOf(entry);
        if (place !== -1) waiting.splice(place, 1);
        reject(signal.reason as Error);
      });
    });
  }

  return {
    async open() {
      let closed = false;
      return {
        ...shared,
        async append(batch) {
          if (closed) throw new Error("the storage is closed");
          await shared.append(batch);
        },
        claim,
        async close() {
          closed = true;
        },
      };
    },
  };
}
