/** Packing: whatever is packed comes back identical, small where it can be, and never wrong. */
import * as fc from "fast-check";
import { TurnloopError, type ContentBlock, type ModelChunk, type SessionEvent } from "turnloop";
import { describe, expect, test } from "vitest";
import { createPacker, packEvents, unpackEvents, unpackRecords } from "../../adapters/storage/packing.ts";
import {
  line,
  logOf,
  plainTurn,
  stepEnd,
  stepStart,
  turnEnd,
  turnStart,
  user,
  type Line,
} from "../support/made-log.ts";
import { every, expectSame, packed, unpacked } from "../support/packed.ts";

/** Cut anywhere, also through a pair of surrogates; with ids, with odd fields, of several blocks. */
const piece = fc.oneof(
  { weight: 6, arbitrary: fc.string({ maxLength: 6 }) },
  fc.constantFrom("\ud83d", "\ude00", "\ud83d\ude00", '"', "\\", "\n", "~3;", "}7;", "\u2028", ""),
  fc.string({ unit: "binary", maxLength: 200 }),
);
const index = fc.nat({ max: 2 });
const DELTA = fc.constant("delta" as const);
const chunk = fc.oneof(
  { weight: 12, arbitrary: fc.record({ type: DELTA, index, text: piece }) },
  fc.record({ type: DELTA, index, text: piece, id: fc.string() }),
  fc.record({ text: piece, index, type: DELTA }),
  fc.record({ type: fc.constant("block-end" as const), index }),
  fc.constantFrom<ModelChunk>(
    { type: "block-start", index: 0, block: { type: "reasoning" } },
    { type: "block-end", index: 0, block: { type: "text", text: "authoritative" } },
    { type: "usage", usage: { output: 3 } },
    { type: "finish", reason: { kind: "stop" } },
  ),
) satisfies fc.Arbitrary<ModelChunk>;

/** JSON with every sort of key and text. */
const anything = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);
const keyed = fc
  .dictionary(fc.oneof(fc.constantFrom("__proto__", "constructor", "toJSON", "seq", "0"), fc.string()), anything)
  .map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>);

/** Events of no log: of any type, with any fields in any order. */
const odd = fc
  .record({
    seq: fc.nat({ max: 9 }),
    time: fc.integer(),
    type: fc.string(),
    data: anything,
    more: keyed,
    how: fc.nat(),
  })
  .map(({ more, how, ...rest }) => {
    if (how % 3 === 0) return Object.assign(more, rest);
    const { seq, ...others } = rest;
    if (how % 3 === 1) return Object.assign(others, { seq });
    return Object.assign(rest, { type: "assistant/message", cites: [[0, 3]] });
  }) as fc.Arbitrary<unknown> as fc.Arbitrary<SessionEvent>;

const hows = ["text", "tool-call", "otherwise", "like a reference", "uncited"] as const;

/** An answer that says what was streamed, or nearly that. */
function answerOf(chunks: readonly ModelChunk[], how: (typeof hows)[number]): Line {
  const texts = new Map<number, string>();
  for (const one of chunks) {
    if (one.type === "delta") texts.set(one.index, (texts.get(one.index) ?? "") + one.text);
  }
  const content = [...texts].map(([at, raw]): ContentBlock => {
    const text = raw.toWellFormed();
    if (how === "tool-call") return { type: "tool-call", callId: `c${at}`, name: "work", arguments: text };
    if (how === "like a reference" && at > 0) return { type: "text", text: [at, text.length] as never };
    return { meta: { at }, type: "text", text: how === "otherwise" ? `${text}!` : text };
  });
  return line("assistant/message", { turn: 1, step: 1, model: "m", content }, { surface: "append" });
}

const delay = fc.oneof(fc.nat({ max: 40 }), fc.constantFrom(0, 0, 88, 89, 100_000, -5));
const step = fc.record({
  chunks: fc.array(fc.tuple(chunk, delay), { maxLength: 60 }),
  how: fc.constantFrom(...hows),
  between: fc.option(keyed),
});

const log = fc.array(step, { minLength: 1, maxLength: 3 }).map((steps) => {
  const lines: Line[] = [turnStart(1), user("m1")];
  let time = 1_764_000_000_000;
  for (const { chunks, how, between } of steps) {
    lines.push(stepStart(1, 1));
    const cites = [[lines.length, lines.length + chunks.length - 1]] as const;
    for (const [one, after] of chunks) {
      lines.push({ time: (time += after), ...line("assistant/chunk", { turn: 1, step: 1, chunk: one }) });
    }
    if (between) lines.push({ type: "my/event", data: between } as never);
    const answer = answerOf(
      chunks.map(([one]) => one),
      how,
    );
    lines.push(how === "uncited" ? answer : { ...answer, cites }, stepEnd(1, 1));
  }
  return logOf(lines, turnEnd(1), plainTurn(2));
});

