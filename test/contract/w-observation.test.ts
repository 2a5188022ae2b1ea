/** W: what a user interface watches: the events of the session, and a few words about the agent (D5). */
import {
  createHarness,
  createTranscript,
  defineTool,
  usageOf,
  type SessionEvent,
  type SessionEventType,
} from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import { anywhere, local } from "../support/fixture.ts";
import { eventOf, snapshotWhere, typesOf } from "../support/wait.ts";

const add = defineTool<{ a: number; b: number }>({
  name: "add",
  description: "adds",
  inputSchema: { type: "object" },
  execute: ({ a, b }) => a + b,
});
const adding = () =>
  scriptedModel([
    { text: "let me add", toolCalls: [{ name: "add", args: { a: 1, b: 2 } }], usage: { input: 3, output: 4 } },
    { text: "it is three", usage: { input: 9, output: 3 } },
  ]);

describe("the events of the session", () => {
  anywhere("#250 tell it all: boundaries, tokens, tools, in the order of the log, each once", async (open) => {
    const agent = await open({ model: adding(), tools: [add] });
    const heard: SessionEvent[] = [];
    agent.session.subscribe((event) => void heard.push(event), { from: 0 });
    agent.send("1 + 2?");
    await agent.whenIdle();
    expect(heard).toEqual(agent.session.events);
    expect(heard.map(({ seq }) => seq)).toEqual(heard.map((_, i) => i));
    expect(typesOf(agent.session)).toEqual([
      "inbox/queued",
      "turn/start",
      "user/message",
      "step/start",
      "request/header",
      "assistant/message",
      "tool/call",
      "tool/start",
      "tool/result",
      "step/end",
      "step/start",
      "assistant/message",
      "step/end",
      "turn/end",
    ]);
  });

  anywhere("#250 D5 `on` is sugar over them: it hears the very events of the log", async (open) => {
    const agent = await open({ model: adding(), tools: [add] });
    const types: SessionEventType[] = ["turn/start", "step/end", "assistant/chunk", "tool/result", "turn/end"];
    const heard: SessionEvent[] = [];
    for (const type of types) agent.on(type, (event) => void heard.push(event));
    agent.send("1 + 2?");
    await agent.whenIdle();
    const logged = agent.session.events.filter(({ type }) => types.includes(type));
    expect(heard).toEqual(logged);
    expect(heard.every((event) => agent.session.at(event.seq) === event)).toBe(true);
  });

  anywhere("#250 D5 `on` hears nothing once it is undone, or its signal aborts", async (open) => {
    const agent = await open({});
    const heard: string[] = [];
    const controller = new AbortController();
    const off = agent.on("agent/configured", () => void heard.push("undone"));
    agent.on("agent/configured", () => void heard.push("aborted"), { signal: controller.signal });
    agent.configure({ temperature: 0 });
    await agent.flush();
    off();
    off();
    controller.abort();
    agent.configure({ temperature: 1 });
    await agent.flush();
    expect(heard).toEqual(["undone", "aborted"]);
  });

  anywhere("#250 the text of an answer is there token by token before its message is", async (open) => {
    const agent = await open({ model: scriptedModel(["one two three"]) });
    let text = "";
    let atMessage: string | undefined;
    agent.on("assistant/chunk", ({ data: { chunk } }) => void (chunk.type === "delta" && (text += chunk.text)));
    agent.on("assistant/message", () => void (atMessage = text));
    agent.send("count");
    await agent.whenIdle();
    expect(atMessage).toBe("one two three");
  });

  anywhere("#250 who comes late is told what was, and then what comes, without a gap or a duplicate", async (open) => {
    const agent = await open({ model: scriptedModel(["one", "two"]) });
    agent.send("first");
    await agent.whenIdle();
    const from = agent.session.seq - 3;
    const late: number[] = [];
    agent.session.subscribe(({ seq }) => void late.push(seq), { from });
    expect(late).toEqual([from, from + 1, from + 2]);
    agent.send("second");
    await agent.whenIdle();
    expect(late).toEqual(Array.from({ length: agent.session.seq - from }, (_, i) => from + i));
  });

  anywhere("#250 who asks from before the beginning is told from the beginning", async (open) => {
    const agent = await open({});
    agent.configure({ temperature: 0 });
    await agent.flush();
    const heard: number[] = [];
    agent.session.subscribe(({ seq }) => void heard.push(seq), { from: -5 });
    agent.configure({ temperature: 1 });
    await agent.flush();
    expect(heard).toEqual([0, 1]);
  });

  anywhere("#250 everything that is shown is a fold of them: transcript, usage, history", async (open) => {
    const agent = await open({ model: adding(), tools: [add] });
    const transcript = createTranscript(agent);
    agent.send("1 + 2?");
    await agent.whenIdle();
    const { messages } = transcript.getSnapshot();
    expect(messages.map(({ role, parts }) => `${role}: ${parts.map(({ type }) => type).join()}`)).toEqual([
      "user: text",
      "assistant: text,tool",
      "assistant: text",
    ]);
    expect(createTranscript(agent.session).getSnapshot()).toEqual(transcript.getSnapshot());
    expect(usageOf(agent.session).total).toEqual({ input: 12, output: 7 });
  });
});

