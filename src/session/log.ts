/** The log of a session: append-only, frozen, numbered; and its readers, told in order. */
import { failureOf, messageOf, type Report, TurnloopError } from "../errors.ts";
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
  durable(): Durability;
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

const UNRECORDED: Recording = { durable: () => "stored", wake() {}, async flush() {} };

/** A symbol, no private name: what is made on top of a session, with it as its prototype, reads the same. */
const LOG = Symbol("log");

/** What of a session changes as its log does. */
interface Inside {
  readonly seq: number;
  events(): readonly SessionEvent[];
  durable(): Durability;
}

/** On a prototype: each object literal that has getters is a dictionary, which only a full collection frees. */
class Shown implements Pick<Session, "seq" | "events" | "durable"> {
  readonly [LOG]: Inside;

  constructor(log: Inside) {
    this[LOG] = log;
  }

  get seq(): number {
    return this[LOG].seq;
  }

  get events(): readonly SessionEvent[] {
    return this[LOG].events();
  }

  get durable(): Durability {
    return this[LOG].durable();
  }
}

export function createLog(options: LogOptions): Log & { record(recording: Recording): void } {
  const { header, now, report, betweenTurns, hooks } = options;
  const seedLength = header.seedLength ?? 0;
  const events: SessionEvent[] = [];
  const state = createState();
  const surface = createSurface();
  let recording = UNRECORDED;
  let frozen: readonly SessionEvent[] | undefined;
  let closed: (() => TurnloopError) | undefined;
  let telling = false;
  let heard = true;

  const write: Log["write"] = (type, data, meta) => {
    if (closed) throw readOnly(closed());
    Object.freeze(data);
    return add(type, data, meta?.surface, meta?.cites, meta?.time);
  };

  const log = {
    state,
    start: 0,
    seq: 0,
    /** How many events have been told. */
    told: 0,
    closed: false,
    at: (seq: number): SessionEvent | undefined => events[seq],
    slice: (from: number, to: number): SessionEvent[] => events.slice(from, to),
    events: (): readonly SessionEvent[] => (frozen ??= Object.freeze(events.slice())),
    durable: (): Durability => recording.durable(),

    write,

    together(change: () => void) {
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

    unheard(change: () => void) {
      heard = false;
      try {
        change();
      } finally {
        heard = true;
      }
    },

    close(why: () => TurnloopError) {
      closed ??= why;
      log.closed = true;
    },

    record(next: Recording) {
      recording = next;
    },
  };

  function take(event: SessionEvent): void {
    log.seq = events.push(event);
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
  log.told = log.seq;
  const subscribers = createSubscribers(log, failed);

  function commit(event: SessionEvent): void {
    take(event);
    frozen = undefined;
    recording.wake();
    if (!telling) tellAll();
  }

  function tellAll(): void {
    telling = true;
    while (log.told < log.seq) tell(events[log.told++]!);
    telling = false;
  }

  function tell(event: SessionEvent): void {
    subscribers.tell(event);
    if (heard && hooks?.heard("session/event")) hooks.emit("session/event", { session, event });
  }

  function failed(cause: unknown): void {
    report(failureOf("LISTENER_FAILED", "a listener of the session failed", cause, header.id));
  }

  /** Throws MISPLACED_EVENT unless an event of this type may stand here. */
  function checkPlace(type: SessionEventType, data: { readonly turn?: number; readonly step?: number }): void {
    const { open } = state;
    if (type === "turn/start") {
      if (open) misplaced(type, `turn ${open.number} is open`);
      if (data.turn !== state.turn + 1) misplaced(type, `the next turn is ${state.turn + 1}`);
      return;
    }
    if (!open) {
      if (!isBookkeeping(type) && !betweenTurns(type)) {
        misplaced(type, "no turn is open; `sessions.define` lets a type stand between turns");
      }
      return;
    }
    if (type === "turn/end") {
      if (open.step) misplaced(type, `step ${open.step.number} is open`);
      if (data.turn !== open.number) misplaced(type, `the open turn is ${open.number}`);
    } else if (type === "step/start") {
      if (open.step) misplaced(type, `step ${open.step.number} is open`);
      if (data.step !== open.steps + 1) misplaced(type, `the next step is ${open.steps + 1}`);
    } else if (type === "step/end" && data.step !== open.step?.number) {
      misplaced(type, "that step is not open");
    }
  }

  const append: Session["append"] = (type, data, { surface: op, cites } = {}) => {
    if (closed) throw readOnly(closed());
    const copy = jsonCopy(data);
    checkData(type, copy);
    const own = op === undefined ? undefined : jsonCopy(op);
    const named = cites === undefined ? undefined : jsonCopy(cites);
    checkEnvelope(type, events.length, own, named);
    return add(type, copy, own, named ?? (own && surface.replaced(own)));
  };

  const session: Session = Object.assign(new Shown(log), {
    id: header.id,
    header,
    openedAt: log.told,
    start: 0,
    at: log.at,
    deriveMessages: () => surface.messages(),
    history: () => surface.events(),
    subscribe: subscribers.subscribe,
    append,
    flush: () => recording.flush(),
  });

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

  return Object.assign(log, { session });
}

function readOnly(cause: TurnloopError): TurnloopError {
  return new TurnloopError("READ_ONLY", `this session takes no more events: ${cause.message}`, { cause });
}

function misplaced(type: string, what: string): never {
  throw new TurnloopError("MISPLACED_EVENT", `${type} cannot stand here: ${what}`);
}
