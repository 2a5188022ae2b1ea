/** The log of a session: append-only, frozen, numbered; and its readers, told in order. */
import { messageOf, TurnloopError, type Report } from "../errors.ts";
import type { Dispatch } from "../hooks/hooks.ts";
import { jsonCopy } from "../json.ts";
import { checkData, checkEnvelope, isBookkeeping } from "./shapes.ts";
import { advance, createState, inherit, type LogState } from "./state.ts";
import { createSubscribers } from "./subscribers.ts";
import { createSurface } from "./surface.ts";
import type {
  Cite,
  Durability,
  Session,
  SessionEvent,
  SessionEventMap,
  SessionEventType,
  SessionHeader,
  SurfaceOp,
} from "./types.ts";

/** What carries the log to where it is kept. */
export interface Recording {
  readonly durable: Durability;
  /** Something was appended. */
  wake(): void;
  flush(): Promise<void>;
}

/** The log as the loop has it: the session is its public face. */
export interface Log {
  readonly session: Session;
  readonly state: LogState;
  readonly seq: number;
  at(seq: number): SessionEvent | undefined;
  slice(from: number, to: number): SessionEvent[];
  /**
   * Appends what the loop itself made: `data` is frozen here, everything in it already is. `time` is for
   * repairs, which add nothing to the clock.
   */
  write<T extends SessionEventType>(
    type: T,
    data: SessionEventMap[T],
    meta?: { readonly surface?: SurfaceOp; readonly cites?: readonly Cite[]; readonly time?: number | undefined },
  ): SessionEvent<T>;
  /** What `change` appends is told when all of it is there. */
  together(change: () => void): void;
  /** While `change` runs, `session/event` is silent: the session is not told of yet. */
  unheard(change: () => void): void;
  /** From now on nothing is appended; `why` tells whoever tries. The first reason counts. */
  close(why: () => TurnloopError): void;
  readonly closed: boolean;
}

export interface LogOptions {
  readonly header: SessionHeader;
  /** What is there already: checked and frozen. */
  readonly events?: readonly SessionEvent[];
  readonly now: () => number;
  readonly report: Report;
  /** Whether a plugin has said that this type may stand between turns. */
  readonly betweenTurns: (type: string) => boolean;
  /** Where `session/event` is heard. */
  readonly hooks?: Dispatch | undefined;
}

const UNRECORDED: Recording = { durable: "stored", wake() {}, async flush() {} };

