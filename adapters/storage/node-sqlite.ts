/** Sessions in a file of SQLite, with the driver that Node brings along. */
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { TurnloopError, type SessionStorage } from "../../src/core.ts";
import type { SqlExecutor, SqlRow, SqlStatement } from "./sql-executor.ts";
import { sqlStorage } from "./sql.ts";

/** How long a statement blocks this process while another one writes, before it waits without blocking. */
const BLOCKING_MS = 20;
/** For how long a write is tried while others write. */
const PATIENCE_MS = 5000;

/** Of SQLite: another connection has the lock that is needed. */
const BUSY = 5;

/**
 * Opens the file, and makes it if it is not there. Needs Node 22.13 or newer. Any number of processes on one machine
 * may use the file at once; it must not lie on a network share. What is acknowledged outlives a process that is
 * killed, and a loss of power too, as far as the disk keeps what it says it has (WAL, `synchronous = FULL`). Throws
 * INVALID_OPTIONS, and STORAGE_FAILED when the file cannot be opened. `close` closes the file; a later use opens it
 * again.
 */
export function nodeSqliteStorage(file: string): SessionStorage {
  if (typeof file !== "string" || file === "" || file === ":memory:") {
    throw new TurnloopError("INVALID_OPTIONS", "needs the path of a file; `memoryStorage()` keeps sessions in memory");
  }
  return sqlStorage(createExecutor(file));
}

interface Connection {
  readonly database: DatabaseSync;
  /** By their text, of which there are few. */
  readonly prepared: Map<string, StatementSync>;
}

function createExecutor(file: string): SqlExecutor {
  let connection = connectUnlessBusy(file);

  function run({ sql, params }: SqlStatement): SqlRow[] {
    const { database, prepared } = (connection ??= connect(file));
    let statement = prepared.get(sql);
    if (!statement) prepared.set(sql, (statement = database.prepare(sql)));
    return statement.all(...params);
  }

  function exec(sql: string): void {
    (connection ??= connect(file)).database.exec(sql);
  }

  function transact(statements: readonly SqlStatement[]): SqlRow[] {
    // The lock to write is taken first: a transaction that began by reading might fail to get it later.
    exec("BEGIN IMMEDIATE");
    try {
      const rows = statements.map(run);
      exec("COMMIT");
      return rows.at(-1) ?? [];
    } catch (thrown) {
      rollBack();
      throw thrown;
    }
  }

  function rollBack(): void {
    try {
      exec("ROLLBACK");
    } catch {
      // Of some failures, as of a full disk, SQLite has rolled back already.
    }
  }

  return {
    dialect: "sqlite",
    read: (statement) => patiently(() => run(statement)),
    write: (statements) => patiently(() => transact(statements)),
    close() {
      connection?.database.close();
      connection = undefined;
    },
  };
}

/** So that a file that cannot be opened is told at once; while others have it, the first use goes on trying. */
function connectUnlessBusy(file: string): Connection | undefined {
  try {
    return connect(file);
  } catch (thrown) {
    if (isBusy(thrown)) return undefined;
    throw thrown;
  }
}

/** Throws STORAGE_FAILED; and what SQLite throws while another connection has the lock, as it does to make a file. */
function connect(file: string): Connection {
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file);
    database.exec(`PRAGMA busy_timeout = ${BLOCKING_MS}`);
    const [mode] = database.prepare("PRAGMA journal_mode").all();
    if (mode?.["journal_mode"] !== "wal") database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = FULL");
    return { database, prepared: new Map() };
  } catch (cause) {
    database?.close();
    if (isBusy(cause)) throw cause;
    throw new TurnloopError("STORAGE_FAILED", `the file ${file} cannot be opened: ${(cause as Error).message}`, {
      cause,
    });
  }
}

/** Waits for others without blocking this process. */
async function patiently<T>(attempt: () => T): Promise<T> {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return attempt();
    } catch (thrown) {
      if (!isBusy(thrown) || performance.now() >= end) throw thrown;
      await sleep(5 + Math.random() * 20);
    }
  }
}

/** Also in its extended forms, which are told in the higher bits. */
function isBusy(thrown: unknown): boolean {
  const code = (thrown as { errcode?: unknown } | null)?.errcode;
  return typeof code === "number" && (code & 0xff) === BUSY;
}
