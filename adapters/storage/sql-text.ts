/** Statements as values: SQL with holes, which each dialect writes in its own way. */
import type { SqlExecutor, SqlStatement, SqlValue } from "./sql-executor.ts";

export interface Query {
  readonly texts: readonly string[];
  readonly params: readonly SqlValue[];
}

export function sql(texts: TemplateStringsArray, ...params: readonly SqlValue[]): Query {
  return { texts, params };
}

/** The text is the same for each use of a query, so that a driver can keep it prepared. */
export function say({ texts, params }: Query, dialect: SqlExecutor["dialect"]): SqlStatement {
  const hole = dialect === "postgres" ? (i: number) => `$${i}` : () => "?";
  return { sql: texts.reduce((text, next, i) => text + hole(i) + next), params };
}
