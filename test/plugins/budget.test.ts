/** `budget`: what ends a turn that would go on, and how whole it is then. */
import { budget, run, type BudgetLimits } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, resultsOf, tool } from "../support/calls.ts";
import { dataOf, leftBehind, scene } from "../support/scene.ts";

const stopped = (what: string): object => ({
  kind: "stopped",
  by: "budget",
  reason: `the budget of ${what} is used up`,
});
const looping = (times = 10): ScriptedAnswer[] => Array.from({ length: times }, () => calls("work"));
const costing = (tokens: number, answer: ScriptedAnswer = calls("work")): ScriptedAnswer => ({
  ...(answer as object),
  usage: { input: tokens },
});

async function stage(limits: BudgetLimits, answers: readonly ScriptedAnswer[], more: object = {}) {
  return scene(answers, { tools: [tool("work")], plugins: [budget(limits)], ...more });
}

test("a turn ends after so many steps, each of them whole", async () => {
  const one = await stage({ steps: 3 }, looping());
  expect(await one.say("go")).toEqual(stopped("3 steps a turn"));
  expect([one.model.requests.length, resultsOf(one.session).length]).toEqual([3, 3]);
});

test("one that has come to its end by itself just then is completed", async () => {
  const one = await stage({ steps: 3 }, [...looping(2), "fine"]);
  expect(await one.say("go")).toEqual({ kind: "completed" });
});

test("each turn has its own, or all of a session have one", async () => {
  const turns = await stage({ steps: 2 }, [calls("work"), "one", calls("work"), "two"]);
  expect([await turns.say("go"), await turns.say("go")]).toEqual([{ kind: "completed" }, { kind: "completed" }]);
  const whole = await stage({ steps: 3, per: "session" }, [calls("work"), "one", ...looping()]);
  expect(await whole.say("go")).toEqual({ kind: "completed" });
  expect(await whole.say("go")).toEqual(stopped("3 steps a session"));
  expect(whole.model.requests).toHaveLength(3);
  // Nothing is sent any more.
  expect(await whole.say("go")).toEqual(stopped("3 steps a session"));
  expect(whole.model.requests).toHaveLength(3);
});

test("attempts of one step count once", async () => {
  const one = await stage({ steps: 2 }, [{ error: { message: "no" } }, { error: { message: "no" } }, "fine"]);
  one.hooks.on("agent/request-error", () => ({ kind: "retry" }));
  expect(await one.say("go")).toEqual({ kind: "completed" });
});

test("steering that comes with the last answer is not run beyond the limit", async () => {
  const one = await stage({ steps: 1 }, ["fine", "never"]);
  one.agent.on("step/end", ({ data }) => void (data.step === 1 && one.agent.steer("more")));
  expect(await one.say("go")).toEqual(stopped("1 steps a turn"));
  expect(one.model.requests).toHaveLength(1);
});

test("a call beyond the limit is refused, also within one answer, and the turn ends behind its step", async () => {
  const one = await stage({ toolCalls: 2 }, [calls("work"), calls("work", "work", "work"), "never"]);
  expect(await one.say("go")).toEqual(stopped("2 tool calls a turn"));
  const refused = { tool: "work", fails: "Error: the budget of 2 tool calls a turn is used up" };
  expect(resultsOf(one.session)).toEqual([
    { tool: "work", says: "done" },
    { tool: "work", says: "done" },
    refused,
    refused,
  ]);
});

test("calls that run beside each other do not slip through", async () => {
  let ran = 0;
  const one = await scene([calls("work", "work", "work", "work"), "never"], {
    tools: [tool("work", async () => ((ran += 1), "done"), { readOnly: true })],
    plugins: [budget({ toolCalls: 3 })],
  });
  await one.say("go");
  expect([ran, resultsOf(one.session).length]).toEqual([3, 4]);
});

test("calls up to the limit are answered by the model", async () => {
  const one = await stage({ toolCalls: 2 }, [calls("work", "work"), "fine"]);
  expect(await one.say("go")).toEqual({ kind: "completed" });
});

test("nobody is asked to allow a call that is refused", async () => {
  const one = await scene([calls("work", "work"), "never"], {
    tools: [tool("work", () => "done", { needsApproval: true })],
    plugins: [budget({ toolCalls: 1 })],
  });
  one.agent.on("interaction/requested", ({ data }) => void one.agent.respond(data.id, { decision: "allow" }));
  expect(await one.say("go")).toEqual(stopped("1 tool calls a turn"));
  expect(dataOf(one.session, "interaction/requested")).toHaveLength(1);
});

test("tokens are counted of every kind, of failed requests too", async () => {
  const usage = { input: 10, cacheRead: 20, cacheWrite: 5, output: 10, reasoning: 5 };
  const one = await stage({ tokens: 100 }, [
    { ...calls("work"), usage },
    {
      chunks: [
        { type: "usage", usage: { input: 49 } },
        { type: "finish", reason: { kind: "error", message: "no" } },
      ],
    },
    { ...calls("work"), usage: { input: 1 } },
    "never",
  ]);
  one.hooks.on("agent/request-error", () => ({ kind: "retry" }));
  expect(await one.say("go")).toEqual(stopped("100 tokens a turn"));
  expect(one.model.requests).toHaveLength(3);
});

