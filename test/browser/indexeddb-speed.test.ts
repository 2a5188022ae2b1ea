/** A long session in the browser's storage: the figures, printed. The goals are for a machine that has nothing else to do. */
import type { SessionEvent } from "turnloop";
import { expect, test } from "vitest";
import { batchOf, events, newName, openStorage, stored } from "./indexeddb-parts.ts";

const EVENTS = 100_000;
const BATCH = 500;

/** Mostly pieces of a streamed answer, as a log is. */
function streamed(seq: number): SessionEvent {
  const chunk = { type: "delta" as const, index: 0, text: `piece ${seq} of what the model says, ` };
  return { seq, time: 1000 + seq, type: "assistant/chunk", data: { turn: 1, step: 1, chunk } };
}

async function timed<T>(work: () => Promise<T>): Promise<[ms: number, result: T]> {
  const start = performance.now();
  const result = await work();
  return [performance.now() - start, result];
}

test(
  "a session of 100,000 events among 1,000 others is listed, opened at its tail, and read whole",
  { timeout: 120_000 },
  async () => {
    const name = newName();
    const writer = openStorage(name);
    for (let i = 0; i < 1000; i += 1) await writer.append(batchOf(`other ${i}`, 0, events(0, 3)));

    const all = events(0, EVENTS, streamed);
    const quarters: number[] = [];
    for (let quarter = 0; quarter < 4; quarter += 1) {
      const [ms] = await timed(async () => {
        for (let from = (quarter * EVENTS) / 4; from < ((quarter + 1) * EVENTS) / 4; from += BATCH)
          await writer.append(batchOf("long", from, all.slice(from, from + BATCH)));
      });
      quarters.push(ms);
    }
    await writer.close?.();

    const reader = openStorage(name);
    const [opened] = await timed(() => reader.list({ limit: 1 }));
    const [list, page] = await timed(() => reader.list());
    const [tail, end] = await timed(() => stored(reader, "long", EVENTS - 100));
    const [whole, read] = await timed(() => stored(reader, "long"));
    expect(page.sessions).toHaveLength(50);
    expect(page.sessions[0]).toMatchObject({ id: "long", seq: EVENTS });
    expect(end).toEqual(all.slice(-100));
    expect(read).toEqual(all);

    const rate = Math.round((EVENTS / quarters.reduce((sum, ms) => sum + ms, 0)) * 1000);
    console.log(
      `IndexedDB, ${EVENTS} events in batches of ${BATCH}: append ${rate} events/s ` +
        `(quarters ${quarters.map((ms) => `${Math.round(ms)} ms`).join(", ")}); first use ${Math.round(opened)} ms, ` +
        `list ${Math.round(list)} ms, the last 100 events ${Math.round(tail)} ms, all of them ${Math.round(whole)} ms`,
    );
  },
);
