/** Sessions in the browser's database: for one page, several tabs, or a Worker. */
import {
  TurnloopError,
  type Diagnostic,
  type SessionBatch,
  type SessionStorage,
  type StoredSession,
} from "../../src/core.ts";
import { createClaims } from "./indexeddb-claim.ts";
import { createDatabase, type Mark } from "./indexeddb-database.ts";
import { warn } from "./indexeddb-errors.ts";
import { orMemory } from "./indexeddb-fallback.ts";
import { createJournal } from "./indexeddb-journal.ts";
import { deleteLog, findLog, listRows, newMark, prepareAppend, steal, writeAppend } from "./indexeddb-log.ts";
import { createTails } from "./indexeddb-tails.ts";
import { createPacker } from "./packing.ts";

export interface IndexedDBOptions {
  /** Of the database: one for each user. Default `turnloop`. */
  readonly name?: string;
  /**
   * Told what no caller can be told. Default: `console.warn`. Codes: STORAGE_UNAVAILABLE (there is no database
   * here: sessions are in memory, `durable` is false), STORAGE_BLOCKED (another tab is in the way), STORAGE_FAILED,
   * TAIL_LOST (the end of a log did not get into it; the `cause` is its events, or why they cannot be read), TAIL_NOT_KEPT (a page went with
   * more than it could leave to the next one).
   */
  readonly onDiagnostic?: (diagnostic: Diagnostic) => void;
}

export interface IndexedDBStorage extends SessionStorage {
  /** For a logout: deletes every session of this `name`. An agent that lives on is `lost` with its next event. */
  clear(): Promise<void>;
  /**
   * For whoever writes behind: `tail` gives what is not acknowledged yet, and is called when the page is about to
   * go. Its undo hands in what is left. Without it, only batches that were handed to `append` outlive the page.
   */
  watchTail(id: string, tail: () => SessionBatch | undefined): () => void;
}

/** Of the layout of the database. */
const VERSION = 1;

/**
 * Sessions in IndexedDB. Errors by code: STORAGE_QUOTA, STORAGE_BLOCKED, STORAGE_OUTDATED (a newer version of the
 * page has changed the database), STORAGE_FOREIGN (a database of that name is not ours), STORAGE_FAILED. `claim`
 * takes a Web Lock. `close` ends the connection; a later use opens it again.
 */
export function indexedDBStorage({ name = "turnloop", onDiagnostic = warn }: IndexedDBOptions = {}): IndexedDBStorage {
  if (typeof name !== "string" || name === "")
    throw new TurnloopError("INVALID_OPTIONS", "a database needs a `name`: text that is not empty");
  const report = (diagnostic: Diagnostic): void => {
    try {
      onDiagnostic(diagnostic);
    } catch {
      // There is nobody else to tell.
    }
  };
  return orMemory(globalThis.indexedDB && openStorage(name, report), report);
}

function openStorage(name: string, report: (diagnostic: Diagnostic) => void): IndexedDBStorage {
  const claims = createClaims(name);
  const packer = createPacker();
  const journal = createJournal(name, newMark());
  const database = createDatabase({ name, version: VERSION, report, onUpgrade: () => tails.keep() });
  /** What this page knows of the sessions that it writes. */
  const known = new Map<string, Mark>();
  const tails = createTails({ journal, claims, database, known, report });

  return {
    durable: true,

    async append(given) {
      if (given.events.length === 0) return;
      const append = prepareAppend(given, packer);
      const { batch } = append;
      const { id } = batch;
      tails.began(batch);
      await tails.ready();
      try {
        const writer = { known: known.get(id), completed: tails.completed(id) };
        known.set(id, await writeAppend(database, append, writer));
      } catch (thrown) {
        if (TurnloopError.is(thrown, "SESSION_CONFLICT") && !(await findLog(database, id))) tails.forget(id);
        throw thrown;
      }
      tails.stored(batch);
    },

    async load(id, { from = 0, signal } = {}): Promise<StoredSession | undefined> {
      signal?.throwIfAborted();
      await tails.ready();
      await tails.merge(id);
      const found = await findLog(database, id);
      signal?.throwIfAborted();
      if (!found) return undefined;
      const { header, length, log, epoch } = found.row;
      // Who reads the whole is about to write; who reads an end compares.
      if (from === 0) known.set(id, { log, epoch });
      return { header, length, batches: found.batches({ from, signal }) };
    },

    async list(page = {}) {
      await tails.ready();
      return listRows(database, page);
    },

    async delete(id) {
      await deleteLog(database, id);
      packer.forget(id);
      tails.forget(id);
    },

    async claim(id, options) {
      const claim = await claims.take(id, options);
      if (options.mode !== "steal") return claim;
      try {
        const mark = await steal(database, id);
        if (mark) known.set(id, mark);
        return claim;
      } catch (thrown) {
        await claim.release();
        throw thrown;
      }
    },

    watchTail: tails.watch,

    async clear() {
      await deleteLog(database);
      tails.forget();
    },

    async close() {
      tails.close();
      await database.close();
    },
  };
}
