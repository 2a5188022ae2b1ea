/** E, 69 to 75: a cancel ends the turn in the same way, with the same reason, wherever it comes. */
import type { Hooks, SessionEventType } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { statusesOf, textsOf } from "../support/held.ts";
import { isPending } from "../support/lifecycle.ts";
import { dataOf } from "../support/scene.ts";
import { endOf, eventOf, typesOf } from "../support/wait.ts";

type Act = () => void;
/** A window: how to be there, what the turn has written by then, and what closes it. */
type Window = readonly [
  at: string,
  on: (hooks: Hooks, act: Act) => void,
  before: SessionEventType[],
  after: SessionEventType[],
];

/** All waterfalls are entered alike; the payload is of no interest here. */
function around(name: string): Window[1] {
  return (hooks, act) =>
    void hooks.on(name as "agent/request", (_, next) => {
      act();
      return next();
    });
}

function listening(type: SessionEventType): Window[1] {
  return (hooks, act) => void hooks.on("session/event", ({ event }) => void (event.type === type && act()));
}

const START: SessionEventType[] = ["inbox/queued", "turn/start"];
const SAID: SessionEventType[] = [...START, "user/message"];
const STEP: SessionEventType[] = [...SAID, "step/start"];
const ASKED: SessionEventType[] = [...STEP, "request/header"];
const CALLED: SessionEventType[] = [...ASKED, "assistant/message", "tool/call"];
const RAN: SessionEventType[] = [...CALLED, "tool/start"];
const DONE: SessionEventType[] = [...RAN, "tool/result", "step/end"];
const STEP_END: SessionEventType[] = ["step/end", "turn/end"];
const CALL_END: SessionEventType[] = ["tool/result", ...STEP_END];

const WINDOWS: readonly Window[] = [
  ["turn/start", listening("turn/start"), START, ["turn/end"]],
  ["agent/prompt-submit", around("agent/prompt-submit"), START, ["turn/end"]],
  ["user/message", listening("user/message"), SAID, ["turn/end"]],
  ["prompt/assemble", around("prompt/assemble"), SAID, ["turn/end"]],
  ["agent/session-prefix", around("agent/session-prefix"), SAID, ["turn/end"]],
  ["agent/pre-step", (hooks, act) => void hooks.on("agent/pre-step", act), SAID, ["turn/end"]],
  ["step/start", listening("step/start"), STEP, STEP_END],
  ["agent/request", around("agent/request"), STEP, STEP_END],
  ["request/header", listening("request/header"), ASKED, STEP_END],
  ["model/stream", around("model/stream"), ASKED, STEP_END],
  ["assistant/chunk", listening("assistant/chunk"), ASKED, STEP_END],
  ["agent/step-result", around("agent/step-result"), ASKED, STEP_END],
  ["assistant/message", listening("assistant/message"), CALLED.slice(0, -1), ["tool/call", ...CALL_END]],
  ["tool/call", listening("tool/call"), CALLED, CALL_END],
  ["tools/pre-execute", around("tools/pre-execute"), CALLED, CALL_END],
  ["tool/start", listening("tool/start"), RAN, CALL_END],
  ["tools/execute", around("tools/execute"), RAN, CALL_END],
  ["tools/post-execute", around("tools/post-execute"), RAN, CALL_END],
  ["tool/result", listening("tool/result"), DONE.slice(0, -1), STEP_END],
  ["step/end", listening("step/end"), DONE, ["turn/end"]],
  ["agent/turn-continuation", around("agent/turn-continuation"), DONE, ["turn/end"]],
  ["agent/turn-stop", (hooks, act) => void hooks.on("agent/turn-stop", act), DONE, ["turn/end"]],
];

const REQUESTED = WINDOWS.findIndex(([at]) => at === "assistant/chunk");

for (const [i, [at, on, before, after]] of WINDOWS.entries()) {
  local(`#69 #72 #73 #74 #75 a cancel in ${at} ends the turn there, with its reason`, async () => {
    const model = scriptedModel([calls("look"), "never"]);
    const harness = harnessWith({ model, tools: [tool("look")] });
    const statuses = statusesOf(harness);
    const { agent } = await harness.agents.open({ id: "s" });
    let acted = 0;
    on(harness.hooks, () => {
      acted += 1;
      if (acted === 1) agent.cancel("in the window");
    });
    agent.send("go", { id: "m1" });
    await agent.whenIdle();
    expect(typesOf(agent.session)).toEqual([...before, "agent/cancelled", ...after]);
    expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "in the window" });
    expect(dataOf(agent.session, "agent/cancelled")).toEqual([
      // Until its `user/message` stands, the message itself is dropped.
      { id: expect.any(String), reason: "in the window", turn: 1, dropped: before === START ? ["m1"] : [] },
    ]);
    expect(model.requests).toHaveLength(i < REQUESTED ? 0 : 1);
    expect(statuses).toEqual(["running", "idle"]);
  });
}

