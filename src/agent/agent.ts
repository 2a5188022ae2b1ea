/** The Agent handle of a loop that runs here: its verbs, as appends to the log. */
import { TurnloopError, type Report } from "../errors.ts";
import type { Desk } from "../interaction/desk.ts";
import { configPatchOf } from "../model/verbs.ts";
import type { AgentScope } from "../scope.ts";
import type { SessionEvent, SessionEventType } from "../session/types.ts";
import type { LiveSession } from "../storage/live.ts";
import { createActivity, type Activity } from "./activity.ts";
import { createInbox } from "./inbox.ts";
import { createSnapshots, SHOWN, type SnapshotStore } from "./snapshot.ts";
import type { Agent, AgentOptions, AgentSnapshot, AgentStatus, QueuedMessage } from "./types.ts";

/** What the loop has of an agent besides its handle. */
export interface AgentCore {
  readonly agent: Agent;
  readonly live: LiveSession;
  readonly snapshots: SnapshotStore;
  /** What a cancel would stop: set from the moment that a turn is about to begin. */
  activity: Activity | undefined;
  /** A turn without a message was asked for, under this id. */
  continuing: { readonly id?: string | undefined } | undefined;
  /** Somebody listens for questions to the log itself. */
  heeded: boolean;
  /** Flushes of injections that nobody awaits but a disposal. */
  readonly idleFlushes: Set<Promise<unknown>>;
  /** Whether there is something to run. */
  hasWork(): boolean;
  /** Resolves when there may be something to run, or the agent is disposed. */
  wake(): Promise<void>;
  begin(): Activity;
  /** Tells, if it is new, and releases who waits for the agent to be idle. */
  become(status: AgentStatus): void;
  /** Ends the open turn for good, as `stopped`. False when there is none, or it ends already. */
  stop(policy: { readonly by: string; readonly reason: string }): boolean;
  /** The session is lost: the loop has nothing to do any more. */
  lost(): void;
  /** Disposed before anybody saw it: without a word. */
  bury(): void;
  /** The loop has ended. */
  ended(): void;
}

export interface AgentDeps {
  readonly live: LiveSession;
  readonly options: AgentOptions;
  readonly scope: () => AgentScope;
  readonly desk: () => Desk;
  readonly newId: () => string;
  readonly report: Report;
  /** Emits the hooks of the agent. */
  readonly tell: {
    status(status: AgentStatus): void;
    queued(message: QueuedMessage): void;
    /** A failure outside any step, in the open turn or the last. */
    error(error: unknown): void;
  };
  /** Stores all, and awaits the listeners of `session/flush`. */
  readonly flush: () => Promise<void>;
}

/** A symbol, no private name: what is made on top of an agent, with it as its prototype, reads the same. */
const INSIDE = Symbol("inside");

/** What of an agent changes. */
interface Inside {
  status(): AgentStatus;
  snapshot(): AgentSnapshot;
  scope(): AgentScope;
}

/** On a prototype: each object literal that has getters is a dictionary, which only a full collection frees. */
class Shown implements Pick<Agent, "status" | "queue" | "interactions" | "scope"> {
  readonly [INSIDE]: Inside;

  constructor(inside: Inside) {
    this[INSIDE] = inside;
  }

  get status(): AgentStatus {
    return this[INSIDE].status();
  }

  get queue(): AgentSnapshot["queue"] {
    return this[INSIDE].snapshot().queue;
  }

  get interactions(): AgentSnapshot["interactions"] {
    return this[INSIDE].snapshot().interactions;
  }

  get scope(): AgentScope {
    return this[INSIDE].scope();
  }
}

