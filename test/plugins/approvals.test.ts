/** The policy `approvals`: which calls a person is asked about, and what one answer is good for. */
import { approvals, type ApprovalsOptions, type HarnessOptions, type JsonValue } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, resultsOf, staged, talk, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { dataOf } from "../support/scene.ts";
import { firstLife, liveOn, endings } from "../support/lives.ts";
import { snapshotWhere, typesOf } from "../support/wait.ts";

const pay = (amount: number) => ({ name: "pay", args: { amount } });

/** An agent that pays and looks, and what it has paid. */
async function paying(
  answers: readonly ScriptedAnswer[],
  options: ApprovalsOptions,
  more: Omit<HarnessOptions, "model"> = {},
) {
  const paid: JsonValue[] = [];
  const stage = await staged({
    model: scriptedModel(answers),
    tools: [tool("pay", ({ amount }) => (paid.push(amount!), "paid")), tool("look")],
    plugins: [approvals(options)],
    ...more,
  });
  return { ...stage, paid };
}

type Stage = Awaited<ReturnType<typeof paying>>;
const asked = ({ session }: Pick<Stage, "session">): string[] =>
  dataOf(session, "interaction/requested").map(({ id }) => id);
const isAsked = ({ agent }: Pick<Stage, "agent">, id: string): Promise<void> =>
  snapshotWhere(agent, ({ interactions }) => interactions.some((one) => one.id === id));

const ID = "call_1_1_1_0/approval";

test("a rule sees the tool and its arguments, and its text is the reason that the person reads", async () => {
  const when: ApprovalsOptions["when"] = ({ name, arguments: args }) =>
    name === "pay" && (args as { amount: number }).amount > 100 && "more than 100";
  const stage = await paying([calls("look", pay(5), pay(500)), "fine"], { when });
  stage.agent.send("go");
  await isAsked(stage, "call_1_1_1_2/approval");
  expect(stage.paid).toEqual([5]);
  expect(stage.agent.interactions[0]!.payload).toMatchObject({ tool: "pay", reason: "more than 100" });
  await stage.agent.respond("call_1_1_1_2/approval", { decision: "allow" });
  await stage.agent.whenIdle();
  expect(stage.paid).toEqual([5, 500]);
  expect(asked(stage)).toHaveLength(1);
});

test.each<[string, ApprovalsOptions["when"], boolean]>([
  ["true", { pay: true }, true],
  ["a text", { pay: "money" }, true],
  ["false", { pay: false, "*": true }, false],
  ["a function that says no", { pay: () => false, "*": true }, false],
  ["a function that says yes later", { pay: async () => true }, true],
  ["no rule of its own, and one for the rest", { "*": true }, true],
  ["no rule at all", { look: true }, false],
  ["the name of what every object has", Object.create({ pay: true }) as Record<string, boolean>, false],
])("rules by name: %s", async (_, when, asks) => {
  const stage = await paying([calls(pay(1)), "fine"], { when });
  stage.agent.send("go");
  if (asks) {
    await isAsked(stage, ID);
    await stage.agent.respond(ID, { decision: "deny", reason: "no" });
  }
  await stage.agent.whenIdle();
  expect(asked(stage)).toEqual(asks ? [ID] : []);
  expect(stage.paid).toEqual(asks ? [] : [1]);
});

test("a rule that throws fails its call, which does not run", async () => {
  const when = (): never => {
    throw new Error("no idea");
  };
  const stage = await paying([calls(pay(1)), "fine"], { when });
  await talk(stage.agent);
  expect(stage.paid).toEqual([]);
  expect(resultsOf(stage.session)).toEqual([{ tool: "pay", fails: "Error: no idea" }]);
});

test("allow for this session is in the log, and asks no more for that tool", async () => {
  const stage = await paying([calls(pay(1)), calls(pay(2)), calls("look"), "fine"], { when: { "*": true } });
  stage.agent.send("go");
  await isAsked(stage, ID);
  await stage.agent.respond(ID, { decision: "allow", remember: "session" });
  await isAsked(stage, "call_1_3_1_0/approval");
  await stage.agent.respond("call_1_3_1_0/approval", { decision: "allow" });
  await stage.agent.whenIdle();
  expect(stage.paid).toEqual([1, 2]);
  expect(dataOf(stage.session, "interaction/resolved")[0]!.value).toEqual({ decision: "allow", remember: "session" });
});

