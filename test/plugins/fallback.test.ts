/** `fallback`: who is asked when a model has failed for good, and with which configuration. */
import { fallback, retry, type CallConfig, type HarnessOptions, type Plugin } from "turnloop";
import { scriptedModel, type ScriptedAnswer, type ScriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { dataOf, scene } from "../support/scene.ts";
import { endOf } from "../support/wait.ts";

const failing = (code = "MODEL_AUTH", text?: string): ScriptedAnswer => ({
  ...(text !== undefined && { text }),
  error: { message: "no", code },
});

/** Three models, a to c; a is the agent's own. */
async function stage(
  scripts: { a?: readonly ScriptedAnswer[]; b?: readonly ScriptedAnswer[]; c?: readonly ScriptedAnswer[] },
  plugins: readonly Plugin[],
  options: HarnessOptions & { call?: Partial<Omit<CallConfig, "model">> } = {},
) {
  const [a, b, c] = (["a", "b", "c"] as const).map((id) => scriptedModel(scripts[id] ?? [], { id }));
  const models: Record<string, ScriptedModel> = { a: a!, b: b!, c: c! };
  const { call, ...rest } = options;
  const one = await scene([], { model: "a", models, plugins, ...rest, open: { ...(call && { call }) } });
  const asked = (): string[] => Object.values(models).flatMap(({ id, requests }) => requests.map(() => id));
  return { ...one, models, asked };
}

test("the next model is asked in the same step, with its own configuration on top of the step's", async () => {
  const one = await stage(
    { a: [failing()], b: ["fine"] },
    [fallback({ models: [{ model: "b", temperature: 0.2 }, "c"] })],
    { call: { temperature: 1, maxOutputTokens: 100 } },
  );
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(one.models["b"]!.requests[0]!.config).toEqual({ model: "b", temperature: 0.2, maxOutputTokens: 100 });
  expect(dataOf(one.session, "request/failed")).toMatchObject([{ step: 1, attempt: 1, next: "retry" }]);
  expect(dataOf(one.session, "request/header").map(({ header }) => header.modelId)).toEqual(["a", "b"]);
  expect(dataOf(one.session, "assistant/message")).toMatchObject([{ model: "b" }]);
});

test("the changes of one entry are not left for the next", async () => {
  const one = await stage({ a: [failing()], b: [failing()], c: ["fine"] }, [
    fallback({
      models: [
        { model: "b", temperature: 0.2 },
        { model: "c", topP: 0.5 },
      ],
    }),
  ]);
  await one.say("go");
  expect(one.models["c"]!.requests[0]!.config).toEqual({ model: "c", topP: 0.5 });
});

test("what a policy in front wants of every request, it gets of the next model too", async () => {
  const one = await stage({ a: [failing()], b: ["fine"] }, []);
  one.hooks.on("agent/request", async (_, next) => ({ ...(await next()), temperature: 0.5 }));
  one.harness.use(fallback({ models: ["b"] }));
  await one.say("go");
  expect(one.models["b"]!.requests[0]!.config).toEqual({ model: "b", temperature: 0.5 });
});

test("when the row is used up the turn fails with the last error", async () => {
  const one = await stage({ a: [failing()], b: [failing("MODEL_QUOTA")], c: [failing("MODEL_OVERLOADED")] }, [
    fallback({ models: ["b", "c"] }),
  ]);
  expect(await one.say("go")).toMatchObject({ kind: "error", code: "MODEL_OVERLOADED" });
  expect(one.asked()).toEqual(["a", "b", "c"]);
});

test("the rest of the turn stays with the model that answered, and the next turn begins with the first", async () => {
  const one = await stage({ a: [failing(), "back"], b: [calls("work"), "fine"] }, [fallback({ models: ["b"] })], {
    tools: [tool("work")],
  });
  await one.say("go");
  expect(one.asked()).toEqual(["a", "b", "b"]);
  await one.say("again");
  expect(dataOf(one.session, "assistant/message").map(({ model }) => model)).toEqual(["b", "b", "a"]);
});

test.each([
  ["before", [retry(), fallback({ models: ["b"] })]],
  ["behind", [fallback({ models: ["b"] }), retry()]],
] as const)("with retry %s it, each model is tried again as often as retry says", async (_, plugins) => {
  const busy = failing("MODEL_OVERLOADED");
  const clock = { now: () => 0, sleep: () => Promise.resolve() };
  const one = await stage({ a: [busy, busy, busy, busy], b: [busy, busy, busy, "fine"] }, plugins, { clock });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(one.asked()).toHaveLength(8);
});

test("an error that retry does not take moves on at once", async () => {
  const one = await stage({ a: [failing()], b: ["fine"] }, [retry(), fallback({ models: ["b"] })]);
  await one.say("go");
  expect(one.asked()).toEqual(["a", "b"]);
});

test("the very configuration that has failed is not asked again", async () => {
  const one = await stage({ a: [failing()], b: ["fine"] }, [fallback({ models: ["a", "b"] })]);
  await one.say("go");
  expect(one.asked()).toEqual(["a", "b"]);
});

test("a model that nobody registered is passed over, and reported", async () => {
  const one = await stage({ a: [failing()], c: ["fine"] }, [fallback({ models: ["gone", "constructor", "c"] })]);
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(one.diagnostics).toEqual(["NO_ADAPTER", "NO_ADAPTER"]);
});

test("behind output that people have seen it moves on only when told so", async () => {
  const scripts = { a: [failing("STREAM_BROKEN", "Hel")], b: ["Hello"] };
  const careful = await stage(scripts, [fallback({ models: ["b"] })]);
  expect(await careful.say("go")).toMatchObject({ kind: "error", code: "STREAM_BROKEN" });
  const bold = await stage(scripts, [fallback({ models: ["b"], afterOutput: true })]);
  expect(await bold.say("go")).toEqual({ kind: "completed" });
});

test("a cancel while retry waits stands: no other model is asked", async () => {
  const clock = testClock();
  const one = await stage({ a: [failing("RATE_LIMITED")], b: ["never"] }, [retry(), fallback({ models: ["b"] })], {
    clock,
  });
  one.agent.send("go");
  await clock.sleeping(1);
  one.agent.cancel("enough");
  await clock.advance(100_000);
  await one.agent.whenIdle();
  expect([endOf(one.session), one.asked()]).toEqual([{ kind: "aborted", reason: "enough" }, ["a"]]);
});

test("two agents of a harness do not share their place", async () => {
  const one = await stage({ a: [failing(), "mine"], b: [calls("other"), "fine"] }, [fallback({ models: ["b"] })], {
    tools: [
      tool("other", async (_, { agent }) => {
        const handle = await one.harness.agents.open({ id: "other", owner: agent });
        handle.agent.send("go");
        await handle.agent.whenIdle();
        await handle.dispose();
      }),
    ],
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(one.asked()).toEqual(["a", "a", "b", "b"]);
});

test("taken out, it leaves the loop as it was", async () => {
  const one = await stage({ a: [failing(), failing()], b: ["fine"] }, []);
  const off = one.harness.use(fallback({ models: ["b"] }));
  expect(await one.say("go")).toEqual({ kind: "completed" });
  off();
  expect(await one.say("go")).toMatchObject({ kind: "error", code: "MODEL_AUTH" });
});

test.each([[[]], [[""]], [[null]], [undefined]])("a row of %o is refused", (models) => {
  expect(() => fallback({ models: models as never })).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
});
