/** D23, D29: `clientTools` runs at a handle what the host has declared: claims first, then runs and responds. */
import { clientTools, type Agent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, clientTool, resultsOf, tool } from "../support/calls.ts";
import { failingStorage, holds } from "../support/failing-storage.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { storedUpTo } from "../support/held.ts";
import { calm } from "../support/lifecycle.ts";
import { dataOf } from "../support/scene.ts";
import { deferred, endOf, eventOf, typesOf } from "../support/wait.ts";

const paint = { name: "paint", args: { colour: "red" } };

anywhere("D29 a client's body gets the arguments, and what it answers is the result", async (open) => {
  const agent = await open({ model: scriptedModel([calls(paint), "done"]), tools: [clientTool("paint")] });
  const got: unknown[] = [];
  clientTools(agent, {
    paint(args, { callId, signal }) {
      got.push(args, callId, signal.aborted);
      return { painted: true, at: new Date(0) };
    },
  });
  agent.send("go");
  await agent.whenIdle();
  const { callId } = dataOf(agent.session, "tool/call")[0]!;
  expect(got).toEqual([{ colour: "red" }, callId, false]);
  expect(resultsOf(agent.session)).toEqual([
    { tool: "paint", says: '{"painted":true,"at":"1970-01-01T00:00:00.000Z"}' },
  ]);
  const types = typesOf(agent.session);
  expect(types.slice(types.indexOf("tool/call"), types.indexOf("step/end"))).toEqual([
    "tool/call",
    "tool/start",
    "interaction/requested",
    "interaction/claimed",
    "interaction/resolved",
    "tool/result",
  ]);
  expect(dataOf(agent.session, "interaction/requested")).toEqual([
    {
      id: `${callId}/client`,
      kind: "client-tool",
      payload: { tool: "paint", arguments: { colour: "red" } },
      callId,
    },
  ]);
});

for (const [what, body, answer] of [
  [
    "throws",
    () => {
      throw new Error("no paint left");
    },
    { fails: "Error: no paint left" },
  ],
  ["rejects with no error at all", () => Promise.reject("no"), { fails: "Error: no" }],
  ["answers nothing", () => undefined, { says: "null" }],
  ["answers what JSON cannot say", () => ({ n: 1n }), { fails: expect.stringMatching(/^Error: .*BigInt/) }],
] as const) {
  anywhere(`D29 a client's body that ${what} is told to the model, and the turn goes on`, async (open) => {
    const agent = await open({ model: scriptedModel([calls("paint"), "done"]), tools: [clientTool("paint")] });
    clientTools(agent, { paint: body });
    agent.send("go");
    await agent.whenIdle();
    expect(resultsOf(agent.session)).toMatchObject([{ tool: "paint", ...answer }]);
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
  });
}

anywhere("D23 of several clients that have the body only the one that claimed first runs it", async (open) => {
  const agent = await open({ model: scriptedModel([calls("paint"), "done"]), tools: [clientTool("paint")] });
  const ran: string[] = [];
  clientTools(agent, { paint: () => void ran.push("first") });
  clientTools(agent, { paint: () => void ran.push("second") });
  agent.send("go");
  await agent.whenIdle();
  expect(ran).toHaveLength(1);
  expect(dataOf(agent.session, "interaction/claimed")).toHaveLength(1);
  expect(dataOf(agent.session, "interaction/resolved")).toHaveLength(1);
});

anywhere("D23 a call that somebody has claimed already is not tried for", async (open) => {
  const agent = await open({ model: scriptedModel([calls("paint"), "done"]), tools: [clientTool("paint")] });
  agent.send("go");
  await eventOf(agent.session, "interaction/requested");
  const { id } = agent.interactions[0]!;
  await agent.claim(id);
  let claims = 0;
  const late = Object.create(agent, { claim: { value: async () => void (claims += 1) } }) as Agent;
  clientTools(late, { paint: () => "late" });
  await agent.respond(id, { value: "red" });
  await agent.whenIdle();
  expect(claims).toBe(0);
  expect(resultsOf(agent.session)).toEqual([{ tool: "paint", says: "red" }]);
});

anywhere("D29 a client without the body leaves the call to one that has it, whenever that comes", async (open) => {
  const agent = await open({ model: scriptedModel([calls("paint"), "done"]), tools: [clientTool("paint")] });
  clientTools(agent, { draw: () => "not me" });
  agent.send("go");
  await eventOf(agent.session, "interaction/requested");
  await calm();
  expect(dataOf(agent.session, "interaction/claimed")).toEqual([]);
  clientTools(agent, { paint: () => "red" });
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toEqual([{ tool: "paint", says: "red" }]);
});

anywhere("D29 a tool that is named like a member of every object runs only where its body was given", async (open) => {
  const agent = await open({
    model: scriptedModel([calls("constructor"), "done"]),
    tools: [clientTool("constructor")],
  });
  clientTools(agent, {});
  agent.send("go");
  await eventOf(agent.session, "interaction/requested");
  await calm();
  expect(dataOf(agent.session, "interaction/claimed")).toEqual([]);
  clientTools(agent, { constructor: () => "built" });
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toEqual([{ tool: "constructor", says: "built" }]);
});