anywhere(
  "#70 a cancel before the loop has woken: no turn, no status, and whoever waits for idle is told",
  async (open) => {
    const model = scriptedModel(["never"]);
    const agent = await open({ model });
    const seen: string[] = [];
    agent.subscribe(() => void seen.push(agent.getSnapshot().status));
    agent.send("go");
    const idle = agent.whenIdle();
    agent.cancel("enough");
    await idle;
    await agent.flush();
    expect(typesOf(agent.session)).toEqual(["inbox/queued", "agent/cancelled"]);
    expect(new Set(seen)).toEqual(new Set(["idle"]));
    expect(model.requests).toEqual([]);
  },
);

local("#70 a cancel before the loop has woken tells no status", async () => {
  const harness = harnessWith({ model: scriptedModel([]) });
  const statuses = statusesOf(harness);
  const { agent } = await harness.agents.open({ id: "s" });
  agent.send("go");
  const idle = agent.whenIdle();
  agent.cancel();
  expect(await isPending(idle)).toBe(false);
  expect(statuses).toEqual([]);
});

anywhere(
  "#70 a message that came after such a cancel runs, alone, and whoever waits for idle waits for it",
  async (open) => {
    const agent = await open({ model: scriptedModel(["hi"]) });
    agent.send("dropped");
    const idle = agent.whenIdle();
    agent.cancel("enough");
    agent.send("go");
    await idle;
    expect(textsOf(agent.session)).toEqual(["go"]);
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
  },
);

local("#71 a cancel from the listener of `running`: back to idle, and no turn", async () => {
  const model = scriptedModel(["never"]);
  const harness = harnessWith({ model });
  const { agent } = await harness.agents.open({ id: "s" });
  const statuses = statusesOf(harness);
  harness.hooks.on("agent/status", ({ status }) => {
    if (status === "running") agent.cancel("enough");
  });
  agent.send("go", { id: "m1" });
  await agent.whenIdle();
  expect(statuses).toEqual(["running", "idle"]);
  expect(typesOf(agent.session)).toEqual(["inbox/queued", "agent/cancelled"]);
  expect(dataOf(agent.session, "agent/cancelled")[0]!.dropped).toEqual(["m1"]);
  expect(model.requests).toEqual([]);
});

local("#71 a message that came after such a cancel has its turn", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  const statuses = statusesOf(harness);
  harness.hooks.on("agent/status", ({ status }) => {
    if (status !== "running") return;
    agent.cancel("enough");
    agent.send("go");
  });
  agent.send("dropped");
  await agent.whenIdle();
  expect(statuses).toEqual(["running", "idle"]);
  expect(textsOf(agent.session)).toEqual(["go"]);
  expect(dataOf(agent.session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["completed"]);
});

local("#71 a turn without a message that was asked for after such a cancel is run too", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("agent/status", ({ status }) => {
    if (status !== "running") return;
    agent.cancel("enough");
    agent.continue();
  });
  agent.send("dropped");
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start").map(({ trigger }) => trigger.kind)).toEqual(["continue"]);
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

anywhere("#74 a cancel in mid stream keeps what was said, and ends the turn with its reason", async (open) => {
  const agent = await open({ model: scriptedModel([{ reasoning: "hm", text: "one two", hang: "polite" }]) });
  agent.send("go");
  await eventOf(
    agent.session,
    "assistant/chunk",
    ({ data }) => data.chunk.type === "delta" && data.chunk.text === "two",
  );
  agent.cancel("in mid stream");
  await agent.whenIdle();
  expect(typesOf(agent.session).slice(-4)).toEqual(["agent/cancelled", "assistant/message", "step/end", "turn/end"]);
  expect(dataOf(agent.session, "assistant/message")).toMatchObject([
    {
      interrupted: true,
      content: [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "one two" },
      ],
    },
  ]);
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "in mid stream" });
});

local("#75 in the continuation window the steering is gone, and there is no further step", async () => {
  const model = scriptedModel(["one", "never"]);
  const harness = harnessWith({ model });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("agent/turn-continuation", async () => {
    agent.steer("left", { id: "m2" });
    agent.cancel("enough");
    return { action: "continue" };
  });
  agent.send("go");
  await agent.whenIdle();
  expect(dataOf(agent.session, "agent/cancelled")[0]!.dropped).toEqual(["m2"]);
  expect(dataOf(agent.session, "step/start")).toHaveLength(1);
  expect(textsOf(agent.session, "steering/message")).toEqual([]);
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "enough" });
});
