/** E, 59: steering joins the turn that runs; while none does, it is a message like any other. */
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls } from "../support/calls.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { heldTool, text, textsOf } from "../support/held.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { typesOf } from "../support/wait.ts";

anywhere("#59 steer while a turn runs enters it before its next step", async (open) => {
  const held = heldTool();
  const model = scriptedModel([calls("held"), "done"]);
  const agent = await open({ model, tools: [held.tool] });
  agent.send("go", { id: "m1" });
  await held.started;
  agent.steer("left", { id: "m2" });
  agent.steer("right", { id: "m3" });
  await agent.flush();
  held.answer("ok");
  await agent.whenIdle();
  expect(dataOf(agent.session, "steering/message")).toEqual([
    { turn: 1, id: "m2", content: text("left"), source: { kind: "user" } },
    { turn: 1, id: "m3", content: text("right"), source: { kind: "user" } },
  ]);
  expect(linesOf(model.requests[1]!.messages)).toEqual([
    "user: go",
    "assistant: ",
    "tool: ok",
    "user: left",
    "user: right",
  ]);
  expect(dataOf(agent.session, "turn/start")).toHaveLength(1);
});

anywhere("#59 steer while idle is exactly send", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  const id = agent.steer("hello");
  await agent.whenIdle();
  expect(dataOf(agent.session, "inbox/queued")).toEqual([
    { id, content: text("hello"), source: { kind: "user" }, as: "send" },
  ]);
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
});

local("#59 steer right after send, before the loop has woken, is exactly send", async () => {
  const model = scriptedModel(["hi"]);
  const { agents } = harnessWith({ model });
  const { agent } = await agents.open({ id: "s" });
  agent.send("one");
  agent.steer("two");
  expect(agent.queue.map(({ as }) => as)).toEqual(["send", "send"]);
  await agent.whenIdle();
  expect(textsOf(agent.session)).toEqual(["one", "two"]);
  expect(model.requests).toHaveLength(1);
});

local("#59 running is judged by the status: steer while the turn is flushed still counts as steering", async () => {
  const model = scriptedModel(["one", "two"]);
  const harness = harnessWith({ model });
  const { agent } = await harness.agents.open({ id: "s" });
  const off = harness.hooks.on("session/flush", () => {
    off();
    agent.steer("late", { id: "m2" });
  });
  agent.send("go", { id: "m1" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "inbox/queued").map(({ id, as }) => [id, as])).toEqual([
    ["m1", "send"],
    ["m2", "steer"],
  ]);
  expect(dataOf(agent.session, "turn/start").map(({ messages }) => messages)).toEqual([["m1"], ["m2"]]);
  expect(textsOf(agent.session)).toEqual(["go", "late"]);
});

local("#59 steer before a turn has begun, while the status says running, is taken by that turn", async () => {
  const model = scriptedModel(["hi"]);
  const harness = harnessWith({ model });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("agent/status", ({ status }) => {
    if (status === "running") agent.steer("two");
  });
  agent.send("one");
  await agent.whenIdle();
  expect(textsOf(agent.session)).toEqual(["one", "two"]);
  expect(dataOf(agent.session, "turn/start")).toHaveLength(1);
});
