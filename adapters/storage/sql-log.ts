/** The log of one session in the tables, read a page at a time. */
import { TurnloopError, type SessionEvent, type StoredSession } from "../../src/core.ts";
import { unpackRecords } from "./packing.ts";
import type { SqlRow } from "./sql-executor.ts";
import { holding, lengthOf, page, type Place } from "./sql-statements.ts";
import type { Query } from "./sql-text.ts";

/** How many rows one query reads; a row is at most 900 kB, and usually a few. */
const PAGE = 32;

export type Read = (query: Query) => Promise<readonly SqlRow[]>;

export interface LogPlace {
  readonly id: string;
  readonly key: number;
  readonly length: number;
}

/** The events from `from` on, as they were when the place was found. Throws SESSION_CORRUPT, SESSION_CONFLICT. */
export function readLog(
  read: Read,
  place: LogPlace,
  from: number,
  signal: AbortSignal | undefined,
): StoredSession["batches"] {
  const { id, key, length } = place;

  /** The records that hold the seqs from `first` up to `end`. */
  async function* records(first: number, end: number): AsyncGenerator<string> {
    const seq = first === 0 ? 0 : Number((await read(holding(key, first)))[0]?.["seq"] ?? first);
    let last: Place = { seq, part: -1 };
    let parts: string[] = [];
    for (let more = true; more;) {
      signal?.throwIfAborted();
      const rows = await read(page(key, last, end, PAGE));
      more = rows.length === PAGE;
      for (const row of rows) {
        const next = { seq: Number(row["seq"]), part: Number(row["part"]) };
        if (next.seq !== last.seq && parts.length > 0) {
          yield parts.join("");
          parts = [];
        }
        parts.push(String(row["text"]));
        last = next;
      }
    }
    if (parts.length > 0) yield parts.join("");
  }

  /** Whoever comes behind the last record has not seen the end of the log. */
  async function* allRecords(): AsyncGenerator<string> {
    yield* records(from, length);
    if ((await read(lengthOf(key))).length === 0)
      throw new TurnloopError("SESSION_CONFLICT", `the session ${id} was deleted while it was read; load it again`);
  }

  async function earlier(first: number, end: number): Promise<readonly string[]> {
    const texts: string[] = [];
    for await (const text of records(first, end)) texts.push(text);
    return texts;
  }

  async function* batches(): AsyncGenerator<readonly SessionEvent[]> {
    if (from < length) yield* unpackRecords(allRecords(), { from, length, earlier });
  }
  return batches();
}
