/** D29: a call that somebody has to allow first. */
import { run, type Agent, type JsonValue } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, resultsOf, staged, talk, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { anywhere, local, type OpenAgent, type Stage } from "../support/fixture.ts";
import { dataOf } from "../support/scene.ts";
import { endOf, eventOf, snapshotWhere, typesOf } from "../support/wait.ts";

const ID = "call_1_1_1_0/approval";

/** An agent that has been asked whether it may pay. */
async function asked(open: OpenAgent, options: Omit<Stage, "model"> = {}) {
  const paid: unknown[] = [];
  const agent = await open({
    model: scriptedModel([calls({ name: "pay", args: '{ "to": "me" }' }), "I see"]),
    tools: [tool("pay", (args) => (paid.push(args), "paid"), { needsApproval: true })],
    ...options,
  });
  agent.send("go");
  await snapshotWhere(agent, ({ interactions }) => interactions.length > 0);
  return { agent, session: agent.session, paid };
}

anywhere("#178 D29 an ask is an interaction about the call as it stands in the log", async (open) => {
  const { agent, session, paid } = await asked(open);
  const interaction = {
    id: ID,
    kind: "approval",
    callId: "call_1_1_1_0",
    payload: { tool: "pay", arguments: '{ "to": "me" }' },
  };
  expect(agent.interactions).toEqual([interaction]);
  expect(dataOf(session, "interaction/requested")).toEqual([interaction]);
  expect(agent.getSnapshot()).toMatchObject({ status: "running", waiting: true });
  expect(typesOf(session).slice(-2)).toEqual(["tool/call", "interaction/requested"]);
  expect(paid).toEqual([]);
});

anywhere("#178 what is allowed runs once", async (open) => {
  const { agent, session, paid } = await asked(open);
  await agent.respond(ID, { decision: "allow" });
  await agent.whenIdle();
  expect(paid).toEqual([{ to: "me" }]);
  expect(typesOf(session).slice(6, 12)).toEqual([
    "tool/call",
    "interaction/requested",
    "interaction/resolved",
    "tool/start",
    "tool/result",
    "step/end",
  ]);
  expect(dataOf(session, "interaction/resolved")).toMatchObject([
    { id: ID, outcome: "answered", value: { decision: "allow" } },
  ]);
  expect(agent.interactions).toEqual([]);
});

anywhere("#178 what is denied does not run, and the model reads the reason", async (open) => {
  const { agent, session, paid } = await asked(open);
  await agent.respond(ID, { decision: "deny", reason: "too expensive" });
  await agent.whenIdle();
  expect(resultsOf(session)).toEqual([{ tool: "pay", fails: "Error: too expensive" }]);
  expect(paid).toEqual([]);
  expect(typesOf(session)).not.toContain("tool/start");
  expect(endOf(session)).toEqual({ kind: "completed" });
});

local("#178 rejected, expired and unavailable are told apart", async () => {
  const clock = testClock();
  const fails = async (end: (agent: Agent) => Promise<void>, interactive = true) => {
    const { agent, hooks, session } = await staged({
      model: scriptedModel([calls("pay"), "I see"]),
      tools: [tool("pay", () => expect.unreachable())],
      clock,
      interactive,
    });
    hooks.on("tools/pre-execute", () => ({ kind: "ask", expiresInMs: 60_000 }));
    agent.send("go");
    await end(agent);
    await agent.whenIdle();
    const [result] = resultsOf(session);
    return (result as { fails: string }).fails;
  };
  const texts = [
    await fails(async (agent) => {
      await eventOf(agent.session, "interaction/requested");
      await agent.respond(ID, { decision: "deny" });
    }),
    await fails(async () => {
      await clock.sleeping(60_000);
      await clock.advance(60_000);
    }),
    await fails(async () => {}, false),
  ];
  expect(new Set(texts).size).toBe(3);
  for (const text of texts) expect(text).toMatch(/^Error: ./);
});

