/** The tables, and the version of their layout. */
import { TurnloopError } from "../../src/core.ts";
import type { SqlExecutor, SqlRow } from "./sql-executor.ts";
import { say, sql, type Query } from "./sql-text.ts";

/** Of the layout, not of what is in it. */
const VERSION = 1;

const versionTable = sql`CREATE TABLE IF NOT EXISTS turnloop_schema (
  name TEXT PRIMARY KEY,
  version INTEGER NOT NULL
)`;
const readVersion = sql`SELECT version FROM turnloop_schema WHERE name = 'sessions'`;
const writeVersion = sql`INSERT INTO turnloop_schema (name, version) VALUES ('sessions', ${VERSION})
  ON CONFLICT (name) DO NOTHING`;

/**
 * `length` is 0 only within the transaction that creates the session. A key is never used again, so what is written
 * to a deleted session cannot land in its namesake. The row is small: it is written again with each flush, and has
 * no index beside that of its id, since engines bill each row that they write.
 */
const sessionsTable: Readonly<Record<SqlExecutor["dialect"], Query>> = {
  sqlite: sql`CREATE TABLE IF NOT EXISTS turnloop_sessions (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  length INTEGER NOT NULL,
  updated DOUBLE PRECISION NOT NULL,
  summary TEXT NOT NULL
)`,
  postgres: sql`CREATE TABLE IF NOT EXISTS turnloop_sessions (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  length BIGINT NOT NULL,
  updated DOUBLE PRECISION NOT NULL,
  summary TEXT NOT NULL
)`,
};

/** Each flush is one row: `seq` is that of its first event, -1 for the header. A large one has several parts. */
const recordsTable: Readonly<Record<SqlExecutor["dialect"], Query>> = {
  sqlite: sql`CREATE TABLE IF NOT EXISTS turnloop_records (
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  part INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (session, seq, part)
) WITHOUT ROWID`,
  // A session may be deleted while another replica has appended and not committed yet.
  postgres: sql`CREATE TABLE IF NOT EXISTS turnloop_records (
  session BIGINT NOT NULL REFERENCES turnloop_sessions (key) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  part BIGINT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (session, seq, part)
)`,
};

/** Postgres fails two who create the same table at once: one waits for the other. The number is any, but fixed. */
const inTurn: Readonly<Record<SqlExecutor["dialect"], readonly Query[]>> = {
  sqlite: [],
  postgres: [sql`SELECT pg_advisory_xact_lock(7240531)`],
};

/** Makes the tables that are missing. Throws STORAGE_VERSION, having changed nothing, and what the engine throws. */
export async function openSchema(executor: SqlExecutor): Promise<void> {
  const { dialect } = executor;
  const write = (...queries: readonly Query[]): ReturnType<SqlExecutor["write"]> =>
    executor.write([...inTurn[dialect], ...queries].map((query) => say(query, dialect)));
  const found =
    (await firstRow(executor)) ??
    (await write(versionTable, readVersion))[0] ??
    (await write(sessionsTable[dialect], recordsTable[dialect], writeVersion, readVersion))[0];
  const version = Number(found?.["version"]);
  if (version !== VERSION) {
    throw new TurnloopError(
      "STORAGE_VERSION",
      `the tables of this database are of version ${version}, and this package knows ${VERSION}: ${version > VERSION ? "update it" : "use the version that made them"}`,
    );
  }
}

/** Undefined where there is no table yet; if there is another reason, making one tells it. */
async function firstRow(executor: SqlExecutor): Promise<SqlRow | undefined> {
  try {
    return (await executor.read(say(readVersion, executor.dialect)))[0];
  } catch {
    return undefined;
  }
}