test("a denial is remembered with its reason", async () => {
  const stage = await paying([calls(pay(1)), calls(pay(2)), "fine"], { when: { pay: true } });
  stage.agent.send("go");
  await isAsked(stage, ID);
  await stage.agent.respond(ID, { decision: "deny", reason: "we are broke", remember: "session" });
  await stage.agent.whenIdle();
  expect(stage.paid).toEqual([]);
  expect(resultsOf(stage.session)).toEqual(
    Array.from({ length: 2 }, () => ({ tool: "pay", fails: "Error: we are broke" })),
  );
  expect(asked(stage)).toEqual([ID]);
});

test("`remembers` says which calls an answer is about", async () => {
  const remembers: ApprovalsOptions["remembers"] = (call) => JSON.stringify([call.name, call.arguments]);
  const stage = await paying([calls(pay(1)), calls(pay(1)), calls(pay(2)), "fine"], { when: { pay: true }, remembers });
  stage.agent.send("go");
  await isAsked(stage, ID);
  await stage.agent.respond(ID, { decision: "allow", remember: "session" });
  await isAsked(stage, "call_1_3_1_0/approval");
  await stage.agent.respond("call_1_3_1_0/approval", { decision: "deny" });
  await stage.agent.whenIdle();
  expect(stage.paid).toEqual([1, 1]);
  expect(asked(stage)).toHaveLength(2);
});

test("an answer that is remembered is given to the calls that wait beside it", async () => {
  const paid: JsonValue[] = [];
  const body = ({ amount }: Record<string, JsonValue>): string => (paid.push(amount!), "paid");
  const stage = await paying(
    [calls(pay(1), pay(2), "look"), "fine"],
    { when: { "*": true } },
    { tools: [tool("pay", body, { parallel: true }), tool("look", () => "seen", { parallel: true })] },
  );
  stage.agent.send("go");
  await snapshotWhere(stage.agent, ({ interactions }) => interactions.length === 3);
  await stage.agent.respond("call_1_1_1_1/approval", { decision: "allow", remember: "session" });
  expect(stage.agent.interactions.map(({ id }) => id)).toEqual(["call_1_1_1_2/approval"]);
  await stage.agent.respond("call_1_1_1_2/approval", { decision: "deny" });
  await stage.agent.whenIdle();
  expect(new Set(paid)).toEqual(new Set([1, 2]));
});

test("a tool with `needsApproval` is asked for as before, and remembered as well", async () => {
  const stage = await paying(
    [calls("rm"), calls("rm"), "fine"],
    { when: () => false },
    { tools: [tool("rm", () => "gone", { needsApproval: true })] },
  );
  stage.agent.send("go");
  await isAsked(stage, ID);
  await stage.agent.respond(ID, { decision: "allow", remember: "session" });
  await stage.agent.whenIdle();
  expect(resultsOf(stage.session)).toEqual(Array.from({ length: 2 }, () => ({ tool: "rm", says: "gone" })));
  expect(asked(stage)).toEqual([ID]);
});

test("what another policy denies stays denied, whatever was allowed for the session", async () => {
  const stage = await paying([calls(pay(1)), calls(pay(2)), "fine"], { when: { pay: true } });
  stage.hooks.on("tools/pre-execute", ({ execution }, next) =>
    (execution.arguments as { amount: number }).amount === 2 ? { kind: "deny", reason: "not two" } : next(),
  );
  stage.agent.send("go");
  await isAsked(stage, ID);
  await stage.agent.respond(ID, { decision: "allow", remember: "session" });
  await stage.agent.whenIdle();
  expect(stage.paid).toEqual([1]);
});

