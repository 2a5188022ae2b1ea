/** The transcript of a live agent. */
import {
  createHarness,
  createTranscript,
  defineTool,
  type Agent,
  type HarnessOptions,
  type JsonValue,
  type ToolPart,
  type Transcript,
} from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { eventOf } from "../support/wait.ts";

async function open(answers: readonly ScriptedAnswer[], options: HarnessOptions = {}): Promise<Agent> {
  const harness = createHarness({ model: scriptedModel(answers), onDiagnostic: () => {}, ...options });
  return (await harness.agents.open({ id: "chat" })).agent;
}

/** Every snapshot that differs from the one before, as a subscriber sees them. */
function watch(agent: Agent): Transcript[] {
  const store = createTranscript(agent);
  const seen = [store.getSnapshot()];
  store.subscribe(() => {
    const next = store.getSnapshot();
    if (next !== seen.at(-1)) seen.push(next);
  });
  return seen;
}

/** Answers whatever is asked, a moment later, as a person would. */
function answerAll(agent: Agent, value: JsonValue): void {
  agent.on("interaction/requested", ({ data }) => queueMicrotask(() => void agent.respond(data.id, value)));
}

const cardOf = (transcript: Transcript): ToolPart | undefined =>
  transcript.messages.flatMap((message) => message.parts).find((part) => part.type === "tool");

const echo = defineTool({
  name: "echo",
  description: "Says it again",
  inputSchema: z.object({ word: z.string() }),
  execute: ({ word }) => `${word}!`,
  present: {
    call: ({ word }) => ({ title: `Echo ${word}` }),
    result: (_, { isError }) => ({ title: isError ? "No echo" : "An echo" }),
  },
});
const echoCall: ScriptedAnswer = { text: "Let me try.", toolCalls: [{ name: "echo", args: { word: "hi" } }] };

test("a turn is read as what was sent and what was answered", async () => {
  const agent = await open([{ reasoning: "easy", text: "Hello to you", usage: { input: 3, output: 2 } }]);
  const id = agent.send("hello");
  await agent.whenIdle();
  const transcript = createTranscript(agent).getSnapshot();
  expect(transcript).toEqual({
    messages: [
      {
        id,
        role: "user",
        turn: 1,
        parts: [{ type: "text", text: "hello", streaming: false }],
        state: "done",
        source: { kind: "user" },
      },
      {
        id: "assistant_1_1",
        role: "assistant",
        turn: 1,
        parts: [
          { type: "reasoning", text: "easy", streaming: false },
          { type: "text", text: "Hello to you", streaming: false },
        ],
        state: "done",
        usage: { input: 3, output: 2 },
      },
    ],
  });
});

test("text grows word by word, in a message that says that it streams, inside a turn that is open", async () => {
  const agent = await open(["one two three"]);
  const seen = watch(agent);
  agent.send("count");
  await agent.whenIdle();
  const growing = seen.filter(({ messages }) => messages.at(-1)?.state === "streaming");
  const texts = growing.map(({ messages }) =>
    messages
      .at(-1)!
      .parts.map((part) => "text" in part && part.text)
      .join(),
  );
  expect(texts).toEqual(expect.arrayContaining(["one ", "one two ", "one two three"]));
  expect(growing[1]!.turn).toEqual({ number: 1, startedAt: expect.any(Number) });
  expect(seen.at(-1)!.turn).toBeUndefined();
});

test("the snapshot is the same object until something changes, and settled messages stay the same objects", async () => {
  const agent = await open(["first answer", "second answer"]);
  const seen = watch(agent);
  agent.send("one");
  await agent.whenIdle();
  const store = createTranscript(agent);
  expect(store.getSnapshot()).toBe(store.getSnapshot());
  const settled = seen.at(-1)!.messages;
  agent.send("two");
  await agent.whenIdle();
  const later = seen.slice(seen.findIndex(({ messages }) => messages === settled) + 1);
  expect(later.length).toBeGreaterThan(3);
  for (const { messages } of later) expect(messages.slice(0, settled.length)).toEqual(settled);
  for (const { messages } of later) settled.forEach((message, place) => expect(messages[place]).toBe(message));
});

