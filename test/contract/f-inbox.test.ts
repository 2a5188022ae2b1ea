/** F, 87 to 91, with D13: one inbox, ordered by acceptance, kept by the log. */
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { failingStorage, refuses } from "../support/failing-storage.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { heldAnswer, heldTool, statusesOf, textsOf } from "../support/held.ts";
import { codeOf } from "../support/lifecycle.ts";
import { dataOf } from "../support/scene.ts";
import { eventOf, snapshotWhere, typesOf } from "../support/wait.ts";

anywhere("#87 D13 there is one inbox: sends and steers are taken in the order of their acceptance", async (open) => {
  const held = heldAnswer("hi");
  const model = scriptedModel([held.answer, "again"]);
  const agent = await open({ model });
  agent.send("one");
  await eventOf(agent.session, "step/start");
  agent.send("two", { id: "m2" });
  agent.steer("three", { id: "m3" });
  agent.send("four", { id: "m4" });
  expect(agent.queue.map(({ id, as }) => [id, as])).toEqual([
    ["m2", "send"],
    ["m3", "steer"],
    ["m4", "send"],
  ]);
  // A cut-off answer ends the turn, so what steers is left over: it keeps its place.
  agent.cancel("enough", { queue: "keep" });
  await agent.whenIdle();
  expect(textsOf(agent.session)).toEqual(["one", "two", "three", "four"]);
  expect(agent.queue).toEqual([]);
  held.give();
});

anywhere("#87 a turn takes all that is queued at its start, and empties the queue", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  agent.send("one", { id: "m1" });
  agent.send("two", { id: "m2" });
  agent.send("three", { id: "m3" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start").map(({ messages }) => messages)).toEqual([["m1", "m2", "m3"]]);
  expect(textsOf(agent.session)).toEqual(["one", "two", "three"]);
  expect(agent.queue).toEqual([]);
});

local("#88 only what is accepted wakes the loop: neither configure, nor inject, nor withdraw, nor cancel", async () => {
  const model = scriptedModel([]);
  const harness = harnessWith({ model });
  const statuses = statusesOf(harness);
  const { agent } = await harness.agents.open({ id: "s" });
  agent.configure({ temperature: 0 });
  agent.inject("context");
  expect(await agent.withdraw("nothing")).toBe(false);
  agent.cancel();
  await agent.whenIdle();
  expect([statuses, model.requests]).toEqual([[], []]);
});

local("#88 what is queued before the loop waits is taken at once, and a disposal ends the wait", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  harness.hooks.on("agent/session-start", ({ agent }) => void agent.send("at the start"));
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  await agent.whenIdle();
  expect(textsOf(agent.session)).toEqual(["at the start"]);
  await dispose();
  expect(agent.status).toBe("disposed");
});

// #89, the one waiter of the inbox, is inside; its nearest observable: many wakes in one frame make one turn.
anywhere("#89 messages that come in one burst wake the loop once, and none is lost", async (open) => {
  const model = scriptedModel(["hi"]);
  const agent = await open({ model });
  const texts = Array.from({ length: 50 }, (_, i) => `message ${i}`);
  for (const one of texts) agent.send(one);
  await agent.whenIdle();
  expect(textsOf(agent.session)).toEqual(texts);
  expect(model.requests).toHaveLength(1);
});

anywhere("#90 D13 withdraw takes back what is queued; what a turn has taken it does not", async (open) => {
  const held = heldAnswer("hi");
  const agent = await open({ model: scriptedModel([held.answer]) });
  agent.send("go", { id: "m1" });
  await held.asked;
  agent.send("never", { id: "m2" });
  expect(await agent.withdraw("m2")).toBe(true);
  expect(await agent.withdraw("m2")).toBe(false);
  expect(await agent.withdraw("m1")).toBe(false);
  expect(await agent.withdraw("nothing")).toBe(false);
  expect(dataOf(agent.session, "inbox/dropped")).toEqual([{ ids: ["m2"], reason: "withdrawn" }]);
  held.give();
  await agent.whenIdle();
  expect(textsOf(agent.session)).toEqual(["go"]);
});

local("#90 D13 withdraw between the start of a turn and its messages is too late", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  const answers: boolean[] = [];
  agent.on("turn/start", () => void agent.withdraw("m1").then((gone) => answers.push(gone)));
  agent.send("go", { id: "m1" });
  await agent.whenIdle();
  expect(answers).toEqual([false]);
  expect(textsOf(agent.session)).toEqual(["go"]);
});

local("#90 withdrawing all of it in the listener of `running` goes back to idle without a turn", async () => {
  const harness = harnessWith({ model: scriptedModel([]) });
  const statuses = statusesOf(harness);
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("agent/status", ({ status }) => void (status === "running" && agent.withdraw("m1")));
  agent.send("go", { id: "m1" });
  await agent.whenIdle();
  expect(statuses).toEqual(["running", "idle"]);
  expect(typesOf(agent.session)).toEqual(["inbox/queued", "inbox/dropped"]);
});