test("a fork asks again", async () => {
  const stage = await paying([calls(pay(1)), "fine", calls(pay(2)), "fine"], { when: { pay: true } });
  stage.agent.send("go");
  await isAsked(stage, ID);
  await stage.agent.respond(ID, { decision: "allow", remember: "session" });
  await stage.agent.whenIdle();
  const { agent } = await stage.harness.agents.fork({ from: "session", id: "fork" });
  agent.send("again");
  await isAsked({ agent }, "call_2_1_1_0/approval");
  agent.cancel();
  await agent.whenIdle();
  expect(stage.paid).toEqual([1]);
});

test("after its deadline the call is denied, and a late answer is told why", async () => {
  const clock = testClock();
  const stage = await paying([calls(pay(1)), "fine"], { when: { pay: true }, expiresInMs: 60_000 }, { clock });
  stage.agent.send("go");
  await isAsked(stage, ID);
  expect(stage.agent.interactions[0]!.expiresAt).toBe(clock.now() + 60_000);
  await clock.advance(60_000);
  await expect(stage.agent.respond(ID, { decision: "allow" })).rejects.toMatchObject({ code: "INTERACTION_RESOLVED" });
  await stage.agent.whenIdle();
  expect(stage.paid).toEqual([]);
});

test("after a cancel an answer is told why, and nothing runs", async () => {
  const stage = await paying([calls(pay(1)), "fine"], { when: { pay: true } });
  stage.agent.send("go");
  await isAsked(stage, ID);
  stage.agent.cancel("enough");
  await expect(stage.agent.respond(ID, { decision: "allow" })).rejects.toMatchObject({ code: "INTERACTION_RESOLVED" });
  await stage.agent.whenIdle();
  expect(stage.paid).toEqual([]);
});

test("of two who answer at once one counts, the other is told, and the call runs once", async () => {
  const stage = await paying([calls(pay(1)), "fine"], { when: { pay: true } });
  stage.agent.send("go");
  await isAsked(stage, ID);
  const answers = await Promise.allSettled([
    stage.agent.respond(ID, { decision: "allow" }),
    stage.agent.respond(ID, { decision: "deny" }),
  ]);
  expect(answers).toMatchObject([
    { status: "fulfilled" },
    { status: "rejected", reason: { code: "INTERACTION_RESOLVED" } },
  ]);
  await stage.agent.whenIdle();
  expect(stage.paid).toEqual([1]);
});

test.each(endings)("a question outlives its host, and so does what was allowed for the session (%s)", async (how) => {
  const paid: JsonValue[] = [];
  const options = (answers: readonly ScriptedAnswer[]): HarnessOptions => ({
    model: scriptedModel(answers),
    tools: [tool("pay", ({ amount }) => (paid.push(amount!), "paid"))],
    plugins: [approvals({ when: { pay: true } })],
  });
  const first = await firstLife(options([calls(pay(1))]));
  first.agent.send("go");
  await isAsked(first, ID);
  await first.end(how);

  const second = await liveOn(first.disk, options([calls(pay(2)), "fine"]));
  expect(second.requested).toEqual([ID]);
  await second.agent.respond(ID, { decision: "allow", remember: "session" });
  await second.agent.whenIdle();
  expect(paid).toEqual([1, 2]);
  await second.handle.dispose();

  const third = await liveOn(first.disk, options([calls(pay(3)), "fine"]));
  await talk(third.agent);
  expect(paid).toEqual([1, 2, 3]);
  expect(asked(third.agent)).toEqual([ID]);
});

test("taken away, it asks about nothing", async () => {
  const stage = await paying([calls(pay(1)), "fine"], { when: { pay: true } }, { plugins: [] });
  const off = stage.harness.use(approvals({ when: { pay: true } }));
  off();
  await talk(stage.agent);
  expect(stage.paid).toEqual([1]);
  expect(typesOf(stage.session)).not.toContain("interaction/requested");
});

test.each([[{ when: "pay" }], [{}], [{ when: {}, expiresInMs: -1 }]])("%j is refused", (options) => {
  expect(() => approvals(options as unknown as ApprovalsOptions)).toThrow(
    expect.objectContaining({ code: "INVALID_OPTIONS" }),
  );
});
