/** Turns of agents in Durable Objects that wait for a person, while the object sleeps, dies, and is deployed anew. */
import type { Agent, Interaction } from "turnloop";
import { afterAll, beforeAll, expect, test } from "vitest";
import { endOf, snapshotWhere } from "../support/wait.ts";
import { connect } from "./host-clients.ts";
import { createHostMachine, type HostMachine } from "./host-machine.ts";

let machine: HostMachine;

beforeAll(async () => {
  machine = await createHostMachine();
}, 60_000);

afterAll(() => machine.close());

/** Plays a model that pays by asking, and answers with how often it was paid so far. */
function shop(): () => number {
  let paid = 0;
  machine.play(({ path, role }) => {
    if (path === "pay") return `paid ${(paid += 1)}`;
    return role === "tool" ? "It is paid." : "call pay";
  });
  return () => paid;
}

async function parked(object: string, agent: Agent): Promise<void> {
  await snapshotWhere(agent, ({ interactions }) => interactions.length > 0);
  await expect.poll(() => machine.ask("armed", object)).toBeNull();
}

test(
  "an approval is answered after the object slept, was evicted and redeployed twice: executed once, nothing written and no alarm armed meanwhile",
  { timeout: 60_000 },
  async () => {
    const paid = shop();
    const { agent } = await connect(machine, "shop");
    agent.send("Pay!");
    await parked("shop", agent);
    const before = await machine.commits("shop");

    await machine.ask("sleep", "shop");
    expect(await machine.ask("snapshot", "shop")).toMatchObject({ status: "running", waiting: true });
    await machine.ask("abort", "shop");
    expect(await machine.ask("armed", "shop")).toBeNull();
    for (const deploy of [1, 2]) {
      await machine.redeploy();
      expect(await machine.ask("snapshot", "shop"), `deploy ${deploy}`).toMatchObject({ waiting: true });
      expect(await machine.ask("armed", "shop")).toBeNull();
    }
    expect(await machine.commits("shop")).toBe(before);
    expect(paid()).toBe(0);

    const [interaction] = agent.interactions;
    await agent.respond(interaction!.id, { decision: "allow" });
    await agent.flush();
    await agent.whenIdle();
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
    expect(paid()).toBe(1);
    expect(agent.session.events.map(({ type }) => type)).not.toContain("turn/resumed");
    await expect.poll(() => machine.ask("armed", "shop")).toBeNull();
    expect(await machine.commits("shop")).toBeGreaterThan(before);
  },
);

test("clients are told of a claim that went with the instance that had taken it", async () => {
  machine.play(({ role }) => (role === "tool" ? "Seen." : "call look"));
  const { agent } = await connect(machine, "claimed");
  agent.send("Look!");
  await parked("claimed", agent);
  const [{ id }] = agent.interactions as [Interaction];
  await agent.claim(id);
  expect(agent.interactions[0]!.claimedBy).toEqual(expect.any(String));
  await machine.ask("sleep", "claimed");
  expect(await machine.ask("snapshot", "claimed")).toMatchObject({ interactions: [{ id }] });
  await expect.poll(() => agent.interactions[0]!.claimedBy).toBeUndefined();
  const other = await connect(machine, "claimed");
  await other.agent.claim(id);
  await other.agent.respond(id, { value: "a cat" });
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

test("a helper works in its parent's object: what it asks is answered there, after the object died", async () => {
  let paid = 0;
  machine.play(({ path, session, role }) => {
    if (path === "pay") return `paid ${(paid += 1)}`;
    if (role === "tool") return "It is paid.";
    return session === "boss" ? 'call delegate {"task":"Pay"}' : "call pay";
  });
  const { agent } = await connect(machine, "boss");
  agent.send("Have it paid");
  await parked("boss", agent);
  await machine.ask("abort", "boss");
  const { interactions } = (await machine.ask("snapshot", "boss")) as { readonly interactions: Agent["interactions"] };
  expect(interactions).toMatchObject([{ payload: { helper: expect.stringMatching(/^boss\./), kind: "approval" } }]);
  expect(await machine.ask("armed", "boss")).toBeNull();
  await machine.ask("respond", "boss", interactions[0]!.id, { decision: "allow" });
  await expect.poll(() => machine.ask("snapshot", "boss")).toMatchObject({ status: "idle" });
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  expect(paid).toBe(1);
  await expect.poll(() => machine.ask("armed", "boss")).toBeNull();
});
