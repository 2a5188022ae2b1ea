/** The sessions of a harness: those that are live here, and those that are stored. */
import { messageOf, TurnloopError, type Report } from "../errors.ts";
import type { Dispatch } from "../hooks/hooks.ts";
import type { Clock } from "../scope.ts";
import { checkHeader, makeHeader, type HeaderInput } from "../session/header.ts";
import { createLog } from "../session/log.ts";
import { checkEvent, isCoreType } from "../session/shapes.ts";
import { queuedMessages } from "../session/state.ts";
import type {
  SessionEvent,
  SessionEventType,
  SessionHeader,
  Sessions,
  SessionSummary,
  SessionView,
} from "../session/types.ts";
import { fromLines, readStored, toLines, type Archive } from "./archive.ts";
import { openLive, repair, type LiveSession } from "./live.ts";
import { summaryOf } from "./summary.ts";
import type { SessionStorage } from "./types.ts";

export interface SessionStore extends Sessions {
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
  const undriven = new Set<LiveSession>();
  /** Being opened: nothing else may write them. */
  /** The last of the changes of each stored session that are under way: they take turns. */
  const changes = new Map<string, Promise<unknown>>();
  const openings = new Map<string, Set<Opening>>();
  let numbered = 0;
  let closed = false;
  const defined = new Map<string, boolean>();
  const betweenTurns = (type: string): boolean => defined.get(type) === true;

