/** F: what a log says of its queue and its claims does not hang on who opened it, nor on how often (D13, D23, D29). */
import { memoryStorage, type AgentSnapshot, type HarnessOptions, type SessionStorage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, clientTool, tool } from "../support/calls.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { mortal, storedEvents } from "../support/mortal.ts";
import { deferred, eventOf, snapshotWhere } from "../support/wait.ts";

/** What a host sees at session-start that opens what is stored, and then dies without a word; and how many events it found. */
async function glimpse(disk: SessionStorage, options: HarnessOptions): Promise<AgentSnapshot & { seq: number }> {
  const seen = deferred<AgentSnapshot & { seq: number }>();
  const { storage, kill } = mortal(disk);
  kill();
  const harness = harnessWith({ storage, model: scriptedModel([]), ...options });
  harness.hooks.on("agent/session-start", ({ agent }) => {
    seen.resolve({ ...agent.getSnapshot(), seq: agent.session.seq });
    agent.cancel();
  });
  await harness.agents.open({ id: "s" });
  return seen.promise;
}

local("D23 D29 a claim has lapsed for every opening alike, and a parked turn is opened without a word", async () => {
  const tools = [clientTool("where", { idempotent: true })];
  const { storage, disk, kill } = mortal();
  const { agent } = await harnessWith({ storage, tools, model: scriptedModel([calls("where")]) }).agents.open({
    id: "s",
  });
  agent.send("go");
  const { data } = await eventOf(agent.session, "interaction/requested");
  await agent.claim(data.id);
  expect(agent.interactions).toMatchObject([{ id: data.id, claimedBy: "local" }]);
  kill();
  const { length } = await storedEvents(disk, "s");
  for (let openings = 0; openings < 3; openings += 1) {
    for (const interrupted of ["close", "continue"] as const) {
      const found = await glimpse(disk, { tools, interrupted });
      expect(found.seq).toBe(length);
      expect(found.interactions.map(({ id, claimedBy }) => [id, claimedBy])).toEqual([[data.id, undefined]]);
    }
  }
  const { agent: next } = await harnessWith({ storage: disk, tools, model: scriptedModel(["done"]) }).agents.open({
    id: "s",
  });
  await next.claim(data.id);
  expect(next.interactions).toMatchObject([{ claimedBy: "local" }]);
});

local("D13 steering that has outlived its turn is a send, for every opening and every copy alike", async () => {
  const { storage, disk, killAfter, dead } = mortal();
  killAfter("inbox/queued", ({ data }) => data.id === "m2");
  const doomed = harnessWith({
    storage,
    model: scriptedModel([calls("look"), "done"]),
    tools: [tool("look", () => void first.steer("left", { id: "m2" }))],
  });
  const { agent: first } = await doomed.agents.open({ id: "s" });
  first.send("go", { id: "m1" });
  await dead;
  for (let openings = 0; openings < 2; openings += 1) {
    const { queue } = await glimpse(disk, {});
    expect(queue.map(({ id, as }) => `${as} ${id}`)).toEqual(["send m2"]);
  }
  const copies = memoryStorage();
  await harnessWith({ storage: copies }).sessions.import(harnessWith({ storage: disk }).sessions.export("s"), {
    move: true,
  });
  const { queue } = await glimpse(copies, {});
  expect(queue.map(({ id, as }) => `${as} ${id}`)).toEqual(["send m2"]);
});

local("D13 D14 steering that a cancel keeps is a send from the end of its turn on", async () => {
  const { agent } = await harnessWith({ model: scriptedModel([{ text: "half", hang: "polite" }, "done"]) }).agents.open(
    {
      id: "s",
    },
  );
  const queued: string[] = [];
  agent.on("turn/end", () => void queued.push(...agent.queue.map(({ id, as }) => `${as} ${id}`)));
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  agent.steer("left", { id: "m2" });
  agent.cancel("enough", { queue: "keep" });
  await snapshotWhere(agent, ({ status, queue }) => status === "idle" && queue.length === 0);
  expect(queued).toEqual(["send m2"]);
});

local("#59 D13 steering that came while its turn was being stored is a send at the next opening", async () => {
  const { storage, disk, killAfter, dead } = mortal();
  killAfter("inbox/queued", ({ data }) => data.id === "m2");
  const harness = harnessWith({ storage, model: scriptedModel(["hi"]) });
  harness.hooks.on("session/flush", async () => {
    agent.steer("late", { id: "m2" });
    await agent.flush();
  });
  const { agent } = await harness.agents.open({ id: "s" });
  agent.send("go");
  await dead;
  expect((await storedEvents(disk, "s")).at(-1)).toMatchObject({ type: "inbox/queued", data: { as: "steer" } });
  const { queue } = await glimpse(disk, {});
  expect(queue.map(({ id, as }) => `${as} ${id}`)).toEqual(["send m2"]);
});