local("D23 the body runs only once its claim is stored", async () => {
  const storage = failingStorage();
  const harness = harnessWith({
    model: scriptedModel([calls("paint"), "done"]),
    tools: [clientTool("paint")],
    storage,
  });
  const { agent } = await harness.agents.open({ id: "s" });
  let ran = 0;
  agent.on("interaction/claimed", () => storage.always(holds));
  clientTools(agent, { paint: () => void (ran += 1) });
  agent.send("go");
  await eventOf(agent.session, "interaction/claimed");
  await calm();
  expect(ran).toBe(0);
  storage.heal();
  await agent.whenIdle();
  expect(ran).toBe(1);
});

anywhere("D29 a cancel aborts the signal of the body, and what it answers then is ignored", async (open) => {
  const agent = await open({ model: scriptedModel([calls("paint")]), tools: [clientTool("paint")] });
  const running = deferred<AbortSignal>();
  const gate = deferred<string>();
  clientTools(agent, {
    paint(_args, { signal }) {
      running.resolve(signal);
      return gate.promise;
    },
  });
  agent.send("go");
  const signal = await running.promise;
  agent.cancel("enough");
  await agent.whenIdle();
  expect(signal.aborted).toBe(true);
  expect(signal.reason).toMatchObject({ code: "INTERACTION_RESOLVED" });
  const { seq } = agent.session;
  gate.resolve("too late");
  await calm();
  expect(agent.session.seq).toBe(seq);
  expect(dataOf(agent.session, "interaction/resolved").map(({ outcome }) => outcome)).toEqual(["cancelled"]);
});

anywhere("D29 an answer from elsewhere aborts the signal of the body, and is the one that counts", async (open) => {
  const agent = await open({ model: scriptedModel([calls("paint"), "done"]), tools: [clientTool("paint")] });
  const running = deferred<AbortSignal>();
  clientTools(agent, {
    paint(_args, { signal }) {
      running.resolve(signal);
      return new Promise(() => {});
    },
  });
  agent.send("go");
  const signal = await running.promise;
  await agent.respond(agent.interactions[0]!.id, { value: "blue" });
  expect(signal.aborted).toBe(true);
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toEqual([{ tool: "paint", says: "blue" }]);
});

anywhere("D29 the undo aborts what runs and takes no more", async (open) => {
  const agent = await open({ model: scriptedModel([calls("paint"), "done"]), tools: [clientTool("paint")] });
  const running = deferred<AbortSignal>();
  const off = clientTools(agent, {
    paint(_args, { signal }) {
      running.resolve(signal);
      return new Promise(() => {});
    },
  });
  agent.send("go");
  const signal = await running.promise;
  off();
  off();
  expect(signal.aborted).toBe(true);
  expect(signal.reason).toMatchObject({ code: "ABORTED" });
  agent.cancel();
  await agent.whenIdle();
});

anywhere("D29 a body that stops because its client is taken away still gives the call its result", async (open) => {
  const agent = await open({ model: scriptedModel([calls("paint"), "done"]), tools: [clientTool("paint")] });
  const running = deferred();
  const off = clientTools(agent, {
    paint: (_args, { signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as Error));
        running.resolve();
      }),
  });
  agent.send("go");
  await running.promise;
  off();
  await calm();
  // Nobody else may run it, as it is claimed: without this the turn would wait for ever.
  expect(agent.status).toBe("idle");
  expect(resultsOf(agent.session)).toMatchObject([{ tool: "paint", fails: expect.stringContaining("taken away") }]);
});

local(
  "D29 a body whose client is taken away while its claim is stored never begins, and the call is told so",
  async () => {
    const storage = failingStorage();
    const model = scriptedModel([calls("paint"), "done"]);
    const { agents } = harnessWith({ model, tools: [clientTool("paint")], storage });
    const { agent } = await agents.open({ id: "s" });
    let ran = 0;
    agent.on("interaction/claimed", () => storage.always(holds));
    const off = clientTools(agent, { paint: () => void (ran += 1) });
    agent.send("go");
    await eventOf(agent.session, "interaction/claimed");
    off();
    storage.heal();
    await agent.whenIdle();
    expect(ran).toBe(0);
    expect(resultsOf(agent.session)).toMatchObject([{ tool: "paint", fails: expect.stringContaining("taken away") }]);
  },
);

anywhere("D29 a client's tool is run behind an approval, like any other", async (open) => {
  const tools = [clientTool("paint", { needsApproval: true }), tool("look")];
  const agent = await open({ model: scriptedModel([calls("look", "paint"), "done"]), tools });
  let ran = 0;
  clientTools(agent, { paint: () => void (ran += 1) });
  agent.send("go");
  const { data } = await eventOf(agent.session, "interaction/requested");
  await calm();
  expect([data.kind, ran]).toEqual(["approval", 0]);
  await agent.respond(data.id, { decision: "allow" });
  await agent.whenIdle();
  expect(ran).toBe(1);
});

local("D23 a client's call that nobody claimed is still there after the session is opened again", async () => {
  const tools = [clientTool("paint")];
  const { agent } = await harnessWith({ model: scriptedModel([calls("paint")]), tools }).agents.open({ id: "s" });
  agent.send("go");
  await eventOf(agent.session, "interaction/requested");
  const storage = await storedUpTo(agent.session, agent.session.seq);
  const again = await harnessWith({ model: scriptedModel(["done"]), tools, storage }).agents.open({ id: "s" });
  clientTools(again.agent, { paint: () => "red" });
  await again.agent.whenIdle();
  expect(resultsOf(again.agent.session)).toEqual([{ tool: "paint", says: "red" }]);
  expect(endOf(again.agent.session)).toEqual({ kind: "completed" });
});
