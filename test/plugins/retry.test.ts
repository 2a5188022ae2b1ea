/** `retry`: a request that failed for a reason that passes is made again, and nothing else is. */
import { createHarness, defineTool, memoryStorage, retry, type ErrorData, type HarnessOptions } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { calls, resultsOf, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { dataOf, leftBehind, scene, type Scene } from "../support/scene.ts";
import { endOf, eventOf, snapshotWhere, typesOf } from "../support/wait.ts";
import { chatDialects, says, useWire } from "../support/wire.ts";

/** An answer that fails so, having said `text`. */
const failing = (error: Omit<ErrorData, "message"> = { code: "RATE_LIMITED" }, text?: string): ScriptedAnswer => ({
  chunks: [
    ...(text === undefined ? [] : [{ type: "delta" as const, index: 0, text }]),
    { type: "finish", reason: { kind: "error", message: "no", ...error } },
  ],
});
const LONG = 10_000_000;

/** A clock that never keeps anybody waiting, and a scene on it. */
async function hasty(answers: readonly ScriptedAnswer[], options: HarnessOptions & { id?: string } = {}) {
  const waits: number[] = [];
  const clock = {
    now: () => 0,
    sleep: (ms: number) => (ms > 0 && ms < LONG && waits.push(ms), Promise.resolve()),
  };
  const one = await scene(answers, { clock, plugins: [retry()], ...options });
  return { ...one, waits };
}

const waitsIn = ({ session }: Scene): (number | undefined)[] =>
  dataOf(session, "request/failed").map(({ afterMs }) => afterMs);

afterEach(() => void vi.restoreAllMocks());

test("three failures that pass are told in the log, with waits that double, and the fourth try is the answer", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0);
  const one = await hasty([failing(), failing(), failing(), "fine"]);
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(dataOf(one.session, "request/failed")).toMatchObject([
    { attempt: 1, next: "retry", afterMs: 1000, error: { code: "RATE_LIMITED" } },
    { attempt: 2, next: "retry", afterMs: 2000 },
    { attempt: 3, next: "retry", afterMs: 4000 },
  ]);
  expect(one.waits).toEqual([1000, 2000, 4000]);
  expect(typesOf(one.session).filter((type) => type === "step/start")).toHaveLength(1);
});

test("chance shortens a wait by up to a half", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0.999_999);
  const one = await hasty([failing(), failing(), "fine"]);
  await one.say("go");
  expect(one.waits).toEqual([500, 1000]);
});

test("no wait is longer than the longest that is allowed", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0);
  const one = await hasty([failing(), failing(), failing(), failing(), "fine"], {
    plugins: [retry({ maxAttempts: 5, maxDelayMs: 3000 })],
  });
  await one.say("go");
  expect(one.waits).toEqual([1000, 2000, 3000, 3000]);
});

test("a fourth failure is the last, and the turn ends with its error", async () => {
  const one = await hasty([failing(), failing(), failing(), failing({ code: "MODEL_OVERLOADED" })]);
  expect(await one.say("go")).toMatchObject({ kind: "error", code: "MODEL_OVERLOADED" });
  expect(dataOf(one.session, "request/failed").map(({ next }) => next)).toEqual(["retry", "retry", "retry", "fail"]);
});

test("tries are counted anew in each step and each turn", async () => {
  const twice = [failing(), failing(), failing()];
  const one = await hasty([...twice, calls("work"), ...twice, "fine", ...twice, "again"], { tools: [tool("work")] });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(await one.say("go")).toEqual({ kind: "completed" });
});

test.each<[string, Omit<ErrorData, "message">]>([
  ["a rate limit", { code: "RATE_LIMITED", status: 429 }],
  ["overload", { code: "MODEL_OVERLOADED", status: 529 }],
  ["no network", { code: "MODEL_UNREACHABLE" }],
  ["an answer that cannot be read", { code: "MODEL_BAD_RESPONSE" }],
  ["a connection that broke", { code: "STREAM_BROKEN" }],
  ["silence", { code: "MODEL_STALLED" }],
  ["a server's failure", { code: "MODEL_ERROR", status: 500 }],
  ["a status alone", { status: 503 }],
  ["a timeout of the server", { code: "MODEL_ERROR", status: 408 }],
  ["a code of Node's", { code: "ECONNRESET" }],
  ["a quota that is filled up again soon", { code: "MODEL_QUOTA", status: 429, retryAfterMs: 100 }],
])("%s passes", async (_, error) => {
  const one = await hasty([failing(error), "fine"]);
  expect(await one.say("go")).toEqual({ kind: "completed" });
});