export function createAgent({ live, options, scope, desk, newId, report, tell, flush }: AgentDeps): AgentCore {
  const { log, recorder } = live;
  const { session, state } = log;
  let status: AgentStatus = "idle";
  let woken: (() => void) | undefined;
  let idle: (() => void)[] = [];
  let over = false;
  const snapshots = createSnapshots(log, () => status, recorder, report);

  /** Throws unless verbs may still change something. */
  function checkAlive(): void {
    if (status === "disposed")
      throw new TurnloopError("AGENT_DISPOSED", `the agent ${session.id} is disposed; open it again`);
    if (recorder.lost)
      throw new TurnloopError("READ_ONLY", `the session ${session.id} is lost here; open it again`, {
        cause: recorder.lost,
      });
  }

  function wakeUp(): void {
    woken?.();
    woken = undefined;
  }

  /** Whoever waits for idle has it, as nothing runs and nothing will. */
  function releaseIdle(): void {
    const waiters = idle;
    idle = [];
    for (const release of waiters) release();
  }

  const inbox = createInbox({
    log,
    newId,
    queued: tell.queued,
    wake: wakeUp,
    injected() {
      const stored = flush().catch((error: unknown) => tell.error(error));
      core.idleFlushes.add(stored);
      void stored.finally(() => core.idleFlushes.delete(stored));
    },
  });

  const inside: Inside = { status: () => status, snapshot: () => snapshots.get(), scope };
  const verbs: Omit<Agent, keyof Shown> = {
    id: session.id,
    options,
    session,

    send(content, sendOptions = {}) {
      checkAlive();
      return inbox.queue(content, sendOptions, "send");
    },

    steer(content, sendOptions = {}) {
      checkAlive();
      return inbox.steer(content, sendOptions, status === "running");
    },

    inject(content, sendOptions = {}) {
      checkAlive();
      return inbox.inject(content, sendOptions);
    },

    continue({ id } = {}) {
      checkAlive();
      if (state.open)
        throw new TurnloopError("TURN_OPEN", `turn ${state.open.number} is open; steer it, or wait for its end`);
      core.continuing ??= { id };
      wakeUp();
    },

    async withdraw(id) {
      checkAlive();
      return inbox.withdraw(id);
    },

    cancel(reason = "cancelled", { queue: fate = "drop", id = newId() } = {}) {
      if (status === "disposed" || recorder.lost) return;
      const { open } = state;
      const dropped = fate === "drop" ? inbox.droppable() : [];
      const stops = core.activity?.yields("aborted") ?? false;
      if (!stops && !core.continuing && dropped.length === 0) return;
      core.continuing = undefined;
      const why = String(reason).toWellFormed();
      log.together(() => {
        log.write("agent/cancelled", {
          id: String(id).toWellFormed(),
          reason: why,
          ...(open && { turn: open.number }),
          dropped: Object.freeze(dropped),
        });
        core.activity?.stop({ kind: "aborted", reason: why });
        desk().cancel();
      });
      wakeUp();
    },

    async respond(id, value) {
      checkAlive();
      await desk().respond(id, value);
    },

    async claim(id) {
      checkAlive();
      await desk().claim(id, "local");
    },

    configure(patch) {
      checkAlive();
      log.write("agent/configured", { patch: configPatchOf(patch) });
    },

    whenIdle() {
      if (status === "disposed" ? over : status === "idle" && !core.hasWork()) return Promise.resolve();
      return new Promise((resolve) => {
        idle.push(resolve);
      });
    },

    flush: () => recorder.settle(),

    on(type, listener, listenOptions) {
      core.heeded ||= type === "interaction/requested";
      return session.subscribe((event: SessionEvent) => {
        if (event.type === type) return listener(event as SessionEvent<typeof type & SessionEventType>);
      }, listenOptions);
    },

    subscribe: (listener) => snapshots.subscribe(listener),

    getSnapshot: inside.snapshot,
  };

  const core: AgentCore = {
    agent: Object.assign(new Shown(inside), verbs),
    live,
    snapshots,
    activity: undefined,
    continuing: undefined,
    heeded: false,
    idleFlushes: new Set(),
    hasWork: () => !log.closed && !recorder.lost && (core.continuing !== undefined || inbox.hasMessages()),
    wake() {
      return core.hasWork() || status === "disposed"
        ? Promise.resolve()
        : new Promise((resolve) => {
            woken = resolve;
          });
    },
    begin() {
      core.activity = createActivity();
      return core.activity;
    },
    become(next) {
      if (status === "disposed") return;
      const told = status !== next;
      status = next;
      if (next === "idle") releaseIdle();
      if (next === "disposed") wakeUp();
      if (!told) return;
      tell.status(next);
      snapshots.changed();
    },
    stop({ by, reason }) {
      if (typeof by !== "string" || typeof reason !== "string")
        throw new TurnloopError("INVALID_DECISION", "stop takes { by, reason }");
      const { activity } = core;
      if (!state.open || recorder.lost || !activity?.yields("stopped")) return false;
      log.together(() => {
        activity.stop({ kind: "stopped", by, reason });
        desk().cancel();
        // What it has taken and not answered yet would only begin another.
        const ids = inbox.taken();
        if (ids.length > 0) log.write("inbox/dropped", { ids: Object.freeze(ids), reason: "stopped" });
      });
      return true;
    },
    lost() {
      wakeUp();
      snapshots.changed();
    },
    bury() {
      status = "disposed";
      core.ended();
    },
    ended() {
      over = true;
      releaseIdle();
    },
  };

  session.subscribe((event) => {
    if (SHOWN.has(event.type)) snapshots.changed();
  });
  return core;
}
