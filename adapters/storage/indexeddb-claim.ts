/** The right to write a session, as a Web Lock: gone with its tab, kept by a frozen one, so it can be stolen. */
import { TurnloopError, type Claim } from "../../src/core.ts";

export interface ClaimOptions {
  readonly mode: "fail" | "wait" | "steal";
  readonly signal?: AbortSignal;
}

export interface Claims {
  /** Whether this storage holds it. */
  has(id: string): boolean;
  /** SESSION_CLAIMED where another has it and `mode` is `fail`; the signal's reason while it waits. */
  take(id: string, options: ClaimOptions): Promise<Claim>;
  /** Runs the body if nobody writes the session, or this storage does; answers whether it ran. */
  whileFree(id: string, body: () => Promise<void>): Promise<boolean>;
}

/** Without Web Locks every claim succeeds, and the conflicting append alone is the fence. */
export function createClaims(database: string): Claims {
  const { locks } = globalThis.navigator ?? {};
  const held = new Set<string>();
  const lockOf = (id: string): string => `turnloop:${database.length}:${database}:${id}`;

  const claims: Claims = {
    has: (id) => held.has(id),

    async take(id, { mode, signal }) {
      signal?.throwIfAborted();
      const done = Promise.withResolvers<void>();
      const lost = Promise.withResolvers<void>();
      const claim: Claim = {
        lost: lost.promise,
        async release() {
          held.delete(id);
          done.resolve();
          await over;
        },
      };
      if (!locks) return claim;
      const granted = Promise.withResolvers<boolean>();
      const options: LockOptions = {
        ...(mode === "fail" && { ifAvailable: true }),
        ...(mode === "steal" && { steal: true }),
        ...(mode === "wait" && signal && { signal }),
      };
      let mine = false;
      const over: Promise<void> = locks
        .request(lockOf(id), options, async (lock) => {
          mine = lock !== null;
          if (mine) held.add(id);
          granted.resolve(mine);
          if (mine) await done.promise;
        })
        .then(
          () => {},
          (thrown: unknown) => {
            // A sandboxed frame has no locks; it has no database either.
            if (!mine && thrown instanceof DOMException && thrown.name === "SecurityError")
              return granted.resolve(true);
            if (!mine) return granted.reject(thrown);
            // Once granted, it ends so only when somebody steals it.
            held.delete(id);
            lost.resolve();
          },
        );
      if (!(await granted.promise))
        throw new TurnloopError("SESSION_CLAIMED", `another tab writes the session ${id}; close it there, or steal it`);
      return claim;
    },

    async whileFree(id, body) {
      if (!locks || held.has(id)) {
        await body();
        return true;
      }
      return locks.request(lockOf(id), { ifAvailable: true }, async (lock) => {
        if (lock) await body();
        return lock !== null;
      });
    },
  };
  return claims;
}
