/** What a client has claimed lapses with its host, or when the client is gone: every client sees it. */
import { memoryStorage, type Agent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { testClock } from "../support/clock.ts";
import { calls, clientTool, resultsOf } from "../support/calls.ts";
import { eventOf, snapshotWhere } from "../support/wait.ts";
import { serve } from "./support.ts";

/** Sends, and claims what the model calls. */
async function claimFirst(agent: Agent): Promise<void> {
  agent.send("go");
  await snapshotWhere(agent, ({ interactions }) => interactions.length > 0);
  await agent.claim(agent.interactions[0]!.id);
}

const geo = clientTool("geo", { idempotent: true });

test("#177 D29 a claim has died with its host: a newcomer to the next one sees what is free", async () => {
  const storage = memoryStorage();
  const first = serve({ storage, model: scriptedModel([calls("geo")]), tools: [geo] });
  const { agent, dispose } = await first.connect();
  await claimFirst(agent);
  await dispose();
  await first.harness.dispose();
  const second = serve({ storage, model: scriptedModel([]), tools: [geo] });
  const next = await second.connect();
  expect(next.agent.interactions).toEqual([expect.not.objectContaining({ claimedBy: expect.anything() })]);
});

test("#177 D29 so does one who comes after the program itself has opened the agent", async () => {
  const storage = memoryStorage();
  const first = serve({ storage, model: scriptedModel([calls("geo")]), tools: [geo] });
  const { agent, dispose } = await first.connect();
  await claimFirst(agent);
  await dispose();
  await first.harness.dispose();
  const second = serve({ storage, model: scriptedModel(["done"]), tools: [geo] });
  const opened = await second.harness.agents.open({ id: "s" });
  opened.agent.configure({ temperature: 1 });
  const next = await second.connect();
  expect(next.agent.interactions).toEqual(opened.agent.interactions);
  expect(next.agent.interactions[0]!.claimedBy).toBeUndefined();
  await next.agent.claim(next.agent.interactions[0]!.id);
  // What was claimed since then is claimed.
  const third = await second.connect();
  expect(third.agent.interactions[0]!.claimedBy).toEqual(expect.any(String));
});

test("#177 D29 so does one who was there all the time, and comes to the next host by itself", async () => {
  const storage = memoryStorage();
  const first = serve({ storage, model: scriptedModel([calls("geo")]), tools: [geo] });
  let { dial } = first;
  const { agent } = await first.connect({ connect: () => dial() });
  await claimFirst(agent);
  expect(agent.interactions[0]!.claimedBy).toEqual(expect.any(String));
  const second = serve({ storage, model: scriptedModel(["done"]), tools: [geo] });
  ({ dial } = second);
  await first.server.close();
  await first.harness.dispose();
  await snapshotWhere(agent, ({ connection }) => connection === "open");
  await snapshotWhere(agent, ({ interactions }) => interactions[0]?.claimedBy === undefined);
  await agent.claim(agent.interactions[0]!.id);
  await agent.respond(agent.interactions[0]!.id, { value: 1 });
  await agent.whenIdle();
});

/** Longer than a heartbeat waits before it asks, shorter than before it gives up. */
const GRACE = 4000;

/** A client that has claimed the call, one that watches, and the clocks of the host and of the first. */
async function gone(idempotent: boolean) {
  const clock = testClock();
  const tools = [clientTool("geo", { idempotent })];
  const served = serve({ model: scriptedModel([calls("geo"), "done"]), tools, clock, limits: { claimGraceMs: GRACE } });
  const theirs = testClock();
  const { agent, dispose } = await served.connect({ clock: theirs });
  const watcher = await served.connect({ grant: { identity: "bob", rights: ["answer"] } });
  await claimFirst(agent);
  await snapshotWhere(watcher.agent, ({ interactions }) => interactions[0]?.claimedBy !== undefined);
  return { clock, theirs, served, agent, dispose, watcher: watcher.agent };
}

test("#177 D29 a claim lapses when its client has been gone for a while: another one may run the call", async () => {
  const { clock, dispose, watcher } = await gone(true);
  const sleeping = clock.sleeping(GRACE);
  await dispose();
  await sleeping;
  await clock.advance(GRACE - 1);
  expect(watcher.interactions[0]!.claimedBy).toEqual(expect.any(String));
  await clock.advance(1);
  await snapshotWhere(watcher, ({ interactions }) => interactions[0]?.claimedBy === undefined);
  const { id } = watcher.interactions[0]!;
  await watcher.claim(id);
  await watcher.respond(id, { value: "here" });
  await watcher.whenIdle();
  expect(resultsOf(watcher.session)).toEqual([{ tool: "geo", says: "here" }]);
});

test("#177 D23 D29 what came of a call that may not run twice is unknown once its client is gone", async () => {
  const { clock, dispose, watcher } = await gone(false);
  await dispose();
  await clock.sleeping(GRACE);
  await clock.advance(GRACE);
  await watcher.whenIdle();
  expect(resultsOf(watcher.session)).toMatchObject([{ tool: "geo", code: "TOOL_OUTCOME_UNKNOWN" }]);
  expect(watcher.session.events.map(({ type }) => type)).toContain("interaction/released");
});

test("#177 D29 a client that comes back in time keeps its claim", async () => {
  const { clock, theirs, served, agent, watcher } = await gone(true);
  const { id } = watcher.interactions[0]!;
  const back = eventOf(agent.session, "agent/configured");
  served.connections[0]!.close();
  await clock.sleeping(GRACE);
  await snapshotWhere(agent, ({ connection }) => connection === "connecting");
  agent.configure({ temperature: 0 });
  await theirs.advance(200);
  await back;
  await clock.advance(GRACE + 1000);
  expect(watcher.interactions[0]).toMatchObject({ id, claimedBy: expect.any(String) });
  await agent.respond(id, { value: "here" });
  await agent.whenIdle();
});
