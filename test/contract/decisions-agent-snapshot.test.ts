/** The snapshot of an agent: one frozen object until something in it changes, and told when it does. */
import type { AgentSnapshot } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, clientTool, tool } from "../support/calls.ts";
import { failingStorage, faultyStage, hangs, holds } from "../support/failing-storage.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { heldAnswer, heldTool, text } from "../support/held.ts";
import { calm } from "../support/lifecycle.ts";
import { eventOf, snapshotWhere } from "../support/wait.ts";

function isDeepFrozen(value: unknown): boolean {
  return (
    typeof value !== "object" || value === null || (Object.isFrozen(value) && Object.values(value).every(isDeepFrozen))
  );
}

anywhere("getSnapshot gives the status, the queue, the questions and the durability", async (open) => {
  const agent = await open({ model: scriptedModel([]) });
  expect(agent.getSnapshot()).toMatchObject({
    status: "idle",
    waiting: false,
    queue: [],
    interactions: [],
    durable: "stored",
  });
  expect(agent.queue).toBe(agent.getSnapshot().queue);
  expect(agent.interactions).toBe(agent.getSnapshot().interactions);
});

anywhere("getSnapshot gives the same object until something in it changes, and so do its lists", async (open) => {
  const held = heldAnswer("hi");
  const agent = await open({ model: scriptedModel([held.answer]) });
  const idle = agent.getSnapshot();
  expect(agent.getSnapshot()).toBe(idle);
  agent.send("go");
  await held.asked;
  await agent.flush();
  const running = agent.getSnapshot();
  expect(running).not.toBe(idle);
  expect(agent.getSnapshot()).toBe(running);
  agent.send("next");
  const queued = agent.getSnapshot();
  expect(queued.queue).toHaveLength(1);
  expect(queued.interactions).toBe(running.interactions);
  await agent.flush();
  expect(agent.getSnapshot().queue).toBe(queued.queue);
  agent.cancel();
  await agent.whenIdle();
  held.give();
});

anywhere("a snapshot does not change when the agent does, and is frozen through and through", async (open) => {
  const agent = await open({ model: scriptedModel([calls("paint"), "done"]), tools: [clientTool("paint")] });
  const seen: [AgentSnapshot, string][] = [];
  const look = (): void => {
    const snapshot = agent.getSnapshot();
    seen.push([snapshot, JSON.stringify(snapshot)]);
  };
  look();
  agent.subscribe(look);
  agent.send([{ type: "text", text: "go", meta: { a: { b: 1 } } }], { source: { kind: "mail", tags: ["a"] } });
  await snapshotWhere(agent, ({ interactions }) => interactions.length > 0);
  await agent.claim(agent.interactions[0]!.id);
  agent.steer("more");
  await agent.respond(agent.interactions[0]!.id, { value: 1 });
  await agent.whenIdle();
  for (const [snapshot, was] of seen) {
    expect(JSON.stringify(snapshot)).toBe(was);
    expect(isDeepFrozen(snapshot), was).toBe(true);
  }
  expect(new Set(seen.map(([snapshot]) => snapshot)).size).toBe(seen.length);
});

anywhere("the queue shows what was accepted, by acceptance, until a turn has taken it", async (open) => {
  const held = heldAnswer("hi");
  const agent = await open({ model: scriptedModel([held.answer, "again"]) });
  agent.send("go", { id: "m1", source: { kind: "mail" } });
  expect(agent.queue).toEqual([{ id: "m1", content: text("go"), source: { kind: "mail" }, as: "send" }]);
  await eventOf(agent.session, "step/start");
  expect(agent.queue).toEqual([]);
  agent.steer("left", { id: "m2" });
  agent.send("next", { id: "m3" });
  expect(agent.queue.map(({ id }) => id)).toEqual(["m2", "m3"]);
  await agent.withdraw("m2");
  expect(agent.queue.map(({ id }) => id)).toEqual(["m3"]);
  held.give();
  await agent.whenIdle();
  expect(agent.queue).toEqual([]);
});

