/** E, 66 to 68 and 76 to 78: what a cancel stops, what it drops, and what it leaves alone. */
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { heldAnswer, heldTool, statusesOf, textsOf } from "../support/held.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { endOf, eventOf, typesOf } from "../support/wait.ts";

const HANGING = { text: "on and on", hang: "deaf" } as const;

local("#66 D1 there is no public abort: cancel is the one verb that stops", async () => {
  const { agent } = await harnessWith().agents.open({ id: "s" });
  expect("abort" in agent).toBe(false);
  expect(typeof agent.cancel).toBe("function");
});

anywhere("#67 cancel drops what is queued and what steers, ends the turn, and names all of it", async (open) => {
  const model = scriptedModel([HANGING, "never"]);
  const agent = await open({ model });
  agent.send("go", { id: "m1" });
  await eventOf(agent.session, "assistant/chunk");
  agent.send("next", { id: "m2" });
  agent.steer("left", { id: "m3" });
  agent.send("last", { id: "m4" });
  agent.cancel("enough");
  expect(agent.queue).toEqual([]);
  await agent.whenIdle();
  expect(dataOf(agent.session, "agent/cancelled")).toEqual([
    { id: expect.any(String), reason: "enough", turn: 1, dropped: ["m2", "m3", "m4"] },
  ]);
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "enough" });
  expect(model.requests).toHaveLength(1);
});

anywhere("#67 the reason of a cancel is `cancelled` unless one is given", async (open) => {
  const agent = await open({ model: scriptedModel([HANGING]) });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  agent.cancel();
  await agent.whenIdle();
  expect(dataOf(agent.session, "agent/cancelled").map(({ reason }) => reason)).toEqual(["cancelled"]);
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "cancelled" });
});

anywhere("#67 a reason that is not well formed is made so, the same in the cancel and at the end", async (open) => {
  const agent = await open({ model: scriptedModel([HANGING]) });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  agent.cancel("a\uD800");
  await agent.whenIdle();
  expect(dataOf(agent.session, "agent/cancelled").map(({ reason }) => reason)).toEqual(["a\uFFFD"]);
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "a\uFFFD" });
});

anywhere("#68 an idle cancel does nothing, and cannot drop a later message", async (open) => {
  const model = scriptedModel(["hi", "again"]);
  const agent = await open({ model });
  agent.cancel("nothing");
  agent.cancel("nothing", { queue: "keep" });
  expect(agent.session.seq).toBe(0);
  agent.send("hello");
  await agent.whenIdle();
  const { seq } = agent.session;
  const snapshot = agent.getSnapshot();
  agent.cancel("nothing");
  expect(agent.session.seq).toBe(seq);
  expect(agent.getSnapshot()).toBe(snapshot);
  agent.send("once more");
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["completed", "completed"]);
});

for (const type of ["turn/end", "session/flush"] as const) {
  local(`#68 a cancel when the turn is over, in ${type}, with nothing queued, does nothing`, async () => {
    const harness = harnessWith({ model: scriptedModel(["hi", "again"]) });
    const { agent } = await harness.agents.open({ id: "s" });
    if (type === "turn/end") agent.on(type, () => agent.cancel("late"));
    else harness.hooks.on(type, () => agent.cancel("late"));
    agent.send("hello");
    await agent.whenIdle();
    expect(dataOf(agent.session, "agent/cancelled")).toEqual([]);
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
  });
}

