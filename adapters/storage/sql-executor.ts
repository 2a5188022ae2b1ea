/** What an SQL engine must be able to do to hold sessions: run a statement, and run several as one. */

export type SqlValue = string | number | null;

/** One statement, with a placeholder for each value: `?` in SQLite, `$1` and so on in Postgres. */
export interface SqlStatement {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/** By the names of its columns. A column of whole numbers may also come as a bigint, or as their digits. */
export type SqlRow = Readonly<Record<string, unknown>>;

/**
 * A thin layer over a driver; no statement depends on what an earlier one answered, so that engines that block and
 * engines that promise are driven alike. Whatever it throws is told as STORAGE_FAILED, with the thrown as its cause.
 */
export interface SqlExecutor {
  readonly dialect: "sqlite" | "postgres";
  /** The rows of one statement that changes nothing. */
  read(statement: SqlStatement): readonly SqlRow[] | Promise<readonly SqlRow[]>;
  /**
   * Runs all of them in this order in one transaction: all or none. What is done when it returns, or resolves,
   * must be durable. Answers the rows of the last one.
   */
  write(statements: readonly SqlStatement[]): readonly SqlRow[] | Promise<readonly SqlRow[]>;
  /** A later use opens it again, or throws. */
  close?(): void | Promise<void>;
}