anywhere(
  "interactions lists the open questions, and waiting says that the turn waits for nothing else",
  async (open) => {
    const held = heldTool({ parallel: true });
    const asking = tool("ask", (_, call) => call.ask("which?"), { parallel: true });
    const agent = await open({ model: scriptedModel([calls("ask", "held"), "done"]), tools: [asking, held.tool] });
    agent.send("go");
    await held.started;
    await snapshotWhere(agent, ({ interactions }) => interactions.length > 0);
    const { callId } = agent.interactions[0]!;
    expect(agent.interactions).toEqual([{ id: `${callId}/1`, kind: "question", payload: "which?", callId }]);
    expect(agent.getSnapshot().waiting).toBe(false);
    held.answer("ok");
    await snapshotWhere(agent, ({ waiting }) => waiting);
    expect(agent.status).toBe("running");
    await agent.respond(`${callId}/1`, "left");
    expect(agent.interactions).toEqual([]);
    await agent.whenIdle();
    expect(agent.getSnapshot().waiting).toBe(false);
  },
);

anywhere("subscribe tells of every change, and of nothing else", async (open) => {
  const agent = await open({ model: scriptedModel([{ text: "many words that stream", usage: { input: 1 } }]) });
  let last = agent.getSnapshot();
  let idle = 0;
  let told = 0;
  const off = agent.subscribe(() => {
    told += 1;
    const next = agent.getSnapshot();
    if (next === last) idle += 1;
    last = next;
  });
  agent.configure({ temperature: 0 });
  agent.send("go");
  await agent.whenIdle();
  await agent.flush();
  expect(idle).toBe(0);
  expect(last).toBe(agent.getSnapshot());
  expect(last).toMatchObject({ status: "idle", queue: [], durable: "stored" });
  expect(told).toBeGreaterThan(3);
  off();
  off();
  const before = told;
  agent.send("again");
  agent.cancel();
  await agent.whenIdle();
  expect(told).toBe(before);
});

anywhere("one listener that subscribed twice is told twice, and leaves once at a time", async (open) => {
  const agent = await open({ model: scriptedModel([]) });
  let told = 0;
  const listener = (): void => void (told += 1);
  const offs = [agent.subscribe(listener), agent.subscribe(listener)];
  agent.inject("a");
  await agent.flush();
  const twice = told;
  expect(twice % 2).toBe(0);
  offs[0]!();
  agent.inject("b");
  await agent.flush();
  expect(told - twice).toBe(twice / 2);
  offs[1]!();
});

local("durable goes from stored to pending and back, and the watchers hear of it", async () => {
  const storage = failingStorage();
  const { agent } = await harnessWith({ model: scriptedModel([]), storage }).agents.open({ id: "s" });
  const seen: string[] = [];
  agent.subscribe(() => void seen.push(agent.getSnapshot().durable));
  storage.always(holds);
  agent.inject("a");
  await calm();
  expect(agent.getSnapshot().durable).toBe("pending");
  storage.heal();
  await agent.flush();
  expect(agent.getSnapshot().durable).toBe("stored");
  expect(seen).toEqual(["pending", "stored"]);
});

local("durable becomes degraded when the storage does not answer, and stored when it does again", async () => {
  const { clock, storage, open } = faultyStage({ model: scriptedModel([]) });
  const agent = await open();
  storage.always(hangs);
  agent.inject("a");
  await clock.sleeping(5000);
  await clock.advance(5000);
  expect(agent.getSnapshot().durable).toBe("degraded");
  storage.heal();
  await calm();
  await clock.advance(10_000);
  await snapshotWhere(agent, ({ durable }) => durable === "stored");
});

anywhere("a watcher that comes while others are told misses nothing that comes after", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  const seen: string[] = [];
  const off = agent.subscribe(() => {
    off();
    agent.subscribe(() => void seen.push(agent.getSnapshot().status));
  });
  agent.send("go");
  await eventOf(agent.session, "turn/end");
  await agent.whenIdle();
  expect(seen).toContain("running");
  expect(seen.at(-1)).toBe("idle");
});
