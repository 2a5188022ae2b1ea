/** M and D19: which message stands in the log in the end, whole or interrupted. */
import type { ContentBlock, ModelChunk } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf, leftBehind, linesOf, scene, tool } from "../support/scene.ts";
import { endOf, eventOf, snapshotWhere, textOf, typesOf } from "../support/wait.ts";

const finish = (kind: string, more = {}): ModelChunk => ({ type: "finish", reason: { kind, ...more } as never });
const delta = (text: string, index = 0): ModelChunk => ({ type: "delta", index, text });
const usage: ModelChunk = { type: "usage", usage: { input: 2, output: 3 } };
const calling = (name: string, index: number): ModelChunk[] => [
  { type: "block-start", index, block: { type: "tool-call", id: `p${index}`, name } },
  delta("{}", index),
  { type: "block-end", index },
];
const types = (content: readonly ContentBlock[]): string[] => content.map(({ type }) => type);

anywhere("D19 #159 a stream that ends without a finish is an error, and what it said is kept", async (open) => {
  const agent = await open({ model: scriptedModel([{ text: "half an answer", finish: "none" }, "on"]) });
  agent.send("hi");
  await eventOf(agent.session, "turn/end");
  expect(endOf(agent.session)).toMatchObject({ kind: "error", step: 1, code: "STREAM_INCOMPLETE" });
  expect(dataOf(agent.session, "request/failed")).toMatchObject([{ error: { code: "STREAM_INCOMPLETE" } }]);
  expect(dataOf(agent.session, "assistant/message")).toEqual([
    {
      turn: 1,
      step: 1,
      model: "scripted/model",
      content: [{ type: "text", text: "half an answer" }],
      interrupted: true,
    },
  ]);
});

local("D19 #159 a stream of nothing at all is incomplete, not empty", async () => {
  const { session, say } = await scene([{ chunks: [] }, { chunks: [usage] }]);
  expect(await say("hi")).toMatchObject({ kind: "error", code: "STREAM_INCOMPLETE" });
  expect(await say("hi")).toMatchObject({ kind: "error", code: "STREAM_INCOMPLETE" });
  expect(typesOf(session)).not.toContain("assistant/message");
});

