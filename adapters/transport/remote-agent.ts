/** The handle of an agent that runs elsewhere: the ordinary interface, over a mirrored log and an outbox. */
import mitt from "mitt";
import { messageOf, queuedMessages, TurnloopError } from "../../src/core.ts";
import type {
  Agent,
  AgentOptions,
  AgentSnapshot,
  AgentStatus,
  Diagnostic,
  SessionEvent,
  SessionEventType,
} from "../../src/core.ts";
import type { Outbox } from "./outbox.ts";
import type { HostState } from "./protocol.ts";
import type { Mirror } from "./remote-session.ts";
import { snapshotOf } from "./remote-view.ts";
import type { Right } from "./types.ts";
import { createVerbs } from "./verbs.ts";

/** What the connection tells the handle. */
export interface RemoteAgent {
  readonly agent: Agent;
  /** The log, or another one in its place. */
  mirror(mirror: Mirror): void;
  /** An event has come. */
  took(event: SessionEvent): void;
  host(state: HostState): void;
  connection(connection: "connecting" | "open", rights?: readonly Right[], options?: AgentOptions): void;
  /** A command was refused. */
  refused(error: TurnloopError): void;
  /** Something that is shown may have changed. */
  changed(): void;
  /** For good: by whoever holds the handle, or by the host, which gives a reason. */
  end(error?: TurnloopError): void;
}

export interface RemoteAgentOptions {
  readonly mirror: Mirror;
  readonly outbox: Outbox;
  readonly newId: () => string;
  readonly report: (diagnostic: Diagnostic) => void;
}

export function createRemoteAgent({ mirror: first, outbox, newId, report }: RemoteAgentOptions): RemoteAgent {
  let mirror = first;
  let host: HostState = { status: "idle", durable: "stored" };
  let connection: "connecting" | "open" | "closed" = "open";
  let rights: readonly Right[] = [];
  let options: AgentOptions = {};
  let disposed = false;
  let error: TurnloopError | undefined;
  let last: AgentSnapshot | undefined;
  let told: AgentSnapshot | undefined;
  const { id } = mirror.session;
  const events = mitt<Record<string, SessionEvent>>();
  const watchers = mitt<{ changed: undefined }>();
  const idle = new Set<() => void>();

  function statusNow(): AgentStatus {
    if (disposed) return "disposed";
    return mirror.state.open || host.status === "running" ? "running" : "idle";
  }

  function get(): AgentSnapshot {
    const { commands } = outbox;
    return (last = snapshotOf(last, mirror.state, { status: statusNow(), connection, rights, host, commands, error }));
  }

  /** No turn is open, here or at the host, and nothing is on its way that would open one. */
  function isIdle(): boolean {
    if (disposed) return true;
    if (statusNow() === "running" || outbox.commands.length > 0) return false;
    return queuedMessages(mirror.state).every((entry) => entry.as === "inject");
  }

  function changed(): void {
    if (get() !== told) {
      told = last;
      watchers.emit("changed", undefined);
    }
    if (idle.size === 0 || !isIdle()) return;
    const waiting = [...idle];
    idle.clear();
    for (const release of waiting) release();
  }

  /** A listener that throws would keep it from those behind it. */
  function contained<T>(listener: (value: T) => unknown): (value: T) => void {
    const failed = (cause: unknown): void => {
      const message = `a listener of the agent failed: ${messageOf(cause)}`;
      report({ code: "LISTENER_FAILED", message, cause, sessionId: id });
    };
    return (value) => {
      try {
        const answer = listener(value);
        if (answer instanceof Promise) answer.catch(failed);
      } catch (cause) {
        failed(cause);
      }
    };
  }

  const verbs = createVerbs({
    outbox,
    newId,
    rights: () => rights,
    isDisposed: () => disposed,
    checkAlive() {
      if (disposed)
        throw new TurnloopError("AGENT_DISPOSED", `the handle of ${id} is disposed; connect again`, { cause: error });
    },
    seen: () => ({
      turn: mirror.state.turn,
      open: mirror.state.open !== undefined,
      queue: get()
        .queue.filter((entry) => entry.as !== "inject")
        .map((entry) => entry.id),
    }),
  });

  const agent: Agent = {
    ...verbs,
    id,
    get status() {
      return statusNow();
    },
    get options() {
      return options;
    },
    get session() {
      return mirror.session;
    },
    get queue() {
      return get().queue;
    },
    get interactions() {
      return get().interactions;
    },
    whenIdle: () => (isIdle() ? Promise.resolve() : new Promise((resolve) => void idle.add(resolve))),
    async flush() {
      if (disposed) throw new TurnloopError("SESSION_CLOSED", `the handle of ${id} is disposed`, { cause: error });
      await unlessDegraded(outbox.flush());
    },
    on<T extends SessionEventType>(
      type: T,
      listener: (event: SessionEvent<T>) => void,
      { signal }: { signal?: AbortSignal } = {},
    ) {
      if (signal?.aborted) return () => {};
      // The emitter is given events of this type alone.
      const each = contained((event: SessionEvent) => listener(event as SessionEvent<T>));
      events.on(type, each);
      const off = (): void => {
        signal?.removeEventListener("abort", off);
        events.off(type, each);
      };
      signal?.addEventListener("abort", off, { once: true });
      return off;
    },
    subscribe(listener) {
      told ??= get();
      const each = contained(() => listener());
      watchers.on("changed", each);
      return () => watchers.off("changed", each);
    },
    getSnapshot: get,
  };

  /** Rejects while the host cannot store: nobody knows how long that takes. */
  function unlessDegraded(stored: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (host.durable !== "degraded" || outbox.commands.length === 0) return;
        off();
        reject(new TurnloopError("SESSION_DEGRADED", "the host cannot store anything at the moment; it keeps trying"));
      };
      const off = agent.subscribe(look);
      stored.then(resolve, reject).finally(off);
      look();
    });
  }

  return {
    agent,
    mirror(next) {
      mirror = next;
      last = told = undefined;
      changed();
    },
    took(event) {
      events.emit(event.type, event);
      // Most events are chunks, and change nothing that is shown.
      if (event.type !== "assistant/chunk") changed();
    },
    host(next) {
      host = next;
      changed();
    },
    connection(next, nextRights = rights, nextOptions = options) {
      if (disposed) return;
      connection = next;
      rights =
        nextRights.length === rights.length && nextRights.every((one) => rights.includes(one)) ? rights : nextRights;
      options = nextOptions;
      changed();
    },
    refused(reason) {
      error = reason;
      changed();
    },
    changed,
    end(reason) {
      if (disposed) return;
      disposed = true;
      connection = "closed";
      error = reason ?? error;
      changed();
    },
  };
}