test.each<[string, Omit<ErrorData, "message">]>([
  ["a wrong key", { code: "MODEL_AUTH", status: 401 }],
  ["a quota that is used up", { code: "MODEL_QUOTA", status: 429 }],
  ["an overflow", { code: "CONTEXT_OVERFLOW", status: 413 }],
  ["a content filter", { code: "CONTENT_FILTERED" }],
  ["a refused request", { code: "MODEL_ERROR", status: 400 }],
  ["a web page instead of the API", { code: "MODEL_BAD_RESPONSE", status: 404 }],
  ["what the server does not know how to do", { code: "MODEL_ERROR", status: 501 }],
  ["what nobody knows", { code: "SOMETHING" }],
  ["a wait of half a day", { code: "RATE_LIMITED", status: 429, retryAfterMs: 43_200_000 }],
])("%s does not pass", async (_, error) => {
  const one = await hasty([failing(error), "never"]);
  expect(await one.say("go")).toMatchObject({ kind: "error" });
  expect([one.model.requests.length, one.waits]).toEqual([1, []]);
});

test("a model that throws what `fetch` throws is asked again, one with a mistake in it is not", async () => {
  for (const [message, requests] of [
    ["Failed to fetch", 2],
    ["x is not a function", 1],
  ] as const) {
    const throwing = (): never => {
      throw new TypeError(message);
    };
    const one = await hasty([throwing, "fine"], { id: message });
    await one.say("go");
    expect(one.model.requests).toHaveLength(requests);
  }
});

test("an answer without anything in it, and one without an end, are asked for again", async () => {
  const one = await hasty([
    { text: "", finish: "stop", chunks: [{ type: "finish", reason: { kind: "stop" } }] },
    { chunks: [] },
    "fine",
  ]);
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(dataOf(one.session, "request/failed").map(({ error }) => error.code)).toEqual([
    "EMPTY_RESPONSE",
    "STREAM_INCOMPLETE",
  ]);
});

test("the provider's own wait is kept to, when it is longer; one of nothing does not undo the backoff", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0);
  const one = await hasty([
    failing({ code: "RATE_LIMITED", retryAfterMs: 7000 }),
    failing({ code: "RATE_LIMITED", retryAfterMs: 0 }),
    "fine",
  ]);
  await one.say("go");
  expect(waitsIn(one)).toEqual([7000, 2000]);
});

test("behind output that people have seen it tries again only when told so", async () => {
  const cut = failing({ code: "STREAM_BROKEN" }, "Hel");
  const careful = await hasty([cut, "never"]);
  expect(await careful.say("go")).toMatchObject({ kind: "error", code: "STREAM_BROKEN" });
  const bold = await hasty([cut, "Hello"], { plugins: [retry({ afterOutput: true })], id: "bold" });
  expect(await bold.say("go")).toEqual({ kind: "completed" });
});

test("a tool that has run is not run again by a request that is", async () => {
  let times = 0;
  const one = await hasty([calls("work"), failing(), "fine"], { tools: [tool("work", () => `${(times += 1)}`)] });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect([times, resultsOf(one.session)]).toEqual([1, [{ tool: "work", says: "1" }]]);
});

test.each(["cancel", "dispose"] as const)("a %s ends the wait at once; nothing more is asked", async (how) => {
  const clock = testClock();
  const one = await scene([failing({ code: "RATE_LIMITED", retryAfterMs: 30_000 }), "never"], {
    clock,
    plugins: [retry()],
  });
  one.agent.send("go");
  await clock.sleeping(30_000);
  if (how === "cancel") one.agent.cancel("enough");
  else await one.dispose();
  await eventOf(one.session, "turn/end");
  await clock.advance(60_000);
  expect(endOf(one.session)).toMatchObject({ kind: how === "cancel" ? "aborted" : "disposed" });
  expect(one.model.requests).toHaveLength(1);
});

test("what is steered and sent during the wait is kept", async () => {
  const clock = testClock();
  const one = await scene([failing({ code: "RATE_LIMITED", retryAfterMs: 30_000 }), "first", "steered", "second"], {
    clock,
    plugins: [retry()],
  });
  one.agent.send("go");
  await clock.sleeping(30_000);
  one.agent.steer("left");
  one.agent.send("then");
  await clock.advance(30_000);
  await one.agent.whenIdle();
  expect(one.model.requests).toHaveLength(4);
  expect([endOf(one.session, 1), endOf(one.session, 2)]).toEqual([{ kind: "completed" }, { kind: "completed" }]);
});

