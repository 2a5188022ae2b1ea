/** M: chunks put together to blocks. */
import type { ContentBlock, ModelChunk } from "turnloop";
import { expect, test } from "vitest";
import { anywhere, local } from "../support/fixture.ts";
import { scriptedModel } from "turnloop/testing";
import { dataOf, scene, tool } from "../support/scene.ts";
import { eventOf, typesOf } from "../support/wait.ts";

const delta = (index: number, text: string, more = {}): ModelChunk => ({ type: "delta", index, text, ...more });
const start = (index: number, block: object, more = {}): ModelChunk =>
  ({ type: "block-start", index, block, ...more }) as ModelChunk;
const end = (index: number, block?: object, more = {}): ModelChunk =>
  ({ type: "block-end", index, ...(block && { block }), ...more }) as ModelChunk;
const stop: ModelChunk = { type: "finish", reason: { kind: "stop" } };

/** What the message holds, without the ids that the loop gives. */
async function assembled(...chunks: ModelChunk[]): Promise<unknown[]> {
  const { session, say } = await scene([{ chunks: [...chunks, stop] }, "and done"], { tools: [tool("look")] });
  expect(await say("hi")).toEqual({ kind: "completed" });
  return dataOf(session, "assistant/message")[0]!.content.map((block: ContentBlock) => {
    if (block.type !== "tool-call") return block;
    const { callId: _, ...rest } = block;
    return rest;
  });
}

const text = (value: string): object => ({ type: "text", text: value });
const call = (name: string, args: string, providerCallId?: string): object => ({
  type: "tool-call",
  name,
  arguments: args,
  ...(providerCallId !== undefined && { meta: { providerCallId } }),
});

test.each<[string, ModelChunk[], object[]]>([
  [
    "blocks stand in the order in which they were first seen",
    [delta(7, "b"), delta(2, "a"), delta(7, "B")],
    [text("bB"), text("a")],
  ],
  [
    "interleaved blocks do not mix",
    [
      start(0, { type: "reasoning" }),
      start(1, { type: "text" }),
      delta(1, "a"),
      delta(0, "x"),
      delta(1, "b"),
      delta(0, "y"),
    ],
    [{ type: "reasoning", text: "xy" }, text("ab")],
  ],
  ["deltas without a start are text", [delta(0, "hel"), delta(0, "lo")], [text("hello")]],
  [
    "deltas with an id or a name, without a start, are a tool call",
    [delta(0, '{"a"', { id: "c1", name: "look" }), delta(0, ":1}")],
    [call("look", '{"a":1}', "c1")],
  ],
  [
    "a second start of a block changes nothing",
    [start(0, { type: "text" }), delta(0, "a"), start(0, { type: "reasoning" }), delta(0, "b")],
    [text("ab")],
  ],
  [
    "a start of a block that has ended changes nothing",
    [delta(0, "a"), end(0), start(0, { type: "tool-call", name: "look" })],
    [text("a")],
  ],
  [
    "meta of the start and of the end is kept",
    [start(0, { type: "text" }, { meta: { a: 1 } }), delta(0, "x"), end(0, undefined, { meta: { b: 2 } })],
    [{ type: "text", text: "x", meta: { a: 1, b: 2 } }],
  ],
])("#155 %s", async (_, chunks, blocks) => {
  expect(await assembled(...chunks)).toEqual(blocks);
});

test.each<[string, ModelChunk[], object[]]>([
  [
    "the block of its end counts, whatever the deltas said",
    [delta(0, "half"), end(0, text("the whole"))],
    [text("the whole")],
  ],
  ["the first end counts", [end(0, text("first")), end(0, text("second"))], [text("first")]],
  ["an end without a block is an end too", [delta(0, "a"), end(0), end(0, text("second")), delta(0, "b")], [text("a")]],
  ["deltas behind the end are ignored", [delta(0, "a"), end(0, text("A")), delta(0, "b")], [text("A")]],
  [
    "a call may come whole in its end",
    [end(0, { type: "tool-call", callId: "c1", name: "look", arguments: "{}" })],
    [call("look", "{}", "c1")],
  ],
  [
    "a call's end keeps the id that was streamed, where it brings none",
    [
      start(0, { type: "tool-call", id: "c1", name: "look" }),
      end(0, { type: "tool-call", callId: "", name: "look", arguments: "{}" }),
    ],
    [call("look", "{}", "c1")],
  ],
])("#156 %s", async (_, chunks, blocks) => {
  expect(await assembled(...chunks)).toEqual(blocks);
});

