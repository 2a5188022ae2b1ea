/** One record of a stored session: a JSON text that holds a row of events. */
import { TurnloopError, type SessionEvent } from "../../src/core.ts";
import { eventsOfRun, runAt } from "./packing-runs.ts";
import { advance, firstCited, recall, refer, windowAt, type Window } from "./packing-window.ts";

/** Of the records, not of the log. */
const FORMAT = 1;

/** What one record holds at most; a single event may be larger. */
export interface RecordLimits {
  readonly events: number;
  readonly characters: number;
}

/** A record that was parsed: its items are events, runs, and `["m", event]` for an answer made of references. */
export interface OpenRecord {
  /** The first one that it holds. */
  readonly seq: number;
  readonly items: readonly unknown[];
}

/** What a record holds, and the window behind it; or the first seq of what must be read before. */
export type Reading =
  | { readonly events: readonly SessionEvent[]; readonly window: Window; readonly needs?: undefined }
  | { readonly needs: number };

export interface Written {
  readonly seq: number;
  readonly text: string;
}

/** The records of the events, and the window behind them. `from.end` is the seq that the first event should have. */
export function writeRecords(
  events: readonly SessionEvent[],
  from: Window,
  limits: RecordLimits,
): { records: Written[]; window: Window } {
  const records: Written[] = [];
  let window = from;
  let seq = from.end;
  let row: string[] = [];
  let count = 0;
  let size = 0;
  const close = (): void => {
    records.push({ seq, text: `[${[FORMAT, seq, ...row].join()}]` });
    row = [];
    count = size = 0;
  };
  for (let i = 0, taken = 0; i < events.length; i += taken) {
    const event = events[i]!;
    const found = event.seq === window.end ? runAt(events, i) : undefined;
    const item = found ? JSON.stringify(found.run) : itemOf(event, window);
    taken = found?.count ?? 1;
    if (count > 0 && (count + taken > limits.events || size + item.length > limits.characters)) {
      close();
      seq = window.end;
    }
    row.push(item);
    count += taken;
    size += item.length;
    for (const one of events.slice(i, i + taken)) window = advance(window, one);
  }
  if (count > 0 || records.length === 0) close();
  return { records, window };
}

function itemOf(event: SessionEvent, window: Window): string {
  const short = refer(event, window);
  const item = withoutSeq(short ?? event, window);
  return JSON.stringify(short ? ["m", item] : item);
}

/** An event that stands where it must does not say so. */
function withoutSeq(event: SessionEvent, { end }: Window): object {
  if (event.seq !== end || Object.keys(event)[0] !== "seq") return event;
  const { seq: _, ...rest } = event;
  return rest;
}

/** Throws SESSION_CORRUPT. */
export function parseRecord(text: string): OpenRecord {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw corrupt("is not JSON", cause);
  }
  if (!Array.isArray(parsed)) throw corrupt("is not an array");
  const [format, seq, ...items] = parsed as unknown[];
  if (format !== FORMAT) throw corrupt(`is of the format ${JSON.stringify(format)}, and this package reads ${FORMAT}`);
  if (!Number.isSafeInteger(seq)) throw corrupt("does not say where it begins");
  return { seq: seq as number, items };
}

/** Answers before `wanted` stay as they are stored: only what was streamed there matters. Throws SESSION_CORRUPT. */
export function readRecord({ seq, items }: OpenRecord, from: Window, wanted: number): Reading {
  const events: SessionEvent[] = [];
  let window = from.end === seq ? from : windowAt(seq);
  for (const item of items) {
    const row = isReferring(item) ? answerOf(item[1], window, wanted) : eventsOf(item, window.end);
    if (typeof row === "number") return { needs: row };
    for (const event of row) {
      events.push(event);
      window = advance(window, event);
    }
  }
  return { events, window };
}

/** An answer with its texts, or the first seq that is needed for them. */
function answerOf(item: unknown, window: Window, wanted: number): SessionEvent[] | number {
  const short = numbered(item, window.end);
  if (window.end < wanted) return [short];
  const first = firstCited(short);
  if (first !== undefined && first < window.start) return first;
  const event = recall(short, window);
  if (!event) throw corrupt(`holds an answer at ${window.end} that refers to chunks which are not there`);
  return [event];
}

function eventsOf(item: unknown, seq: number): SessionEvent[] {
  if (!Array.isArray(item)) return [numbered(item, seq)];
  const run = eventsOfRun(item, seq);
  if (!run) throw corrupt(`holds chunks at ${seq} that cannot be read`);
  return run;
}

function isReferring(item: unknown): item is readonly ["m", unknown] {
  return Array.isArray(item) && item.length === 2 && item[0] === "m" && isEvent(item[1]);
}

/** What else is wrong with an event is found by whoever takes it into a log. */
function numbered(item: unknown, seq: number): SessionEvent {
  if (!isEvent(item)) throw corrupt(`holds something else than an event at ${seq}`);
  if (Object.hasOwn(item, "seq")) {
    if (!Number.isSafeInteger(item.seq)) throw corrupt(`holds an event without a number at ${seq}`);
    return item;
  }
  const rest: object = item;
  return { seq, ...rest } as SessionEvent;
}

function isEvent(item: unknown): item is SessionEvent {
  return (
    typeof item === "object" &&
    item !== null &&
    Object.hasOwn(item, "type") &&
    typeof (item as { type?: unknown }).type === "string"
  );
}

export function corrupt(what: string, cause?: unknown): TurnloopError {
  return new TurnloopError(
    "SESSION_CORRUPT",
    `a stored record ${what}: it was changed or damaged outside of this package; restore the session from a copy, or delete it`,
    { cause },
  );
}
