/** F, 90, with D13: what was accepted survives its host, and what is done with does not come back. */
import { memoryStorage, type Agent, type HarnessOptions, type SessionEvent, type SessionStorage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { heldAnswer, heldTool, storedUpTo, text, textsOf } from "../support/held.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { endOf, eventOf } from "../support/wait.ts";

/** The session as the storage has it, opened by a host of its own. */
async function reopened(storage: SessionStorage, options: HarnessOptions = {}): Promise<Agent> {
  const harness = harnessWith({ model: scriptedModel(["hi", "again"]), storage, ...options });
  return (await harness.agents.open({ id: "s" })).agent;
}

/** A session with these in its queue and nothing else, whose host is gone. */
async function left(act: (agent: Agent) => void): Promise<SessionStorage> {
  const agent = await reopened(memoryStorage());
  act(agent);
  return storedUpTo(agent.session, agent.session.seq);
}

local("D13 #90 what is queued survives its host: it is queued again without a second word, and runs", async () => {
  const storage = await left((agent) => {
    agent.send("one", { id: "m1", source: { kind: "mail" } });
    agent.send("two", { id: "m2" });
  });
  const queued: string[] = [];
  const order: string[] = [];
  const agent = await reopened(storage, {
    plugins: [
      ({ hooks }) => {
        hooks.on("agent/queued", ({ message }) => void queued.push(message.id));
        hooks.on("agent/session-start", ({ agent: { queue } }) => {
          order.push(...queue.map(({ id, as }) => `${as} ${id}`), "session-start");
        });
        hooks.on("agent/status", ({ status }) => void order.push(status));
      },
    ],
  });
  await agent.whenIdle();
  expect(queued).toEqual([]);
  expect(order).toEqual(["send m1", "send m2", "session-start", "running", "idle"]);
  expect(dataOf(agent.session, "inbox/queued")).toHaveLength(2);
  expect(dataOf(agent.session, "user/message")).toEqual([
    { id: "m1", content: text("one"), source: { kind: "mail" } },
    { id: "m2", content: text("two"), source: { kind: "user" } },
  ]);
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

local("D13 what was withdrawn, dropped by a cancel, blocked or consumed does not come back", async () => {
  const blocking = scriptedModel(["hi"]);
  const harness = harnessWith({ model: blocking });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("agent/prompt-submit", async ({ id }, next) =>
    id === "m3" ? { kind: "block", reason: "no" } : next(),
  );
  agent.send("cancelled", { id: "m0" });
  agent.cancel();
  agent.send("withdrawn", { id: "m1" });
  await agent.withdraw("m1");
  agent.send("go", { id: "m2" });
  agent.send("blocked", { id: "m3" });
  await agent.whenIdle();
  const again = await reopened(await storedUpTo(agent.session, agent.session.seq));
  expect(again.queue).toEqual([]);
  await again.whenIdle();
  expect(again.session.seq).toBe(agent.session.seq);
});

local("D13 steering that its host left behind becomes a send, in its place", async () => {
  const held = heldTool();
  const harness = harnessWith({ model: scriptedModel([calls("held")]), tools: [held.tool] });
  const { agent } = await harness.agents.open({ id: "s" });
  agent.send("go");
  await held.started;
  agent.send("two", { id: "m2" });
  agent.steer("three", { id: "m3" });
  agent.send("four", { id: "m4" });
  const storage = await storedUpTo(agent.session, agent.session.seq);
  const queue: string[] = [];
  const plugins: HarnessOptions["plugins"] = [
    ({ hooks }) => {
      hooks.on(
        "agent/session-start",
        ({ agent: one }) => void queue.push(...one.queue.map(({ as, id }) => `${as} ${id}`)),
      );
    },
  ];
  const again = await reopened(storage, { plugins });
  expect(queue).toEqual(["send m2", "send m3", "send m4"]);
  await again.whenIdle();
  expect(textsOf(again.session)).toEqual(["go", "two", "three", "four"]);
  expect(textsOf(again.session, "steering/message")).toEqual([]);
});

local("D13 D23 steering behind a turn that is parked still steers that turn when it goes on", async () => {
  const tools = [tool("ask", (_, call) => call.ask("which?"), { idempotent: true })];
  const { agent } = await harnessWith({ model: scriptedModel([calls("ask")]), tools }).agents.open({ id: "s" });
  agent.send("go");
  const { data } = await eventOf(agent.session, "interaction/requested");
  agent.steer("quickly", { id: "m2" });
  const model = scriptedModel(["done"]);
  const again = await reopened(await storedUpTo(agent.session, agent.session.seq), { model, tools });
  expect(again.queue.map(({ id, as }) => [id, as])).toEqual([["m2", "steer"]]);
  await again.respond(data.id, "left");
  await again.whenIdle();
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: go", "assistant: ", "tool: left", "user: quickly"]);
  expect(dataOf(again.session, "turn/start")).toHaveLength(1);
});

local("D13 a fork never runs what was queued in its seed, and the source does", async () => {
  const held = heldAnswer("one");
  const model = scriptedModel([held.answer, "two"]);
  const harness = harnessWith({ model });
  const { agent } = await harness.agents.open({ id: "s" });
  const turn = eventOf(agent.session, "turn/end");
  agent.send("go");
  await held.asked;
  agent.send("next", { id: "m2" });
  held.give();
  const { seq } = await turn;
  const fork = await harness.agents.fork({ from: "s", at: seq, id: "fork" });
  expect(fork.agent.queue).toEqual([]);
  await agent.whenIdle();
  await fork.agent.whenIdle();
  expect(textsOf(agent.session)).toEqual(["go", "next"]);
  expect(textsOf(fork.agent.session)).toEqual(["go"]);
  expect(linesOf(fork.agent.session.deriveMessages())).toEqual(["user: go", "assistant: one"]);
});

local("D13 a message that cut short three turns is dropped at the third opening, and that is reported", async () => {
  let storage = await left((agent) => void agent.send("deadly", { id: "m1" }));
  for (const opening of [1, 2, 3]) {
    // The host dies while a hook looks at the message: the turn has begun, and the message is not in it yet.
    const dying = harnessWith({ model: scriptedModel([]), storage });
    dying.hooks.on("agent/prompt-submit", () => new Promise(() => {}));
    const { agent } = await dying.agents.open({ id: "s" });
    await eventOf(agent.session, "turn/start", ({ data }) => data.turn === opening);
    expect(dataOf(agent.session, "turn/start").at(-1)?.messages).toEqual(["m1"]);
    storage = await storedUpTo(agent.session, agent.session.seq);
  }
  const harness = harnessWith({ model: scriptedModel([]), storage });
  const { agent } = await harness.agents.open({ id: "s" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/end").map(({ reason }) => reason.kind)).toEqual(Array(3).fill("interrupted"));
  expect(dataOf(agent.session, "inbox/dropped")).toEqual([{ ids: ["m1"], reason: "cut short" }]);
  expect(harness.diagnostics.map(({ code }) => code)).toEqual(["MESSAGE_DROPPED"]);
  expect(agent.queue).toEqual([]);
});

local(
  "D13 a disposal drops nothing: what was queued, or taken and not said yet, runs at the next opening",
  async () => {
    const storage = memoryStorage();
    const harness = harnessWith({ model: scriptedModel([]), storage });
    const { agent, dispose } = await harness.agents.open({ id: "s" });
    harness.hooks.on("agent/prompt-submit", () => new Promise(() => {}));
    agent.send("taken");
    await eventOf(agent.session, "turn/start");
    agent.send("queued");
    await dispose();
    const again = await reopened(storage);
    await again.whenIdle();
    expect(textsOf(again.session)).toEqual(["taken", "queued"]);
    expect(dataOf(again.session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["disposed", "completed"]);
    expect(dataOf(again.session, "inbox/queued")).toHaveLength(2);
  },
);

/** What became of each message that these events know of: the types of those that say so. */
function fatesIn(events: readonly SessionEvent[]): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (const { type, data } of events) {
    if (type === "inbox/queued") found[data.id] ??= [];
    else if (type === "agent/cancelled") for (const id of data.dropped) found[id]!.push(type);
    else if (type === "user/message" || type === "steering/message" || type === "context/message") {
      (found[data.id] ??= []).push(type);
    }
  }
  return found;
}

local("D13 #90 wherever the host died, each message that was stored has one fate", async () => {
  const held = heldTool();
  const tools = [held.tool, tool("look")];
  const model = scriptedModel([calls("look", "held"), "one", { text: "on and on", hang: "deaf" }, "two"]);
  const { agent } = await harnessWith({ model, tools }).agents.open({ id: "s" });
  agent.send("go", { id: "sent" });
  agent.inject("before", { id: "injected" });
  await held.started;
  agent.inject("meanwhile", { id: "waiting" });
  agent.steer("left", { id: "steered" });
  agent.send("next", { id: "next" });
  held.answer("ok");
  await eventOf(agent.session, "assistant/chunk", ({ data }) => data.turn === 3);
  agent.steer("too late", { id: "left over" });
  agent.cancel("enough", { queue: "keep" });
  await agent.whenIdle();
  agent.send("dropped", { id: "dropped" });
  agent.cancel("once more");
  const { events } = agent.session;
  expect(fatesIn(events)).toEqual({
    sent: ["user/message"],
    injected: ["context/message"],
    waiting: ["context/message"],
    steered: ["steering/message"],
    next: ["user/message"],
    "left over": ["user/message"],
    dropped: ["agent/cancelled"],
  });
  for (let length = 1; length <= events.length; length += 1) {
    const storage = await storedUpTo(agent.session, length);
    const answers = scriptedModel(Array.from({ length: 5 }, () => "again"));
    const again = await reopened(storage, { model: answers, tools });
    await again.whenIdle();
    const fates = fatesIn(again.session.events);
    expect(Object.keys(fates), `${length}`).toEqual(Object.keys(fatesIn(events.slice(0, length))));
    for (const [id, fate] of Object.entries(fates)) expect(fate, `${id}, ${length}`).toHaveLength(1);
    expect(again.queue).toEqual([]);
  }
});
