/** Handles that are counted: who opens a live or opening id joins it, and the last one to let go ends it. */
import { createStoppable, type Stoppable } from "../agent/stoppable.ts";
import type { Agent, AgentHandle } from "../agent/types.ts";
import { abortReason, type Begun } from "./lifecycle.ts";

export interface Sharing {
  has(id: string): boolean;
  /**
   * Joins what is live or opening under the id, else has it made. While it ends, waits and begins anew. The
   * signal ends only its own waiting; the work is stopped when nobody waits for it any more.
   */
  open(id: string, signal: AbortSignal | undefined, make: Make, joined: (agent: Agent) => void): Promise<AgentHandle>;
  /** Takes in an agent that was begun otherwise. The handle is that of whoever began it. */
  hold(begun: Begun): AgentHandle;
}

export type Make = (work: Stoppable) => Promise<Begun>;

interface Shared {
  holders: number;
  readonly work: Stoppable;
  begun: Promise<Begun>;
  agent: Agent | undefined;
  ended: Promise<void> | undefined;
}

export function createSharing(): Sharing {
  const table = new Map<string, Shared>();

  function watch(id: string, shared: Shared, begun: Begun): Begun {
    shared.agent = begun.agent;
    begun.onEnding?.((ended) => end(id, shared, ended));
    return begun;
  }

  function start(id: string, make: Make): Shared {
    const work = createStoppable();
    const shared: Shared = { holders: 0, work, begun: undefined as never, agent: undefined, ended: undefined };
    table.set(id, shared);
    shared.begun = make(work).then((begun) => watch(id, shared, begun));
    shared.begun.catch(() => {
      if (table.get(id) === shared) table.delete(id);
    });
    return shared;
  }

  /** Nobody joins it any more; who opens the id meanwhile waits for its end. */
  function end(id: string, shared: Shared, ended: Promise<void>): void {
    shared.ended ??= ended;
    const forget = (): void => {
      if (table.get(id) === shared) table.delete(id);
    };
    ended.then(forget, forget);
  }

  /** Lets go once; the last holder ends it, and everybody awaits that end. */
  function release(id: string, shared: Shared, begun: Begun): () => Promise<void> {
    let released: Promise<void> | undefined;
    return () => {
      if (!released) {
        shared.holders -= 1;
        if (shared.holders === 0 && !shared.ended) end(id, shared, begun.dispose());
        released = shared.ended ?? Promise.resolve();
      }
      return released;
    };
  }

  return {
    has: (id) => table.has(id),

    async open(id, signal, make, joined) {
      for (let shared = table.get(id); shared?.ended; shared = table.get(id)) await unlessAborted(shared.ended, signal);
      // One that has ended elsewhere, without a word.
      if (table.get(id)?.agent?.status === "disposed") table.delete(id);
      if (signal?.aborted) throw abortReason(signal);
      const found = table.get(id);
      const shared = found ?? start(id, make);
      shared.holders += 1;
      const begun = await unlessAborted(shared.begun, signal, (reason) => {
        shared.holders -= 1;
        if (shared.holders > 0) return;
        shared.work.stop(reason);
        // It may have come to life already: then nobody wants it. Whoever opens the id now waits for its end.
        const ended = shared.begun.then(
          (late) => late.dispose(),
          () => {},
        );
        end(id, shared, ended);
      });
      if (found) joined(begun.agent);
      return { agent: begun.agent, dispose: release(id, shared, begun) };
    },

    hold(begun) {
      const { id } = begun.agent;
      const known = table.get(id);
      if (known?.agent === begun.agent) return { agent: begun.agent, dispose: release(id, known, begun) };
      const work = createStoppable();
      const shared: Shared = { holders: 1, work, begun: Promise.resolve(begun), agent: undefined, ended: undefined };
      table.set(id, shared);
      watch(id, shared, begun);
      return { agent: begun.agent, dispose: release(id, shared, begun) };
    },
  };
}

/** Awaits; an abort ends only the waiting, after `left` was told, in the same moment. */
function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  left?: (reason: Error) => void,
): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      const reason = abortReason(signal);
      left?.(reason);
      reject(reason);
    };
    signal.addEventListener("abort", abort, { once: true });
    const off = (): void => signal.removeEventListener("abort", abort);
    promise.then(
      (value) => {
        off();
        resolve(value);
      },
      (error: unknown) => {
        off();
        reject(error);
      },
    );
  });
}
