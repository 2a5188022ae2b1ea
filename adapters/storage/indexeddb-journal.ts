/**
 * What was not stored when the page went, kept in `localStorage`: the one thing that every browser still
 * writes in `pagehide`. Where there is none, as in Workers, nothing is kept.
 */
import { checkEvent, checkHeader, TurnloopError, type SessionBatch } from "../../src/core.ts";
import type { Mark } from "./indexeddb-database.ts";
import { isSummary } from "./rows.ts";

/** How many characters one page keeps, of all its sessions. */
const BUDGET = 200_000;

export interface Tail {
  readonly batch: SessionBatch;
  /** What the writer knew of the stored session; absent when it had stored nothing. */
  readonly mark?: Mark;
  /** How many events more there were than could be kept. */
  readonly cut: number;
}

export interface Journal {
  /** Whether something is kept by this page. */
  readonly used: boolean;
  /** Keeps these tails, in place of those that it kept before. Never throws; answers whether all could be kept. */
  keep(tails: readonly Omit<Tail, "cut">[]): boolean;
  /** Takes back what `keep` has kept. Answers the sessions whose tail another page has taken meanwhile. */
  takeBack(): readonly string[];
  /** Keeps what is left of one that this page is done with: found by the next load, this page's too. */
  leave(tail: Omit<Tail, "cut">): boolean;
  /** The keys of what other pages have kept, or have left, of all sessions or of one. */
  find(id?: string): readonly string[];
  /** Undefined when it is gone. Throws what is wrong with it. */
  read(key: string): Tail | undefined;
  remove(key: string): void;
  /** Removes everything of this database, or of one of its sessions. */
  clear(id?: string): void;
}

export function createJournal(database: string, writer: string): Journal {
  const prefix = `turnloop:tail:${database.length}:${database}:`;
  /** By key, the session. */
  const mine = new Map<string, string>();
  let left = 0;

  function forget(): void {
    for (const key of mine.keys()) storage()?.removeItem(key);
    mine.clear();
  }

  /** Answers how many characters it took; undefined when not all of it could be kept. */
  function put(key: string, tail: Omit<Tail, "cut">, room: number): number | undefined {
    const fitting = fit(tail, room);
    const text = JSON.stringify(fitting);
    try {
      storage()?.setItem(key, text);
      return fitting.cut === 0 ? text.length : undefined;
    } catch {
      return undefined;
    }
  }

  const keysOf = (id?: string): string[] =>
    Object.keys(storage() ?? {}).filter(
      (key) => key.startsWith(prefix) && (id === undefined || key.slice(prefix.length).replace(WRITER, "") === id),
    );

  return {
    get used() {
      return mine.size > 0;
    },

    keep(tails) {
      forget();
      let room = BUDGET;
      let whole = true;
      for (const tail of tails) {
        const { id } = tail.batch;
        const key = `${prefix}${writer}:${id}`;
        mine.set(key, id);
        const taken = put(key, tail, room);
        whole &&= taken !== undefined;
        room -= taken ?? room;
      }
      return whole;
    },

    takeBack() {
      const taken = [...mine].filter(([key]) => storage()?.getItem(key) === null).map(([, id]) => id);
      forget();
      return taken;
    },

    leave(tail) {
      left += 1;
      return put(`${prefix}${writer}-${left}:${tail.batch.id}`, tail, BUDGET) !== undefined;
    },

    find: (id) => keysOf(id).filter((key) => !mine.has(key)),

    read(key) {
      const text = storage()?.getItem(key);
      return typeof text === "string" ? parse(text) : undefined;
    },

    remove: (key) => storage()?.removeItem(key),

    clear(id) {
      for (const key of keysOf(id)) storage()?.removeItem(key);
    },
  };
}

/** The part of a key that says whose it is. */
const WRITER = /^[^:]*:/;

/** The longest beginning of a tail that has room. */
function fit({ batch, mark }: Omit<Tail, "cut">, room: number): Tail {
  let size = JSON.stringify({ ...batch, events: [] }).length + 200;
  const over = batch.events.findIndex((event) => (size += JSON.stringify(event).length + 1) > room);
  const events = over < 0 ? batch.events : batch.events.slice(0, over);
  return { batch: { ...batch, events }, ...(mark && { mark }), cut: batch.events.length - events.length };
}

/** Whatever becomes part of a log is checked before: one bad event would make all of it unreadable. */
function parse(text: string): Tail {
  const tail = JSON.parse(text) as Tail;
  const { id, from, events, header, summary } = tail.batch;
  if (!isSummary(summary) || summary.id !== id || !Number.isSafeInteger(from) || !Number.isSafeInteger(tail.cut))
    throw new TypeError("it is not what a page has left");
  if (header !== undefined) unlessNewer(() => checkHeader(header, id));
  for (const [i, event] of events.entries()) unlessNewer(() => checkEvent(event, from + i));
  return tail;
}

/** What a newer version of the page has left is kept for it. */
function unlessNewer(check: () => unknown): void {
  try {
    check();
  } catch (thrown) {
    if (!TurnloopError.is(thrown, "UNKNOWN_EVENT") && !TurnloopError.is(thrown, "UNKNOWN_VERSION")) throw thrown;
  }
}

/** Reading the property throws where site data are blocked. */
function storage(): Storage | undefined {
  try {
    return globalThis.localStorage;
  } catch {
    return undefined;
  }
}
