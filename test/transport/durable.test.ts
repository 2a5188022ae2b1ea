/** What a host has acknowledged is stored; what it has not is sent again, and takes effect once. */
import { memoryStorage, run, type Agent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { connectAgent, messagePort, serveAgents, type Connection, type OutboxStore } from "turnloop/transport";
import { expect, onTestFinished, test } from "vitest";
import { calls, clientTool, tool } from "../support/calls.ts";
import { failingStorage, holds } from "../support/failing-storage.ts";
import { mortal, storedEvents } from "../support/mortal.ts";
import { dataOf } from "../support/scene.ts";
import { eventOf, snapshotWhere } from "../support/wait.ts";
import { ANN, rawClient, serve, type Served } from "./support.ts";

/** The agent, once its first client has it opened. */
async function opened(harness: Served["harness"]): Promise<Agent> {
  const known = harness.agents.get("s");
  return known ?? new Promise((resolve) => void harness.hooks.on("agent/created", ({ agent }) => resolve(agent)));
}

function messagePorts(): [Connection, Connection] {
  const { port1, port2 } = new MessageChannel();
  return [messagePort(port1), messagePort(port2)];
}

const textsIn = (agent: Agent): unknown[] => dataOf(agent.session, "user/message").map(({ content }) => content[0]);
const said = (...texts: string[]): unknown[] => texts.map((text) => ({ type: "text", text }));

test("only what is stored is sent, and only then a command is acknowledged", async () => {
  const storage = failingStorage();
  const { harness, connect, dial } = serve({ model: scriptedModel(["hi"]), storage });
  const { agent } = await connect();
  const watcher = rawClient(dial());
  watcher.hello();
  await watcher.got("state");
  storage.always(holds);
  agent.send("go", { id: "m" });
  await eventOf(harness.agents.get("s")!.session, "turn/start");
  // What the host would have said by now has come.
  for (let trips = 1; trips <= 5; trips += 1) {
    watcher.say({ type: "ping" });
    await watcher.got("pong", () => watcher.frames.filter(({ type }) => type === "pong").length === trips);
  }
  expect(watcher.frames.filter(({ type }) => type === "events")).toEqual([]);
  expect(agent.session.seq).toBe(0);
  expect(agent.getSnapshot()).toMatchObject({ durable: "pending", queue: [{ id: "m" }] });
  storage.heal();
  await agent.flush();
  expect(dataOf(agent.session, "inbox/queued")).toHaveLength(1);
  await agent.whenIdle();
});

/** Clients of a host that can be exchanged for another on the same disk. */
function hosts(first: Served): { now: Served; dial(): Connection; deafTo(frames: boolean): void } {
  let deaf = false;
  const all = {
    now: first,
    deafTo: (value: boolean) => void (deaf = value),
    dial(): Connection {
      const inner = all.now.dial();
      const { onMessage } = inner;
      return {
        ...inner,
        // What the host says gets lost on its way.
        onMessage: (listener) => onMessage((frame) => void (deaf || listener(frame))),
      };
    },
  };
  return all;
}

test("a message whose acknowledgement is lost with its host is taken once by the next host", async () => {
  const disk = memoryStorage();
  const life = mortal(disk);
  const all = hosts(serve({ model: scriptedModel(["never heard"]), storage: life.storage }));
  const { agent, dispose } = await connectAgent({ connect: all.dial, session: "s" });
  onTestFinished(dispose);
  life.killAfter("inbox/queued");
  all.deafTo(true);
  agent.send("go", { id: "m" });
  agent.configure({ temperature: 0.5 });
  await life.dead;
  const old = all.now;
  all.now = serve({ model: scriptedModel(["hello"]), storage: disk });
  all.deafTo(false);
  await old.server.close();
  await agent.flush();
  await agent.whenIdle();
  expect(dataOf(agent.session, "inbox/queued").map(({ id }) => id)).toEqual(["m"]);
  expect(dataOf(agent.session, "agent/configured")).toHaveLength(1);
  expect(textsIn(agent)).toEqual(said("go"));
  expect(agent.session.events).toEqual(await storedEvents(disk, "s"));
});

test("every verb that is sent again to a restarted host has its one effect, and its answer", async () => {
  const disk = memoryStorage();
  const model = scriptedModel([calls("ask", "paint"), "done"]);
  const ask = tool("ask", (_args, call) => call.ask("sure?"), { parallel: true, idempotent: true });
  const life = mortal(disk);
  const options = { model, tools: [ask, clientTool("paint", { parallel: true, idempotent: true })] };
  const all = hosts(serve({ ...options, storage: life.storage }));
  const { agent, dispose } = await connectAgent({ connect: all.dial, session: "s" });
  onTestFinished(dispose);
  agent.send("go");
  await snapshotWhere(agent, ({ interactions }) => interactions.length === 2);
  const [question, paint] = agent.interactions.toSorted((a, b) => a.kind.length - b.kind.length);
  agent.send("later", { id: "later" });
  await agent.flush();
  all.deafTo(true);
  life.killAfter("agent/configured");
  const asked = [agent.respond(question!.id, "yes"), agent.claim(paint!.id), agent.withdraw("later")];
  agent.configure({ temperature: 0.5 });
  await life.dead;
  const old = all.now;
  all.now = serve({ ...options, storage: disk, interrupted: "continue" });
  all.deafTo(false);
  await old.server.close();
  expect(await Promise.all(asked)).toEqual([undefined, undefined, true]);
  await agent.flush();
  await agent.respond(paint!.id, { value: "red" });
  await agent.whenIdle();
  for (const type of ["interaction/claimed", "agent/configured", "inbox/dropped"] as const)
    expect(dataOf(agent.session, type), type).toHaveLength(1);
  expect(dataOf(agent.session, "interaction/resolved")).toHaveLength(2);
  expect(dataOf(agent.session, "interaction/resolved")[0]).toMatchObject({ by: { kind: "user", identity: "ann" } });
});

test("a cancel that is sent again ends no turn but the one that its sender saw", async () => {
  const { dial, harness } = serve({ model: scriptedModel([{ hang: "deaf" }, { hang: "deaf" }]) });
  const client = rawClient(dial());
  client.hello();
  await client.got("welcome");
  const command = (one: object): void => client.say({ type: "commands", session: "s", commands: [one] });
  command({ kind: "send", id: "m1", content: "one" });
  await client.got("events", (frame) => frame["events"].some((event: { type: string }) => event.type === "step/start"));
  const cancel = { kind: "cancel", id: "c", reason: "enough", queue: "drop", turn: 1, messages: [] };
  command(cancel);
  await client.got("done", ({ id }) => id === "c");
  command({ kind: "send", id: "m2", content: "two" });
  const { session } = harness.agents.get("s")!;
  await eventOf(session, "step/start", ({ data }) => data.turn === 2);
  command({ ...cancel, id: "another" });
  await client.got("done", ({ id }) => id === "another");
  expect(dataOf(session as never, "agent/cancelled")).toHaveLength(1);
  harness.agents.get("s")!.cancel();
});

test("a cancel that has let the queue go on is known by its id: sent again, it does not end the turn that follows", async () => {
  const { dial, harness } = serve({ model: scriptedModel([{ hang: "polite" }, { hang: "polite" }]) });
  const first = rawClient(dial());
  first.hello();
  await first.got("welcome");
  const say = (client: typeof first, ...commands: object[]): void =>
    client.say({ type: "commands", session: "s", commands });
  say(first, { kind: "send", id: "m1", content: "one" });
  const { session } = await opened(harness);
  await eventOf(session, "step/start");
  const cancel = { kind: "cancel", id: "c", reason: "next", queue: "keep", turn: 1, messages: ["m2"] };
  say(first, { kind: "send", id: "m2", content: "two" }, cancel);
  await eventOf(session, "step/start", ({ data }) => data.turn === 2);
  expect(dataOf(session, "agent/cancelled")).toMatchObject([{ id: "c", turn: 1 }]);
  // Another host on the same log remembers nothing but what stands there.
  const [one, two] = messagePorts();
  const next = serveAgents(harness);
  onTestFinished(() => next.close());
  next.accept(one, ANN, "s");
  const again = rawClient(two);
  again.hello();
  await again.got("welcome");
  say(again, cancel);
  await again.got("done");
  expect(dataOf(session, "agent/cancelled")).toHaveLength(1);
  harness.agents.get("s")!.cancel();
});

test("a turn without a message carries the id of its command; a cancel behind it, in the same frame, is meant for it", async () => {
  const { connect } = serve({ model: scriptedModel(["one", "never asked for"]) });
  const { agent } = await connect();
  agent.continue({ id: "go" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start")).toMatchObject([{ command: "go" }]);
  agent.continue({ id: "on" });
  agent.cancel("no", { id: "off" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "agent/cancelled")).toMatchObject([{ id: "off", reason: "no" }]);
  expect(dataOf(agent.session, "assistant/message")).toHaveLength(1);
});

test("commands that the host never got survive a reload of the page", async () => {
  const kept = new Map<string, string>();
  const outbox: OutboxStore = {
    load: (session) => kept.get(session),
    save: (session, text) => void (text === undefined ? kept.delete(session) : kept.set(session, text)),
  };
  const served = serve({ model: scriptedModel(["hello"]) });
  const before = await served.connect({ outbox });
  served.connections[0]!.close();
  before.agent.send("written offline", { id: "m" });
  await before.dispose();
  expect(kept.size).toBe(1);
  const { agent } = await served.connect({ outbox });
  await agent.flush();
  await agent.whenIdle();
  expect(textsIn(agent)).toEqual(said("written offline"));
  expect(kept.size).toBe(0);
});

test("a session that was deleted and begun anew takes the place of what the client had", async () => {
  const served = serve({ model: scriptedModel(["one", "two"]) });
  const { agent } = await served.connect();
  await run(agent, "first life").result;
  const old = agent.session;
  let told = 0;
  agent.subscribe(() => void (agent.session === old || (told += 1)));
  await served.harness.agents.get("s")!.whenIdle();
  await (await served.harness.agents.open({ id: "s" })).dispose();
  // The host lets go of it only when its connections end.
  await new Promise<void>((resolve) => {
    served.harness.hooks.on("agent/disposed", () => resolve());
    served.connections[0]!.close();
  });
  await served.harness.sessions.delete("s");
  await snapshotWhere(agent, () => agent.session !== old);
  expect(told).toBeGreaterThan(0);
  await run(agent, "second life").result;
  expect(textsIn(agent)).toEqual(said("second life"));
  expect(ANN.identity).toBe("ann");
});
