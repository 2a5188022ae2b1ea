/** The sessions of a harness: those that are live here, and those that are stored. */
import { failureOf, type Report, TurnloopError } from "../errors.ts";
import { defined } from "../json.ts";
import { enter } from "../hooks/entries.ts";
import type { Dispatch } from "../hooks/hooks.ts";
import type { Clock } from "../scope.ts";
import { makeHeader, type HeaderInput } from "../session/header.ts";
import { createLog } from "../session/log.ts";
import { checkEvent, isCoreType } from "../session/shapes.ts";
import type {
  SessionEvent,
  SessionEventType,
  SessionHeader,
  Sessions,
  SessionSummary,
  SessionView,
} from "../session/types.ts";
import type { Archive } from "./archive.ts";
import { createLeases, takenOver, type Lease, type Leases } from "./leases.ts";
import { openLive, type LiveSession } from "./live.ts";
import { createStored, exists } from "./stored.ts";
import type { SessionStorage } from "./types.ts";

export interface SessionStore extends Sessions {
  /** The rights to write. */
  readonly leases: Leases;
  /** A private session: nobody sees it before it is entered. `stored`: how many of its events are stored. */
  prepare(archive: Archive, stored: number, hooks?: Dispatch): LiveSession;
  /** A new header, with a minted id where none is given. INVALID_HEADER, INVALID_CONTENT. */
  header(input: Partial<HeaderInput>): SessionHeader;
  /** SESSION_LIVE when the id is taken. Tells nobody; the undo removes exactly this one. */
  enter(live: LiveSession, opening?: Opening): () => void;
  live(id: string): LiveSession | undefined;
  /** The whole of a stored session, checked; undefined when it is not stored. */
  read(id: string): Promise<Archive | undefined>;
  /** An agent of this id is being made: nobody else writes the stored session, and whoever enters first stops the rest. */
  opening(id: string, overtaken: (error: TurnloopError) => void): Opening;
  /** Reads no events. */
  isStored(id: string): Promise<boolean>;
  /** The events of a seed, checked, detached and frozen. INVALID_LOG. */
  seed(events: readonly SessionEvent[]): SessionEvent[];
  /** Closes the sessions that no agent drives. */
  close(): Promise<void>;
}

export interface Opening {
  readonly overtaken: (error: TurnloopError) => void;
  end(): void;
}

export interface SessionStoreOptions {
  readonly storage: SessionStorage;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly report: Report;
  readonly hooks: Dispatch;
  /** Whether a tool of this name may be run again after a crash. */
  readonly idempotent: (tool: string) => boolean;
  readonly onSummary?: ((summary: SessionSummary) => unknown) | undefined;
}

