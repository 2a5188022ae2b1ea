/** E, 60 to 64: context that waits for the next request and never runs the model. */
import { memoryStorage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { heldAnswer, statusesOf, text, textsOf } from "../support/held.ts";
import { codeOf, isPending } from "../support/lifecycle.ts";
import { storedEvents } from "../support/mortal.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { deferred, endOf, typesOf } from "../support/wait.ts";

anywhere("#60 inject runs no model, and the next request sees it, in a tag that names its source", async (open) => {
  const model = scriptedModel(["hi"]);
  const agent = await open({ model });
  agent.inject("it rains", { source: { kind: "weather" } });
  await agent.whenIdle();
  expect(model.requests).toEqual([]);
  agent.send("hello");
  await agent.whenIdle();
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: <weather>\nit rains\n</weather>", "user: hello"]);
});

anywhere("#60 inject returns its id, and its source is the user unless said otherwise", async (open) => {
  const agent = await open({ model: scriptedModel([]) });
  const id = agent.inject("a");
  expect(agent.inject("b", { id: "m2" })).toBe("m2");
  await agent.flush();
  expect(dataOf(agent.session, "context/message")).toEqual([
    { id, content: text("a"), source: { kind: "user" } },
    { id: "m2", content: text("b"), source: { kind: "user" } },
  ]);
});

anywhere("#61 an idle inject is a turn of its own, completed, without a step", async (open) => {
  const agent = await open({ model: scriptedModel([]) });
  const source = { kind: "weather" };
  agent.inject("it rains", { id: "m1", source });
  await agent.flush();
  expect(agent.session.events.map(({ type, data }) => [type, data])).toEqual([
    ["turn/start", { turn: 1, trigger: { kind: "injection", source }, messages: ["m1"] }],
    ["context/message", { id: "m1", content: text("it rains"), source }],
    ["turn/end", { turn: 1, reason: { kind: "completed" } }],
  ]);
});

anywhere("#61 an inject with a turn open joins it where it stands", async (open) => {
  const held = heldAnswer(calls("look"));
  const model = scriptedModel([held.answer, "done"]);
  const agent = await open({ model, tools: [tool("look")] });
  agent.send("go");
  await held.asked;
  agent.inject("it rains", { source: { kind: "weather" } });
  await agent.flush();
  expect(typesOf(agent.session)).toEqual([
    "inbox/queued",
    "turn/start",
    "user/message",
    "step/start",
    "request/header",
    "context/message",
  ]);
  held.give();
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start")).toHaveLength(1);
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: go"]);
  expect(linesOf(model.requests[1]!.messages)).toEqual([
    "user: go",
    "user: <weather>\nit rains\n</weather>",
    "assistant: ",
    "tool: done",
  ]);
});

local("#61 openness is read from the log: an inject while the status runs and no turn is open opens one", async () => {
  const harness = harnessWith({ model: scriptedModel(["one", "two"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  const statuses: string[] = [];
  const off = harness.hooks.on("session/flush", () => {
    off();
    statuses.push(agent.status);
    agent.inject("between");
  });
  agent.send("go");
  await agent.whenIdle();
  expect(statuses).toEqual(["running"]);
  expect(typesOf(agent.session).slice(-4)).toEqual(["turn/end", "turn/start", "context/message", "turn/end"]);
  expect(dataOf(agent.session, "turn/start").map(({ turn, trigger }) => [turn, trigger.kind])).toEqual([
    [1, "message"],
    [2, "injection"],
  ]);
});

local("#61 #98 an inject between the flip to running and the turn does not collide with its number", async () => {
  const model = scriptedModel(["hi"]);
  const harness = harnessWith({ model });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("agent/status", ({ status }) => {
    if (status === "running") agent.inject("first");
  });
  agent.send("go");
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start").map(({ turn, trigger }) => [turn, trigger.kind])).toEqual([
    [1, "injection"],
    [2, "message"],
  ]);
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: <user>\nfirst\n</user>", "user: go"]);
});

// #62, the append that fails after `turn/start`: what is injected is checked before anything is written, so
// nothing that can be done from outside makes that append fail. Its nearest observables are these two.
anywhere("#62 an inject that is refused opens no turn", async (open) => {
  const agent = await open({ model: scriptedModel([]) });
  expect(await codeOf(() => agent.inject([{ type: "text" }] as never))).toBe("INVALID_CONTENT");
  expect(await codeOf(() => agent.inject("a", { source: {} as never }))).toBe("INVALID_CONTENT");
  expect(agent.session.seq).toBe(0);
});

local("#62 whatever a listener does to an idle inject, its turn is closed and stored", async () => {
  const storage = memoryStorage();
  const harness = harnessWith({ model: scriptedModel([]), storage });
  const { agent } = await harness.agents.open({ id: "s" });
  for (const type of ["turn/start", "context/message"] as const) {
    agent.on(type, () => {
      agent.cancel("no");
      throw new Error("no");
    });
  }
  agent.inject("a");
  await agent.flush();
  expect(typesOf(agent.session)).toEqual(["turn/start", "context/message", "turn/end"]);
  expect((await storedEvents(storage, "s")).length).toBe(3);
});

local("#63 a flush that fails behind an idle inject is reported, told as step 0, and never thrown", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  const errors: unknown[] = [];
  const told = deferred();
  const failure = new Error("disk full");
  harness.hooks.on("agent/error", ({ agent: of, ...rest }) => {
    errors.push([of.id, rest]);
    told.resolve();
  });
  const off = harness.hooks.on("session/flush", () => {
    off();
    throw failure;
  });
  agent.inject("a");
  await told.promise;
  expect(errors).toEqual([["s", { turn: 1, step: 0, error: failure }]]);
  expect(harness.diagnostics.map(({ code }) => code)).toEqual(["FLUSH_FAILED"]);
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  agent.send("go");
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

local("#63 #81 H10 dispose awaits the flush behind an idle inject, and whenIdle does not", async () => {
  const harness = harnessWith({ model: scriptedModel([]) });
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  const gate = deferred();
  harness.hooks.on("session/flush", () => gate.promise);
  agent.inject("a");
  await agent.whenIdle();
  const disposed = dispose();
  await agent.whenIdle();
  expect(await isPending(disposed)).toBe(true);
  gate.resolve();
  await disposed;
});

local("#64 an idle inject changes no status, wakes nothing and is not told as queued", async () => {
  const model = scriptedModel([]);
  const harness = harnessWith({ model });
  const statuses = statusesOf(harness);
  const { agent } = await harness.agents.open({ id: "s" });
  let queued = 0;
  harness.hooks.on("agent/queued", () => void (queued += 1));
  agent.inject("a");
  expect(agent.queue).toEqual([]);
  const idle = agent.whenIdle();
  expect(await isPending(idle)).toBe(false);
  expect([statuses, queued, model.requests.length]).toEqual([[], 0, 0]);
  expect(typesOf(agent.session)).toEqual(["turn/start", "context/message", "turn/end"]);
});

anywhere("#60 D13 an id that was accepted is accepted once, by whichever verb", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  expect(agent.inject("a", { id: "m1" })).toBe("m1");
  expect(agent.inject("b", { id: "m1" })).toBe("m1");
  expect(agent.send("c", { id: "m1" })).toBe("m1");
  expect(agent.send("d", { id: "m2" })).toBe("m2");
  expect(agent.inject("e", { id: "m2" })).toBe("m2");
  await agent.whenIdle();
  expect(textsOf(agent.session, "context/message")).toEqual(["a"]);
  expect(textsOf(agent.session)).toEqual(["d"]);
});