anywhere("#161 an answer that hit the limit loses its tool calls, and the turn ends as max-tokens", async (open) => {
  const model = scriptedModel([{ chunks: [delta("I will"), ...calling("look", 1), finish("max-tokens")] }, "fine"]);
  const agent = await open({ model, tools: [tool("look")] });
  agent.send("hi");
  await eventOf(agent.session, "turn/end");
  expect(endOf(agent.session)).toEqual({ kind: "max-tokens" });
  expect(types(dataOf(agent.session, "assistant/message")[0]!.content)).toEqual(["text"]);
  expect(typesOf(agent.session)).not.toContain("tool/call");
  agent.send("and now");
  await eventOf(agent.session, "turn/end", ({ data }) => data.turn === 2);
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

local("#161 step-result is shown the answer without its calls, and what it adds is stripped too", async () => {
  const { hooks, session, say } = await scene(
    [{ chunks: [delta("I will"), ...calling("look", 1), finish("max-tokens")] }],
    { tools: [tool("look")] },
  );
  const shown: string[][] = [];
  hooks.on("agent/step-result", ({ message }) => {
    shown.push(types(message.content));
    const call = { type: "tool-call" as const, callId: "mine", name: "look", arguments: "{}" };
    return { ...message, content: [...message.content, call, { type: "text", text: " more" }] };
  });
  expect(await say("hi")).toEqual({ kind: "max-tokens" });
  expect(shown).toEqual([["text"]]);
  expect(dataOf(session, "assistant/message")[0]!.content).toEqual([
    { type: "text", text: "I will" },
    { type: "text", text: " more" },
  ]);
  expect(typesOf(session)).not.toContain("tool/call");
});

anywhere("#162 usage rides on the message, which cites its chunks", async (open) => {
  const agent = await open({ model: scriptedModel([{ text: "hello you", usage: { input: 2, output: 3 } }]) });
  agent.send("hi");
  await eventOf(agent.session, "turn/end");
  const { events } = agent.session;
  const chunks = events.filter(({ type }) => type === "assistant/chunk").map(({ seq }) => seq);
  const message = events.find(({ type }) => type === "assistant/message")!;
  expect(message).toMatchObject({ surface: "append", cites: [[chunks[0], chunks.at(-1)]] });
  expect(chunks).toHaveLength(chunks.at(-1)! - chunks[0]! + 1);
  expect(message.data).toEqual({
    turn: 1,
    step: 1,
    model: "scripted/model",
    content: [{ type: "text", text: "hello you" }],
    usage: { input: 2, output: 3 },
  });
});

local("#162 a message cites its chunks alone, though other events stand between them", async () => {
  const { agent, session, say } = await scene(["one two three"]);
  agent.on("assistant/chunk", ({ data: { chunk } }) => {
    if (chunk.type === "delta" && chunk.text === "two ") agent.send("queued", { id: "q" });
  });
  void say("hi").catch(() => {});
  const message = await eventOf(session, "assistant/message");
  const cited = message.cites!.flatMap((cite) =>
    typeof cite === "number" ? [cite] : Array.from({ length: cite[1] - cite[0] + 1 }, (_, i) => cite[0] + i),
  );
  const chunks = session.events.filter(({ seq, type }) => type === "assistant/chunk" && seq < message.seq);
  expect(cited).toEqual(chunks.map(({ seq }) => seq));
  expect(message.cites!.length).toBeGreaterThan(1);
});

// #162 "omitted when no chunks": an answer without a chunk is STREAM_INCOMPLETE, so no such message exists.

anywhere("#162 usage alone is a message without content, which no model is shown", async (open) => {
  const model = scriptedModel([{ chunks: [usage, finish("other")] }, "two"]);
  const agent = await open({ model });
  agent.send("hi");
  await eventOf(agent.session, "turn/end");
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  expect(dataOf(agent.session, "assistant/message")).toEqual([
    { turn: 1, step: 1, model: "scripted/model", content: [], usage: { input: 2, output: 3 } },
  ]);
  agent.send("on");
  await eventOf(agent.session, "turn/end", ({ data }) => data.turn === 2);
  expect(linesOf(model.requests[1]!.messages)).toEqual(["user: hi", "user: on"]);
});

anywhere("#162 without content and without usage there is no message", async (open) => {
  const agent = await open({ model: scriptedModel([{ chunks: [finish("other")] }]) });
  agent.send("hi");
  await eventOf(agent.session, "turn/end");
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  expect(typesOf(agent.session).slice(3)).toEqual(["step/start", "request/header", "step/end", "turn/end"]);
});

// #163 [N] (an anchor for every successful call) is adopted by no decision: #162 says when there is a message.

const half = [
  { type: "block-start", index: 0, block: { type: "reasoning" } },
  delta("let me think"),
  { type: "block-start", index: 1, block: { type: "text" } },
  delta(" \n", 1),
  delta("so far", 2),
  ...calling("look", 3),
  usage,
] as ModelChunk[];
const kept = [
  { type: "reasoning", text: "let me think" },
  { type: "text", text: "so far" },
];

anywhere("D19 #164 a cancel keeps what was readable, marked as interrupted, and drops the calls", async (open) => {
  const agent = await open({ model: scriptedModel([{ chunks: half, hang: "deaf" }, "on"]), tools: [tool("look")] });
  agent.send("hi");
  await eventOf(agent.session, "assistant/chunk", ({ data }) => data.chunk.type === "usage");
  agent.cancel("enough");
  await eventOf(agent.session, "turn/end");
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "enough" });
  const message = agent.session.events.find(({ type }) => type === "assistant/message")!;
  expect(message.data).toEqual({
    turn: 1,
    step: 1,
    model: "scripted/model",
    content: kept,
    usage: { input: 2, output: 3 },
    interrupted: true,
  });
  const chunks = agent.session.events.filter(({ type }) => type === "assistant/chunk");
  expect(message.cites).toEqual([[chunks[0]!.seq, chunks.at(-1)!.seq]]);
  expect(typesOf(agent.session)).not.toContain("tool/call");
});