describe("the words about the agent", () => {
  local(
    "#250 control events tell of creation, status, the queue, errors and disposal, and of nothing else",
    async () => {
      const { agents, hooks } = createHarness({ model: scriptedModel(["fine", { error: { message: "busy" } }]) });
      const told: string[] = [];
      hooks.on("session/created", ({ session }) => void told.push(`session created ${session.id}`));
      hooks.on("agent/created", ({ agent }) => void told.push(`agent created ${agent.id}`));
      hooks.on("agent/status", ({ agent, status }) => void told.push(`${status} ${agent.status === status}`));
      hooks.on("agent/queued", ({ message, steering }) => void told.push(`queued ${message.id} ${steering}`));
      hooks.on("agent/error", ({ turn, step, error }) => void told.push(`error ${turn}.${step} ${error.message}`));
      hooks.on("agent/disposed", ({ agent }) => void told.push(`agent disposed ${agent.id}`));
      hooks.on("session/disposed", ({ session }) => void told.push(`session disposed ${session.id}`));
      const { agent, dispose } = await agents.open({ id: "s" });
      agent.send("one", { id: "m1" });
      await agent.whenIdle();
      agent.send("two", { id: "m2" });
      await agent.whenIdle();
      await dispose();
      expect(told).toEqual([
        "session created s",
        "agent created s",
        "queued m1 false",
        "running true",
        "idle true",
        "queued m2 false",
        "running true",
        "error 2.1 busy",
        "idle true",
        "disposed true",
        "agent disposed s",
        "session disposed s",
      ]);
    },
  );

  local("#250 D5 what they tell of a turn stands in the log by then: they are no second source of truth", async () => {
    const { agents, hooks } = createHarness({ model: scriptedModel([{ error: { message: "busy" } }]) });
    const seen: (string | undefined)[] = [];
    hooks.on("agent/queued", ({ agent }) => void seen.push(agent.session.events.at(-1)?.type));
    const { agent } = await agents.open({ id: "s" });
    hooks.on("session/event", ({ session, event }) => {
      expect(session.at(event.seq)).toBe(event);
    });
    agent.send("hello");
    await agent.whenIdle();
    expect(seen).toEqual(["inbox/queued"]);
  });

  anywhere(
    "#250 the snapshot is one object until something that it shows changes, and subscribers are told then",
    async (open) => {
      const agent = await open({ model: scriptedModel(["one two three four", { text: "half", hang: "polite" }]) });
      const seen: ReturnType<typeof agent.getSnapshot>[] = [];
      agent.subscribe(() => void seen.push(agent.getSnapshot()));
      const before = agent.getSnapshot();
      expect(agent.getSnapshot()).toBe(before);
      agent.send("hello", { id: "m" });
      expect(agent.getSnapshot().queue).toEqual([
        { id: "m", content: [{ type: "text", text: "hello" }], source: { kind: "user" }, as: "send" },
      ]);
      await agent.whenIdle();
      await agent.flush();
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen.map(({ status, queue }) => `${status} ${queue.length}`)).toContain("running 0");
      expect(agent.getSnapshot()).toMatchObject({
        status: "idle",
        waiting: false,
        queue: [],
        interactions: [],
        durable: "stored",
      });
      expect(Object.isFrozen(agent.getSnapshot())).toBe(true);
    },
  );

  anywhere("#250 tokens do not change the snapshot", async (open) => {
    const agent = await open({ model: scriptedModel([{ text: "one two three four five", hang: "polite" }]) });
    agent.send("hello");
    await eventOf(agent.session, "assistant/chunk");
    const first = agent.getSnapshot();
    await eventOf(agent.session, "assistant/chunk", ({ data }) => data.chunk.type === "block-end");
    expect({ ...agent.getSnapshot(), durable: first.durable }).toEqual(first);
    agent.cancel();
    await snapshotWhere(agent, ({ status }) => status === "idle");
  });
});
