/** E, 84 to 86, with D14: a cancel is in the log at once, survives the host, and may keep the queue. */
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, clientTool } from "../support/calls.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { heldTool, statusesOf, storedUpTo, textsOf } from "../support/held.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { endOf, eventOf, typesOf } from "../support/wait.ts";

const HANGING = { text: "on and on", hang: "deaf" } as const;

local("D14 #67 a cancel stands in the log when it returns, before the turn has ended", async () => {
  const { agent } = await harnessWith({ model: scriptedModel([HANGING]) }).agents.open({ id: "s" });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  agent.send("dropped", { id: "m2" });
  const { seq } = agent.session;
  agent.cancel("enough");
  const { type, data } = agent.session.at(seq)!;
  expect([type, data]).toEqual([
    "agent/cancelled",
    { id: expect.any(String), reason: "enough", turn: 1, dropped: ["m2"] },
  ]);
  expect(agent.queue).toEqual([]);
  expect(agent.status).toBe("running");
  await agent.whenIdle();
});

anywhere(
  "D14 #84 `queue: keep` ends the turn, and the queue, steering included, runs as the next one",
  async (open) => {
    const held = heldTool();
    const model = scriptedModel([calls("held"), "hi"]);
    const agent = await open({ model, tools: [held.tool] });
    agent.send("go", { id: "m1" });
    await held.started;
    agent.send("two", { id: "m2" });
    agent.steer("three", { id: "m3" });
    agent.send("four", { id: "m4" });
    agent.cancel("enough", { queue: "keep" });
    await agent.whenIdle();
    expect(dataOf(agent.session, "agent/cancelled")).toEqual([
      { id: expect.any(String), reason: "enough", turn: 1, dropped: [] },
    ]);
    expect(dataOf(agent.session, "turn/end").map(({ reason }) => reason)).toEqual([
      { kind: "aborted", reason: "enough" },
      { kind: "completed" },
    ]);
    expect(dataOf(agent.session, "turn/start").map(({ messages }) => messages)).toEqual([["m1"], ["m2", "m3", "m4"]]);
    expect(linesOf(model.requests[1]!.messages).slice(-3)).toEqual(["user: two", "user: three", "user: four"]);
  },
);

local("D14 #84 `queue: keep` from the listener of `running`: what was about to run runs all the same", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const statuses = statusesOf(harness);
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("agent/status", ({ status }) => {
    if (status === "running") agent.cancel("enough", { queue: "keep" });
  });
  agent.send("go");
  await agent.whenIdle();
  expect(typesOf(agent.session).slice(0, 4)).toEqual(["inbox/queued", "agent/cancelled", "turn/start", "user/message"]);
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  expect(statuses).toEqual(["running", "idle"]);
});

local("D14 D15 `queue: keep` before a message stands in its turn: it is queued again, and runs next", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  const off = agent.on("turn/start", () => {
    off();
    agent.cancel("enough", { queue: "keep" });
  });
  agent.send("go", { id: "m1" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start").map(({ messages }) => messages)).toEqual([["m1"], ["m1"]]);
  expect(dataOf(agent.session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["aborted", "completed"]);
  expect(textsOf(agent.session)).toEqual(["go"]);
});

anywhere("D14 #84 the first of several cancels gives the reason; each is told of", async (open) => {
  const agent = await open({ model: scriptedModel([HANGING]) });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  agent.cancel("first", { queue: "keep" });
  agent.send("dropped", { id: "m2" });
  agent.cancel("second");
  await agent.whenIdle();
  expect(dataOf(agent.session, "agent/cancelled").map(({ reason, dropped }) => [reason, dropped])).toEqual([
    ["first", []],
    ["second", ["m2"]],
  ]);
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "first" });
  expect(textsOf(agent.session)).toEqual(["go"]);
});

anywhere("D14 #84 a cancel from the listener of a cancel comes second, whatever order they stop in", async (open) => {
  const agent = await open({ model: scriptedModel([HANGING]) });
  const off = agent.on("agent/cancelled", () => {
    off();
    agent.cancel("second");
  });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  agent.cancel("first");
  await agent.whenIdle();
  expect(dataOf(agent.session, "agent/cancelled")[0]!.reason).toBe("first");
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "first" });
});