export function createSessions(options: SessionStoreOptions): SessionStore {
  const { storage, clock, newId, report, hooks, idempotent, onSummary } = options;
  const entered = new Map<string, LiveSession>();
  const undriven = new Map<LiveSession, Lease>();
  const leases = createLeases(storage, clock, report);
  /** The agents that are being made, by their id. */
  const openings = new Map<string, Set<Opening>>();
  let numbered = 0;
  let closed = false;
  const ownTypes = new Map<string, { readonly betweenTurns: boolean }>();
  const betweenTurns = (type: string): boolean => ownTypes.get(type)?.betweenTurns === true;

  const stored = createStored({
    storage,
    leases,
    idempotent,
    prepare: (archive, from) => store.prepare(archive, from),
    checkAtRest(id) {
      if (entered.has(id))
        throw new TurnloopError("SESSION_LIVE", `the session ${id} is live here; dispose its agent first`);
      if (openings.has(id))
        throw new TurnloopError("SESSION_LIVE", `the session ${id} is being opened here; wait for that`);
    },
  });

  const store: SessionStore = {
    leases,
    get: (id) => entered.get(id)?.log.session,
    live: (id) => entered.get(id),
    list: stored.list,
    read: stored.read,
    isStored: stored.isStored,
    delete: stored.delete,

    async load(id): Promise<SessionView | undefined> {
      const live = entered.get(id);
      if (live) return live.log.session;
      const archive = await store.read(id);
      return archive && view(archive);
    },

    async rename(id, title) {
      if (typeof title !== "string") throw new TurnloopError("INVALID_CONTENT", "a title must be text");
      const live = entered.get(id);
      if (!live) return stored.rename(id, title);
      live.log.session.append("session/titled", { title });
      await live.recorder.settle();
    },

    export(id) {
      const live = entered.get(id);
      if (!live) return stored.export(id);
      const { log, recorder } = live;
      const events = log.slice(0, log.seq);
      return (async function* () {
        await recorder.flush();
        yield* (await import("./lines.ts")).toLines({ header: log.session.header, events });
      })();
    },

    async import(lines, { id, move = false } = {}) {
      const archive = await (await import("./lines.ts")).fromLines(lines);
      const target = id ?? archive.header.id;
      if (entered.has(target)) throw exists(target);
      return stored.import(archive, { id, move });
    },

    async flush(session) {
      const live = entered.get(session.id);
      if (!live || live.log.session !== session)
        throw new TurnloopError("SESSION_CLOSED", `the session ${session.id} is not live here`);
      await live.flush();
    },

    define(type: SessionEventType, rules) {
      if (isCoreType(type))
        throw new TurnloopError("INVALID_OPTIONS", `${type} is a type of the core; choose another name`);
      return enter(ownTypes, type, { ...rules }, "DUPLICATE_EVENT_TYPE", "the event type");
    },

    async create({ id, meta, seed } = {}) {
      if (closed) throw new TurnloopError("HARNESS_DISPOSED", "the harness is disposed; create another");
      const events = store.seed(seed ?? []);
      const header = store.header(defined({ id: id ?? (await nextNumber()), meta, seedLength: seed && events.length }));
      if (entered.has(header.id)) throw exists(header.id);
      const lease = await leases.take(header.id);
      let live: LiveSession;
      try {
        if (entered.has(header.id) || (await stored.isStored(header.id))) throw exists(header.id);
        if (closed) throw new TurnloopError("HARNESS_DISPOSED", "the harness is disposed; create another");
        live = store.prepare({ header, events }, 0, hooks);
        store.enter(live);
      } catch (thrown) {
        await lease.release();
        throw thrown;
      }
      undriven.set(live, lease);
      lease.onLost(() => live.recorder.lose(takenOver(header.id)));
      hooks.emit("session/created", { session: live.log.session });
      return live.log.session;
    },

    prepare: (archive, from, layer) =>
      openLive({ ...archive, stored: from, storage, clock, report, hooks: layer, betweenTurns, onSummary }),

    header: ({ id, createdAt, ...rest }) =>
      makeHeader({ ...rest, id: id ?? newId(), createdAt: createdAt ?? clock.now() }),

    enter(live, own) {
      const { id } = live.log.session;
      const taken = (): TurnloopError =>
        new TurnloopError("SESSION_LIVE", `the session ${id} is live already; \`open\` joins it`);
      if (entered.has(id)) throw taken();
      entered.set(id, live);
      for (const other of openings.get(id) ?? []) if (other !== own) other.overtaken(taken());
      return () => {
        if (entered.get(id) === live) entered.delete(id);
      };
    },

    opening(id, overtaken) {
      const all = openings.get(id) ?? new Set();
      openings.set(id, all);
      const opening: Opening = {
        overtaken,
        end() {
          all.delete(opening);
          if (all.size === 0 && openings.get(id) === all) openings.delete(id);
        },
      };
      all.add(opening);
      return opening;
    },

    seed: (events) => events.map((event, seq) => checkEvent(event, seq)),

    async close() {
      closed = true;
      await stored.atRest();
      await Promise.all(
        [...undriven].map(async ([live, lease]) => {
          const { session } = live.log;
          try {
            await live.recorder.settle();
          } catch (cause) {
            report(failureOf("FLUSH_FAILED", "the session is not stored whole", cause, session.id));
          }
          await live.close();
          await lease.release();
          entered.delete(session.id);
          hooks.emit("session/disposed", { session });
        }),
      );
      undriven.clear();
    },
  };

  function view({ header, events }: Archive): SessionView {
    const log = createLog({ header, events, now: () => clock.now(), report, betweenTurns });
    log.close(() => new TurnloopError("SESSION_CLOSED", "it was loaded to be read; open it to write"));
    return log.session;
  }

  async function nextNumber(): Promise<string> {
    for (;;) {
      numbered += 1;
      const id = `session-${numbered}`;
      if (!entered.has(id) && !(await stored.isStored(id))) return id;
    }
  }

  return store;
}