test.each<[string, ModelChunk[], object[]]>([
  [
    "text and reasoning are left open as they are",
    [start(0, { type: "reasoning" }), delta(0, "hm"), delta(1, "x")],
    [{ type: "reasoning", text: "hm" }, text("x")],
  ],
  [
    "the arguments of a call are put together as they came",
    [start(0, { type: "tool-call", id: "c1", name: "look" }), delta(0, '{"at"'), delta(0, ""), delta(0, ":1}")],
    [call("look", '{"at":1}', "c1")],
  ],
  [
    "a call without an id has none of the provider",
    [start(0, { type: "tool-call", name: "look" })],
    [call("look", "")],
  ],
  ["a call without a name has an empty one", [start(0, { type: "tool-call", id: "c1" })], [call("", "", "c1")]],
  [
    "a file, a source and a tool of the provider pass as they are",
    [
      end(0, { type: "source", url: "https://example.org", title: "T" }),
      end(1, { type: "file", mediaType: "image/png", data: { base64: "AA==" } }),
      end(2, { type: "provider-tool", name: "search", data: { hits: 3 } }),
    ],
    [
      { type: "source", url: "https://example.org", title: "T" },
      { type: "file", mediaType: "image/png", data: { base64: "AA==" } },
      { type: "provider-tool", name: "search", data: { hits: 3 } },
    ],
  ],
  [
    "a closed block of an unknown type passes",
    [end(0, { type: "hologram", depth: 3 }), delta(1, "x")],
    [{ type: "hologram", depth: 3 }, text("x")],
  ],
  ["halves of a surrogate pair that meet are whole", [delta(0, "\ud83d"), delta(0, "\ude00")], [text("😀")]],
])("#157 %s", async (_, chunks, blocks) => {
  expect(await assembled(...chunks)).toEqual(blocks);
});

local("#157 a block of an unknown type that is left open fails the step", async () => {
  const { session, say } = await scene([{ chunks: [start(0, { type: "hologram" }), delta(0, "x"), stop] }, "fine"]);
  expect(await say("hi")).toMatchObject({ kind: "error", step: 1, code: "MALFORMED_CHUNK" });
  expect(typesOf(session)).not.toContain("assistant/message");
  expect(await say("hi")).toEqual({ kind: "completed" });
});

anywhere("#157 a call without a name reaches no tool, and is answered as one that does not exist", async (open) => {
  const agent = await open({
    model: scriptedModel([{ chunks: [start(0, { type: "tool-call", id: "c1" }), stop] }, "sorry"]),
    tools: [tool("look")],
  });
  agent.send("hi");
  await eventOf(agent.session, "turn/end");
  expect(dataOf(agent.session, "tool/result")).toMatchObject([{ isError: true, error: { code: "UNKNOWN_TOOL" } }]);
});

test.each<[string, ModelChunk[], object[]]>([
  [
    "an id replaces the one before, an empty one does not",
    [delta(0, "", { id: "a", name: "look" }), delta(0, "{}", { id: "b" }), delta(0, "", { id: "" })],
    [call("look", "{}", "b")],
  ],
  [
    "an empty name does not wipe the name out",
    [start(0, { type: "tool-call", name: "look" }), delta(0, "{}", { name: "" })],
    [call("look", "{}")],
  ],
  [
    "a name fills an empty one in",
    [start(0, { type: "tool-call", name: "" }), delta(0, "{}", { name: "look" })],
    [call("look", "{}")],
  ],
  [
    "a repeated name is not put together twice",
    [delta(0, "{", { name: "look" }), delta(0, "}", { name: "look" })],
    [call("look", "{}")],
  ],
])("#158 in the deltas of a call %s", async (_, chunks, blocks) => {
  expect(await assembled(...chunks)).toEqual(blocks);
});

local("#158 in the deltas of a call a name replaces the one before", async () => {
  expect(await assembled(delta(0, "{", { name: "loo" }), delta(0, "}", { name: "look" }))).toEqual([
    call("look", "{}"),
  ]);
});

local("#159 the last usage and the last finish win", async () => {
  const { session, say } = await scene([
    {
      chunks: [
        delta(0, "x"),
        { type: "usage", usage: { input: 1, output: 9 } },
        { type: "finish", reason: { kind: "error", message: "no" } },
        { type: "usage", usage: { input: 3 } },
        stop,
      ],
    },
  ]);
  expect(await say("hi")).toEqual({ kind: "completed" });
  expect(dataOf(session, "assistant/message")[0]).toMatchObject({ usage: { input: 3 } });
  expect(dataOf(session, "assistant/message")[0]!.usage).toEqual({ input: 3 });
});

local("#159 the same chunks give the same message, as often as they are put together", async () => {
  const { session, say } = await scene(
    [{ text: "one two", reasoning: "hm", toolCalls: [{ name: "look", args: { a: 1 } }] }, "ok"],
    {
      tools: [tool("look")],
    },
  );
  await say("hi");
  const chunks = dataOf(session, "assistant/chunk").filter(({ step }) => step === 1);
  const again = await scene([{ chunks: chunks.map(({ chunk }) => chunk) }, "ok"], { tools: [tool("look")] });
  await again.say("hi");
  expect(dataOf(again.session, "assistant/message")[0]).toEqual(dataOf(session, "assistant/message")[0]);
});
