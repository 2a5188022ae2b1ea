/** An agent's handle as an external store: opened for the first subscriber, given back after the last. */
import type { Store } from "turnloop";
import { TurnloopError } from "../../src/core.ts";
import type { Agent, AgentHandle, AgentSnapshot } from "../../src/core.ts";

export interface OpenedAgent {
  /** Undefined while it is being opened, and after that failed. */
  readonly agent: Agent | undefined;
  readonly snapshot: AgentSnapshot | undefined;
  /** Why it could not be opened. */
  readonly error: Error | undefined;
}

const NOTHING: OpenedAgent = Object.freeze({ agent: undefined, snapshot: undefined, error: undefined });

export interface AgentStore extends Store<OpenedAgent> {
  /** From now on it is opened so, should it come to that. */
  openBy(open: Open): void;
}
export type Open = (signal: AbortSignal) => Promise<AgentHandle>;

interface Opening {
  readonly abort: AbortController;
  handle?: AgentHandle;
  unsubscribe?: () => void;
}

/**
 * The handle is given back one microtask after the last subscriber has gone, so that somebody who subscribes
 * within the same commit (StrictMode, hot reload, one view replacing another) finds the agent still running.
 */
export function createAgentStore(first: Open): AgentStore {
  const listeners = new Set<() => void>();
  let open = first;
  let opening: Opening | undefined;
  let state = NOTHING;

  function tell(): void {
    for (const listener of listeners) listener();
  }

  async function begin(mine: Opening): Promise<void> {
    try {
      const handle = await open(mine.abort.signal);
      if (mine !== opening) return giveBack(handle);
      mine.handle = handle;
      mine.unsubscribe = handle.agent.subscribe(tell);
      state = stateOf(handle.agent);
    } catch (thrown) {
      if (mine !== opening) return;
      state = Object.freeze({ ...NOTHING, error: thrown instanceof Error ? thrown : notAnError(thrown) });
    }
    tell();
  }

  function end(): void {
    if (!opening || listeners.size > 0) return;
    const { abort, handle, unsubscribe } = opening;
    opening = undefined;
    state = NOTHING;
    unsubscribe?.();
    abort.abort();
    if (handle) giveBack(handle);
  }

  return {
    openBy(how) {
      open = how;
    },

    subscribe(listener) {
      const entry = (): void => listener();
      listeners.add(entry);
      if (!opening) {
        opening = { abort: new AbortController() };
        void begin(opening);
      }
      return () => {
        if (listeners.delete(entry) && listeners.size === 0) queueMicrotask(end);
      };
    },

    getSnapshot() {
      if (state.agent && state.snapshot !== state.agent.getSnapshot()) state = stateOf(state.agent);
      return state;
    },
  };
}

function stateOf(agent: Agent): OpenedAgent {
  return Object.freeze({ agent, snapshot: agent.getSnapshot(), error: undefined });
}

/** Nobody is left to tell that it failed; whoever made the handle reports that. */
function giveBack(handle: AgentHandle): void {
  handle.dispose().catch(() => {});
}

function notAnError(thrown: unknown): TurnloopError {
  return new TurnloopError("UNKNOWN", `opening the agent failed: ${String(thrown)}`, { cause: thrown });
}