test("a card has its id from its first byte, and goes from being written over running to done", async () => {
  const agent = await open([echoCall, "Done."], { tools: [echo] });
  const seen = watch(agent);
  agent.send("go");
  await agent.whenIdle();
  const cards = seen.flatMap((transcript) => cardOf(transcript) ?? []);
  expect(new Set(cards.map((card) => card.callId))).toEqual(new Set(["call_1_1_1_1"]));
  expect([...new Set(cards.map((card) => card.state))]).toEqual(["writing", "running", "done"]);
  expect(cards[0]).toMatchObject({ name: "echo", arguments: "" });
  const last = cards.at(-1)!;
  expect(last).toMatchObject({ arguments: '{"word":"hi"}', result: [{ type: "text", text: "hi!" }] });
  expect(agent.session.events.find((event) => event.type === "tool/call")?.data.callId).toBe(last.callId);
});

test("where the loop runs a card carries what its tool presents; of a bare session only with the tools at hand", async () => {
  const agent = await open([echoCall, "Done."], { tools: [echo] });
  agent.send("go");
  await agent.whenIdle();
  const card = cardOf(createTranscript(agent).getSnapshot());
  expect(card).toMatchObject({ call: { title: "Echo hi" }, view: { title: "An echo" } });
  const bare = cardOf(createTranscript(agent.session).getSnapshot())!;
  expect(Object.keys(bare)).not.toContain("call");
  expect(Object.keys(bare)).not.toContain("view");
  expect(cardOf(createTranscript(agent.session, { tools: [echo] }).getSnapshot())).toEqual(card);
});

test("a `present` that throws, and arguments that the tool refuses, leave the card without a view", async () => {
  const bad = defineTool({
    name: "bad",
    description: "d",
    inputSchema: { type: "object" },
    execute: () => "ok",
    present: {
      call: () => {
        throw new Error("no view today");
      },
    },
  });
  const agent = await open(
    [
      {
        toolCalls: [
          { name: "bad", args: {} },
          { name: "echo", args: { word: 7 } },
        ],
      },
      "Done.",
    ],
    { tools: [bad, echo] },
  );
  agent.send("go");
  await agent.whenIdle();
  const { parts } = createTranscript(agent).getSnapshot().messages[1]!;
  expect(parts).toMatchObject([
    { type: "tool", state: "done" },
    { type: "tool", state: "failed" },
  ]);
  for (const part of parts) expect(part).not.toHaveProperty("call");
});

test("an approval is on its card while it is open, and gone when it is answered", async () => {
  const guarded = defineTool({
    name: "guarded",
    description: "d",
    inputSchema: z.object({}),
    needsApproval: true,
    execute: () => "went in",
  });
  const agent = await open([{ toolCalls: [{ name: "guarded", args: {} }] }, "Done."], { tools: [guarded] });
  const seen = watch(agent);
  answerAll(agent, { decision: "allow" });
  agent.send("go");
  await agent.whenIdle();
  const cards = seen.flatMap((transcript) => cardOf(transcript) ?? []);
  expect([...new Set(cards.map((card) => card.state))]).toEqual(["writing", "running", "asking", "done"]);
  const asking = cards.find((card) => card.state === "asking")!;
  expect(asking.interaction).toMatchObject({ id: `${asking.callId}/approval`, kind: "approval" });
  for (const card of cards) expect(card.interaction !== undefined).toBe(card.state === "asking");
});

test("a question that a tool asks is on its card, and so is its progress", async () => {
  const asks = defineTool({
    name: "asks",
    description: "d",
    inputSchema: z.object({}),
    async execute(_, call) {
      call.progress({ done: 1 });
      return call.ask({ question: "which?" });
    },
  });
  const agent = await open([{ toolCalls: [{ name: "asks", args: {} }] }, "Done."], { tools: [asks] });
  const seen = watch(agent);
  answerAll(agent, "this one");
  agent.send("go");
  await agent.whenIdle();
  const asking = seen.flatMap((transcript) => cardOf(transcript) ?? []).find((card) => card.state === "asking")!;
  expect(asking).toMatchObject({
    progress: { done: 1 },
    interaction: { kind: "question", payload: { question: "which?" } },
  });
  expect(cardOf(seen.at(-1)!)).toMatchObject({ state: "done", result: [{ type: "text", text: "this one" }] });
});

test("a tool that fails, one that is denied and one that does not exist are failed cards", async () => {
  const fails = defineTool({
    name: "fails",
    description: "d",
    inputSchema: z.object({}),
    execute: () => {
      throw new Error("broken");
    },
  });
  const calls = [
    { name: "fails", args: {} },
    { name: "nowhere", args: {} },
    { name: "echo", args: { word: "x" } },
  ];
  const agent = await open([{ toolCalls: calls }, "Done."], {
    tools: [fails, echo],
    plugins: [({ tools }) => tools.guard((execution) => (execution.name === "echo" ? "not here" : undefined))],
  });
  agent.send("go");
  await agent.whenIdle();
  const { parts } = createTranscript(agent).getSnapshot().messages[1]!;
  expect(parts.map((part) => part.type === "tool" && part.state)).toEqual(["failed", "failed", "failed"]);
});

