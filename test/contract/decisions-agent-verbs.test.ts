/** The other verbs of an agent: continue, configure, respond, claim, flush, and what they refuse. */
import type { Agent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, clientTool, tool } from "../support/calls.ts";
import { failingStorage, faultyStage, hangs, holds, refuses } from "../support/failing-storage.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { heldAnswer, statusesOf, storedUpTo, text, textsOf } from "../support/held.ts";
import { codeOf, isPending, promptly } from "../support/lifecycle.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { endOf, eventOf, snapshotWhere, typesOf } from "../support/wait.ts";

const HANGING = { text: "on and on", hang: "deaf" } as const;

anywhere("continue runs a turn over the history as it stands, without a new message", async (open) => {
  const model = scriptedModel([{ error: { message: "no" } }, "better now"]);
  const agent = await open({ model });
  agent.send("go");
  await agent.whenIdle();
  agent.continue();
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start").at(-1)).toMatchObject({
    turn: 2,
    trigger: { kind: "continue", source: { kind: "user" } },
    messages: [],
  });
  expect(linesOf(model.requests[1]!.messages)).toEqual(["user: go"]);
  expect(typesOf(agent.session).slice(-5)).toEqual([
    "turn/start",
    "step/start",
    "assistant/message",
    "step/end",
    "turn/end",
  ]);
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

anywhere("continue while a turn is open throws TURN_OPEN, and changes nothing", async (open) => {
  const held = heldAnswer("hi");
  const agent = await open({ model: scriptedModel([held.answer]) });
  agent.send("go");
  await eventOf(agent.session, "step/start");
  const { seq } = agent.session;
  expect(await codeOf(() => agent.continue())).toBe("TURN_OPEN");
  expect(agent.session.seq).toBe(seq);
  held.give();
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start")).toHaveLength(1);
});

anywhere("continue twice, or beside a message, is one turn", async (open) => {
  const agent = await open({ model: scriptedModel(["one", "two"]) });
  agent.continue();
  agent.continue();
  await agent.whenIdle();
  agent.continue();
  agent.send("go", { id: "m1" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start").map(({ trigger, messages }) => [trigger.kind, messages])).toEqual([
    ["continue", []],
    ["message", ["m1"]],
  ]);
});

local("#70 #79 continue counts as work: whenIdle waits for it, and a cancel drops it before it begins", async () => {
  const model = scriptedModel(["hi"]);
  const harness = harnessWith({ model });
  const statuses = statusesOf(harness);
  const { agent } = await harness.agents.open({ id: "s" });
  agent.continue();
  agent.cancel("enough");
  expect(await isPending(agent.whenIdle())).toBe(false);
  expect(typesOf(agent.session)).toEqual(["agent/cancelled"]);
  expect(statuses).toEqual([]);
  agent.continue();
  await agent.whenIdle();
  expect(statuses).toEqual(["running", "idle"]);
  expect(model.requests).toHaveLength(1);
});

anywhere("configure holds from the next request on, and is logged", async (open) => {
  const held = heldAnswer(calls("look"));
  const model = scriptedModel([held.answer, "done", "again"]);
  const agent = await open({ model, tools: [tool("look")], open: { call: { temperature: 1, topK: 3 } } });
  agent.send("go");
  await held.asked;
  agent.configure({ temperature: 0.5, stop: ["."] });
  await agent.flush();
  held.give();
  await agent.whenIdle();
  agent.configure({ temperature: 0 });
  agent.send("again");
  await agent.whenIdle();
  const model_ = "scripted/model";
  expect(model.requests.map(({ config }) => config)).toEqual([
    { model: model_, temperature: 1, topK: 3 },
    { model: model_, temperature: 0.5, topK: 3, stop: ["."] },
    { model: model_, temperature: 0, topK: 3, stop: ["."] },
  ]);
  expect(dataOf(agent.session, "agent/configured")).toMatchObject([
    { patch: { temperature: 0.5, stop: ["."] } },
    { patch: { temperature: 0 } },
  ]);
});

anywhere("configure can switch the model, and takes a copy", async (open) => {
  const [one, two] = [scriptedModel(["one"], { id: "a/one" }), scriptedModel(["two"], { id: "a/two" })];
  const agent = await open({ model: "one", models: { one, two } });
  agent.send("go");
  await agent.whenIdle();
  const patch = { model: "two" };
  agent.configure(patch);
  patch.model = "nowhere";
  agent.send("again");
  await agent.whenIdle();
  expect([one.requests.length, two.requests.length]).toEqual([1, 1]);
  expect(dataOf(agent.session, "request/header").map(({ header, reason }) => [header.modelId, reason])).toEqual([
    ["a/one", "initial"],
    ["a/two", "change"],
  ]);
});

