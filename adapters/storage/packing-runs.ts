/** Runs of text that a model streamed: one text, where it was cut, and when each piece came. */
import type { SessionEvent } from "../../src/core.ts";
import { readCodes, writeCodes } from "./packing-codes.ts";

/** Of the first piece: turn, step, index, time. Then the text, and the codes of all lengths and all delays. */
export type Run = readonly [number, number, number, number, string, string];

/** How many pieces one run holds at most, so that a broken record cannot ask for any amount of memory. */
const PIECES = 1000;

type ChunkEvent = SessionEvent<"assistant/chunk">;
export type DeltaEvent = ChunkEvent & { readonly data: { readonly chunk: { readonly type: "delta" } } };

/** The longest run that begins with the event at `at`, and how many events it is; undefined when there is none. */
export function runAt(events: readonly SessionEvent[], at: number): { run: Run; count: number } | undefined {
  const first = events[at]!;
  if (!isPlainDelta(first)) return undefined;
  const { turn, step, chunk } = first.data;
  const lengths: number[] = [];
  const delays: number[] = [];
  let text = "";
  let before: SessionEvent = first;
  for (let i = at; i < events.length && lengths.length < PIECES; i += 1) {
    const event = events[i]!;
    if (i > at) {
      if (event.seq !== before.seq + 1 || !(event.time >= before.time) || !isPlainDelta(event)) break;
      if (event.data.turn !== turn || event.data.step !== step || event.data.chunk.index !== chunk.index) break;
    }
    const piece = (event as DeltaEvent).data.chunk.text;
    text += piece;
    lengths.push(piece.length);
    delays.push(event.time - before.time);
    before = event;
  }
  const codes = writeCodes([...lengths, ...delays]);
  return { run: [turn, step, chunk.index, first.time, text, codes], count: lengths.length };
}

/** Undefined for what `runAt` never made. */
export function eventsOfRun(run: readonly unknown[], firstSeq: number): SessionEvent[] | undefined {
  const [turn, step, index, start, text, codes] = run;
  if (run.length !== 6 || typeof text !== "string" || typeof codes !== "string") return undefined;
  if (!isCount(turn) || !isCount(step) || !isCount(index) || !Number.isSafeInteger(start)) return undefined;
  const values = readCodes(codes, 2 * PIECES);
  if (!values || values.length % 2 !== 0) return undefined;
  const count = values.length / 2;
  const events: SessionEvent[] = [];
  let time = start as number;
  let end = 0;
  for (let i = 0; i < count; i += 1) {
    const piece = text.slice(end, end + values[i]!);
    end += values[i]!;
    time += values[count + i]!;
    const chunk = { type: "delta", index, text: piece } as const;
    events.push({ seq: firstSeq + i, time, type: "assistant/chunk", data: { turn, step, chunk } });
  }
  return end === text.length ? events : undefined;
}

/** Exactly what `eventsOfRun` makes, to the order of the fields. */
function isPlainDelta(event: SessionEvent): event is DeltaEvent {
  if (event.type !== "assistant/chunk" || !hasFields(event, "seq,time,type,data")) return false;
  const { data } = event;
  if (!hasFields(data, "turn,step,chunk") || !hasFields(data.chunk, "type,index,text")) return false;
  const { turn, step, chunk } = data;
  if (chunk.type !== "delta" || typeof chunk.text !== "string") return false;
  return [turn, step, chunk.index, event.seq].every(isCount) && Number.isSafeInteger(event.time);
}

function hasFields(value: unknown, fields: string): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).join() === fields;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