test("a turn that fails keeps what was said, and carries the error on that message", async () => {
  const agent = await open([{ text: "half a sen", error: { message: "overloaded", code: "MODEL_OVERLOADED" } }]);
  agent.send("go");
  await agent.whenIdle();
  const { messages } = createTranscript(agent).getSnapshot();
  expect(messages).toHaveLength(2);
  expect(messages[1]).toMatchObject({
    state: "failed",
    parts: [{ type: "text", text: "half a sen", streaming: false }],
    error: { message: "overloaded", code: "MODEL_OVERLOADED" },
  });
});

test("a failure before the first step is a mark with its error", async () => {
  const agent = await open(["unused"], {
    plugins: [
      ({ hooks }) =>
        hooks.on("agent/prompt-submit", () => {
          throw new Error("the hook broke");
        }),
    ],
  });
  agent.send("go");
  await agent.whenIdle();
  const { messages } = createTranscript(agent).getSnapshot();
  expect(messages.map((message) => message.mark?.kind)).toEqual(["dropped", "turn-end"]);
  expect(messages[1]).toMatchObject({ role: "mark", state: "failed", error: { message: "the hook broke" } });
});

test("a repeated request replaces what the failed attempt had said", async () => {
  const agent = await open([{ text: "wrong be", error: { message: "dropped" } }, "right from the start"], {
    plugins: [
      ({ hooks }) => hooks.on("agent/request-error", ({ attempt }) => ({ kind: attempt < 3 ? "retry" : "fail" })),
    ],
  });
  const seen = watch(agent);
  agent.send("go");
  await agent.whenIdle();
  const waiting = seen.filter(({ messages }) => messages.at(-1)?.error);
  expect(waiting.at(-1)!.messages.at(-1)).toMatchObject({ state: "streaming", error: { message: "dropped" } });
  const texts = seen.map(({ messages }) => messages.at(-1)?.parts[0]);
  expect(texts).toContainEqual({ type: "text", text: "wrong be", streaming: false });
  expect(texts).toContainEqual({ type: "text", text: "right ", streaming: true });
  expect(seen.at(-1)!.messages).toHaveLength(2);
  expect(seen.at(-1)!.messages[1]).toMatchObject({ state: "done", parts: [{ text: "right from the start" }] });
  expect(seen.at(-1)!.messages[1]).not.toHaveProperty("error");
});

test("a step that a policy gave up for a new one leaves no trace once that one streams", async () => {
  const agent = await open([{ text: "too long", error: { message: "overflow" } }, "shorter"], {
    plugins: [({ hooks }) => hooks.on("agent/request-error", () => ({ kind: "new-step" }))],
  });
  agent.send("go");
  await agent.whenIdle();
  const { messages } = createTranscript(agent).getSnapshot();
  expect(messages.map((message) => message.id.replace(/^[^_]+$/, "user"))).toEqual(["user", "assistant_1_2"]);
});

test("a cancelled turn keeps what was said as interrupted, and says why it ended", async () => {
  const agent = await open([{ text: "as I was say", hang: "deaf" }]);
  agent.send("go");
  const store = createTranscript(agent);
  await eventOf(agent.session, "assistant/chunk", ({ data }) => data.turn === 1 && data.chunk.type === "block-end");
  agent.cancel("enough");
  await agent.whenIdle();
  expect(store.getSnapshot().messages.slice(1)).toMatchObject([
    { role: "assistant", state: "interrupted", parts: [{ type: "text", text: "as I was say", streaming: false }] },
    { role: "mark", state: "interrupted", mark: { kind: "turn-end", reason: { kind: "aborted", reason: "enough" } } },
  ]);
});

test("a call that was half written when the turn was cancelled is gone, and a lone one leaves only the mark", async () => {
  const half = { chunks: [{ type: "delta", index: 0, name: "echo", text: '{"wo' }], hang: "deaf" } as const;
  const agent = await open([half], { tools: [echo] });
  const seen = watch(agent);
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  expect(cardOf(seen.at(-1)!)).toMatchObject({ state: "writing", arguments: '{"wo' });
  agent.cancel();
  await agent.whenIdle();
  expect(seen.at(-1)!.messages.map((message) => message.role)).toEqual(["user", "mark"]);
});

