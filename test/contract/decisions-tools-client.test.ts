/** D29, D23: tools that a client runs: claimed first, then run, then answered. */
import { clientTools, type Agent, type JsonValue } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, clientTool, resultsOf, staged, talk } from "../support/calls.ts";
import { anywhere, local, type OpenAgent, type Stage } from "../support/fixture.ts";
import { dataOf } from "../support/scene.ts";
import { deferred, endOf, eventOf, snapshotWhere, typesOf } from "../support/wait.ts";

const ID = "call_1_1_1_0/client";

/** An agent whose model wants to know where the client is. */
const wondering = (open: OpenAgent, options: Omit<Stage, "model"> = {}): Promise<Agent> =>
  open({
    model: scriptedModel([calls({ name: "where", args: { exact: true } }), "I see"]),
    tools: [clientTool("where")],
    ...options,
  });

async function asked(open: OpenAgent): Promise<Agent> {
  const agent = await wondering(open);
  agent.send("go");
  await snapshotWhere(agent, ({ interactions }) => interactions.length > 0);
  return agent;
}

anywhere("D29 D23 a client tool is an interaction with the parsed arguments, open after its start", async (open) => {
  const agent = await asked(open);
  expect(agent.interactions).toEqual([
    {
      id: ID,
      kind: "client-tool",
      callId: "call_1_1_1_0",
      payload: { tool: "where", arguments: { exact: true } },
    },
  ]);
  expect(typesOf(agent.session).slice(-3)).toEqual(["tool/call", "tool/start", "interaction/requested"]);
  expect(agent.getSnapshot()).toMatchObject({ status: "running", waiting: true });
});

anywhere("D29 clientTools supplies the body: it claims, runs and responds", async (open) => {
  const agent = await wondering(open);
  const got: unknown[] = [];
  clientTools(agent, {
    where: (args, { callId, signal }) => {
      got.push(args, callId, signal.aborted);
      return { at: "home" };
    },
  });
  const session = await talk(agent);
  expect(got).toEqual([{ exact: true }, "call_1_1_1_0", false]);
  expect(resultsOf(session)).toEqual([{ tool: "where", says: '{"at":"home"}' }]);
  expect(typesOf(session).slice(6, 12)).toEqual([
    "tool/call",
    "tool/start",
    "interaction/requested",
    "interaction/claimed",
    "interaction/resolved",
    "tool/result",
  ]);
});

anywhere("D29 clientTools runs what was asked before it came", async (open) => {
  const agent = await asked(open);
  clientTools(agent, { where: () => "here" });
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toEqual([{ tool: "where", says: "here" }]);
});

anywhere("D29 of two clients one runs the call", async (open) => {
  const agent = await wondering(open);
  const ran: string[] = [];
  clientTools(agent, { where: () => void ran.push("first") });
  clientTools(agent, { where: () => void ran.push("second") });
  const session = await talk(agent);
  expect(ran).toHaveLength(1);
  expect(dataOf(session, "interaction/claimed")).toHaveLength(1);
  expect(resultsOf(session)).toHaveLength(1);
});

anywhere("D29 a client runs only the tools that it has, own properties alone", async (open) => {
  const agent = await open({
    model: scriptedModel([calls("toString"), "I see"]),
    tools: [clientTool("toString")],
  });
  clientTools(agent, { where: () => expect.unreachable() });
  agent.send("go");
  await snapshotWhere(agent, ({ waiting }) => waiting);
  expect(dataOf(agent.session, "interaction/claimed")).toEqual([]);
  agent.cancel();
});

anywhere("D23 a second claim is told so, and changes nothing", async (open) => {
  const agent = await asked(open);
  await agent.claim(ID);
  const { seq } = agent.session;
  await expect(agent.claim(ID)).rejects.toMatchObject({ code: "INTERACTION_CLAIMED" });
  expect(agent.session.seq).toBe(seq);
  expect(agent.interactions[0]).toMatchObject({ id: ID, claimedBy: expect.any(String) });
});