test("what is used beside the steps counts too", async () => {
  const one = await stage({ tokens: 100, per: "session" }, [costing(1), costing(1), "fine"]);
  one.hooks.on("agent/pre-step", ({ step }) => {
    if (step !== 2) return;
    one.agent.scope!.session.append("model/aux", { purpose: "summary", model: "x", usage: { output: 98 } });
  });
  expect(await one.say("go")).toEqual(stopped("100 tokens a session"));
});

test("cost is counted by the prices of each model and kind", async () => {
  const usage = {
    input: 1_000_000,
    cacheRead: 1_000_000,
    cacheWrite: 1_000_000,
    output: 1_000_000,
    reasoning: 1_000_000,
  };
  const prices = { "scripted/model": { input: 1, cacheRead: 0.25, output: 4 } };
  // 1 + 0.25 + 1 (as input) + 4 + 4
  for (const [cost, end] of [
    [10.25, stopped("a cost of 10.25 a turn")],
    [10.26, { kind: "completed" }],
  ] as const) {
    const one = await stage({ cost, prices }, [{ ...calls("work"), usage }, "fine"]);
    expect(await one.say("go")).toEqual(end);
  }
});

test("a model without a price is not asked", async () => {
  for (const id of ["dear/model", "constructor", "__proto__"]) {
    const model = scriptedModel(["never"], { id });
    const one = await scene([], {
      model,
      plugins: [budget({ cost: 1, prices: { "cheap/model": { input: 1, output: 1 } } })],
    });
    expect(await one.say("go")).toMatchObject({ kind: "error", code: "NO_PRICE" });
    expect(model.requests).toHaveLength(0);
  }
});

test("a request beside the steps that has no price ends the turn before the next one", async () => {
  const one = await stage({ cost: 1, prices: { "scripted/model": { input: 1, output: 1 } } }, [calls("work"), "never"]);
  one.agent.on("tool/result", () => {
    one.agent.scope!.session.append("model/aux", { purpose: "x", model: "constructor", usage: { output: 1 } });
  });
  expect(await one.say("go")).toMatchObject({ kind: "error", code: "NO_PRICE" });
  expect(one.model.requests).toHaveLength(1);
});

test("no other policy can allow what it refuses", async () => {
  const one = await stage({ toolCalls: 1 }, [calls("work", "work"), "never"]);
  one.hooks.on("tools/pre-execute", () => ({ kind: "allow" }), { prepend: true });
  await one.say("go");
  expect(resultsOf(one.session)).toMatchObject([{ says: "done" }, { fails: expect.stringContaining("used up") }]);
});

test.each<[string, unknown]>([
  ["no limit", {}],
  ["prices alone", { prices: {} }],
  ["cost without prices", { cost: 1 }],
  ["half a step", { steps: 0.5 }],
  ["no time", { ms: 0 }],
  ["endless tokens", { tokens: Number.POSITIVE_INFINITY }],
  ["a price that is no number", { cost: 1, prices: { m: { input: "1", output: 1 } } }],
  ["a price below nothing", { cost: 1, prices: { m: { input: -1, output: 1 } } }],
  ["an unknown span", { steps: 1, per: "day" }],
])("%s is refused", (_, limits) => {
  expect(() => budget(limits as BudgetLimits)).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
});

test("what a session was seeded with is not its own spending; what it spent before a reload is", async () => {
  const first = await stage({ steps: 2, per: "session" }, ["one"]);
  await first.say("go");
  const storage = await leftBehind(first.session);
  const again = await stage({ steps: 2, per: "session" }, looping(), { storage });
  expect(await again.say("go")).toEqual(stopped("2 steps a session"));
  expect(again.model.requests).toHaveLength(1);
  const fork = await again.harness.agents.fork({ from: "session", id: "fork" });
  const { reason } = await run(fork.agent, "go").result;
  expect(reason).toEqual(stopped("2 steps a session"));
  expect(again.model.requests).toHaveLength(3);
});

test("two budgets hold beside each other, and one on an agent's own scope is for that agent", async () => {
  const one = await scene(looping(), {
    tools: [tool("work")],
    plugins: [budget({ steps: 5 }), budget({ steps: 3, per: "session" })],
    open: { setup: (scope) => void scope.use(budget({ toolCalls: 1 })) },
  });
  expect(await one.say("go")).toEqual(stopped("1 tool calls a turn"));
  const other = await one.harness.agents.open({ id: "other" });
  expect((await run(other.agent, "go").result).reason).toEqual(stopped("3 steps a session"));
});

test("a stop by a person is stronger", async () => {
  const one = await stage({ steps: 1 }, looping());
  one.agent.on("tool/result", () => one.agent.cancel("enough"));
  expect(await one.say("go")).toEqual({ kind: "aborted", reason: "enough" });
});

test("taken out, it leaves the loop as it was", async () => {
  const one = await scene([...looping(1), ...looping(3), "fine"], { tools: [tool("work")] });
  const off = one.harness.use(budget({ steps: 1, toolCalls: 1, ms: 1000 }));
  expect(await one.say("go")).toMatchObject({ kind: "stopped" });
  off();
  expect(await one.say("go")).toEqual({ kind: "completed" });
});