anywhere("#178 a cancel resolves what is asked as cancelled, and the call was not dispatched", async (open) => {
  const { agent, session, paid } = await asked(open);
  agent.cancel("enough");
  await agent.whenIdle();
  expect(typesOf(session).slice(6)).toEqual([
    "tool/call",
    "interaction/requested",
    "agent/cancelled",
    "interaction/resolved",
    "tool/result",
    "step/end",
    "turn/end",
  ]);
  expect(dataOf(session, "interaction/resolved")).toEqual([{ id: ID, outcome: "cancelled" }]);
  expect(resultsOf(session)).toMatchObject([{ tool: "pay", code: "ABORTED_BEFORE_DISPATCH" }]);
  expect(paid).toEqual([]);
  expect(endOf(session)).toEqual({ kind: "aborted", reason: "enough" });
});

local("#178 D29 with nobody to ask, an ask is a denial with the reason that was given", async () => {
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("pay"), "I see"]),
    tools: [tool("pay", () => expect.unreachable())],
    interactive: false,
  });
  hooks.on("tools/pre-execute", () => ({ kind: "ask", reason: "it costs money" }));
  await talk(agent);
  expect(resultsOf(session)).toMatchObject([{ fails: expect.stringMatching(/^Error: it costs money/) }]);
  expect(typesOf(session)).not.toContain("interaction/requested");
});

local("#177 an ask may give a reason, which whoever is asked can read", async () => {
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("pay"), "I see"]),
    tools: [tool("pay")],
  });
  hooks.on("tools/pre-execute", () => ({ kind: "ask", reason: "it costs money" }));
  agent.send("go");
  const { data } = await eventOf(session, "interaction/requested");
  expect(data.payload).toEqual({ tool: "pay", arguments: "{}", reason: "it costs money" });
  await agent.respond(ID, { decision: "allow" });
  await agent.whenIdle();
  expect(resultsOf(session)).toEqual([{ tool: "pay", says: "done" }]);
});

anywhere("D29 needsApproval decides by the arguments", async (open) => {
  const agent = await open({
    model: scriptedModel([calls({ name: "pay", args: { n: 1 } }, { name: "pay", args: { n: 100 } }), "done"]),
    tools: [tool("pay", ({ n }) => n, { needsApproval: async ({ n }) => Number(n) > 10 })],
  });
  agent.send("go");
  await snapshotWhere(agent, ({ waiting }) => waiting);
  expect(resultsOf(agent.session)).toEqual([{ tool: "pay", says: "1" }]);
  expect(agent.interactions.map(({ id }) => id)).toEqual(["call_1_1_1_1/approval"]);
  agent.cancel();
});

anywhere("D29 the first answer counts, a later one is told so", async (open) => {
  const { agent, session } = await asked(open);
  const answers = await Promise.allSettled([
    agent.respond(ID, { decision: "allow" }),
    agent.respond(ID, { decision: "deny" }),
  ]);
  expect(answers).toMatchObject([
    { status: "fulfilled" },
    { status: "rejected", reason: { code: "INTERACTION_RESOLVED" } },
  ]);
  await agent.whenIdle();
  expect(resultsOf(session)).toEqual([{ tool: "pay", says: "paid" }]);
  expect(dataOf(session, "interaction/resolved")).toHaveLength(1);
});

for (const value of [
  null,
  true,
  "allow",
  {},
  [],
  { decision: "yes" },
  { decision: true },
  { decision: "deny", reason: 1 },
  JSON.parse('{"__proto__":{"decision":"allow"}}'),
] as JsonValue[]) {
  anywhere(`D29 ${JSON.stringify(value)} is no answer to an approval, and changes nothing`, async (open) => {
    const { agent, session, paid } = await asked(open);
    const { seq } = session;
    await expect(agent.respond(ID, value)).rejects.toMatchObject({ code: "INVALID_ANSWER" });
    expect(session.seq).toBe(seq);
    expect(paid).toEqual([]);
    expect(agent.interactions).toHaveLength(1);
  });
}

