/** `subagents`: a tool whose body is an agent, with a session of its own. */
import {
  budget,
  createHarness,
  memoryStorage,
  subagents,
  usageOf,
  type Agent,
  type Harness,
  type ModelRequest,
  type SessionStorage,
  type SubagentOptions,
} from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, resultsOf, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { failingStorage } from "../support/failing-storage.ts";
import { mortal } from "../support/mortal.ts";
import { dataOf, linesOf, scene, type Scene } from "../support/scene.ts";
import { deferred, endOf, eventOf, snapshotWhere } from "../support/wait.ts";

const task = (text: string): { name: string; args: object } => ({ name: "delegate", args: { task: text } });

interface Stage extends Scene {
  /** What the helpers' model was asked. */
  readonly asked: readonly ModelRequest[];
}

/** The parent has a model, its helpers another. */
async function stage(
  answers: readonly ScriptedAnswer[],
  helpers: readonly ScriptedAnswer[],
  { options = {}, ...more }: Parameters<typeof scene>[1] & { options?: SubagentOptions } = {},
): Promise<Stage> {
  const helper = scriptedModel(helpers);
  const one = await scene([], {
    model: "parent",
    models: { parent: scriptedModel(answers), helper },
    plugins: [subagents({ model: "helper", ...options })],
    ...more,
  });
  return { ...one, asked: helper.requests };
}

/** The session of a helper, which rests. */
async function stored({ sessions }: Harness, id: string) {
  const session = await sessions.load(id);
  if (!session) throw new Error(`there is no session ${id}`);
  return session;
}

const ID = "session.call_1_1_1_0";
/** Of the second turn. */
const ID2 = "session.call_2_1_1_0";

test("a task is worked on in a session of its own, and its result is the result of the call", async () => {
  const one = await stage([calls(task("count the words")), "Three."], ["3 words"]);
  const live: string[] = [];
  one.hooks.on("agent/created", ({ agent }) => {
    live.push(`${agent.id} ${one.harness.agents.isOwnedBy(agent.id, one.agent)}`);
  });
  expect(await one.say("how many?")).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toEqual([{ tool: "delegate", says: "3 words" }]);
  expect(live).toEqual([`${ID} true`]);
  expect(one.harness.agents.list()).toEqual([one.agent]);
  const session = await stored(one.harness, ID);
  expect(session.header).toMatchObject({ parent: { id: "session" }, meta: { depth: 1 } });
  expect(dataOf(session, "user/message")).toMatchObject([
    { content: [{ text: "count the words" }], source: { kind: "agent", agent: "session" } },
  ]);
});

test("what a helper used is in the usage of its parent", async () => {
  const one = await stage([calls(task("x")), "fine"], [{ text: "half", usage: { input: 7, output: 2 } }]);
  await one.say("go");
  expect(usageOf(one.session).byModel).toMatchObject({ "scripted/model": { input: 7, output: 2 } });
  expect(dataOf(one.session, "model/aux")).toMatchObject([{ purpose: `helper ${ID}` }]);
});

test.for([
  [1, [false]],
  [2, [true, false]],
] as const)("with maxDepth %i helpers of each depth have the tool, or not", async ([maxDepth, offered]) => {
  const helpers = offered.map((deeper): ScriptedAnswer => (deeper ? calls(task("deeper")) : "done"));
  const one = await stage([calls(task("go down")), "fine"], [...helpers, "done"], { options: { maxDepth } });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  const shown = one.asked.map(({ tools = [] }) => tools.some(({ name }) => name === "delegate"));
  expect(shown.slice(0, offered.length)).toEqual(offered);
});

test("helpers have the tools that are named, and no others", async () => {
  const tools = [tool("read"), tool("write")];
  const one = await stage([calls(task("look")), "fine"], ["done"], { tools, options: { tools: ["read"] } });
  await one.say("go");
  expect(one.asked[0]!.tools!.map(({ name }) => name)).toEqual(["read"]);
});

