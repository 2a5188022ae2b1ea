/** Every statement that touches a session. The database itself checks that an append goes on where the log ends. */
import type { SessionBatch } from "../../src/core.ts";
import type { PackedRecord } from "./packing.ts";
import { cut, nameOf } from "./sql-parts.ts";
import { sql, type Query } from "./sql-text.ts";

/** Where the header is kept. */
const HEADER = -1;

/**
 * All that an append writes. Each statement does nothing unless the stored length is `from` (and the session is the
 * one of `key`, where the writer knows it); the last one answers a row when the append was done, and none otherwise.
 */
export function append(batch: SessionBatch, records: readonly PackedRecord[], key: number | null): Query[] {
  const { from, events, header, summary } = batch;
  const name = nameOf(batch.id);
  const to = from + events.length;
  const { updatedAt } = summary;
  const said = JSON.stringify(summary);
  const row = (seq: number, part: number, text: string): Query =>
    sql`INSERT INTO turnloop_records (session, seq, part, text)
  SELECT key, CAST(${seq} AS BIGINT), CAST(${part} AS BIGINT), CAST(${text} AS TEXT) FROM turnloop_sessions
  WHERE id = ${name} AND length = ${from} AND key = COALESCE(CAST(${key} AS BIGINT), key)
  ON CONFLICT DO NOTHING`;
  const rows = (seq: number, text: string): Query[] => cut(text).map((part, i) => row(seq, i, part));
  return [
    ...(header && from === 0
      ? [
          sql`INSERT INTO turnloop_sessions (id, length, updated, summary)
  VALUES (${name}, 0, ${updatedAt}, ${said}) ON CONFLICT (id) DO NOTHING`,
          ...rows(HEADER, JSON.stringify(header)),
        ]
      : []),
    ...records.flatMap(({ seq, text }) => rows(seq, text)),
    sql`UPDATE turnloop_sessions SET length = ${to}, updated = ${updatedAt}, summary = ${said}
  WHERE id = ${name} AND length = ${from} AND key = COALESCE(CAST(${key} AS BIGINT), key)
  RETURNING key`,
  ];
}

/** Rows `key`, `length`, `text`: one for each part of the header, or one without a text where there is none. */
export function find(id: string): Query {
  return sql`SELECT key, length, text FROM turnloop_sessions LEFT JOIN turnloop_records ON session = key AND seq = ${HEADER}
  WHERE id = ${nameOf(id)} ORDER BY part`;
}

/** A row `length` while there is a session of that key. */
export function lengthOf(key: number): Query {
  return sql`SELECT length FROM turnloop_sessions WHERE key = ${key}`;
}

/** A row `seq`: that of the record which holds the event of the seq. */
export function holding(key: number, seq: number): Query {
  return sql`SELECT seq FROM turnloop_records WHERE session = ${key} AND seq >= 0 AND seq <= ${seq}
  ORDER BY seq DESC LIMIT 1`;
}

export interface Place {
  readonly seq: number;
  readonly part: number;
}

/** Rows `seq`, `part`, `text`: what lies behind a place, and begins before the seq `end`. */
export function page(key: number, { seq, part }: Place, end: number, limit: number): Query {
  return sql`SELECT seq, part, text FROM turnloop_records
  WHERE session = ${key} AND (seq, part) > (${seq}, ${part}) AND seq < ${end}
  ORDER BY seq, part LIMIT ${limit}`;
}

/** Rows `id`, `length`, `updated`, `summary`: newest first, behind the row that has these two. */
export function list(updated: number, name: string, limit: number): Query {
  return sql`SELECT id, length, updated, summary FROM turnloop_sessions
  WHERE updated < ${updated} OR (updated = ${updated} AND id > ${name})
  ORDER BY updated DESC, id LIMIT ${limit}`;
}

export function erase(id: string): Query[] {
  return [
    sql`DELETE FROM turnloop_records WHERE session IN (SELECT key FROM turnloop_sessions WHERE id = ${nameOf(id)})`,
    sql`DELETE FROM turnloop_sessions WHERE id = ${nameOf(id)}`,
  ];
}
