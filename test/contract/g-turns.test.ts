/** G: the driver, and the boundaries of a turn. */
import { run, type SessionEvent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { testClock } from "../support/clock.ts";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf, leftBehind, linesOf, scene, tool } from "../support/scene.ts";
import { deferred, endOf, eventOf, textOf, typesOf } from "../support/wait.ts";

anywhere("#92 a turn that fails is told as its end, and the next turn runs", async (open) => {
  const agent = await open({ model: scriptedModel([{ error: { message: "out of luck", code: "LUCK" } }, "two"]) });
  expect((await run(agent, "one").result).reason).toEqual({
    kind: "error",
    step: 1,
    message: "out of luck",
    code: "LUCK",
  });
  expect(await run(agent, "two").result).toMatchObject({ reason: { kind: "completed" }, turn: 2, text: "two" });
  expect(typesOf(agent.session).slice(0, 8)).toEqual([
    "inbox/queued",
    "turn/start",
    "user/message",
    "step/start",
    "request/header",
    "request/failed",
    "step/end",
    "turn/end",
  ]);
});

local("#92 #215 whatever throws in a turn, the driver lives", async () => {
  const { hooks, harness, model, say, session } = await scene([{ toolCalls: [{ name: "none", args: {} }] }, "fine"]);
  const bomb = (): never => {
    throw new Error("boom");
  };
  const names = [
    "agent/prompt-submit",
    "agent/session-prefix",
    "agent/pre-step",
    "agent/request",
    "prompt/assemble",
    "model/stream",
  ] as const;
  for (const name of names) {
    const off = hooks.on(name, bomb);
    expect(await say(name), name).toMatchObject({ kind: "error", message: "boom" });
    off();
  }
  const off = harness.prompt.section({ name: "broken", text: bomb });
  expect(await say("section")).toMatchObject({ kind: "error", code: "INVALID_PROMPT" });
  off();
  expect(model.requests).toHaveLength(0);
  expect(await say("and on")).toEqual({ kind: "completed" });
  expect(dataOf(session, "turn/start").map(({ turn }) => turn)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
});

local("#92 after a turn: flush, then leftover steering as a turn of its own, then idle", async () => {
  const { hooks, agent, model } = await scene(["one", "two"]);
  const seen: string[] = [];
  hooks.on("session/event", ({ event }) => {
    if (event.type === "turn/start" || event.type === "turn/end") seen.push(event.type);
  });
  hooks.on("agent/status", ({ status }) => void seen.push(status));
  hooks.on("session/flush", () => {
    seen.push("flush");
    if (seen.filter((one) => one === "flush").length === 1) agent.steer("left over");
  });
  agent.send("one");
  await agent.whenIdle();
  const aTurn = ["turn/start", "turn/end", "flush"];
  expect(seen).toEqual(["running", ...aTurn, ...aTurn, "idle"]);
  expect(linesOf(model.requests[1]!.messages)).toEqual(["user: one", "assistant: one", "user: left over"]);
});

local(
  "#92 D17 a listener of session/flush that never answers is waited for no longer than the storage is",
  async () => {
    const clock = testClock();
    const { hooks, agent, session, say, dispose } = await scene(["one", "two"], { clock });
    const off = hooks.on("session/flush", () => new Promise(() => {}));
    agent.send("one");
    await eventOf(session, "turn/end");
    const idle = agent.whenIdle();
    await clock.sleeping(5000);
    await clock.advance(5000);
    await idle;
    off();
    expect(await say("two")).toEqual({ kind: "completed" });
    await dispose();
  },
);

local("D14 #92 a cancel of what waits between two turns leaves a session that can be opened again", async () => {
  const { agent, session, say, diagnostics } = await scene(["one", "two"]);
  const off = agent.on("turn/end", () => {
    off();
    agent.send("never", { id: "never" });
    agent.cancel("not this");
  });
  await say("one");
  await agent.whenIdle();
  const cancelled = dataOf(session, "agent/cancelled")[0]!;
  expect(cancelled).toMatchObject({ reason: "not this", dropped: ["never"] });
  expect(cancelled).not.toHaveProperty("turn");
  expect(diagnostics).toEqual([]);
  const again = await scene(["three"], { storage: await leftBehind(session) });
  expect(await again.say("three")).toEqual({ kind: "completed" });
});

anywhere("#93 one turn takes all that is queued, in order", async (open) => {
  const gate = deferred<string>();
  const model = scriptedModel([() => gate.promise, "all"]);
  const agent = await open({ model });
  agent.send("first");
  await eventOf(agent.session, "step/start");
  const ids = ["a", "b", "c"].map((text) => agent.send(text));
  const last = run(agent, "d");
  await agent.flush();
  gate.resolve("one");
  expect(await last.result).toMatchObject({ turn: 2, reason: { kind: "completed" } });
  expect(dataOf(agent.session, "turn/start")[1]!.messages).toEqual([...ids, last.id]);
  expect(linesOf(model.requests[1]!.messages).slice(2)).toEqual(["user: a", "user: b", "user: c", "user: d"]);
});

anywhere("#94 turn/start comes first, and the messages it took come inside it", async (open) => {
  const agent = await open({ model: scriptedModel(["hello"]) });
  const { id, result } = run(agent, "hi");
  await result;
  expect(typesOf(agent.session)).toEqual([
    "inbox/queued",
    "turn/start",
    "user/message",
    "step/start",
    "request/header",
    "assistant/message",
    "step/end",
    "turn/end",
  ]);
  expect(dataOf(agent.session, "turn/start")).toMatchObject([
    { turn: 1, trigger: { kind: "message", source: { kind: "user" } }, messages: [id] },
  ]);
  expect(dataOf(agent.session, "user/message")).toMatchObject([
    { id, content: [{ type: "text", text: "hi" }], source: { kind: "user" } },
  ]);
});

local("#95 the trigger is the source of the first message, even of one that is blocked", async () => {
  const { hooks, agent, session } = await scene(["hello"]);
  hooks.on("agent/prompt-submit", ({ source }, next) =>
    source.kind === "cron" ? { kind: "block", reason: "not now" } : next(),
  );
  agent.send("tick", { source: { kind: "cron", job: "daily" } });
  agent.send("hi");
  await agent.whenIdle();
  expect(dataOf(session, "turn/start").map(({ trigger }) => trigger)).toEqual([
    { kind: "message", source: { kind: "cron", job: "daily" } },
  ]);
  expect(endOf(session)).toEqual({ kind: "completed" });
});

anywhere("#95 a turn that continues without a message says so, and took none", async (open) => {
  const agent = await open({ model: scriptedModel(["one", "two"]) });
  await run(agent, "go").result;
  agent.continue();
  await eventOf(agent.session, "turn/end", ({ data }) => data.turn === 2);
  expect(dataOf(agent.session, "turn/start")[1]).toMatchObject({
    turn: 2,
    trigger: { kind: "continue" },
    messages: [],
  });
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

local("#96 a listener that throws at every boundary takes none of them away", async () => {
  const { session, say } = await scene([{ toolCalls: [{ name: "look", args: {} }] }, "seen"], {
    tools: [tool("look")],
  });
  session.subscribe(() => {
    throw new Error("boom");
  });
  expect(await say("go")).toEqual({ kind: "completed" });
  expect(typesOf(session).filter((type) => /^(turn|step)/.test(type))).toEqual([
    "turn/start",
    "step/start",
    "step/end",
    "step/start",
    "step/end",
    "turn/end",
  ]);
});

// D11: nothing may veto a turn/start. It can be refused only where another writer has taken its place; then
// the loop has nothing of its own to end.
local("#96 D11 a turn that somebody else has opened in place of the loop's is closed once", async () => {
  const { hooks, harness, agent, session } = await scene(["hello", "hello"]);
  const off = hooks.on("agent/status", ({ status }) => {
    if (status !== "running") return;
    off();
    harness.sessions
      .get(session.id)!
      .append("turn/start", { turn: 1, trigger: { kind: "continue", source: { kind: "plugin" } } });
  });
  agent.send("hi");
  await agent.whenIdle();
  expect(dataOf(session, "turn/start").map(({ turn }) => turn)).toEqual([1, 2]);
  expect(dataOf(session, "turn/end").map(({ turn }) => turn)).toEqual([1, 2]);
  expect(dataOf(session, "user/message").map(({ content }) => textOf(content))).toEqual(["hi"]);
});

local("#97 D6 between turns only bookkeeping may stand", async () => {
  const { harness, session, say } = await scene(["hello"]);
  await say("hi");
  const log = harness.sessions.get(session.id)!;
  const misplaced = expect.objectContaining({ code: "MISPLACED_EVENT" });
  const content = [{ type: "text" as const, text: "x" }];
  const source = { kind: "plugin" };
  const before = session.seq;
  for (const [type, data] of [
    ["user/message", { id: "m", content, source }],
    ["context/message", { id: "m", content, source }],
    ["steering/message", { turn: 1, id: "m", content, source }],
    ["assistant/message", { turn: 1, step: 1, model: "m", content }],
    ["tool/result", { turn: 1, step: 1, callId: "c", content, isError: false }],
  ] as const) {
    expect(() => log.append(type, data as never, { surface: "append" }), type).toThrow(misplaced);
  }
  expect(() => log.append("step/start", { turn: 1, step: 2 })).toThrow(misplaced);
  expect(() => log.append("prompt/blocked", { id: "m", content, source, reason: "r" })).toThrow(misplaced);
  expect(() => log.append("note/made" as never, { text: "x" } as never)).toThrow(misplaced);
  expect(session.seq).toBe(before);
  log.append("model/aux", { purpose: "title", model: "m" });
  log.append("session/titled", { title: "T" });
  harness.sessions.define("note/made" as never, { betweenTurns: true });
  log.append("note/made" as never, { text: "x" } as never);
  expect(typesOf(session).slice(before - chunks(session))).toEqual(["model/aux", "session/titled", "note/made"]);
});

const chunks = ({ events }: { events: readonly SessionEvent[] }): number =>
  events.filter(({ type }) => type === "assistant/chunk").length;

local("#98 an injection between two turns is a turn of its own, and takes nobody's number", async () => {
  const { hooks, agent, session } = await scene(["one", "two"]);
  const off = hooks.on("session/flush", () => {
    off();
    agent.inject("between", { source: { kind: "clock" } });
    agent.send("two");
  });
  agent.send("one");
  await agent.whenIdle();
  expect(dataOf(session, "turn/start").map(({ turn, trigger }) => [turn, trigger.kind])).toEqual([
    [1, "message"],
    [2, "injection"],
    [3, "message"],
  ]);
  expect(linesOf(session.deriveMessages())).toEqual([
    "user: one",
    "assistant: one",
    "user: <clock>\nbetween\n</clock>",
    "user: two",
    "assistant: two",
  ]);
});

local("#98 an injection by a listener of the status, just before a turn starts", async () => {
  const { hooks, agent, session, model } = await scene(["one"]);
  hooks.on("agent/status", ({ status }) => {
    if (status === "running") agent.inject("before", { source: { kind: "clock" } });
  });
  agent.send("one");
  await agent.whenIdle();
  expect(dataOf(session, "turn/start").map(({ turn, trigger }) => [turn, trigger.kind])).toEqual([
    [1, "injection"],
    [2, "message"],
  ]);
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: <clock>\nbefore\n</clock>", "user: one"]);
});

anywhere("#99 messages that come during a turn wait for the next", async (open) => {
  const model = scriptedModel([async () => (agent.send("later"), "one"), "two"]);
  const agent = await open({ model });
  agent.send("first");
  await eventOf(agent.session, "turn/end", ({ data }) => data.turn === 2);
  expect(model.requests.map(({ messages }) => linesOf(messages))).toEqual([
    ["user: first"],
    ["user: first", "assistant: one", "user: later"],
  ]);
});

local("#99 bursts from every place lose nothing, run nothing twice, and turns increase", async () => {
  const { hooks, agent, session } = await scene(
    Array.from({ length: 100 }, () => "ok"),
    {},
  );
  const sent: string[] = [];
  const say = (): void => {
    if (sent.length < 40) sent.push(agent.send(`message ${sent.length}`));
  };
  hooks.on("session/event", ({ event }) => {
    if (/^(turn|step|user|assistant\/message)/.test(event.type)) say();
  });
  hooks.on("session/flush", say);
  hooks.on("agent/pre-step", say);
  hooks.on("agent/status", say);
  for (let i = 0; i < 5; i += 1) say();
  await agent.whenIdle();
  expect(sent).toHaveLength(40);
  expect(dataOf(session, "user/message").map(({ id }) => id)).toEqual(sent);
  expect(dataOf(session, "turn/start").flatMap(({ messages }) => messages)).toEqual(sent);
  const turns = dataOf(session, "turn/start").map(({ turn }) => turn);
  expect(turns).toEqual(turns.map((_, i) => i + 1));
});