local("D14 a turn whose cancel is stored, and whose end is not, is ended as aborted by the next opening", async () => {
  const { agent } = await harnessWith({ model: scriptedModel([HANGING]) }).agents.open({ id: "s" });
  agent.send("go");
  await eventOf(
    agent.session,
    "assistant/chunk",
    ({ data: { chunk } }) => chunk.type === "delta" && chunk.text === "on",
  );
  agent.cancel("enough");
  agent.send("dropped");
  agent.cancel("more than enough");
  await agent.whenIdle();
  const types = typesOf(agent.session).slice(typesOf(agent.session).indexOf("agent/cancelled"));
  expect(types).toEqual([
    "agent/cancelled",
    "inbox/queued",
    "agent/cancelled",
    "assistant/message",
    "step/end",
    "turn/end",
  ]);
  const first = agent.session.seq - types.length;
  for (const survives of [1, 3, 4, 5]) {
    const storage = await storedUpTo(agent.session, first + survives);
    const again = await harnessWith({ model: scriptedModel([]), storage }).agents.open({ id: "s" });
    expect(endOf(again.agent.session), `${survives}`).toEqual({ kind: "aborted", reason: "enough" });
    expect(linesOf(again.agent.session.deriveMessages())).toEqual(["user: go", "assistant: on and on"]);
  }
});

anywhere("D14 #68 a second cancel that finds nothing more to stop or to drop does nothing", async (open) => {
  const agent = await open({ model: scriptedModel([HANGING]) });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  agent.cancel("first");
  agent.cancel("second");
  agent.cancel("third", { queue: "keep" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "agent/cancelled").map(({ reason }) => reason)).toEqual(["first"]);
});

local("D14 D23 a cancelled turn that waits for an answer is not parked: the next opening ends it", async () => {
  const tools = [clientTool("paint")];
  const { agent } = await harnessWith({ model: scriptedModel([calls("paint")]), tools }).agents.open({ id: "s" });
  agent.send("go");
  await eventOf(agent.session, "interaction/requested");
  agent.cancel("enough");
  await agent.whenIdle();
  const storage = await storedUpTo(agent.session, "agent/cancelled");
  const again = await harnessWith({ model: scriptedModel([]), storage, tools }).agents.open({ id: "s" });
  expect(endOf(again.agent.session)).toEqual({ kind: "aborted", reason: "enough" });
  expect(again.agent.interactions).toEqual([]);
});

local("D14 a cancel of an earlier turn does not mark a later one", async () => {
  const { agent } = await harnessWith({ model: scriptedModel([HANGING, HANGING]) }).agents.open({ id: "s" });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  agent.cancel("enough");
  await agent.whenIdle();
  agent.send("again");
  await eventOf(agent.session, "assistant/chunk", ({ data: { turn } }) => turn === 2);
  const storage = await storedUpTo(agent.session, agent.session.seq);
  const again = await harnessWith({ model: scriptedModel([]), storage }).agents.open({ id: "s" });
  expect(endOf(again.agent.session)).toEqual({ kind: "interrupted" });
});

local(
  "D14 #78 what a stored cancel dropped does not come back at the next opening, and what it kept does",
  async () => {
    for (const [queue, texts] of [
      ["drop", ["go"]],
      ["keep", ["go", "next"]],
    ] as const) {
      const { agent } = await harnessWith({ model: scriptedModel([HANGING, "hi"]) }).agents.open({ id: "s" });
      agent.send("go");
      await eventOf(agent.session, "assistant/chunk");
      agent.send("next");
      agent.cancel("enough", { queue });
      const storage = await storedUpTo(agent.session, agent.session.seq);
      const again = await harnessWith({ model: scriptedModel(["hi"]), storage }).agents.open({ id: "s" });
      await again.agent.whenIdle();
      expect(textsOf(again.agent.session), queue).toEqual(texts);
    }
  },
);

// #86: a cause that is typed (user, parent, hook) is not adopted: the reason is text, and D14 stores it.
