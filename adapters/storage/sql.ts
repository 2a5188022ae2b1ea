/** Sessions in an SQL database: one dialect for SQLite and Postgres, behind a small executor. */
import { TurnloopError, type SessionBatch, type SessionHeader, type SessionStorage } from "../../src/core.ts";
import { createPacker } from "./packing.ts";
import { checkLength, listed } from "./rows.ts";
import type { SqlExecutor, SqlRow } from "./sql-executor.ts";
import { readLog, type Read } from "./sql-log.ts";
import { idOf, readJson } from "./sql-parts.ts";
import { openSchema } from "./sql-schema.ts";
import { append, erase, find, list } from "./sql-statements.ts";
import { say, type Query } from "./sql-text.ts";

export type { SqlExecutor, SqlRow, SqlStatement, SqlValue } from "./sql-executor.ts";

/** How many sessions are known by their key; of the others, a namesake is not told from what it replaced. */
const KNOWN = 10_000;

/**
 * Sessions in the tables `turnloop_sessions`, `turnloop_records` and `turnloop_schema`, which the first use makes.
 * Any number of storages, processes and replicas may use one database: each session is written by whoever appended
 * last, the others get SESSION_CONFLICT. Errors by code: STORAGE_VERSION (a newer version of this package made the
 * tables), STORAGE_FAILED (the engine's own error is the `cause`), SESSION_CORRUPT. `close` closes the executor.
 */
export function sqlStorage(executor: SqlExecutor): SessionStorage {
  const { dialect } = executor;
  const packer = createPacker();
  /** The keys of the sessions that are written here. */
  const known = new Map<string, number>();
  let opened: Promise<void> | undefined;

  /** What fails is tried again by the next one. */
  function open(): Promise<void> {
    return (opened ??= openSchema(executor).catch((thrown: unknown) => {
      opened = undefined;
      throw failure(thrown);
    }));
  }

  const read: Read = async (query) => {
    try {
      return await executor.read(say(query, dialect));
    } catch (thrown) {
      throw failure(thrown);
    }
  };

  async function write(queries: readonly Query[]): Promise<readonly SqlRow[]> {
    try {
      return await executor.write(queries.map((query) => say(query, dialect)));
    } catch (thrown) {
      throw failure(thrown);
    }
  }

  function know(id: string, key: number): void {
    known.delete(id);
    known.set(id, key);
    if (known.size > KNOWN) known.delete(known.keys().next().value!);
  }

  return {
    durable: true,

    async append(batch) {
      const { id, from, events, header } = batch;
      if (events.length === 0) return;
      if (from === 0 && !header)
        throw new TurnloopError("INVALID_BATCH", "the first batch of a session needs its header");
      const packed = packer.pack(id, from, events);
      const queries = append(batch, packed.records, from === 0 ? null : (known.get(id) ?? null));
      await open();
      const [done] = await write(queries);
      if (!done) throw refusal(batch);
      packed.stored();
      know(id, Number(done["key"]));
    },

    async load(id, { from = 0, signal } = {}) {
      signal?.throwIfAborted();
      await open();
      const rows = await read(find(id));
      signal?.throwIfAborted();
      const [first] = rows;
      if (!first) return undefined;
      const place = { id, key: Number(first["key"]), length: checkLength(Number(first["length"]), id) };
      // Who reads all of it is about to write; who reads its end compares.
      if (from === 0) know(id, place.key);
      const header = parse<SessionHeader>(rows.map(({ text }) => text).join(""), id);
      return { header, length: place.length, batches: readLog(read, place, from, signal) };
    },

    async list({ limit = 50, cursor } = {}) {
      const count = Math.min(Math.max(Math.trunc(limit), 0), 2 ** 31 - 2);
      const behind = placeOf(cursor);
      await open();
      const rows = await read(list(behind.updated, behind.id, count + 1));
      const page = rows.slice(0, count);
      const last = page.at(-1);
      return {
        sessions: page.map(({ id, length, updated, summary }) =>
          listed(readJson(String(summary)), {
            id: idOf(String(id)),
            length: Number(length),
            updatedAt: Number(updated),
          }),
        ),
        ...(last && rows.length > count && { cursor: `${Number(last["updated"])} ${String(last["id"])}` }),
      };
    },

    async delete(id) {
      await open();
      await write(erase(id));
      packer.forget(id);
      known.delete(id);
    },

    async close() {
      opened = undefined;
      try {
        await executor.close?.();
      } catch (thrown) {
        throw failure(thrown);
      }
    },
  };
}

function refusal({ id, from }: SessionBatch): TurnloopError {
  return from === 0
    ? new TurnloopError("SESSION_EXISTS", `the session ${id} is stored already; resume it, or choose another id`)
    : new TurnloopError(
        "SESSION_CONFLICT",
        `the stored session ${id} does not end at ${from}: somebody else has changed it; open it again`,
      );
}

function failure(thrown: unknown): TurnloopError {
  if (TurnloopError.is(thrown)) return thrown;
  const what = thrown instanceof Error ? thrown.message : String(thrown);
  return new TurnloopError("STORAGE_FAILED", `the database failed: ${what}`, { cause: thrown });
}

/** What else is wrong with it is found by whoever uses it. */
function parse<T>(text: string, id: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new TurnloopError(
      "SESSION_CORRUPT",
      `what is stored of the session ${id} is no JSON: restore the session from a copy, or delete it`,
      { cause },
    );
  }
}

/** Text of the cursor: when the last session of the page was changed, and its id. */
function placeOf(cursor: string | undefined): { updated: number; id: string } {
  if (cursor === undefined) return { updated: Number.MAX_VALUE, id: "" };
  const [, updated, id] = /^(-?[\d.e+]+) (.+)$/s.exec(cursor) ?? [];
  if (id === undefined || !Number.isFinite(Number(updated)))
    throw new TurnloopError("INVALID_OPTIONS", "that is no `cursor` of this list; take the one of its last page");
  return { updated: Number(updated), id };
}
