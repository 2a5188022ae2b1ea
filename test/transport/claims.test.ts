/** What a client has claimed lapses with its host, or when the client is gone: every client sees it. */
import { memoryStorage, type Agent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, clientTool } from "../support/calls.ts";
import { snapshotWhere } from "../support/wait.ts";
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
