/** The assembler, for any interleaving, splitting and repetition of the chunks of an answer. */
import * as fc from "fast-check";
import { createHarness, jsonCopy, type ContentBlock, type FinishReason, type ModelChunk, type Usage } from "turnloop";
import { describe, expect, test } from "vitest";
import { assemble } from "../../src/model/assemble.ts";

/** A block as a model means it, and the way in which it streams it. */
interface Meant {
  readonly index: number;
  readonly block: ContentBlock;
  readonly providerCallId: string | undefined;
  readonly ended: boolean;
  /** In order. */
  readonly chunks: readonly ModelChunk[];
}

const words = fc.string({ unit: "grapheme", maxLength: 20 });

/** A text in pieces, some of them empty: joined they are the text. */
function splits(text: string): fc.Arbitrary<readonly string[]> {
  return fc.array(fc.nat({ max: text.length }), { maxLength: 4 }).map((cuts) => {
    const at = [0, ...cuts.toSorted((a, b) => a - b), text.length];
    return at.slice(1).map((end, i) => text.slice(at[i], end));
  });
}

function textBlock(index: number): fc.Arbitrary<Meant> {
  return fc
    .record({
      type: fc.constantFrom("text", "reasoning"),
      text: words,
      end: fc.constantFrom("none", "plain", "block"),
      started: fc.boolean(),
      meta: fc.option(fc.record({ sign: words }), { nil: undefined }),
    })
    .chain(({ type, text, end, started, meta }) =>
      splits(text).map((pieces): Meant => {
        const isStarted = started || type === "reasoning";
        const ended = end !== "none";
        const block = { type, text, ...(meta && ended && { meta }) } as ContentBlock;
        const chunks: ModelChunk[] = [];
        if (isStarted) chunks.push({ type: "block-start", index, block: { type: type as "text" } });
        // What an authoritative end says counts, whatever was streamed before.
        const streamed = end === "block" ? pieces.map((piece) => `${piece}?`) : pieces;
        for (const piece of streamed) chunks.push({ type: "delta", index, text: piece });
        if (end === "plain") chunks.push({ type: "block-end", index, ...(meta && { meta }) });
        if (end === "block") chunks.push({ type: "block-end", index, block });
        return { index, block, providerCallId: undefined, ended, chunks };
      }),
    );
}

function callBlock(index: number): fc.Arbitrary<Meant> {
  return fc
    .record({
      name: words,
      id: words,
      args: words,
      end: fc.constantFrom("none", "plain", "block"),
      started: fc.boolean(),
    })
    .chain(({ name, id, args, end, started }) =>
      splits(args).map((pieces): Meant => {
        const ended = end !== "none";
        // A delta makes a call of its block only if it says the name or the id.
        const isStarted = started || (name === "" && id === "");
        const said = { ...(id !== "" && { id }), ...(name !== "" && { name }) };
        const block: ContentBlock = { type: "tool-call", callId: "", name, arguments: args };
        const chunks: ModelChunk[] = isStarted
          ? [{ type: "block-start", index, block: { type: "tool-call", ...said } }]
          : [{ type: "delta", index, text: "", ...said }];
        const streamed = end === "block" ? pieces.map((piece) => `${piece}?`) : pieces;
        for (const piece of streamed) chunks.push({ type: "delta", index, text: piece });
        if (end === "plain") chunks.push({ type: "block-end", index });
        if (end === "block") chunks.push({ type: "block-end", index, block: { ...block, callId: id } });
        return { index, block, providerCallId: id || undefined, ended, chunks };
      }),
    );
}

const meant: fc.Arbitrary<readonly Meant[]> = fc
  .uniqueArray(fc.nat({ max: 20 }), { maxLength: 4 })
  .chain((indexes) => fc.tuple(...indexes.map((index) => fc.oneof(textBlock(index), callBlock(index)))));

/** Merges the blocks' chunks: `order` says whose turn it is; what each block says stays in its order. */
function interleaved(blocks: readonly Meant[], order: readonly number[]): ModelChunk[] {
  const left = blocks.map(({ chunks }) => [...chunks]).filter((chunks) => chunks.length > 0);
  const merged: ModelChunk[] = [];
  for (let i = 0; left.length > 0; i += 1) {
    const at = (order[i % Math.max(order.length, 1)] ?? 0) % left.length;
    merged.push(left[at]!.shift()!);
    if (left[at]!.length === 0) left.splice(at, 1);
  }
  return merged;
}

const order = fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 30 });

/** The blocks in the order in which the row begins them. */
function expected(blocks: readonly Meant[], chunks: readonly ModelChunk[]): unknown[] {
  const first = (index: number): number => chunks.findIndex((chunk) => "index" in chunk && chunk.index === index);
  return blocks
    .filter((one) => one.chunks.length > 0)
    .toSorted((a, b) => first(a.index) - first(b.index))
    .map(({ index, block, ended, providerCallId }) => ({ index, block, ended, providerCallId }));
}