for (const hook of ["prompt/assemble", "agent/session-prefix", "agent/pre-step", "agent/request"] as const) {
  local(`#68 H6 a cancel after a turn that failed in ${hook} finds nothing to stop`, async () => {
    const harness = harnessWith({ model: scriptedModel(["hi"]) });
    const { agent } = await harness.agents.open({ id: "s" });
    const off = harness.hooks.on(hook, () => {
      off();
      throw new Error("no");
    });
    agent.send("go");
    await agent.whenIdle();
    const { seq } = agent.session;
    agent.cancel("nothing");
    expect(agent.session.seq).toBe(seq);
    agent.send("again");
    await agent.whenIdle();
    expect(dataOf(agent.session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["error", "completed"]);
  });
}

anywhere("#68 a cancel with something queued and no turn drops it, and is told of", async (open) => {
  const agent = await open({ model: scriptedModel([]) });
  agent.send("go", { id: "m1" });
  agent.cancel("enough");
  await agent.whenIdle();
  const [cancelled] = dataOf(agent.session, "agent/cancelled");
  expect(cancelled).toEqual({ id: expect.any(String), reason: "enough", dropped: ["m1"] });
  expect(typesOf(agent.session)).toEqual(["inbox/queued", "agent/cancelled"]);
});

local("#76 a message sent while the cancelled turn is flushed runs next", async () => {
  const model = scriptedModel([HANGING, "hi"]);
  const harness = harnessWith({ model });
  const { agent } = await harness.agents.open({ id: "s" });
  const off = harness.hooks.on("session/flush", () => {
    off();
    agent.send("next");
  });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  agent.cancel("enough");
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["aborted", "completed"]);
  expect(textsOf(agent.session)).toEqual(["go", "next"]);
});

anywhere("#76 #85 a message sent after the cancel, before the turn has ended, runs next", async (open) => {
  const agent = await open({ model: scriptedModel([HANGING, "hi"]) });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  agent.cancel("enough");
  agent.send("next");
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["aborted", "completed"]);
  expect(textsOf(agent.session)).toEqual(["go", "next"]);
});

anywhere("#85 a message that is withdrawn after such a cancel starts no turn", async (open) => {
  const agent = await open({ model: scriptedModel([HANGING]) });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  agent.cancel("enough");
  expect(await agent.withdraw(agent.send("next"))).toBe(true);
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start")).toHaveLength(1);
});

local("#76 a cancel governs its own turn: the next one, opened from its end, is not touched", async () => {
  const model = scriptedModel([HANGING, calls("look"), "done"]);
  const harness = harnessWith({ model, tools: [tool("look")] });
  const { agent } = await harness.agents.open({ id: "s" });
  const statuses = statusesOf(harness);
  const off = agent.on("turn/end", () => {
    off();
    agent.send("next");
  });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  agent.cancel("enough");
  await agent.whenIdle();
  expect(endOf(agent.session, 2)).toEqual({ kind: "completed" });
  expect(statuses).toEqual(["running", "idle"]);
});

anywhere("#77 the steering of a cancelled turn is never delivered", async (open) => {
  const held = heldTool();
  const model = scriptedModel([calls("held"), "hi"]);
  const agent = await open({ model, tools: [held.tool] });
  agent.send("go");
  await held.started;
  agent.steer("left");
  agent.cancel("enough");
  agent.send("next");
  await agent.whenIdle();
  expect(textsOf(agent.session, "steering/message")).toEqual([]);
  expect(textsOf(agent.session)).toEqual(["go", "next"]);
  expect(linesOf(model.requests[1]!.messages).join("\n")).not.toContain("left");
});

anywhere("#77 steering that came during a step which failed is delivered with the next turn", async (open) => {
  const held = heldAnswer({ error: { message: "no", code: "OVERLOADED" } });
  const model = scriptedModel([held.answer, "hi"]);
  const agent = await open({ model });
  agent.send("go");
  await held.asked;
  agent.steer("left", { id: "m2" });
  held.give();
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["error", "completed"]);
  expect(textsOf(agent.session)).toEqual(["go", "left"]);
  expect(dataOf(agent.session, "inbox/queued").filter(({ id }) => id === "m2")).toHaveLength(1);
});

anywhere("#78 what was queued before a cancel never runs, and joins no other turn", async (open) => {
  const model = scriptedModel([HANGING, "hi"]);
  const agent = await open({ model });
  agent.send("go");
  await eventOf(
    agent.session,
    "assistant/chunk",
    ({ data: { chunk } }) => chunk.type === "delta" && chunk.text === "on",
  );
  agent.send("dropped");
  agent.cancel("enough");
  agent.send("next", { id: "m3" });
  await agent.whenIdle();
  expect(textsOf(agent.session)).toEqual(["go", "next"]);
  expect(dataOf(agent.session, "turn/start").at(-1)?.messages).toEqual(["m3"]);
  // Of the cancelled turn the model reads what was asked, and what had been answered of it.
  expect(linesOf(model.requests[1]!.messages)).toEqual(["user: go", "assistant: on and on", "user: next"]);
});
