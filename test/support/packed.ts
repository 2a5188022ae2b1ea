/** Events packed and unpacked as a storage does it. */
import type { SessionEvent } from "turnloop";
import { expect } from "vitest";
import { createPacker, unpackRecords } from "../../adapters/storage/packing.ts";

export type Records = readonly { readonly seq: number; readonly text: string }[];

/** Packs as a storage does, one batch after another; by a new storage object each time where it forgets. */
export function packed(events: readonly SessionEvent[], cuts: readonly number[], forgets = false): Records {
  const ends = [...new Set([...cuts, events.length])].toSorted((a, b) => a - b);
  let packer = createPacker();
  let from = 0;
  return ends.flatMap((end) => {
    const { records, stored } = packer.pack("s", from, events.slice(from, end));
    stored();
    from = end;
    if (forgets) packer = createPacker();
    return end === 0 ? [] : records;
  });
}

/** Reads as a storage does; `read` are the records that it took. */
export async function unpacked(records: Records, from: number, length: number) {
  const holding = (seq: number): number => records.findLastIndex((one) => one.seq <= seq);
  const events: SessionEvent[] = [];
  const read: number[] = [];
  const tail = (function* () {
    for (const { seq, text } of records.slice(holding(from))) {
      read.push(seq);
      yield text;
    }
  })();
  const earlier = (first: number, end: number): string[] => {
    const some = records.slice(holding(first)).filter((one) => one.seq < end);
    read.unshift(...some.map((one) => one.seq));
    return some.map((one) => one.text);
  };
  for await (const batch of unpackRecords(tail, { from, length, earlier })) events.push(...batch);
  return { events, read };
}

export function expectSame(found: unknown, given: unknown): void {
  expect(found).toEqual(given);
  expect(JSON.stringify(found)).toBe(JSON.stringify(given));
}

/** Where batches of so many events end. */
export function every(count: number, length: number): number[] {
  return Array.from({ length: Math.floor(length / count) }, (_, i) => (i + 1) * count);
}
