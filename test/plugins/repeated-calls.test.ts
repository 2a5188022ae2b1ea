/** `repeatedCalls`: a model that runs in a circle is told so, then stopped. */
import { repeatedCalls } from "turnloop";
import type { ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, resultsOf, tool } from "../support/calls.ts";
import { dataOf, leftBehind, linesOf, scene } from "../support/scene.ts";
import { snapshotWhere } from "../support/wait.ts";

const poll = (args: unknown): ScriptedAnswer => calls({ name: "poll", args });
const times = (n: number, answer: ScriptedAnswer = poll({ a: 1 })): ScriptedAnswer[] =>
  Array.from({ length: n }, () => answer);
let now = 0;
const tools = [tool("poll", () => `now ${(now += 1)}`), tool("other")];
const stage = (answers: readonly ScriptedAnswer[], ...options: Parameters<typeof repeatedCalls>) =>
  scene(answers, { tools, plugins: [repeatedCalls(...options)] });

test("B137 the same call is told of at the third, and ends the turn at the fifth, whatever key order and answer", async () => {
  const orders = ['{"a":1,"b":{"c":2,"d":3}}', '{"b":{"d":3,"c":2},"a":1}', '{ "a": 1, "b": { "c": 2, "d": 3 } }'];
  const one = await stage([...orders, ...orders].map(poll));
  expect(await one.say("go")).toEqual({
    kind: "stopped",
    by: "repeated-calls",
    reason: "poll was called 5 times in a row with the same arguments",
  });
  expect(one.model.requests).toHaveLength(5);
  const told = one.model.requests.map(
    ({ messages }) => linesOf(messages).filter((line) => line.includes("in a row")).length,
  );
  expect(told).toEqual([0, 0, 0, 1, 2]);
  expect(dataOf(one.session, "steering/message")[0]).toMatchObject({ source: { kind: "repeated-calls" } });
  expect(resultsOf(one.session)).toHaveLength(5);
});

test.each<[string, ScriptedAnswer]>([
  ["other arguments", poll({ a: 2 })],
  ["another tool", calls("other")],
  ["a list in another order", poll([1, 2])],
  ["two calls", calls("other", { name: "poll", args: { a: 1 } })],
])("B137 %s begin a new count", async (_, change) => {
  const one = await stage([...times(4), change, ...times(4), "fine"], { warnAt: 100 });
  expect(await one.say("go")).toEqual({ kind: "completed" });
});

test("B137 the next turn begins a new count", async () => {
  const one = await stage([...times(4), "fine", ...times(4), "fine"]);
  expect([await one.say("go"), await one.say("go")]).toEqual([{ kind: "completed" }, { kind: "completed" }]);
});

test("B137 a turn that was stopped for it leaves the next one alone", async () => {
  const one = await stage([...times(5), "fine"]);
  expect(await one.say("go")).toMatchObject({ kind: "stopped" });
  expect(await one.say("go")).toEqual({ kind: "completed" });
});

test("B137 five of the same in one answer end the turn, each with its result", async () => {
  const one = await stage([calls(...Array.from({ length: 5 }, () => ({ name: "poll", args: {} })))]);
  expect(await one.say("go")).toMatchObject({ kind: "stopped", by: "repeated-calls" });
  expect(resultsOf(one.session)).toHaveLength(5);
});

test("B137 the same two calls, step after step, are a circle too", async () => {
  const both = calls("other", { name: "poll", args: {} });
  const swapped = calls({ name: "poll", args: {} }, "other");
  const one = await stage([both, swapped, both, swapped, both]);
  expect(await one.say("go")).toMatchObject({ kind: "stopped", reason: expect.stringContaining("other and poll") });
});

test("arguments that are no JSON, and keys such as __proto__, are told apart", async () => {
  const one = await stage(
    [poll('{"__proto__":1}'), poll('{"__proto__":2}'), poll("{"), poll("{}"), poll("{"), "fine"],
    { stopAt: 2 },
  );
  expect(await one.say("go")).toEqual({ kind: "completed" });
});

test("B134 calls that fail, whatever they are, end the turn when there are too many in a row", async () => {
  const wrong = (n: number): ScriptedAnswer => calls(`nope_${n}`);
  const few = await stage([wrong(1), wrong(2), calls("other"), wrong(3), wrong(4), "fine"], { maxFailures: 3 });
  expect(await few.say("go")).toEqual({ kind: "completed" });
  const turns = await stage([wrong(1), wrong(2), "fine", wrong(3), wrong(4), "fine"], { maxFailures: 3 });
  expect([await turns.say("go"), await turns.say("go")]).toEqual([{ kind: "completed" }, { kind: "completed" }]);
  const many = await stage([wrong(1), wrong(2), wrong(3), "never"], { maxFailures: 3 });
  expect(await many.say("go")).toEqual({
    kind: "stopped",
    by: "repeated-calls",
    reason: "3 calls in a row have failed",
  });
  expect(resultsOf(many.session).every((told) => "code" in told && told.code === "UNKNOWN_TOOL")).toBe(true);
});

test("the reason of another policy to go on is kept", async () => {
  const one = await scene([...times(4), "fine"], { tools, plugins: [repeatedCalls()] });
  one.hooks.on("agent/turn-continuation", async (_, next) => {
    const decision = await next();
    const reason = { content: "mine", source: { kind: "mine" } };
    return decision.action === "continue" ? { ...decision, reason } : decision;
  });
  await one.say("go");
  expect(dataOf(one.session, "steering/message").map(({ source }) => source.kind)).toEqual([
    "mine",
    "mine",
    "mine",
    "mine",
  ]);
});

test("the count survives a reload", async () => {
  const guarded = [tool("poll", () => "x", { needsApproval: true })];
  const before = await scene(times(4), { tools: guarded, plugins: [repeatedCalls()] });
  before.agent.on("interaction/requested", ({ data }) => {
    if (!data.id.startsWith("call_1_4")) void before.agent.respond(data.id, { decision: "allow" });
  });
  before.agent.send("go");
  await snapshotWhere(before.agent, ({ interactions }) => interactions.some(({ id }) => id.startsWith("call_1_4")));
  const storage = await leftBehind(before.session);
  await before.dispose();
  const after = await scene(times(2), { storage, tools: guarded, plugins: [repeatedCalls({ stopAt: 4 })] });
  await after.agent.respond("call_1_4_1_0/approval", { decision: "allow" });
  await after.agent.whenIdle();
  expect(after.model.requests).toHaveLength(0);
  expect(dataOf(after.session, "turn/end")).toMatchObject([{ reason: { kind: "stopped", by: "repeated-calls" } }]);
});

test("taken out, it leaves the loop as it was", async () => {
  const one = await scene([...times(6), "fine"], { tools });
  one.harness.use(repeatedCalls())();
  expect(await one.say("go")).toEqual({ kind: "completed" });
});

test.each([{ warnAt: 0 }, { stopAt: 1.5 }, { maxFailures: Number.NaN }])("%o is refused", (options) => {
  expect(() => repeatedCalls(options)).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
});