test("two helpers of one answer work at the same time", async () => {
  const both = deferred();
  let begun = 0;
  const meet = tool("meet", async () => {
    begun += 1;
    if (begun === 2) both.resolve();
    await both.promise;
  });
  const one = await stage([calls(task("a"), task("b")), "fine"], [calls("meet"), calls("meet"), "met", "met"], {
    tools: [meet],
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(resultsOf(one.session).map((told) => "says" in told && told.says)).toEqual(["met", "met"]);
});

test("a helper that fails is an error for the model, and says why", async () => {
  const one = await stage([calls(task("x")), "fine"], [{ error: { message: "no such model" } }]);
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toMatchObject([
    { code: "HELPER_FAILED", fails: expect.stringContaining("no such model") },
  ]);
});

test.for(["cancel", "dispose"] as const)("a %s of the parent ends the helper's turn with it", async (how) => {
  const one = await stage([calls(task("x")), "never"], [{ text: "Hm", hang: "deaf" }]);
  const chunk = deferred();
  one.hooks.on("session/event", ({ session, event }) => {
    if (session.id === ID && event.type === "assistant/chunk") chunk.resolve();
  });
  one.agent.send("go");
  await chunk.promise;
  const helper = one.harness.agents.get(ID)!;
  if (how === "cancel") one.agent.cancel("enough");
  else await one.dispose();
  await one.agent.whenIdle();
  await helper.whenIdle();
  expect(endOf(helper.session)).toMatchObject({ kind: how === "cancel" ? "aborted" : "disposed" });
  expect(endOf(one.session)).toMatchObject({ kind: how === "cancel" ? "aborted" : "disposed" });
});

test("what a helper asks is asked through the call, and the answer goes to the helper", async () => {
  let ran = 0;
  const tools = [tool("pay", () => void (ran += 1), { needsApproval: true })];
  const one = await stage([calls(task("pay it")), "fine"], [calls("pay"), "paid"], { tools });
  const said = one.say("go");
  const { data } = await eventOf(one.session, "interaction/requested");
  expect(data).toMatchObject({ kind: "question", payload: { helper: ID, kind: "approval", payload: { tool: "pay" } } });
  expect(one.agent.getSnapshot().waiting).toBe(true);
  await one.agent.respond(data.id, { decision: "allow" });
  expect(await said).toEqual({ kind: "completed" });
  expect(ran).toBe(1);
  expect(resultsOf(one.session)).toEqual([{ tool: "delegate", says: "paid" }]);
});

test("an answer in the wrong form is asked for again", async () => {
  const tools = [tool("pay", () => "paid", { needsApproval: true })];
  const one = await stage([calls(task("pay it")), "fine"], [calls("pay"), "paid"], { tools });
  const said = one.say("go");
  const first = await eventOf(one.session, "interaction/requested");
  await one.agent.respond(first.data.id, "sure");
  const second = await eventOf(one.session, "interaction/requested", ({ data }) => data.id !== first.data.id);
  await one.agent.respond(second.data.id, { decision: "deny" });
  expect(await said).toEqual({ kind: "completed" });
});

/** One that has the tool that asks. */
function host(
  storage: SessionStorage,
  answers: ScriptedAnswer[],
  helpers: ScriptedAnswer[],
  pay = (): void => {},
): Harness {
  return createHarness({
    storage,
    model: "parent",
    models: { parent: scriptedModel(answers), helper: scriptedModel(helpers) },
    tools: [tool("pay", pay, { needsApproval: true })],
    plugins: [subagents({ model: "helper" })],
    onDiagnostic() {},
  });
}

/** Hosts of one session, with a tool that asks before it runs. */
function hosts(disk: SessionStorage): {
  open(answers: ScriptedAnswer[], helpers: ScriptedAnswer[], storage?: SessionStorage): Promise<[Harness, Agent]>;
  readonly paid: () => number;
} {
  let paid = 0;
  return {
    paid: () => paid,
    async open(answers, helpers, storage = disk) {
      const harness = host(storage, answers, helpers, () => void (paid += 1));
      const { agent } = await harness.agents.open({ id: "session" });
      return [harness, agent];
    },
  };
}

test("a host that dies while a helper asks: the next one has the question still, and the tool runs once", async () => {
  const { storage, disk, kill } = mortal();
  const { open, paid } = hosts(disk);
  const [first, dying] = await open([calls(task("pay it"))], [calls("pay")], storage);
  dying.send("go");
  await eventOf(dying.session, "interaction/requested");
  await dying.flush();
  await first.sessions.flush(first.sessions.get(ID)!);
  kill();

  const [second, agent] = await open(["fine"], ["paid"]);
  await snapshotWhere(agent, ({ interactions }) => interactions.length > 0);
  expect(agent.interactions).toHaveLength(1);
  await agent.respond(agent.interactions[0]!.id, { decision: "allow" });
  await agent.whenIdle();
  expect(paid()).toBe(1);
  expect(resultsOf(agent.session)).toEqual([{ tool: "delegate", says: "paid" }]);
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  expect(dataOf(agent.session, "interaction/requested")).toHaveLength(1);
  await second.dispose();
  await first.dispose();
});

test("an answer that a helper had before its host died answers no other question of it", async () => {
  const { storage, disk, kill } = mortal();
  const { open, paid } = hosts(disk);
  const [first, dying] = await open([calls(task("pay twice"))], [calls("pay"), calls("pay")], storage);
  dying.send("go");
  const one = await eventOf(dying.session, "interaction/requested");
  await dying.respond(one.data.id, { decision: "allow" });
  await eventOf(dying.session, "interaction/requested", ({ data }) => data.id !== one.data.id);
  await dying.flush();
  await first.sessions.flush(first.sessions.get(ID)!);
  kill();

  const [second, agent] = await open(["fine"], ["paid once"]);
  await snapshotWhere(agent, ({ interactions }) => interactions.length > 0);
  expect(paid()).toBe(1);
  await agent.respond(agent.interactions[0]!.id, { decision: "deny" });
  await agent.whenIdle();
  expect(paid()).toBe(1);
  expect(resultsOf(agent.session)).toEqual([{ tool: "delegate", says: "paid once" }]);
  await second.dispose();
  await first.dispose();
});

/** What the helpers of the next host do, after one that died; the log of the parent then, and what helpers were asked. */
async function reopened(disk: SessionStorage, helpers: ScriptedAnswer[]) {
  const helper = scriptedModel(helpers);
  const harness = createHarness({
    storage: disk,
    model: "parent",
    models: { parent: scriptedModel(["fine"]), helper },
    plugins: [subagents({ model: "helper" })],
  });
  const { agent } = await harness.agents.open({ id: "session", interrupted: "continue" });
  await agent.whenIdle();
  return { harness, session: agent.session, asked: helper.requests };
}

test("a host that dies while a helper's model speaks: the next one goes on with the same task", async () => {
  const { storage, disk, kill } = mortal();
  const one = await stage([calls(task("x"))], [{ text: "Hm", hang: "deaf" }], { storage });
  const chunk = deferred();
  one.hooks.on("session/event", ({ session, event }) => {
    if (session.id === ID && event.type === "assistant/chunk") chunk.resolve();
  });
  one.agent.send("go");
  await chunk.promise;
  await one.agent.flush();
  await one.harness.sessions.flush(one.harness.sessions.get(ID)!);
  kill();

  const { harness, session, asked } = await reopened(disk, ["done"]);
  expect(resultsOf(session)).toEqual([{ tool: "delegate", says: "done" }]);
  expect(asked).toHaveLength(1);
  const helper = await stored(harness, ID);
  expect(dataOf(helper, "user/message")).toHaveLength(1);
  expect(dataOf(helper, "turn/start")).toHaveLength(1);
  await harness.dispose();
  await one.harness.dispose();
});

test("a host that dies before the result is stored: the helper is not asked again, nor counted twice", async () => {
  const { storage, disk, dead, killAfter } = mortal();
  killAfter("model/aux");
  const one = await stage([calls(task("x")), "unsaved"], [{ text: "done", usage: { input: 3, output: 1 } }], {
    storage,
  });
  one.agent.send("go");
  await dead;

  const { harness, session, asked } = await reopened(disk, []);
  expect(resultsOf(session)).toEqual([{ tool: "delegate", says: "done" }]);
  expect(asked).toEqual([]);
  expect(dataOf(session, "model/aux")).toHaveLength(1);
  await harness.dispose();
  await one.harness.dispose();
});

test("a helper that knows the conversation begins with the turns that its parent has completed", async () => {
  const one = await stage(
    [{ text: "hello", usage: { input: 100 } }, calls(task("x")), "fine"],
    [{ text: "done", usage: { input: 7 } }],
    { options: { knows: "conversation" } },
  );
  await one.say("hi");
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(linesOf(one.asked[0]!.messages)).toEqual(["user: hi", "assistant: hello", "user: x"]);
  const session = await stored(one.harness, ID2);
  const { seedLength } = session.header;
  expect(session.header.parent).toEqual({ id: "session", seq: seedLength });
  expect(session.at(seedLength! - 1)).toEqual(one.session.at(seedLength! - 1));
  expect(resultsOf(one.session)).toEqual([{ tool: "delegate", says: "done" }]);
  expect(dataOf(one.session, "model/aux")).toMatchObject([{ usage: { input: 7 } }]);
});

test("an answer that it has inherited is no result of a helper", async () => {
  const one = await stage(["hello", calls(task("x")), "fine"], [{ error: { message: "away" } }], {
    options: { knows: "conversation" },
  });
  await one.say("hi");
  await one.say("go");
  const [told] = resultsOf(one.session);
  expect(told).toMatchObject({ code: "HELPER_FAILED", fails: expect.stringContaining("away") });
  expect(told).not.toMatchObject({ fails: expect.stringContaining("hello") });
});

test.for(["task", "conversation"] as const)(
  "with knows: %s a helper has a persona and a model of its own",
  async (knows) => {
    const own = scriptedModel(["done"]);
    const one = await scene([], {
      system: "You are the boss.",
      model: "parent",
      models: { parent: scriptedModel([]), other: scriptedModel(["hello", calls(task("x")), "fine"]), own },
      plugins: [subagents({ knows, model: "own", system: "You are {{literal}}." })],
    });
    one.agent.configure({ model: "other" });
    await one.say("hi");
    expect(await one.say("go")).toEqual({ kind: "completed" });
    expect(own.requests.map(({ system }) => system)).toEqual(["You are {{literal}}."]);
  },
);

test("a helper asks the model of its parent, and its tools have the context of its parent", async () => {
  const other = scriptedModel([calls(task("x")), calls("whose"), "done", "fine"]);
  const seen: unknown[] = [];
  const one = await scene([], {
    models: { other },
    tools: [tool("whose", (_, call) => void seen.push(call.context))],
    plugins: [subagents()],
    open: { model: "other", context: "ann" },
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(seen).toEqual(["ann"]);
  expect(other.requests).toHaveLength(4);
});

test("each helper has limits of its own, and what it had said by then is told", async () => {
  const said = { ...calls("look"), text: "so far" };
  const one = await stage([calls(task("a"), task("b")), calls("look"), "fine"], [said, said], {
    tools: [tool("look")],
    options: { plugins: [budget({ steps: 1 })] },
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  const failed = expect.stringMatching(/stopped: the budget of 1 steps.*\n.*so far/);
  expect(resultsOf(one.session).slice(0, 2)).toMatchObject([{ fails: failed }, { fails: failed }]);
});

test("a person can watch a helper at work, and cancel it alone", async () => {
  const one = await stage([calls(task("x")), "fine"], [{ text: "Hm", hang: "deaf" }]);
  one.hooks.on("session/event", ({ session, event }) => {
    if (session.id !== ID || event.type !== "assistant/chunk" || event.data.chunk.type !== "delta") return;
    one.harness.agents.get(ID)!.cancel("never mind");
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toMatchObject([
    { code: "HELPER_FAILED", fails: expect.stringMatching(/aborted: never mind\n.*Hm/) },
  ]);
});

test("a helper that is opened to be looked at has no more than it had", async () => {
  const tools = [tool("read"), tool("write")];
  const one = await stage([calls(task("look")), "fine"], ["done", "again"], {
    tools,
    options: { tools: ["read"], system: "A reader." },
  });
  await one.say("go");
  const { agent, dispose } = await one.harness.agents.open({ id: ID, model: "helper" });
  agent.send("and now?");
  await agent.whenIdle();
  expect(one.asked.map(({ system, tools: shown = [] }) => [system, shown.map(({ name }) => name)])).toEqual([
    ["A reader.", ["read"]],
    ["A reader.", ["read"]],
  ]);
  await dispose();
});

test("a helper that cannot be made what it was may use no tool", async () => {
  let ran = 0;
  const write = tool("write", () => void (ran += 1));
  const disk = memoryStorage();
  const models = { parent: scriptedModel([calls(task("look")), "fine"]), helper: scriptedModel(["done"]) };
  const plugins = [subagents({ tools: ["read"], model: "helper" })];
  const first = createHarness({ storage: disk, model: "parent", models, tools: [tool("read"), write], plugins });
  const parent = await first.agents.open({ id: "session" });
  parent.agent.send("go");
  await parent.agent.whenIdle();
  await first.dispose();

  // The tool that it may use is not there any more.
  const one = await scene([calls("write"), "so"], { storage: disk, id: ID, tools: [write], plugins });
  await one.say("write it");
  expect([ran, one.diagnostics]).toEqual([0, ["LISTENER_FAILED"]]);
  await one.harness.dispose();
});

test("an answer that is given to the helper itself settles its parent's question", async () => {
  const tools = [tool("pay", () => "paid", { needsApproval: true })];
  const one = await stage([calls(task("pay it")), "fine"], [calls("pay"), "paid"], { tools });
  const said = one.say("go");
  await eventOf(one.session, "interaction/requested");
  const helper = one.harness.agents.get(ID)!;
  await helper.respond(helper.interactions[0]!.id, { decision: "allow" });
  expect(await said).toEqual({ kind: "completed" });
  expect(dataOf(one.session, "interaction/resolved")).toMatchObject([{ outcome: "answered" }]);
  expect(resultsOf(one.session)).toEqual([{ tool: "delegate", says: "paid" }]);
});

test("a question that runs out at the helper runs out at its parent", async () => {
  const clock = testClock();
  const one = await stage([calls(task("pay it")), "fine"], [calls("pay"), "not paid"], {
    clock,
    tools: [tool("pay")],
  });
  one.hooks.on("tools/pre-execute", ({ execution }, next) =>
    execution.name === "pay" ? { kind: "ask", expiresInMs: 5000 } : next(),
  );
  const said = one.say("go");
  const { data } = await eventOf(one.session, "interaction/requested");
  expect(data.expiresAt).toBe(clock.now() + 5000);
  await clock.advance(5000);
  expect(await said).toEqual({ kind: "completed" });
  expect(dataOf(one.session, "interaction/resolved")).toHaveLength(1);
  expect(resultsOf(one.session)).toEqual([{ tool: "delegate", says: "not paid" }]);
});

test("an answer that cannot be stored fails the call, and ends the helper", async () => {
  const clock = testClock();
  const storage = failingStorage();
  const one = await stage([calls(task("pay it")), "fine"], [calls("pay"), "never"], {
    clock,
    storage,
    tools: [tool("pay", () => "paid", { needsApproval: true })],
  });
  const said = one.say("go");
  const { data } = await eventOf(one.session, "interaction/requested");
  await one.agent.flush();
  storage.always(async (store, released) => {
    await released;
    await store();
  });
  void one.agent.respond(data.id, { decision: "allow" });
  // The answer is waited for, and then the end of the helper's turn.
  for (const _ of ["answer", "end"]) {
    await clock.sleeping(5000);
    await clock.advance(5000);
  }
  const result = await eventOf(one.session, "tool/result");
  storage.heal();
  expect(result.data).toMatchObject({ isError: true, error: { code: "SESSION_DEGRADED" } });
  await said;
});

test("after a death the answers of a helper's questions are those that they were given to", async () => {
  const { storage, disk, kill } = mortal();
  const { open, paid } = hosts(disk);
  const [first, dying] = await open([calls(task("pay"))], [calls("pay", "pay")], storage);
  dying.send("go");
  // The first is answered in the wrong form, and asked again; then comes the second.
  const one = await eventOf(dying.session, "interaction/requested");
  await dying.respond(one.data.id, "sure");
  const again = await eventOf(dying.session, "interaction/requested", ({ data }) => data.id !== one.data.id);
  await dying.respond(again.data.id, { decision: "deny" });
  const seen = new Set([one.data.id, again.data.id]);
  const second = await eventOf(dying.session, "interaction/requested", ({ data }) => !seen.has(data.id));
  await dying.flush();
  await first.sessions.flush(first.sessions.get(ID)!);
  kill();

  const [next, agent] = await open(["fine"], ["said"]);
  await snapshotWhere(agent, ({ interactions }) => interactions.length > 0);
  expect(agent.interactions.map(({ id }) => id)).toEqual([second.data.id]);
  await agent.respond(second.data.id, { decision: "allow" });
  await agent.whenIdle();
  expect(paid()).toBe(1);
  const helper = await stored(next, ID);
  expect(dataOf(helper, "interaction/resolved").map(({ value }) => value)).toEqual([
    { decision: "deny" },
    { decision: "allow" },
  ]);
  await next.dispose();
  await first.dispose();
});

test("a helper that somebody else has opened waits on when its parent is closed, and its call joins it again", async () => {
  const disk = memoryStorage();
  const { open, paid } = hosts(disk);
  const [first, agent] = await open([calls(task("pay twice"))], [calls("pay")]);
  agent.send("go");
  await eventOf(agent.session, "interaction/requested");
  await first.dispose();

  // It is looked at before its parent is there.
  const harness = host(disk, [], [calls("pay")]);
  await harness.agents.open({ id: ID, model: "helper" });
  const parent = await harness.agents.open({ id: "session" });
  const { session } = parent.agent;
  await parent.agent.respond(parent.agent.interactions[0]!.id, { decision: "allow" });
  const count = (): number => dataOf(session, "interaction/requested").length;
  await snapshotWhere(parent.agent, ({ interactions }) => interactions.length > 0 && count() === 2);
  await parent.dispose();
  expect(endOf(harness.agents.get(ID)!.session)).toBeUndefined();
  await harness.dispose();

  const [third, again] = await open(["fine"], ["paid twice"]);
  await again.respond(again.interactions[0]!.id, { decision: "deny" });
  await again.whenIdle();
  expect(resultsOf(again.session)).toEqual([{ tool: "delegate", says: "paid twice" }]);
  expect(paid()).toBe(0);
  await third.dispose();
});

test("what a helper uses is counted once, however often its host is closed and opened", async () => {
  const disk = memoryStorage();
  const { open } = hosts(disk);
  const asks: ScriptedAnswer = { ...calls("pay"), usage: { input: 5, output: 1 } };
  const [first, agent] = await open([calls(task("pay it"))], [asks]);
  agent.send("go");
  await eventOf(agent.session, "interaction/requested");
  await first.dispose();

  const [second, opened] = await open(["fine"], [{ text: "paid", usage: { input: 7 } }]);
  await opened.respond(opened.interactions[0]!.id, { decision: "allow" });
  await opened.whenIdle();
  expect(resultsOf(opened.session)).toEqual([{ tool: "delegate", says: "paid" }]);
  expect(usageOf(opened.session).byModel).toMatchObject({ "scripted/model": { input: 12, output: 1 } });
  await second.dispose();
});

test.each([0, -1, 1.5])("maxDepth %d is refused", (maxDepth) => {
  expect(() => subagents({ maxDepth })).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
});

test("what it may know is one of two things", () => {
  expect(() => subagents({ knows: "all" as never })).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
});