anywhere("#90 an id that was withdrawn, dropped or consumed is not accepted again", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  agent.send("withdrawn", { id: "m1" });
  await agent.withdraw("m1");
  agent.send("dropped", { id: "m2" });
  agent.cancel();
  agent.send("go", { id: "m3" });
  await agent.whenIdle();
  for (const id of ["m1", "m2", "m3"]) expect(agent.send("again", { id })).toBe(id);
  await agent.whenIdle();
  expect(textsOf(agent.session)).toEqual(["go"]);
  expect(dataOf(agent.session, "inbox/queued")).toHaveLength(3);
});

local("#90 an append that is refused leaves the queue as it was", async () => {
  const storage = failingStorage();
  const harness = harnessWith({ model: scriptedModel(["hi"]), storage });
  const { agent } = await harness.agents.open({ id: "s" });
  storage.always(refuses("SESSION_CONFLICT"));
  agent.send("go");
  await snapshotWhere(agent, ({ durable }) => durable === "lost");
  await agent.whenIdle();
  const snapshot = agent.getSnapshot();
  const { seq } = agent.session;
  for (const verb of ["send", "steer", "inject"] as const) {
    expect(await codeOf(() => agent[verb]("more"))).toBe("READ_ONLY");
  }
  expect(agent.getSnapshot()).toBe(snapshot);
  expect(agent.session.seq).toBe(seq);
});

local("D13 a message with an id like those that the loop makes is lost no more than any other", async () => {
  const held = heldTool();
  const harness = harnessWith({ model: scriptedModel([calls("held"), "done", "hi"]), tools: [held.tool] });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("tools/post-execute", async () => ({
    kind: "accept",
    additionalContext: { content: "context", source: { kind: "hook" } },
  }));
  agent.send("go");
  const { callId } = await held.started;
  agent.send("mine", { id: `${callId}/context` });
  held.answer("ok");
  await agent.whenIdle();
  expect(textsOf(agent.session, "context/message")).toEqual(["context"]);
  expect(textsOf(agent.session)).toEqual(["go", "mine"]);
});

anywhere("D13 D30 a message with `output` opens a turn of its own, and splits the queue there", async (open) => {
  const model = scriptedModel(["one", "two", "{}", "four"]);
  const agent = await open({ model });
  const schema = { type: "object" };
  const held = ["a", "b"].map((id) => agent.send(id, { id }));
  agent.send("c", { id: "c", output: schema });
  agent.send("d", { id: "d" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start").map(({ messages }) => messages)).toEqual([held, ["c"], ["d"]]);
  expect(model.requests.map(({ config }) => config.responseFormat)).toEqual([
    undefined,
    { type: "json", schema },
    undefined,
  ]);
});

anywhere("D30 steering with `output` cannot join a turn: it opens one of its own", async (open) => {
  const held = heldAnswer("one");
  const model = scriptedModel([held.answer, "{}"]);
  const agent = await open({ model });
  const schema = { type: "object" };
  agent.send("go");
  await held.asked;
  agent.steer("and as JSON", { output: schema });
  held.give();
  await agent.whenIdle();
  expect(textsOf(agent.session)).toEqual(["go", "and as JSON"]);
  expect(model.requests.map(({ config }) => config.responseFormat)).toEqual([undefined, { type: "json", schema }]);
});

anywhere("D13 steering that is left over never steers a later turn: it waits for one that takes it", async (open) => {
  const held = heldAnswer("one");
  const model = scriptedModel([held.answer, calls("look"), "{}", "three"]);
  const agent = await open({ model, tools: [tool("look")] });
  agent.send("go", { id: "m1" });
  await held.asked;
  agent.send("as JSON", { id: "m2", output: { type: "object" } });
  agent.steer("left", { id: "m3" });
  agent.cancel("enough", { queue: "keep" });
  await agent.whenIdle();
  expect(textsOf(agent.session, "steering/message")).toEqual([]);
  expect(dataOf(agent.session, "turn/start").map(({ messages }) => messages)).toEqual([["m1"], ["m2"], ["m3"]]);
});

anywhere("D30 an `output` that is no schema is refused before anything changes", async (open) => {
  const agent = await open({ model: scriptedModel([]) });
  for (const [i, output] of [null, 5, "object", [], { type: undefined }, new Date()].entries()) {
    expect(await codeOf(() => agent.send("a", { output: output as never })), `output ${i}`).toBe("INVALID_CONTENT");
  }
  expect(agent.session.seq).toBe(0);
});

// #91, a fold that says what became of consumed input, is not adopted: `run` tells it of one message (D30).
