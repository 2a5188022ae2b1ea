/** Sessions in the SQLite database of a Durable Object, any number of them in one object. */
import type { SessionStorage } from "../../src/core.ts";
import type { SqlExecutor, SqlRow, SqlStatement } from "./sql-executor.ts";
import { sqlStorage } from "./sql.ts";

/** What is used of the `ctx` that the platform hands to the constructor of a Durable Object. */
export interface DurableObjectContext {
  readonly storage: {
    readonly sql: {
      exec(query: string, ...bindings: (string | number | null)[]): { toArray(): SqlRow[] };
    };
    transactionSync<T>(body: () => T): T;
    sync(): Promise<void>;
  };
}

/**
 * Storage of an object whose class has an SQLite database (`new_sqlite_classes`). An append is acknowledged when the
 * platform has confirmed it, and writes two rows: one of events, and the session's own.
 */
export function durableObjectStorage({ storage }: DurableObjectContext): SessionStorage {
  const run = ({ sql, params }: SqlStatement): SqlRow[] => storage.sql.exec(sql, ...params).toArray();
  const executor: SqlExecutor = {
    dialect: "sqlite",
    read: run,
    async write(statements) {
      // The body must not await: what it wrote behind an await would be outside of the transaction.
      const rows = storage.transactionSync(() => statements.map(run));
      await storage.sync();
      return rows.at(-1) ?? [];
    },
  };
  return sqlStorage(executor);
}
