/** The log of one session in the database: appended at its end alone, read in pages. */
import { jsonEqual, TurnloopError, type SessionBatch, type SessionEvent, type SessionSummary } from "../../src/core.ts";
import type { Database, Mark, Reading, SessionRow, Writing } from "./indexeddb-database.ts";
import { unpackRecords, type Packed, type PackedRecord, type Packer } from "./packing.ts";
import { checkLength, listed } from "./rows.ts";

/** How many records one request reads. */
const PAGE = 16;

export interface Append {
  readonly batch: SessionBatch;
  readonly packed: Packed;
}

export interface Writer {
  /** What this writer knows of the session, if anything. */
  readonly known: Mark | undefined;
  /** Whether another page may have stored this batch for us: then finding it there is as good as writing it. */
  readonly completed: boolean;
}

/** A batch as it is now, whatever its owner does with it afterwards. */
export function prepareAppend(batch: SessionBatch, packer: Packer): Append {
  const { id, from, events, header, summary } = batch;
  const copy = { id, from, events: [...events], summary: { ...summary } };
  return {
    batch: header ? { ...copy, header: structuredClone(header) } : copy,
    packed: packer.pack(id, from, events),
  };
}

/** Throws SESSION_EXISTS, SESSION_CONFLICT, INVALID_BATCH. Returns what the writer knows from here on. */
export async function writeAppend(database: Database, { batch, packed }: Append, writer: Writer): Promise<Mark> {
  const { id, from, events } = batch;
  const { known, completed } = writer;
  let row: SessionRow | undefined;
  let found = false;
  await database.write(async (tx) => {
    row = await tx.objectStore("sessions").get(id);
    found = row !== undefined && completed && !isStolen(row, known) && (await holds(tx, row, from, events));
    if (found) return [];
    row = nextRow(row, batch, known);
    return writeRecords(tx, row, packed.records);
  });
  if (!found) packed.stored();
  return { log: row!.log, epoch: row!.epoch };
}

/** The row after the batch; throws if the batch does not go on where the row ends. */
function nextRow(row: SessionRow | undefined, batch: SessionBatch, known: Mark | undefined): SessionRow {
  const { id, from, events, header, summary } = batch;
  const now = { id, age: -summary.updatedAt, length: from + events.length, summary };
  if (from === 0) {
    if (row)
      throw new TurnloopError("SESSION_EXISTS", `the session ${id} is stored already; resume it, or choose another id`);
    if (!header) throw new TurnloopError("INVALID_BATCH", "the first batch of a session needs its header");
    return { ...now, header, log: newMark(), epoch: 0 };
  }
  if (row?.length !== from || isStolen(row, known)) {
    const found = row ? `has ${row.length} stored events, and this batch begins at ${from}` : "is not stored any more";
    throw new TurnloopError("SESSION_CONFLICT", `the session ${id} ${found}: somebody else has changed it`);
  }
  return { ...row, ...now };
}

/** From here on, whoever wrote the session before gets SESSION_CONFLICT. Undefined where there is none. */
export async function steal(database: Database, id: string): Promise<Mark | undefined> {
  let mark: Mark | undefined;
  await database.write(async (tx) => {
    const sessions = tx.objectStore("sessions");
    const row = await sessions.get(id);
    mark = row && { log: row.log, epoch: row.epoch + 1 };
    return row ? [sessions.put({ ...row, ...mark })] : [];
  });
  return mark;
}

/** Deletes a session, or all of them. */
export function deleteLog(database: Database, id?: string): Promise<void> {
  return database.write(async (tx) => {
    const [sessions, records] = [tx.objectStore("sessions"), tx.objectStore("records")];
    if (id === undefined) return [sessions.clear(), records.clear()];
    return [sessions.delete(id), records.delete(rangeOf(id, 0, Number.MAX_SAFE_INTEGER))];
  });
}

/** Another session has this id by now, or another writer took this one. */
function isStolen(row: SessionRow, known: Mark | undefined): boolean {
  return known !== undefined && (row.log !== known.log || row.epoch !== known.epoch);
}

export function writeRecords(tx: Writing, row: SessionRow, records: readonly PackedRecord[]): Promise<unknown>[] {
  const store = tx.objectStore("records");
  return [...records.map(({ seq, text }) => store.add(text, [row.id, seq])), tx.objectStore("sessions").put(row)];
}

/** Whether the log holds exactly these events at `from`. */
async function holds(tx: Writing, row: SessionRow, from: number, events: readonly SessionEvent[]): Promise<boolean> {
  if (row.length < from + events.length) return false;
  return jsonEqual((await readFrom(tx, row, from)).slice(0, events.length), events);
}