local("D9 what configure has logged holds after the session is opened again", async () => {
  const { agent } = await harnessWith({ model: scriptedModel([]) }).agents.open({ id: "s" });
  agent.configure({ temperature: 0.5 });
  const storage = await storedUpTo(agent.session, agent.session.seq);
  const model = scriptedModel(["hi"]);
  const again = await harnessWith({ model, storage }).agents.open({ id: "s" });
  again.agent.send("go");
  await again.agent.whenIdle();
  expect(model.requests[0]!.config).toEqual({ model: "scripted/model", temperature: 0.5 });
});

anywhere("configure refuses what is not JSON or no set of fields, before anything changes", async (open) => {
  const agent = await open({ model: scriptedModel([]) });
  const patches = [null, undefined, 5, "temperature", [], { temperature: undefined }, { seed: 1n }, new Date()];
  for (const [i, patch] of patches.entries()) {
    expect(await codeOf(() => agent.configure(patch as never)), `patch ${i}`).toBe("INVALID_CONTENT");
  }
  expect(agent.session.seq).toBe(0);
});

anywhere("respond answers a question: the first answer wins, and a later one rejects at its sender", async (open) => {
  const asking = tool("look", (_, call) => call.ask({ text: "which?" }));
  const agent = await open({ model: scriptedModel([calls("look"), "done"]), tools: [asking] });
  agent.send("go");
  const { data } = await eventOf(agent.session, "interaction/requested");
  const [first, second] = await Promise.allSettled([agent.respond(data.id, "left"), agent.respond(data.id, "right")]);
  expect(first.status).toBe("fulfilled");
  expect(second).toMatchObject({ status: "rejected", reason: { code: "INTERACTION_RESOLVED" } });
  await agent.whenIdle();
  expect(dataOf(agent.session, "interaction/resolved")).toMatchObject([
    { id: data.id, outcome: "answered", value: "left" },
  ]);
  expect(dataOf(agent.session, "tool/result").map(({ content }) => content)).toEqual([text("left")]);
  // The slower of two people is told the same, whether or not the turn has ended meanwhile.
  expect(await codeOf(agent.respond(data.id, "late"))).toBe("INTERACTION_RESOLVED");
  expect(agent.getSnapshot().error).toBeUndefined();
});

anywhere(
  "respond rejects what was never asked, what does not fit, and what is not JSON; the question stays",
  async (open) => {
    const ask = tool("look", () => "seen", { needsApproval: true });
    const agent = await open({ model: scriptedModel([calls("look"), "done"]), tools: [ask] });
    agent.send("go");
    const { data } = await eventOf(agent.session, "interaction/requested");
    expect(await codeOf(agent.respond("nothing", 1))).toBe("INTERACTION_NOT_FOUND");
    for (const bad of [null, "allow", {}, { decision: "perhaps" }, []]) {
      expect(await codeOf(agent.respond(data.id, bad)), JSON.stringify(bad)).toBe("INVALID_ANSWER");
    }
    expect(await codeOf(agent.respond(data.id, { decision: undefined } as never))).toBe("INVALID_CONTENT");
    expect(agent.interactions.map(({ id }) => id)).toEqual([data.id]);
    await agent.respond(data.id, { decision: "allow" });
    await agent.whenIdle();
    expect(dataOf(agent.session, "tool/result").map(({ content }) => content)).toEqual([text("seen")]);
  },
);

local("respond and claim resolve when they are stored", async () => {
  const storage = failingStorage();
  const harness = harnessWith({
    model: scriptedModel([calls("paint"), "done"]),
    tools: [clientTool("paint")],
    storage,
  });
  const { agent } = await harness.agents.open({ id: "s" });
  agent.send("go");
  const { data } = await eventOf(agent.session, "interaction/requested");
  await agent.flush();
  storage.always(holds);
  const claimed = agent.claim(data.id);
  expect(dataOf(agent.session, "interaction/claimed")).toHaveLength(1);
  expect(await isPending(claimed)).toBe(true);
  storage.heal();
  await claimed;
  await agent.flush();
  storage.always(holds);
  const answered = agent.respond(data.id, { value: 1 });
  expect(await isPending(answered)).toBe(true);
  expect(dataOf(agent.session, "tool/result")).toEqual([]);
  storage.heal();
  await answered;
  await agent.whenIdle();
  expect(dataOf(agent.session, "tool/result").map(({ content }) => content)).toEqual([text("1")]);
});

