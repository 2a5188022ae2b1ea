/** Packing: how storages that keep text keep the events of a session. */
import type { SessionEvent } from "../../src/core.ts";
import { corrupt, parseRecord, readRecord, writeRecords } from "./packing-record.ts";
import { joinWindows, windowAt, type Window } from "./packing-window.ts";

export interface PackedRecord {
  /** The seq of its first event: the key of the record within its session. */
  readonly seq: number;
  /** JSON, well formed, to be kept as it is. */
  readonly text: string;
}

export interface Packed {
  /** One, unless the batch is large. To be stored together or not at all. */
  readonly records: readonly PackedRecord[];
  /** To be called once the records are stored, and never otherwise: later answers may then refer to them. */
  stored(): void;
}

/** One for each storage object. It remembers what each session streamed lately. */
export interface Packer {
  /** Changes nothing. `events` are numbered from `from` on; what is stored ends at `from`. */
  pack(id: string, from: number, events: readonly SessionEvent[]): Packed;
  /** For a session that was deleted. */
  forget(id: string): void;
}

/** Records stay below this, unless a single event is larger. */
const LIMITS = { events: 1000, characters: 250_000 };
/** A session whose stream is not remembered is stored all the same: its answer just takes more room. */
const REMEMBERED = 100;

export function createPacker(): Packer {
  const windows = new Map<string, Window>();
  return {
    pack(id, from, events) {
      const known = windows.get(id);
      const { records, window } = writeRecords(events, known?.end === from ? known : windowAt(from), LIMITS);
      return {
        records,
        stored() {
          windows.delete(id);
          if (window.last) windows.set(id, window);
          if (windows.size > REMEMBERED) windows.delete(windows.keys().next().value!);
        },
      };
    },
    forget(id) {
      windows.delete(id);
    },
  };
}

export interface UnpackOptions {
  /** The first seq that is wanted; `records` begins with the record that holds it. */
  readonly from: number;
  /** Of the log: records behind it were stored later, and none reaches across it. */
  readonly length: number;
  /**
   * The texts of the records that hold the seqs from `first` up to `end`, in order. Asked for once at most: when
   * an answer refers to chunks that were stored before `records` begins.
   */
  earlier(first: number, end: number): Promise<readonly string[]> | readonly string[];
}

/** Reads records in their order, each only when it is asked for. Throws SESSION_CORRUPT, also for a gap, and for an end that is not there. */
export async function* unpackRecords(
  records: AsyncIterable<string> | Iterable<string>,
  { from, length, earlier }: UnpackOptions,
): AsyncGenerator<readonly SessionEvent[], void, void> {
  let window: Window | undefined;
  for await (const text of records) {
    const record = parseRecord(text);
    if (window && record.seq !== window.end) throw corrupt(`at ${window.end} is missing`);
    window ??= windowAt(record.seq);
    let read = readRecord(record, window, from);
    if (read.needs !== undefined) {
      const missed = readBack(await earlier(read.needs, window.start));
      if (missed?.end !== window.start) throw corrupt(`before ${window.start} is missing`);
      read = readRecord(record, joinWindows(missed, window), from);
      if (read.needs !== undefined) throw corrupt(`before ${missed.start} is missing`);
    }
    window = read.window;
    if (window.end > length) throw corrupt(`goes on behind the end of the log, which is at ${length}`);
    const wanted = read.events.slice(Math.max(0, from - record.seq));
    if (wanted.length > 0) yield wanted;
    if (window.end === length) return;
  }
  if (from < length) throw corrupt(`before ${length}, where the log ends, is missing`);
}

/** The window behind records of which nothing else is wanted. */
function readBack(texts: readonly string[]): Window | undefined {
  let window: Window | undefined;
  for (const text of texts) {
    const record = parseRecord(text);
    const read = readRecord(record, window ?? windowAt(record.seq), Infinity);
    if (read.needs === undefined) ({ window } = read);
  }
  return window;
}

/** One JSON text for events that stand alone. */
export function packEvents(events: readonly SessionEvent[]): string {
  const all = { events: Infinity, characters: Infinity };
  return writeRecords(events, windowAt(events[0]?.seq ?? 0), all).records[0]!.text;
}

/** What `packEvents` was given. Throws SESSION_CORRUPT. */
export function unpackEvents(record: string): readonly SessionEvent[] {
  const opened = parseRecord(record);
  const read = readRecord(opened, windowAt(opened.seq), -Infinity);
  if (read.needs !== undefined) throw corrupt(`refers to chunks from ${read.needs} on, which are in another one`);
  return read.events;
}