describe("assemble", () => {
  test("gives the blocks that were meant, in the order in which they began, however they interleave", () => {
    fc.assert(
      fc.property(meant, order, (blocks, turns) => {
        const chunks = interleaved(blocks, turns);
        expect(assemble(chunks).blocks).toEqual(expected(blocks, chunks));
      }),
    );
  });

  test("hears no chunk twice: a block-start that is repeated changes nothing", () => {
    fc.assert(
      fc.property(meant, order, fc.nat(), (blocks, turns, where) => {
        const chunks = interleaved(blocks, turns);
        const starts = chunks.filter(({ type }) => type === "block-start");
        const again = starts[where % Math.max(starts.length, 1)];
        fc.pre(again !== undefined);
        const from = chunks.indexOf(again) + 1;
        const at = from + (where % (chunks.length - from + 1));
        expect(assemble(chunks.toSpliced(at, 0, again))).toEqual(assemble(chunks));
      }),
    );
  });

  test("the first end of a block is its last word: what comes after it changes nothing", () => {
    const noise = (index: number): ModelChunk[] => [
      { type: "delta", index, text: "late" },
      { type: "block-end", index, block: { type: "text", text: "later" } },
      { type: "block-start", index, block: { type: "reasoning" } },
      { type: "block-end", index, meta: { late: true } },
    ];
    fc.assert(
      fc.property(meant, order, fc.nat({ max: 3 }), (blocks, turns, which) => {
        const chunks = interleaved(blocks, turns);
        const noisy = chunks.flatMap((chunk) =>
          chunk.type === "block-end" ? [chunk, ...noise(chunk.index).slice(which)] : [chunk],
        );
        expect(assemble(noisy)).toEqual(assemble(chunks));
      }),
    );
  });

  test("takes the last usage and the last finish, wherever they stand", () => {
    const count = fc.nat({ max: 99 });
    const usage: fc.Arbitrary<Usage> = fc.record({ input: count, output: count });
    const finish = fc.constantFrom<FinishReason>(
      { kind: "stop" },
      { kind: "max-tokens" },
      { kind: "error", message: "e" },
    );
    const told = fc.array(
      fc.oneof(
        usage.map((one) => ({ usage: one })),
        finish.map((reason) => ({ reason })),
      ),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(
        meant,
        order,
        told,
        fc.array(fc.nat(), { minLength: 5, maxLength: 5 }),
        (blocks, turns, facts, places) => {
          const chunks = interleaved(blocks, turns);
          const plain = assemble(chunks);
          let at = 0;
          for (const [i, fact] of facts.entries()) {
            at += places[i]! % (chunks.length - at + 1);
            const chunk: ModelChunk = "usage" in fact ? { type: "usage", ...fact } : { type: "finish", ...fact };
            chunks.splice(at, 0, chunk);
            at += 1;
          }
          expect(assemble(chunks)).toEqual({
            blocks: plain.blocks,
            usage: facts.findLast((fact) => "usage" in fact)?.usage,
            finish: facts.findLast((fact) => "reason" in fact)?.reason,
          });
        },
      ),
    );
  });

  test("may be asked again at any time: it changes no chunk, and each prefix gives what it gave", () => {
    fc.assert(
      fc.property(meant, order, fc.nat(), (blocks, turns, cut) => {
        const chunks = jsonCopy(interleaved(blocks, turns));
        const prefix = chunks.slice(0, cut % (chunks.length + 1));
        const first = assemble(prefix);
        assemble(chunks);
        expect(assemble(prefix)).toEqual(first);
        expect(Object.isFrozen(first.blocks) && first.blocks.every((one) => Object.isFrozen(one.block))).toBe(true);
      }),
    );
  });
});

describe("an answer", () => {
  test("is the same message however its chunks come: alone, in arrays, some of them empty", async () => {
    await fc.assert(
      fc.asyncProperty(
        meant,
        order,
        fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 9 }),
        async (blocks, turns, sizes) => {
          const chunks: ModelChunk[] = [
            ...interleaved(
              blocks.filter(({ block }) => block.type !== "tool-call"),
              turns,
            ),
            { type: "usage", usage: { output: 1 } },
            { type: "finish", reason: { kind: "other" } },
          ];
          const rows: (ModelChunk | readonly ModelChunk[])[] = [];
          for (let at = 0, i = 0; at < chunks.length; i += 1) {
            const size = sizes[i % sizes.length]!;
            rows.push(size === 0 ? chunks[at]! : chunks.slice(at, at + size), []);
            at += Math.max(size, 1);
          }
          expect(await contentOf(rows)).toEqual(await contentOf(chunks));
        },
      ),
      { numRuns: 25 },
    );
  });
});

/** What an agent logs of an answer that comes in these rows. */
async function contentOf(rows: readonly (ModelChunk | readonly ModelChunk[])[]): Promise<unknown> {
  async function* stream() {
    yield* rows;
  }
  const harness = createHarness({ model: { id: "rows/model", stream } });
  const { agent } = await harness.agents.open({ id: "s" });
  agent.send("hello");
  await agent.whenIdle();
  const { events } = agent.session;
  await harness.dispose();
  return {
    chunks: events.flatMap((event) => (event.type === "assistant/chunk" ? [event.data.chunk] : [])),
    message: events.find((event) => event.type === "assistant/message")?.data.content,
  };
}