/** Everything from `from` on, within one transaction. */
export async function readFrom(tx: Writing, { id, length }: SessionRow, from: number): Promise<SessionEvent[]> {
  const { records } = await readRecords(tx, id, { from, to: length });
  const earlier = async (first: number, end: number): Promise<readonly string[]> =>
    (await readRecords(tx, id, { from: first, to: end })).records;
  const events: SessionEvent[] = [];
  for await (const batch of unpackRecords(records, { from, length, earlier })) events.push(...batch);
  return events;
}

interface Range {
  readonly from: number;
  readonly to: number;
  readonly count?: number;
}

interface Page {
  readonly records: readonly string[];
  /** The seq of the last record, if there may be more behind it. */
  readonly last: number | undefined;
}

/** The records that hold the seqs from `from` up to `to`, or the first `count` of them. */
async function readRecords(tx: Reading | Writing, id: string, { from, to, count }: Range): Promise<Page> {
  const range = IDBKeyRange.bound([id, 0], [id, from]);
  const holding = await tx.objectStore("records").openKeyCursor(range, "prev");
  return readPage(tx, rangeOf(id, holding?.key[1] ?? from, to), count);
}

async function readPage(tx: Reading | Writing, range: IDBKeyRange, count?: number): Promise<Page> {
  const store = tx.objectStore("records");
  const [records, keys] = await Promise.all([store.getAll(range, count), count ? store.getAllKeys(range, count) : []]);
  return { records, last: keys.length === count ? keys.at(-1)?.[1] : undefined };
}

/** The records of a session that begin at `from` or later and before `to`. */
function rangeOf(id: string, from: number, to: number): IDBKeyRange {
  return IDBKeyRange.bound([id, from], [id, to], false, true);
}

export interface Found {
  readonly row: SessionRow;
  batches(options: { from: number; signal: AbortSignal | undefined }): AsyncIterable<readonly SessionEvent[]>;
}

/** A session as it is now; its events are read when they are asked for. */
export async function findLog(database: Database, id: string): Promise<Found | undefined> {
  const row = await database.read((tx) => tx.objectStore("sessions").get(id));
  if (!row) return undefined;
  const { log } = row;
  const length = checkLength(row.length, id);

  /** SESSION_CONFLICT when the session is not the same any more. */
  const same = (read: (tx: Reading) => Promise<Page>): Promise<Page> =>
    database.read(async (tx) => {
      const [current, page] = await Promise.all([tx.objectStore("sessions").get(id), read(tx)]);
      if (current?.log === log) return page;
      throw new TurnloopError("SESSION_CONFLICT", `the session ${id} was deleted while it was read; load it again`);
    });

  async function* records(from: number, signal: AbortSignal | undefined): AsyncGenerator<string> {
    let reading: Promise<Page> | undefined;
    if (from < length) reading = same((tx) => readRecords(tx, id, { from, to: length, count: PAGE }));
    while (reading) {
      const { records: texts, last }: Page = await reading;
      signal?.throwIfAborted();
      // On its way while this one is unpacked.
      reading = last === undefined ? undefined : same((tx) => readPage(tx, rangeOf(id, last + 1, length), PAGE));
      reading?.catch(() => {});
      yield* texts;
    }
  }

  return {
    row,
    batches: ({ from, signal }) =>
      unpackRecords(records(from, signal), {
        from,
        length,
        earlier: async (first, end) => (await same((tx) => readRecords(tx, id, { from: first, to: end }))).records,
      }),
  };
}

/** The rows of a page, newest first, behind `cursor`. */
export async function listRows(
  database: Database,
  { limit = 50, cursor }: { limit?: number | undefined; cursor?: string | undefined },
): Promise<{ sessions: SessionSummary[]; cursor?: string }> {
  const count = Math.min(Math.max(Math.trunc(limit), 0), 2 ** 31);
  const behind = cursor === undefined ? undefined : IDBKeyRange.lowerBound(placeOf(cursor), true);
  const rows = await database.read((tx) =>
    tx
      .objectStore("sessions")
      .index("newest")
      .getAll(behind, count + 1),
  );
  const page = rows.slice(0, count);
  const last = page.at(-1);
  return {
    sessions: page.map(({ id, length, age, summary }) => listed(summary, { id, length, updatedAt: -age })),
    ...(last && rows.length > count && { cursor: `${last.age} ${last.id}` }),
  };
}

function placeOf(cursor: string): [number, string] {
  const [, age, id] = /^(-?\d+) (.*)$/s.exec(cursor) ?? [];
  if (age === undefined || id === undefined)
    throw new TurnloopError("INVALID_OPTIONS", "that is no `cursor` of this list; take the one of its last page");
  return [Number(age), id];
}

/** Something that no other of its kind is. */
export function newMark(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join("-");
}
