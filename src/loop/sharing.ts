/** Handles that are counted: who opens a live or opening id joins it, and the last one to let go ends it. */
import type { Agent, AgentHandle } from "../agent/types.ts";
import { abortReason, type Begun } from "./lifecycle.ts";

/** What begins an agent. The signal aborts when nobody waits for it any more. */
export type Opening = (signal: AbortSignal) => Promise<Begun>;

export interface Sharing {
  has(id: string): boolean;
  /** Joins what is live or opening under the id, else begins it. While it ends, waits and begins anew. */
  open(
    id: string,
    signal: AbortSignal | undefined,
    opening: Opening,
    joined: (handle: AgentHandle) => void,
  ): Promise<AgentHandle>;
  /** Takes in an agent that was begun otherwise. The handle is that of whoever began it. */
  hold(begun: Begun): AgentHandle;
}

interface Shared {
  holders: number;
  readonly handle: Promise<AgentHandle>;
  readonly waiting: AbortController;
  agent: Agent | undefined;
  ended: Promise<void> | undefined;
}

export function createSharing(): Sharing {
  const table = new Map<string, Shared>();

  /** Once its end begins, by whomever, nobody joins it any more. */
  function watch(id: string, shared: Shared, begun: Begun): Begun {
    const forget = (): void => void (table.get(id) === shared && table.delete(id));
    shared.agent = begun.agent;
    begun.onEnding?.((ended) => {
      shared.ended = ended;
      ended.then(forget, forget);
    });
    return begun;
  }

  function start(id: string, opening: Opening): Shared {
    const waiting = new AbortController();
    const handle = opening(waiting.signal).then((begun) => watch(id, shared, begun));
    const shared: Shared = { holders: 0, handle, waiting, agent: undefined, ended: undefined };
    table.set(id, shared);
    handle.catch(() => void (table.get(id) === shared && table.delete(id)));
    return shared;
  }

  /** Lets go once; the last holder ends it. */
  function release(shared: Shared, handle: AgentHandle): () => Promise<void> {
    let released: Promise<void> | undefined;
    return () => {
      if (!released) {
        shared.holders -= 1;
        released = shared.holders === 0 ? handle.dispose() : Promise.resolve();
      }
      return released;
    };
  }

  return {
    has: (id) => table.has(id),

    async open(id, signal, opening, joined) {
      for (let shared = table.get(id); shared?.ended; shared = table.get(id)) await unlessAborted(shared.ended, signal);
      if (signal?.aborted) throw abortReason(signal);
      const found = table.get(id);
      const shared = found ?? start(id, opening);
      shared.holders += 1;
      try {
        const handle = await unlessAborted(shared.handle, signal);
        if (found) joined(handle);
        return { agent: handle.agent, dispose: release(shared, handle) };
      } catch (thrown) {
        shared.holders -= 1;
        if (shared.holders === 0) {
          shared.waiting.abort(thrown);
          // It may have come to life meanwhile: then nobody wants it.
          shared.handle.then(
            (handle) => {
              if (shared.holders === 0) return handle.dispose();
            },
            () => {},
          );
        }
        throw thrown;
      }
    },

    hold(begun) {
      const { id } = begun.agent;
      const known = table.get(id);
      if (known?.agent === begun.agent) return { agent: begun.agent, dispose: release(known, begun) };
      const shared: Shared = {
        holders: 1,
        handle: Promise.resolve(begun),
        waiting: new AbortController(),
        agent: undefined,
        ended: undefined,
      };
      table.set(id, shared);
      watch(id, shared, begun);
      return { agent: begun.agent, dispose: release(shared, begun) };
    },
  };
}

/** Awaits; an abort ends only the waiting. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(abortReason(signal));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    const off = (): void => signal.removeEventListener("abort", abort);
    promise.then(
      (value) => (off(), resolve(value)),
      (error: unknown) => (off(), reject(error)),
    );
  });
}