describe("packing", () => {
  test("any log comes back identical, in any batches, from any seq on, as long as it ever was", async () => {
    const cuts = fc.array(fc.nat({ max: 200 }), { maxLength: 12 });
    let references = 0;
    await fc.assert(
      fc.asyncProperty(log, cuts, fc.boolean(), fc.nat(), fc.nat(), async (events, all, forgets, a, b) => {
        const inside = all.map((cut) => cut % events.length);
        const records = packed(events, inside, forgets);
        references += records.filter(({ text }) => text.includes('["m",')).length;
        expectSame((await unpacked(records, 0, events.length)).events, events);
        const from = a % events.length;
        const lengths = [...records.map(({ seq }) => seq), events.length].filter((length) => length > from);
        const length = lengths[b % lengths.length]!;
        expectSame((await unpacked(records, from, length)).events, events.slice(from, length));
      }),
      { numRuns: 400 },
    );
    expect(references).toBeGreaterThan(50);
  });

  test("any events come back identical from one text, however they are numbered and whatever their keys", () => {
    fc.assert(
      fc.property(fc.array(odd, { maxLength: 10 }), log, fc.nat({ max: 20 }), (others, events, cut) => {
        // Out of its row, a log's event stands among the others.
        const mixed = others.concat(events.slice(cut), others, events);
        for (const all of [others, mixed]) {
          const back = unpackEvents(packEvents(all));
          expect(back).toEqual(all);
          expect(JSON.stringify(back)).toBe(JSON.stringify(all));
        }
      }),
      { numRuns: 400 },
    );
  });

  test("a record that was damaged is refused by its code, or read as events; nothing else happens", () => {
    const poison = fc.oneof(anything, fc.constantFrom(1e9, -1, 0.5, "~9;", "}9999999999999999999;", { toString: 1 }));
    let refused = 0;
    fc.assert(
      fc.property(log, fc.nat(), fc.nat(), poison, fc.nat({ max: 2 }), (events, a, b, value, how) => {
        const text = packEvents(events);
        const broken =
          how === 0 ? `${text.slice(0, a % text.length)}${text.slice(b % text.length)}` : poisoned(text, a, value);
        try {
          const read = unpackEvents(broken);
          expect(read.every(({ seq, type }) => Number.isSafeInteger(seq) && typeof type === "string")).toBe(true);
        } catch (error) {
          if (!TurnloopError.is(error, "SESSION_CORRUPT")) throw error;
          refused += 1;
        }
      }),
      { numRuns: 800 },
    );
    expect(refused).toBeGreaterThan(200);
  });

  test("a record that is missing, and chunks that an answer refers to and that are not there, are refused", async () => {
    const events = streamed(100);
    const records = packed(events, [20, 40, 60]);
    const code = expect.objectContaining({
      code: "SESSION_CORRUPT",
      message: expect.stringContaining("restore") as string,
    });
    await expect(unpacked(records.toSpliced(1, 1), 0, events.length)).rejects.toEqual(code);
    const last = records.at(-1)!;
    const earlier = (): string[] => [];
    const reading = async (): Promise<void> => {
      for await (const _ of unpackRecords([last.text], { from: last.seq, length: events.length, earlier }));
    };
    await expect(reading()).rejects.toEqual(code);
    expect(() => unpackEvents(last.text)).toThrow(code as never);
  });

  test("a record that reaches across the end of the log is refused: that end is not where anybody has stored", async () => {
    const records = packed(streamed(100), [20, 40, 60]);
    for (const length of [1, 19, 21, 59, 101])
      await expect(unpacked(records, 0, length), `${length} events`).rejects.toMatchObject({ code: "SESSION_CORRUPT" });
  });

  test("a gap is refused also where no answer refers to it, and so is a reference to something else", async () => {
    const events = streamed(100);
    const records = packed(events, [20, 40, 60]);
    const code = expect.objectContaining({ code: "SESSION_CORRUPT" }) as Error;
    await expect(unpacked(records.toSpliced(1, 1), 0, 50)).rejects.toEqual(code);
    const text = packEvents(events);
    for (const other of ['"text":[1,500]', '"text":[0,499]', '"text":[]', '"text":[[0],500]']) {
      expect(() => unpackEvents(text.replace('"text":[0,500]', other))).toThrow(code);
    }
    expect(unpackEvents(text)).toEqual(events);
  });

  test("an answer is a reference also where its pieces cut a character in two", () => {
    const events = streamed(100, "\ud83d\ude00-\ud83d");
    const text = packEvents(events);
    expect(text).toContain('"text":[0,500]');
    expectSame(unpackEvents(text), events);
  });

  test("a batch that was not stored leaves no trace: no answer refers to it", async () => {
    const events = streamed(100);
    const packer = createPacker();
    const first = packer.pack("s", 0, events.slice(0, 50));
    first.stored();
    // Somebody else was faster, with other chunks; then this one goes on behind them.
    packer.pack("s", 50, events.slice(50, 70));
    const theirs = streamed(100, "xy");
    const theirTail = createPacker().pack("s", 50, theirs.slice(50, 70));
    const last = packer.pack("s", 70, events.slice(70));
    const records = [...first.records, ...theirTail.records, ...last.records];
    const whole = [...events.slice(0, 50), ...theirs.slice(50, 70), ...events.slice(70)];
    expectSame((await unpacked(records, 0, whole.length)).events, whole);
    // Tried again, and longer: the same as if there had been no first time.
    const again = packer.pack("s", 50, events.slice(50));
    expect(again.records).toEqual(packer.pack("s", 50, events.slice(50)).records);
    expectSame((await unpacked([...first.records, ...again.records], 0, events.length)).events, events);
  });

  test("who wants the tail reads the tail, and back to where an answer began that it refers to", async () => {
    const answers = Array.from({ length: 5 }, () => streamed(200)).flat();
    const events = answers.map((event, seq): SessionEvent => renumbered(event, seq));
    const records = packed(events, every(25, events.length));
    const { length } = events;
    const whole = await unpacked(records, 0, length);
    expect(whole.read).toEqual(records.map(({ seq }) => seq));
    const answer = length / 5;
    const middle = length - 20;
    const tail = await unpacked(records, middle, length);
    expectSame(tail.events, events.slice(middle));
    expect(Math.min(...tail.read)).toBeGreaterThan(length - answer - 25);
    const early = await unpacked(records, 30, 50);
    expectSame(early.events, events.slice(30, 50));
    expect(early.read).toEqual([25]);
  });

  test("a large batch is several records, and 100,000 chunks of it are read back", async () => {
    const events = streamed(100_000);
    const records = packed(events, []);
    expect(records.length).toBeGreaterThanOrEqual(100);
    expect(Math.max(...records.map(({ text }) => text.length))).toBeLessThan(250_100);
    expectSame((await unpacked(records, 0, events.length)).events, events);
    const { seq } = records.find((one) => one.seq > 70_500)!;
    const tail = await unpacked(records, 70_500, seq);
    expect(tail.read).toHaveLength(1);
  });
});