anywhere("D29 an answer to what was never asked is told so", async (open) => {
  const { agent } = await asked(open);
  for (const id of ["nope", "__proto__", "call_1_1_1_0"]) {
    await expect(agent.respond(id, { decision: "allow" })).rejects.toMatchObject({ code: "INTERACTION_NOT_FOUND" });
  }
});

for (const [who, go] of [
  ["nobody listens to", (agent) => agent.send("go")],
  ["only a run follows", (agent) => run(agent, "go")],
] as [string, (agent: Agent) => unknown][]) {
  local(`D29 an ask that ${who} waits, and is told as a diagnostic`, async () => {
    const { agent, session, diagnostics } = await staged({
      model: scriptedModel([calls("pay"), "I see"]),
      tools: [tool("pay", () => "paid", { needsApproval: true })],
    });
    go(agent);
    await eventOf(session, "interaction/requested");
    expect(diagnostics.map(({ code }) => code)).toEqual(["INTERACTION_WAITING"]);
    expect(agent.getSnapshot().waiting).toBe(true);
    await agent.respond(ID, { decision: "allow" });
    await agent.whenIdle();
    expect(resultsOf(session)).toEqual([{ tool: "pay", says: "paid" }]);
  });
}

for (const [how, listen] of [
  ["a hook", ({ hooks }) => hooks.on("interaction/requested", () => {})],
  ["the snapshot", ({ agent }) => agent.subscribe(() => {})],
  ["the event", ({ agent }) => agent.on("interaction/requested", () => {})],
] as [string, (stage: Awaited<ReturnType<typeof staged>>) => unknown][]) {
  local(`D29 an ask that somebody listens to through ${how} is no diagnostic`, async () => {
    const stage = await staged({
      model: scriptedModel([calls("pay"), "I see"]),
      tools: [tool("pay", () => "paid", { needsApproval: true })],
    });
    listen(stage);
    stage.agent.send("go");
    await eventOf(stage.session, "interaction/requested");
    expect(stage.diagnostics).toEqual([]);
  });
}

local("D29 the hooks tell of what is asked and of its answer", async () => {
  const told: unknown[] = [];
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("pay"), "I see"]),
    tools: [tool("pay", () => "paid", { needsApproval: true })],
  });
  hooks.on("interaction/requested", ({ interaction }) => void told.push(["requested", interaction.id]));
  hooks.on("interaction/resolved", ({ interaction, value }) => void told.push(["resolved", interaction.id, value]));
  agent.send("go");
  await eventOf(session, "interaction/requested");
  await agent.respond(ID, { decision: "allow", remember: "session" });
  await agent.whenIdle();
  expect(told).toEqual([
    ["requested", ID],
    ["resolved", ID, { decision: "allow", remember: "session" }],
  ]);
});

local("D29 an answer may come from the frame in which it is asked for", async () => {
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("pay"), "I see"]),
    tools: [tool("pay", () => "paid", { needsApproval: true })],
  });
  hooks.on("interaction/requested", ({ interaction }) => agent.respond(interaction.id, { decision: "allow" }));
  await talk(agent);
  expect(resultsOf(session)).toEqual([{ tool: "pay", says: "paid" }]);
});

local("D23 an approval that came in time leaves no timer behind", async () => {
  const clock = testClock();
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("pay"), "I see"]),
    tools: [tool("pay")],
    clock,
  });
  hooks.on("tools/pre-execute", () => ({ kind: "ask", expiresInMs: 3_600_000 }));
  agent.send("go");
  const { data } = await eventOf(session, "interaction/requested");
  expect(data.expiresAt).toBe(clock.now() + 3_600_000);
  await agent.respond(ID, { decision: "allow" });
  await agent.whenIdle();
  await clock.advance(3_600_000);
  expect(dataOf(session, "interaction/resolved")).toHaveLength(1);
  expect(await Promise.race([clock.sleeping(3_600_000).then(() => "asleep"), Promise.resolve("awake")])).toBe("awake");
});