anywhere("D19 #164 the next request shows what was kept", async (open) => {
  const model = scriptedModel([{ text: "the first half", hang: "deaf" }, "the second"]);
  const agent = await open({ model });
  agent.send("hi");
  await eventOf(agent.session, "assistant/chunk", ({ data }) => data.chunk.type === "block-end");
  agent.cancel();
  agent.send("go on");
  await eventOf(agent.session, "turn/end", ({ data }) => data.turn === 2);
  expect(linesOf(model.requests[1]!.messages)).toEqual(["user: hi", "assistant: the first half", "user: go on"]);
});

anywhere("D19 #164 nothing is kept of a stream that was blank, or all tool calls", async (open) => {
  const blank = [delta(" \n\t"), { type: "delta", index: 1, text: "" } as ModelChunk, ...calling("look", 2)];
  const agent = await open({ model: scriptedModel([{ chunks: blank, hang: "polite" }]), tools: [tool("look")] });
  agent.send("hi");
  await eventOf(agent.session, "assistant/chunk", ({ data }) => data.chunk.type === "block-end");
  agent.cancel();
  await snapshotWhere(agent, ({ status }) => status === "idle");
  expect(typesOf(agent.session).slice(3)).toEqual([
    "step/start",
    "request/header",
    "agent/cancelled",
    "step/end",
    "turn/end",
  ]);
});

anywhere("D19 a step that fails for good keeps what was readable", async (open) => {
  const error = finish("error", { message: "overloaded", code: "BUSY" });
  const agent = await open({ model: scriptedModel([{ chunks: [...half, error] }]), tools: [tool("look")] });
  agent.send("hi");
  await eventOf(agent.session, "turn/end");
  expect(endOf(agent.session)).toMatchObject({ kind: "error", code: "BUSY" });
  expect(dataOf(agent.session, "assistant/message")).toMatchObject([{ content: kept, interrupted: true }]);
  expect(typesOf(agent.session)).not.toContain("tool/call");
});

local("D19 after retries, what is kept is what the last attempt had said", async () => {
  const { hooks, session, say } = await scene([
    { text: "first try", error: { message: "no" } },
    { text: "second try", error: { message: "no" } },
  ]);
  hooks.on("agent/request-error", ({ attempt }) => ({ kind: attempt === 1 ? "retry" : "fail" }));
  await say("hi");
  expect(dataOf(session, "assistant/message").map(({ content }) => textOf(content))).toEqual(["second try"]);
  expect(typesOf(session).slice(-5)).toEqual([
    "request/failed",
    "request/failed",
    "assistant/message",
    "step/end",
    "turn/end",
  ]);
});

local("D19 a crash in mid answer keeps it when the session is opened again", async () => {
  const first = await scene([{ chunks: half, hang: "deaf" }], { tools: [tool("look")] });
  first.agent.send("hi");
  await eventOf(first.session, "assistant/chunk", ({ data }) => data.chunk.type === "usage");
  const again = await scene(["on"], { storage: await leftBehind(first.session), tools: [tool("look")] });
  expect(endOf(again.session)).toEqual({ kind: "interrupted" });
  expect(dataOf(again.session, "assistant/message")).toMatchObject([{ content: kept, interrupted: true }]);
  expect(typesOf(again.session).slice(-3)).toEqual(["assistant/message", "step/end", "turn/end"]);
  await again.say("go on");
  expect(linesOf(again.model.requests[0]!.messages)).toEqual([
    "user: hi",
    "assistant: let me thinkso far",
    "user: go on",
  ]);
});

local("D19 a disposal in mid answer keeps it too", async () => {
  const { agent, session, dispose } = await scene([{ text: "half", hang: "deaf" }]);
  agent.send("hi");
  await eventOf(session, "assistant/chunk", ({ data }) => data.chunk.type === "block-end");
  await dispose();
  expect(endOf(session)).toEqual({ kind: "disposed" });
  expect(dataOf(session, "assistant/message")).toMatchObject([{ content: [{ text: "half" }], interrupted: true }]);
});