local("D29 a claim or an answer in the frame behind a cancel comes too late", async () => {
  const { agent, session } = await staged({ model: scriptedModel([calls("where")]), tools: [clientTool("where")] });
  agent.send("go");
  await eventOf(session, "interaction/requested");
  agent.cancel();
  const late = await Promise.allSettled([agent.claim(ID), agent.respond(ID, { value: "here" })]);
  expect(late.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await agent.whenIdle();
  expect(dataOf(session, "interaction/resolved")).toEqual([{ id: ID, outcome: "cancelled" }]);
});

anywhere("D23 of two claims in one frame the first wins", async (open) => {
  const agent = await asked(open);
  const claims = await Promise.allSettled([agent.claim(ID), agent.claim(ID)]);
  expect(claims.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  expect(dataOf(agent.session, "interaction/claimed")).toHaveLength(1);
});

anywhere("D23 a claim of what is resolved or was never asked is told so", async (open) => {
  const agent = await asked(open);
  await expect(agent.claim("nope")).rejects.toMatchObject({ code: "INTERACTION_NOT_FOUND" });
  agent.cancel();
  await agent.whenIdle();
  await expect(agent.claim(ID)).rejects.toMatchObject({ code: expect.stringMatching(/^INTERACTION_/) });
});

for (const [what, answer, result] of [
  ["a value", { value: { at: "home" } }, { tool: "where", says: '{"at":"home"}' }],
  ["null", { value: null }, { tool: "where", says: "null" }],
  ["an error", { error: "no signal" }, { tool: "where", fails: "Error: no signal" }],
] as const) {
  anywhere(`D29 a client may answer with ${what}`, async (open) => {
    const agent = await asked(open);
    await agent.claim(ID);
    await agent.respond(ID, answer);
    await agent.whenIdle();
    expect(resultsOf(agent.session)).toEqual([result]);
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
  });
}

for (const value of [null, "here", {}, [], { error: 1 }, { at: "home" }] as JsonValue[]) {
  anywhere(`D29 ${JSON.stringify(value)} is no answer of a client tool`, async (open) => {
    const agent = await asked(open);
    await expect(agent.respond(ID, value)).rejects.toMatchObject({ code: "INVALID_ANSWER" });
    expect(agent.interactions).toHaveLength(1);
  });
}

for (const [what, body, fails] of [
  [
    "throws",
    () => {
      throw new Error("no signal");
    },
    "Error: no signal",
  ],
  ["rejects", () => Promise.reject(new Error("no signal")), "Error: no signal"],
] as const) {
  anywhere(`D29 a client's body that ${what} is told to the model`, async (open) => {
    const agent = await wondering(open);
    clientTools(agent, { where: body });
    expect(resultsOf(await talk(agent))).toEqual([{ tool: "where", fails }]);
  });
}

anywhere("D29 a client's body that answers nothing is done, as at the host", async (open) => {
  const agent = await wondering(open);
  clientTools(agent, { where: () => {} });
  expect(resultsOf(await talk(agent))).toMatchObject([{ tool: "where", says: expect.any(String) }]);
});

anywhere("D29 a cancel aborts the client's body, and what it answers later changes nothing", async (open) => {
  const agent = await wondering(open);
  const [begun, goOn, aborted] = [deferred(), deferred(), deferred()];
  clientTools(agent, {
    async where(_, { signal }) {
      signal.addEventListener("abort", () => aborted.resolve());
      begun.resolve();
      await goOn.promise;
      return "late";
    },
  });
  agent.send("go");
  await begun.promise;
  agent.cancel("enough");
  await aborted.promise;
  await agent.whenIdle();
  const { seq } = agent.session;
  goOn.resolve();
  await agent.flush();
  expect(agent.session.seq).toBe(seq);
  expect(dataOf(agent.session, "interaction/resolved")).toEqual([{ id: ID, outcome: "cancelled" }]);
  expect(resultsOf(agent.session)).toMatchObject([{ tool: "where", code: "TOOL_ABORTED" }]);
});

anywhere("D29 client tools that are taken away abort what they run, and run nothing more", async (open) => {
  const agent = await wondering(open);
  const begun = deferred();
  let aborted = false;
  const off = clientTools(agent, {
    where: (_, { signal }) => {
      signal.addEventListener("abort", () => (aborted = true));
      begun.resolve();
      return new Promise(() => {});
    },
  });
  agent.send("go");
  await begun.promise;
  off();
  off();
  expect(aborted).toBe(true);
  expect(agent.interactions).toMatchObject([{ id: ID, claimedBy: expect.any(String) }]);
});

anywhere("D29 without anybody to ask, a client tool fails at once", async (open) => {
  const agent = await wondering(open, { interactive: false });
  const session = await talk(agent);
  expect(resultsOf(session)).toMatchObject([{ tool: "where", code: "INTERACTION_UNAVAILABLE" }]);
  expect(typesOf(session)).not.toContain("interaction/requested");
});

local("D29 policies stand around a client tool as around any other", async () => {
  const stages: string[] = [];
  const { agent, hooks, harness, session } = await staged({
    model: scriptedModel([calls("where"), "I see"]),
    tools: [clientTool("where")],
  });
  hooks.on("tools/pre-execute", (_, next) => (stages.push("pre-execute"), next()));
  harness.tools.guard(() => void stages.push("guard"));
  hooks.on("tools/execute", async (_, next) => {
    const outcome = await next();
    stages.push("execute");
    return outcome;
  });
  hooks.on("tools/post-execute", (_, next) => (stages.push("post-execute"), next()));
  clientTools(agent, { where: () => void stages.push("body") });
  await talk(agent);
  expect(stages).toEqual(["pre-execute", "guard", "body", "execute", "post-execute"]);
  expect(resultsOf(session)).toHaveLength(1);
});

anywhere("D29 D23 a client tool that needs an approval is asked for under two ids", async (open) => {
  const agent = await open({
    model: scriptedModel([calls("where"), "I see"]),
    tools: [clientTool("where", { needsApproval: true })],
  });
  clientTools(agent, { where: () => "here" });
  agent.send("go");
  await snapshotWhere(agent, ({ waiting }) => waiting);
  expect(agent.interactions.map(({ id }) => id)).toEqual(["call_1_1_1_0/approval"]);
  await agent.respond("call_1_1_1_0/approval", { decision: "allow" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "interaction/requested").map(({ id }) => id)).toEqual([
    "call_1_1_1_0/approval",
    "call_1_1_1_0/client",
  ]);
  expect(resultsOf(agent.session)).toEqual([{ tool: "where", says: "here" }]);
});

local("D18 a client's answer that is in the log is kept when a cancel lands behind it", async () => {
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("where")]),
    tools: [clientTool("where")],
  });
  const waiting = deferred();
  hooks.on("tools/post-execute", () => (waiting.resolve(), new Promise<never>(() => {})));
  agent.send("go");
  await eventOf(session, "interaction/requested");
  await agent.respond(ID, { value: "here" });
  await waiting.promise;
  agent.cancel();
  await agent.whenIdle();
  expect(resultsOf(session)).toEqual([{ tool: "where", says: "here" }]);
});