/** One answer of so many pieces, in a step of its own. */
function streamed(count: number, word = "word"): SessionEvent[] {
  const texts = Array.from({ length: count }, (_, i) => `${word}${i % 7}`);
  const chunks = texts.map((text) =>
    line("assistant/chunk", { turn: 1, step: 1, chunk: { type: "delta", index: 0, text } }),
  );
  const content = [{ type: "text" as const, text: texts.join("").toWellFormed() }];
  const cites = [[1, count]] as const;
  const answer = line("assistant/message", { turn: 1, step: 1, model: "m", content }, { surface: "append", cites });
  return logOf(stepStart(1, 1), chunks, answer, stepEnd(1, 1));
}

function renumbered(event: SessionEvent, seq: number): SessionEvent {
  const cites = event.cites?.map((cite) => [seq - event.seq + (cite as [number, number])[0], seq - 1] as const);
  return { ...event, seq, ...(cites && { cites }) };
}

/** The text with the `n`-th value in it exchanged. */
function poisoned(text: string, n: number, value: unknown): string {
  const whole: unknown = JSON.parse(text);
  const places: [Record<string, unknown>, string][] = [];
  const open: unknown[] = [whole];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (typeof one !== "object" || one === null) continue;
    for (const key of Object.keys(one)) {
      places.push([one as Record<string, unknown>, key]);
      open.push((one as Record<string, unknown>)[key]);
    }
  }
  const [at, key] = places[n % places.length]!;
  Object.defineProperty(at, key, { value, enumerable: true });
  return JSON.stringify(whole);
}
