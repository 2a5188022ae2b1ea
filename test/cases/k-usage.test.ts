/** K: what an answer has cost, and values that JSON cannot say. */
import { usageOf, type JsonValue, type ModelChunk } from "turnloop";
import { expect, test } from "vitest";
import { calls, resultsOf, tool } from "../support/calls.ts";
import { sse } from "../support/provider-answers.ts";
import { dataOf, scene } from "../support/scene.ts";
import { chatDialects, delta, finish, useWire } from "../support/wire.ts";

const open = useWire();

test.each<[string, object]>([
  ["null", { usage: null }],
  ["missing", {}],
  ["empty", { usage: {} }],
])("B169 usage that is %s is no usage, and no failure", async (_, fields) => {
  for (const dialect of chatDialects) {
    const wired = await open([sse(delta({ content: "Hi" }), finish("stop", fields))], { dialect, id: dialect });
    expect(await wired.ask()).toMatchObject({ reason: { kind: "completed" }, text: "Hi" });
    for (const count of Object.values(usageOf(wired.session).total)) expect(count).not.toBeNaN();
  }
});

test("B169 a model's chunk with a usage of null is a broken answer, not a crash", async () => {
  const chunk = { type: "usage", usage: null } as unknown as ModelChunk;
  const one = await scene([{ chunks: [chunk] }, "fine"]);
  expect(await one.say("go")).toMatchObject({ kind: "error", code: "MALFORMED_CHUNK" });
  expect(await one.say("again")).toEqual({ kind: "completed" });
});

const counted: [string, object, object][] = [
  [
    "reasoning that the total counts and the output does not",
    {
      usage: {
        prompt_tokens: 10,
        completion_tokens: 2,
        total_tokens: 112,
        completion_tokens_details: { reasoning_tokens: 100 },
      },
    },
    { input: 10, output: 2, reasoning: 100 },
  ],
  [
    "reasoning inside the output",
    { usage: { prompt_tokens: 10, completion_tokens: 102, completion_tokens_details: { reasoning_tokens: 100 } } },
    { input: 10, output: 2, reasoning: 100 },
  ],
  [
    "input that was read from a cache",
    { usage: { prompt_tokens: 10, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 8 } } },
    { input: 2, cacheRead: 8, output: 2 },
  ],
];

test.each(counted)("B170 counts are disjoint: %s", async (_, fields, expected) => {
  for (const dialect of chatDialects) {
    const wired = await open([sse(delta({ content: "Hi" }), finish("stop", fields))], { dialect, id: dialect });
    const { usage } = await wired.ask();
    expect(usage).toMatchObject(expected);
    expect(Object.values(usage).reduce((sum, count) => sum + (count ?? 0), 0)).toBe(
      Object.values(expected).reduce((sum, count) => sum + count, 0),
    );
  }
});

test.each(chatDialects)(
  "B170 usage in a place that the client does not read is absent, not NaN (%s)",
  async (dialect) => {
    const body = sse(delta({ content: "Hi" }), finish("stop", { x_groq: { usage: { prompt_tokens: 10 } } }));
    const wired = await open([body], { dialect });
    await wired.ask();
    expect(dataOf(wired.session, "assistant/message")[0]).not.toHaveProperty("usage");
  },
);

test.each<[string, unknown, string]>([
  ["NaN", Number.NaN, "null"],
  ["Infinity", Number.POSITIVE_INFINITY, "null"],
  ["-0", -0, "0"],
  ["undefined", undefined, "done"],
  ["null", null, "null"],
  ["false", false, "false"],
  ["an empty text", "", ""],
  ["a BigInt", 10n, "[BigInt 10]"],
  ["a date", new Date(0), "1970-01-01T00:00:00.000Z"],
  [
    "such values in an object",
    { a: Number.NaN, b: -0, c: undefined, d: [undefined, 1n] },
    '{"a":null,"b":0,"d":[null,"[BigInt 1]"]}',
  ],
])("B172 what a tool answers with is said as JSON says it: %s", async (_, value, says) => {
  const one = await scene([calls("give"), "fine"], { tools: [tool("give", () => value)] });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toEqual([{ tool: "give", says }]);
});

test.each<[string, unknown]>([
  ["NaN", Number.NaN],
  ["-0", -0],
  ["undefined", undefined],
  ["NaN inside", { a: [Number.NaN] }],
])("B172 what must be the same when it is read again is refused when it cannot be: %s", async (_, value) => {
  const refused: unknown[] = [];
  const report = tool("report", (_args, { progress }) => {
    try {
      progress(value as JsonValue);
    } catch (error) {
      refused.push((error as { code: string }).code);
    }
  });
  const one = await scene([calls("report"), "fine"], { tools: [report] });
  await one.say("go");
  expect(refused).toEqual(["INVALID_CONTENT"]);
  expect(dataOf(one.session, "tool/progress")).toEqual([]);
});

test("B172 arguments that JSON can say and the log cannot keep as values are kept as text", async () => {
  const seen: unknown[] = [];
  const args = '{"a":-0,"b":1e400}';
  const one = await scene([calls({ name: "give", args: '{"a":-0}' }, { name: "give", args }), "fine"], {
    tools: [tool("give", (given) => (seen.push(given), "ok"))],
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(seen[0]).toEqual({ a: 0 });
  expect(dataOf(one.session, "tool/call")[1]!.arguments).toBe(args);
  expect(resultsOf(one.session)).toHaveLength(2);
});

const frozen = Object.freeze(new Error("frozen"));
const hostile = new Proxy(
  {},
  {
    get: () => {
      throw new Error("no");
    },
    ownKeys: () => {
      throw new Error("no");
    },
  },
);
test.each<[string, unknown, RegExp]>([
  ["a text", "x", /^Error: x$/],
  ["an empty text", "", /^Error: \S/],
  ["null", null, /^Error: null/],
  ["undefined", undefined, /^Error: undefined/],
  ["a number", 404, /^Error: 404/],
  ["an object without a message", { code: 1 }, /^Error: \{"code":1\}/],
  ["an error without a message", new TypeError(), /^Error: TypeError/],
  ["a frozen error", frozen, /^Error: frozen$/],
  ["a hostile object", hostile, /^Error: \S/],
])("B173 a tool that throws %s fails with words that can be read", async (_, thrown, words) => {
  for (const body of [
    () => {
      throw thrown;
    },
    () => Promise.reject(thrown),
  ]) {
    const one = await scene([calls("fail"), "fine"], { tools: [tool("fail", body)] });
    expect(await one.say("go")).toEqual({ kind: "completed" });
    expect(resultsOf(one.session)).toEqual([{ tool: "fail", fails: expect.stringMatching(words) }]);
    expect(JSON.stringify(resultsOf(one.session))).not.toContain("[object Object]");
  }
});