test("a tool that is abandoned by a cancel has an unknown outcome", async () => {
  const stuck = defineTool({
    name: "stuck",
    description: "d",
    inputSchema: z.object({}),
    execute: () => new Promise(() => {}),
  });
  const agent = await open([{ toolCalls: [{ name: "stuck", args: {} }] }], { tools: [stuck] });
  agent.send("go");
  await eventOf(agent.session, "tool/start");
  agent.cancel();
  await agent.whenIdle();
  expect(cardOf(createTranscript(agent).getSnapshot())).toMatchObject({ state: "unknown" });
});

test("a blocked message is a mark with its words and the reason", async () => {
  const agent = await open(["unused"], {
    plugins: [({ hooks }) => hooks.on("agent/prompt-submit", () => ({ kind: "block", reason: "no secrets" }))],
  });
  const id = agent.send("the password is");
  await agent.whenIdle();
  expect(createTranscript(agent).getSnapshot().messages).toEqual([
    {
      id,
      role: "mark",
      turn: 1,
      parts: [{ type: "text", text: "the password is", streaming: false }],
      state: "blocked",
      mark: { kind: "blocked", reason: "no secrets" },
    },
  ]);
});

test("what was queued is not shown; dropped by a cancel it is a mark, withdrawn it is nothing", async () => {
  const agent = await open([{ text: "x", hang: "deaf" }]);
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  const store = createTranscript(agent);
  const kept = agent.send("later");
  const taken = agent.steer("or not");
  expect(store.getSnapshot().messages).toHaveLength(2);
  await agent.withdraw(taken);
  agent.cancel("enough");
  await agent.whenIdle();
  const { messages } = store.getSnapshot();
  const marks = messages.filter((message) => message.mark?.kind === "dropped");
  expect(marks).toMatchObject([
    { id: kept, state: "interrupted", mark: { reason: "enough" }, parts: [{ text: "later" }] },
  ]);
});

test("steering is read as a message of its sender, in its place between the steps", async () => {
  const agent = await open([echoCall, "Done."], { tools: [echo] });
  agent.on("tool/start", () => void agent.steer("and hurry"));
  agent.send("go");
  await agent.whenIdle();
  const { messages } = createTranscript(agent).getSnapshot();
  expect(messages.map((message) => message.role)).toEqual(["user", "assistant", "user", "assistant"]);
  expect(messages[2]).toMatchObject({ parts: [{ text: "and hurry" }], source: { kind: "user" }, turn: 1 });
});

test("injected context is read as context, with its source", async () => {
  const agent = await open([]);
  agent.inject("the door is open", { source: { kind: "sensor" } });
  expect(createTranscript(agent).getSnapshot().messages).toMatchObject([
    { role: "context", turn: 1, source: { kind: "sensor" }, parts: [{ text: "the door is open" }] },
  ]);
});

test("kept up event by event it is at each moment what it is when read at once", async () => {
  const calls = [
    { name: "echo", args: { word: "a" } },
    { name: "fails", args: {} },
  ];
  const fails = defineTool({
    name: "fails",
    description: "d",
    inputSchema: z.object({}),
    needsApproval: true,
    execute: () => {
      throw new Error("broken");
    },
  });
  const answers: ScriptedAnswer[] = [
    { text: "wrong", error: { message: "again" } },
    { reasoning: "hm", text: "Let me", toolCalls: calls },
    "All done.",
    { text: "cut", hang: "deaf" },
  ];
  const agent = await open(answers, {
    tools: [echo, fails],
    plugins: [({ hooks }) => hooks.on("agent/request-error", () => ({ kind: "retry" }))],
  });
  answerAll(agent, { decision: "allow" });
  const store = createTranscript(agent);
  let compared = 0;
  store.subscribe(() => {
    expect(store.getSnapshot()).toEqual(createTranscript(agent).getSnapshot());
    compared += 1;
  });
  agent.send("go");
  await agent.whenIdle();
  agent.send("more");
  await eventOf(agent.session, "assistant/chunk", ({ data }) => data.turn === 2 && data.chunk.type === "block-end");
  agent.steer("never");
  agent.cancel();
  await agent.whenIdle();
  expect(compared).toBe(agent.session.seq);
});

test("of a stored session it is the same as it was live", async () => {
  const harness = createHarness({ model: scriptedModel([echoCall, "Done."]), tools: [echo] });
  const { agent, dispose } = await harness.agents.open({ id: "chat" });
  agent.send("go");
  await agent.whenIdle();
  const live = createTranscript(agent.session).getSnapshot();
  await dispose();
  const stored = (await harness.sessions.load("chat"))!;
  expect(createTranscript(stored).getSnapshot()).toEqual(live);
  expect(live.messages).toHaveLength(3);
});