test("a turn that was parked in another life is answered, and its next request is tried again", async () => {
  const guarded = defineTool({
    name: "rm",
    description: "rm",
    inputSchema: { type: "object" },
    needsApproval: true,
    execute: () => "gone",
  });
  const before = await scene([calls("rm")], { tools: [guarded], plugins: [retry()] });
  before.agent.send("go");
  await snapshotWhere(before.agent, ({ waiting }) => waiting);
  const storage = await leftBehind(before.session);
  await before.dispose();
  const after = await hasty([failing(), "fine"], { storage, tools: [guarded] });
  await after.agent.respond("call_1_1_1_0/approval", { decision: "allow" });
  await after.agent.whenIdle();
  expect([endOf(after.session), resultsOf(after.session)]).toEqual([
    { kind: "completed" },
    [{ tool: "rm", says: "gone" }],
  ]);
  expect(dataOf(after.session, "request/failed")).toMatchObject([{ turn: 1, step: 2, attempt: 1, next: "retry" }]);
});

test("it leaves to others what it does not take, and the loop as it was when it is taken out", async () => {
  const clock = testClock();
  const harness = createHarness({
    model: scriptedModel([failing({ code: "CONTEXT_OVERFLOW" }), "fine", failing()]),
    clock,
    storage: memoryStorage(),
  });
  const off = harness.use(retry());
  harness.hooks.on("agent/request-error", () => ({ kind: "new-step" }));
  const { agent } = await harness.agents.open({ id: "s" });
  agent.send("go");
  await agent.whenIdle();
  expect(dataOf(agent.session, "request/failed")).toMatchObject([{ next: "new-step" }]);
  off();
  agent.send("go");
  await eventOf(agent.session, "request/failed", ({ data }) => data.turn === 2);
  expect(dataOf(agent.session, "request/failed").at(-1)).toMatchObject({ turn: 2, next: "new-step" });
  await agent.whenIdle();
});

test.each([{ maxAttempts: 0 }, { maxAttempts: 1.5 }, { maxDelayMs: -1 }, { maxDelayMs: Number.NaN }])(
  "%o is refused before anything is made",
  (options) => {
    expect(() => retry(options)).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
  },
);

describe.each(chatDialects)("at a provider (%s)", (dialect) => {
  const open = useWire();
  const clock = { now: () => 0, sleep: () => Promise.resolve() };
  const limited = (headers: Record<string, string>, error: object = { message: "slow down" }) =>
    open([{ status: 429, headers, body: JSON.stringify({ error }) }, says("fine")], {
      dialect,
      clock,
      plugins: [retry()],
    });

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2026, 0, 1) });
    vi.spyOn(Math, "random").mockReturnValue(0);
  });
  afterEach(() => void vi.useRealTimers());

  test.each<[string, Record<string, string>, number]>([
    ["in seconds", { "retry-after": "20" }, 20_000],
    ["in milliseconds", { "retry-after-ms": "2500" }, 2500],
    ["as a date", { "retry-after": new Date(Date.UTC(2026, 0, 1, 0, 0, 30)).toUTCString() }, 30_000],
    ["as a date that has passed", { "retry-after": new Date(Date.UTC(2020, 0, 1)).toUTCString() }, 1000],
    ["as words", { "retry-after": "soon" }, 1000],
    ["as nothing", { "retry-after": "" }, 1000],
    ["below nothing", { "retry-after": "-5" }, 1000],
    ["as a number and a half", { "retry-after": "1.2.3" }, 1000],
    ["not at all", {}, 1000],
  ])("a wait said %s is kept to, and garbage is not", async (_, headers, afterMs) => {
    const wired = await limited(headers);
    expect(await wired.ask()).toMatchObject({ reason: { kind: "completed" }, text: "fine" });
    expect(dataOf(wired.session, "request/failed")).toMatchObject([{ next: "retry", afterMs }]);
  });

  test.each<[string, Record<string, string>, object]>([
    ["a quota that is used up", {}, { code: "insufficient_quota", message: "You exceeded your current quota" }],
    ["a limit for half a day", { "retry-after": "43200" }, { status: "RESOURCE_EXHAUSTED", message: "wait" }],
    ["a limit for ever", { "retry-after": "99999999999999999999" }, { message: "wait" }],
  ])("B109 %s is not waited for", async (_, headers, error) => {
    const wired = await limited(headers, error);
    expect((await wired.ask()).reason).toMatchObject({ kind: "error" });
    expect(wired.sent).toHaveLength(1);
  });
});