  const store: SessionStore = {
    get: (id) => entered.get(id)?.log.session,
    live: (id) => entered.get(id),
    list: (page) => guarded(() => storage.list(page)),

    async load(id): Promise<SessionView | undefined> {
      const live = entered.get(id);
      if (live) return live.log.session;
      const archive = await store.read(id);
      return archive && view(archive);
    },

    async rename(id, title) {
      if (typeof title !== "string") throw new TurnloopError("INVALID_CONTENT", "a title must be text");
      const live = entered.get(id);
      if (live) {
        live.log.session.append("session/titled", { title });
        await live.recorder.flush();
        return;
      }
      await claimed(id, async () => {
        const archive = await readNow(id);
        if (!archive) throw notFound(id);
        await amend(archive, archive.events.length, ({ log }) => log.session.append("session/titled", { title }));
      });
    },

    async delete(id) {
      if (entered.has(id))
        throw new TurnloopError("SESSION_LIVE", `the session ${id} is live here; dispose its agent first`);
      await claimed(id, () => guarded(() => storage.delete(id)));
    },

    export(id) {
      const live = entered.get(id);
      if (!live) return exportStored(id);
      const { log, recorder } = live;
      const events = log.slice(0, log.seq);
      return (async function* () {
        await recorder.flush();
        yield* toLines(log.session.header, one(events), events.length);
      })();
    },

    async import(lines, { id, move = false } = {}) {
      const { header, events } = await fromLines(lines);
      const target = checkHeader({ ...header, ...(id !== undefined && { id }) });
      if (entered.has(target.id) || (await store.isStored(target.id))) throw exists(target.id);
      return claimed(target.id, () =>
        amend({ header: target, events }, 0, ({ log }) => {
          repair(log, idempotent);
          const left = queuedMessages(log.state).map((entry) => entry.id);
          if (!move && left.length > 0) log.write("inbox/dropped", { ids: Object.freeze(left), reason: "imported" });
        }),
      );
    },

    async flush(session) {
      const live = entered.get(session.id);
      if (!live || live.log.session !== session)
        throw new TurnloopError("SESSION_CLOSED", `the session ${session.id} is not live here`);
      await live.flush();
    },

    define(type: SessionEventType, rules) {
      if (isCoreType(type))
        throw new TurnloopError("INVALID_OPTIONS", `${type} is a type of the core; choose a name of your own`);
      if (defined.has(type))
        throw new TurnloopError("DUPLICATE_EVENT_TYPE", `the event type ${type} is defined already`);
      defined.set(type, rules.betweenTurns);
      return () => {
        defined.delete(type);
      };
    },

    async create({ id, meta, seed } = {}) {
      if (closed) throw new TurnloopError("HARNESS_DISPOSED", "the harness is disposed; create another");
      const events = store.seed(seed ?? []);
      const header = store.header({ id: id ?? (await nextNumber()), meta, ...(seed && { seedLength: events.length }) });
      if (entered.has(header.id) || (await store.isStored(header.id))) throw exists(header.id);
      const live = store.prepare({ header, events }, 0, hooks);
      store.enter(live);
      undriven.add(live);
      hooks.emit("session/created", { session: live.log.session });
      return live.log.session;
    },

    prepare: (archive, stored, layer) =>
      openLive({ ...archive, stored, storage, clock, report, hooks: layer, betweenTurns, onSummary }),

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

    async read(id) {
      await changes.get(id);
      return readNow(id);
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

    isStored: (id) => guarded(async () => (await storage.load(id)) !== undefined),

    seed: (events) => events.map((event, seq) => checkEvent(event, seq)),

    async close() {
      closed = true;
      await Promise.allSettled(
        [...undriven].map(async (live) => {
          await live.recorder.settle().finally(() => live.close());
          entered.delete(live.log.session.id);
          hooks.emit("session/disposed", { session: live.log.session });
        }),
      );
      undriven.clear();
    },
  };

  function readNow(id: string): Promise<Archive | undefined> {
    return guarded(async () => {
      const stored = await storage.load(id);
      return stored && readStored(id, stored);
    });
  }

  /** Changes a stored session, one change after another, with the right to write it. SESSION_LIVE, SESSION_CLAIMED. */
  async function claimed<T>(id: string, body: () => Promise<T>): Promise<T> {
    if (openings.has(id)) {
      throw new TurnloopError("SESSION_LIVE", `the session ${id} is being opened here; wait for that`);
    }
    const change = async (): Promise<T> => {
      const claim = await guarded(async () => storage.claim?.(id, { mode: "fail" }));
      try {
        return await body();
      } finally {
        await claim?.release();
      }
    };
    const forget = (): void => {
      if (changes.get(id) === settled) changes.delete(id);
    };
    const mine = (changes.get(id) ?? Promise.resolve()).then(change);
    const settled: Promise<void> = mine.then(forget, forget);
    changes.set(id, settled);
    return mine;
  }

  async function* exportStored(id: string): AsyncGenerator<string> {
    const archive = await store.read(id);
    if (!archive) throw notFound(id);
    yield* toLines(archive.header, one(archive.events), archive.events.length);
  }

  /** Opens a session for one change, and stores that. */
  async function amend(
    archive: Archive,
    stored: number,
    change: (live: LiveSession) => unknown,
  ): Promise<SessionSummary> {
    const live = store.prepare(archive, stored);
    try {
      change(live);
      await live.recorder.flush();
      return summaryOf(live.log);
    } finally {
      await live.close();
    }
  }

  function view({ header, events }: Archive): SessionView {
    const log = createLog({ header, events, now: () => clock.now(), report, betweenTurns });
    log.close(() => new TurnloopError("SESSION_CLOSED", "it was loaded to be read; open it to write"));
    return log.session;
  }

  async function nextNumber(): Promise<string> {
    for (;;) {
      numbered += 1;
      const id = `session-${numbered}`;
      if (!entered.has(id) && !(await store.isStored(id))) return id;
    }
  }

  return store;
}

/** What a storage throws becomes an error of this package. */
async function guarded<T>(body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (cause) {
    if (TurnloopError.is(cause)) throw cause;
    throw new TurnloopError("STORAGE_FAILED", `the storage failed: ${messageOf(cause)}`, { cause });
  }
}

export function notFound(id: string): TurnloopError {
  return new TurnloopError("SESSION_NOT_FOUND", `no session ${id} is stored; \`open\` or \`create\` begins one`);
}

export function exists(id: string): TurnloopError {
  return new TurnloopError("SESSION_EXISTS", `a session ${id} exists already; \`open\` or \`resume\` goes on with it`);
}

async function* one(events: readonly SessionEvent[]): AsyncGenerator<readonly SessionEvent[]> {
  yield events;
}
