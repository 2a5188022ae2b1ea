/** The database of one name: opened when first used, closed for an upgrade, opened again when it was lost. */
import { openDB, type DBSchema, type IDBPDatabase, type IDBPTransaction } from "idb";
import { TurnloopError, type Diagnostic, type SessionHeader, type SessionSummary } from "../../src/core.ts";
import { isClosed, isRefused, toTurnloop } from "./indexeddb-errors.ts";

/** One session: all that a list shows, and what an append is measured against. */
export interface SessionRow extends Mark {
  readonly id: string;
  /** `updatedAt`, negative: the index counts up, and the newest comes first. */
  readonly age: number;
  /** How many events are stored. */
  readonly length: number;
  readonly header: SessionHeader;
  readonly summary: SessionSummary;
}

/** What tells a session from another that took its id, and a writer from the one that it was stolen from. */
export interface Mark {
  /** Made with the first batch. */
  readonly log: string;
  /** One more with each claim that was stolen. */
  readonly epoch: number;
}

interface Schema extends DBSchema {
  sessions: { key: string; value: SessionRow; indexes: { newest: [age: number, id: string] } };
  /** One packed record for each batch, by the seq of its first event. */
  records: { key: [id: string, first: number]; value: string };
}

type Stores = ("sessions" | "records")[];
export type Connection = IDBPDatabase<Schema>;
export type Reading = IDBPTransaction<Schema, Stores, "readonly">;
export type Writing = IDBPTransaction<Schema, Stores, "readwrite">;

export interface Database {
  /** A transaction that only reads. Fails with errors of this package. */
  read<T>(body: (tx: Reading) => Promise<T>): Promise<T>;
  /**
   * A transaction that writes: all of it or nothing, acknowledged once it is complete. The body awaits
   * only what it reads; it returns what it has asked to be written.
   */
  write(body: (tx: Writing) => Promise<readonly Promise<unknown>[]>): Promise<void>;
  /**
   * The page is being frozen: what is under way is given up, as it would keep every other tab waiting, and begun again
   * once the undo is called.
   */
  pause(): () => void;
  /** Ends the connection; it is opened again when something is used. */
  close(): Promise<void>;
}

export interface DatabaseOptions {
  readonly name: string;
  readonly version: number;
  readonly report: (diagnostic: Diagnostic) => void;
  /** The connection is about to be given up for another page's upgrade. */
  readonly onUpgrade: () => void;
}

/** How long an open may take before those who wait for it are told. */
const PATIENCE_MS = 5000;
const STORES: Stores = ["sessions", "records"];

interface Opening {
  readonly connection: Promise<Connection>;
  /** Rejects STORAGE_BLOCKED when it takes too long; the open itself goes on. */
  readonly blocked: Promise<never>;
}

/** Every error is typed: STORAGE_UNAVAILABLE, -BLOCKED, -OUTDATED, -FOREIGN, -QUOTA, -FAILED, SESSION_CONFLICT. */
export function createDatabase({ name, version, report, onUpgrade }: DatabaseOptions): Database {
  let opening: Opening | undefined;
  let paused: Promise<void> | undefined;
  /** So often has what was under way been given up. */
  let pauses = 0;
  const underWay = new Set<IDBPTransaction<Schema, Stores, IDBTransactionMode>>();

  function open(): Opening {
    const { promise: blocked, reject } = Promise.withResolvers<never>();
    blocked.catch(() => {});
    const block = (): void => {
      clearTimeout(patience);
      const message = `another tab keeps the database ${name} from being opened; close the other tabs of this site`;
      report({ code: "STORAGE_BLOCKED", message });
      reject(new TurnloopError("STORAGE_BLOCKED", message));
    };
    const patience = setTimeout(block, PATIENCE_MS);
    const connection = connect(block, () => forget());
    const mine: Opening = { connection, blocked };
    const forget = (): void => {
      if (opening === mine) opening = undefined;
    };
    connection.then(
      () => clearTimeout(patience),
      () => {
        clearTimeout(patience);
        forget();
      },
    );
    return mine;
  }

  async function connect(blocked: () => void, forget: () => void): Promise<Connection> {
    try {
      const connection: Connection = await openDB<Schema>(name, version, {
        upgrade(db) {
          db.createObjectStore("sessions", { keyPath: "id" }).createIndex("newest", ["age", "id"]);
          db.createObjectStore("records");
        },
        blocked,
        blocking(_current, wanted) {
          if (wanted !== null) onUpgrade();
          forget();
          // Ends when the transactions that run have ended.
          connection.close();
        },
        terminated: forget,
      });
      return connection;
    } catch (thrown) {
      if (!isRefused(thrown)) throw thrown;
      throw new TurnloopError("STORAGE_UNAVAILABLE", "the browser gives this page no database", { cause: thrown });
    }
  }

  /** The connection may be lost without a word: then once more, on a new one. */
  async function use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    try {
      for (let first = true; ; first = false) {
        await paused;
        const before = pauses;
        const mine = (opening ??= open());
        const connection = await Promise.race([mine.connection, mine.blocked]);
        try {
          return await work(connection);
        } catch (thrown) {
          // The page may have been thawed before this is heard.
          if (pauses > before) continue;
          if (!isClosed(thrown) || !first) throw thrown;
          if (opening === mine) opening = undefined;
        }
      }
    } catch (thrown) {
      throw toTurnloop(thrown);
    }
  }

  function begin<M extends "readonly" | "readwrite">(
    tx: IDBPTransaction<Schema, Stores, M>,
  ): IDBPTransaction<Schema, Stores, M> {
    underWay.add(tx);
    const ended = (): void => void underWay.delete(tx);
    tx.done.then(ended, ended);
    return tx;
  }

  return {
    read: (body) => use((connection) => body(begin(connection.transaction(STORES, "readonly")))),

    write: (body) =>
      use(async (connection) => {
        // Outlives a browser that is killed, as `strict` does; only a power cut may take the last moments.
        const tx = begin(connection.transaction(STORES, "readwrite", { durability: "relaxed" }));
        try {
          const writes = await body(tx);
          // Without it, what is written in `pagehide` does not outlive the page.
          if (writes.length > 0) tx.commit();
          await Promise.all([...writes, tx.done]);
        } catch (thrown) {
          // A quota that is exceeded shows here alone: the requests had succeeded, or were aborted.
          const cause = tx.error ?? thrown;
          abort(tx);
          throw cause;
        }
      }),

    pause() {
      const pausing = Promise.withResolvers<void>();
      paused = pausing.promise;
      pauses += 1;
      for (const tx of underWay) abort(tx);
      return () => {
        if (paused === pausing.promise) paused = undefined;
        pausing.resolve();
      };
    },

    async close() {
      const last = opening;
      opening = undefined;
      const closed = last?.connection.then(
        (connection) => connection.close(),
        () => {},
      );
      await Promise.race([closed, last?.blocked.catch(() => {})]);
    },
  };
}

function abort(tx: { abort(): void }): void {
  try {
    tx.abort();
  } catch {
    // It has ended already.
  }
}