anywhere(
  "D23 the first claim wins, a second rejects INTERACTION_CLAIMED, and the snapshot tells who has it",
  async (open) => {
    const agent = await open({ model: scriptedModel([calls("paint"), "done"]), tools: [clientTool("paint")] });
    agent.send("go");
    await snapshotWhere(agent, ({ interactions }) => interactions.length > 0);
    const { id } = agent.interactions[0]!;
    expect(await codeOf(agent.claim("nothing"))).toBe("INTERACTION_NOT_FOUND");
    const [first, second] = await Promise.allSettled([agent.claim(id), agent.claim(id)]);
    expect(first.status).toBe("fulfilled");
    expect(second).toMatchObject({ status: "rejected", reason: { code: "INTERACTION_CLAIMED" } });
    expect(agent.interactions).toMatchObject([{ id, kind: "client-tool", claimedBy: expect.any(String) }]);
    await agent.respond(id, { value: 1 });
    expect(await codeOf(agent.claim(id))).toBe("INTERACTION_RESOLVED");
    await agent.whenIdle();
  },
);

anywhere("flush resolves when everything that was accepted is stored", async (open) => {
  const storage = failingStorage();
  const agent = await open({ model: scriptedModel(["hi"]), storage });
  storage.always(holds);
  agent.inject("a");
  const flushed = agent.flush();
  expect(await isPending(flushed)).toBe(true);
  storage.heal();
  await flushed;
  expect(agent.session.durable).toBe("stored");
  expect((await storage.stored("session")).length).toBe(agent.session.seq);
});

local(
  "flush rejects SESSION_DEGRADED when the storage does not answer, and SESSION_CONFLICT when it refuses",
  async () => {
    const { clock, storage, open } = faultyStage({ model: scriptedModel([]) });
    const agent = await open();
    storage.always(hangs);
    agent.inject("a");
    const flushed = codeOf(agent.flush());
    await clock.sleeping(5000);
    await clock.advance(5000);
    expect(await promptly(flushed)).toBe("SESSION_DEGRADED");
    expect(await codeOf(agent.flush())).toBe("SESSION_DEGRADED");
    const lost = faultyStage({ model: scriptedModel([]) });
    const other = await lost.open();
    lost.storage.always(refuses("SESSION_CONFLICT"));
    other.inject("a");
    expect(await codeOf(other.flush())).toBe("SESSION_CONFLICT");
  },
);

/** Every verb that changes something, told apart by its name. */
const VERBS: Readonly<Record<string, (agent: Agent) => unknown>> = {
  send: (agent) => agent.send("a"),
  steer: (agent) => agent.steer("a"),
  inject: (agent) => agent.inject("a"),
  continue: (agent) => agent.continue(),
  withdraw: (agent) => agent.withdraw("a"),
  respond: (agent) => agent.respond("a", 1),
  claim: (agent) => agent.claim("a"),
  configure: (agent) => agent.configure({}),
};

local("#46 of a disposed agent every verb throws AGENT_DISPOSED, but for cancel, which does nothing", async () => {
  const harness = harnessWith({ model: scriptedModel([HANGING]) });
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  const disposed = dispose();
  for (const when of ["while it ends", "when it has ended"]) {
    const { seq } = agent.session;
    for (const [verb, act] of Object.entries(VERBS)) {
      expect(await codeOf(() => act(agent)), `${verb} ${when}`).toBe("AGENT_DISPOSED");
    }
    agent.cancel("too late");
    if (when === "when it has ended") expect(agent.session.seq).toBe(seq);
    await disposed;
  }
  expect(dataOf(agent.session, "agent/cancelled")).toEqual([]);
  expect(endOf(agent.session)).toEqual({ kind: "disposed" });
  expect(textsOf(agent.session)).toEqual(["go"]);
});

local("D25 of a lost session every verb throws READ_ONLY, but for cancel, which does nothing", async () => {
  const storage = failingStorage();
  const { agent } = await harnessWith({ model: scriptedModel([HANGING]), storage }).agents.open({ id: "s" });
  storage.always(refuses("SESSION_CONFLICT"));
  agent.send("go");
  await snapshotWhere(agent, ({ durable, status }) => durable === "lost" && status === "idle");
  const { seq } = agent.session;
  for (const [verb, act] of Object.entries(VERBS)) {
    expect(await codeOf(() => act(agent)), verb).toBe("READ_ONLY");
  }
  agent.cancel("too late");
  expect(agent.session.seq).toBe(seq);
  await promptly(agent.whenIdle());
});

anywhere("the verbs need no `this`: they may be taken off the agent", async (open) => {
  const { send, whenIdle, getSnapshot, session } = await open({ model: scriptedModel(["hi"]) });
  send("go");
  await whenIdle();
  expect(getSnapshot().status).toBe("idle");
  expect(textsOf(session)).toEqual(["go"]);
});
