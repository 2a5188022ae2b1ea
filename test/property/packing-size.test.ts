/** Packing: how much room plain streaming takes. */
import { createHarness, memoryStorage, type ModelChunk } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { every, expectSame, packed, unpacked } from "../support/packed.ts";

const WORDS = "The loop of an agent, in pieces: what is said once need not be kept twice.\nIt says so here. ";

/** A long text in pieces of so many characters. */
function pieces(size: number): string[] {
  return WORDS.repeat(600).match(new RegExp(`.{1,${size}}`, "gs"))!;
}

/** A session as the loop writes it, in records of so many events: the bytes stored for each byte of the text. */
async function share(perRecord: number, texts: readonly string[]): Promise<number> {
  let now = 1_764_000_000_000;
  const clock = { now: () => (now += 13 + (now % 17)), sleep: () => new Promise<void>(() => {}) };
  const deltas: ModelChunk[] = texts.map((text) => ({ type: "delta", index: 0, text }));
  const model = scriptedModel([{ chunks: [...deltas, { type: "finish", reason: { kind: "stop" } }] }]);
  const harness = createHarness({ model, storage: memoryStorage(), clock });
  const { agent } = await harness.agents.create({ id: "s" });
  agent.send("tell me all");
  await agent.whenIdle();
  const { events } = agent.session;
  await harness.dispose();
  const records = packed(events, every(perRecord, events.length));
  expectSame((await unpacked(records, 0, events.length)).events, events);
  return bytes(records.map(({ text }) => text).join("")) / bytes(texts.join(""));
}

function bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}

test("at most 2.2 times its text, with pieces of four characters and 20 of them in a record; less with more", async () => {
  expect(await share(20, pieces(4))).toBeLessThan(2.2);
  expect(await share(50, pieces(4))).toBeLessThan(1.8);
  expect(await share(1000, pieces(4))).toBeLessThan(1.65);
});

test("at most 2.2 times its text, with larger pieces and half as many in a record; less in a script of larger characters", async () => {
  expect(await share(10, pieces(12))).toBeLessThan(1.7);
  const other = pieces(4).map((text) => text.replaceAll(/./gs, "\u8a9e"));
  expect(await share(20, other)).toBeLessThan(1.6);
});

test("a slow stream costs more, for each record has a head: three pieces of four characters are a fifth of theirs", async () => {
  const slow = await share(3, pieces(4));
  expect(slow).toBeGreaterThan(2.2);
  expect(slow).toBeLessThan(5);
});