export function createLog(options: LogOptions): Log & { record(recording: Recording): void } {
  const { header, now, report, betweenTurns, hooks } = options;
  const seedLength = header.seedLength ?? 0;
  const events: SessionEvent[] = [];
  const state = createState();
  const surface = createSurface();
  let recording = UNRECORDED;
  let frozen: readonly SessionEvent[] | undefined;
  let closed: (() => TurnloopError) | undefined;
  /** How many events have been told. */
  let told = 0;
  let telling = false;
  let heard = true;

  function take(event: SessionEvent): void {
    events.push(event);
    advance(state, event, event.seq >= seedLength);
    if (event.surface !== undefined || event.type === "tool/start" || event.type === "turn/end") surface.add(event);
  }
  for (const event of options.events ?? []) {
    try {
      surface.check(event);
    } catch (cause) {
      throw new TurnloopError("INVALID_LOG", `event ${event.seq}: ${messageOf(cause)}`, { cause });
    }
    take(event);
  }
  inherit(state);
  told = events.length;

  const subscribers = createSubscribers(
    {
      start: 0,
      get told() {
        return told;
      },
      get seq() {
        return events.length;
      },
      at: (seq) => events[seq],
    },
    failed,
  );

  function commit(event: SessionEvent): void {
    take(event);
    frozen = undefined;
    recording.wake();
    if (!telling) tellAll();
  }

  function tellAll(): void {
    telling = true;
    while (told < events.length) tell(events[told++]!);
    telling = false;
  }

  function tell(event: SessionEvent): void {
    subscribers.tell(event);
    if (heard && hooks?.heard("session/event")) hooks.emit("session/event", { session, event });
  }

  function failed(cause: unknown): void {
    report({
      code: "LISTENER_FAILED",
      message: `a listener of the session failed: ${messageOf(cause)}`,
      cause,
      sessionId: header.id,
    });
  }

  /** Throws MISPLACED_EVENT unless an event of this type may stand here. */
  function checkPlace(type: SessionEventType, data: { readonly turn?: number; readonly step?: number }): void {
    const { open } = state;
    const misplaced = (what: string): never => {
      throw new TurnloopError("MISPLACED_EVENT", `${type} cannot stand here: ${what}`);
    };
    if (type === "turn/start") {
      if (open) misplaced(`turn ${open.number} is open`);
      if (data.turn !== state.turn + 1) misplaced(`the next turn is ${state.turn + 1}`);
      return;
    }
    if (!open) {
      if (!isBookkeeping(type) && !betweenTurns(type)) {
        misplaced("no turn is open; `sessions.define` lets a type of your own stand between turns");
      }
      return;
    }
    if (type === "turn/end") {
      if (open.step) misplaced(`step ${open.step.number} is open`);
      if (data.turn !== open.number) misplaced(`the open turn is ${open.number}`);
    } else if (type === "step/start") {
      if (open.step) misplaced(`step ${open.step.number} is open`);
      if (data.step !== open.steps + 1) misplaced(`the next step is ${open.steps + 1}`);
    } else if (type === "step/end" && data.step !== open.step?.number) {
      misplaced("that step is not open");
    }
  }

  const session: Session = {
    id: header.id,
    header,
    openedAt: told,
    get seq() {
      return events.length;
    },
    start: 0,
    get events() {
      return (frozen ??= Object.freeze(events.slice()));
    },
    get durable() {
      return recording.durable;
    },
    at: (seq) => events[seq],
    deriveMessages: () => surface.messages(),
    history: () => surface.events(),
    subscribe: subscribers.subscribe,
    append(type, data, { surface: op, cites } = {}) {
      if (closed) throw readOnly(closed());
      const copy = jsonCopy(data);
      checkData(type, copy);
      const own = op === undefined ? undefined : jsonCopy(op);
      const named = cites === undefined ? undefined : jsonCopy(cites);
      checkEnvelope(type, events.length, own, named);
      return add(type, copy, own, named ?? (own && surface.replaced(own)));
    },
    flush: () => recording.flush(),
  };

  function add<T extends SessionEventType>(
    type: T,
    data: SessionEventMap[T],
    op: SurfaceOp | undefined,
    cites: readonly Cite[] | undefined,
    time = Math.trunc(now()),
  ): SessionEvent<T> {
    checkPlace(type, data as { turn?: number; step?: number });
    const seq = events.length;
    // Two shapes and no more, so that the engine keeps events small and alike.
    const event = (
      op === undefined && cites === undefined
        ? { seq, time, type, data }
        : { seq, time, type, data, ...(op && { surface: op }), ...(cites && { cites }) }
    ) as SessionEvent;
    surface.check(event);
    commit(Object.freeze(event));
    return event as SessionEvent<T>;
  }

  return {
    session,
    state,
    get seq() {
      return events.length;
    },
    at: (seq) => events[seq],
    slice: (from, to) => events.slice(from, to),
    write(type, data, meta) {
      if (closed) throw readOnly(closed());
      Object.freeze(data);
      return add(type, data, meta?.surface, meta?.cites, meta?.time);
    },
    together(change) {
      if (telling) {
        change();
        return;
      }
      telling = true;
      try {
        change();
      } finally {
        tellAll();
      }
    },
    unheard(change) {
      heard = false;
      try {
        change();
      } finally {
        heard = true;
      }
    },
    close(why) {
      closed ??= why;
    },
    get closed() {
      return closed !== undefined;
    },
    record(next) {
      recording = next;
    },
  };
}

function readOnly(cause: TurnloopError): TurnloopError {
  return new TurnloopError("READ_ONLY", `this session takes no more events: ${cause.message}`, { cause });
}
