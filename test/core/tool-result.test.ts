import { describe, expect, it } from "vitest";
import { TurnloopError } from "../../src/errors.ts";
import { checkOutcome, errorOutcome, outcomeOf, toolResult } from "../../src/tools/result.ts";

const textOf = (value: unknown): string => {
  const { content, isError } = outcomeOf(value);
  expect(isError).toBe(false);
  expect(content).toHaveLength(1);
  return (content[0] as { text: string }).text;
};
function isDeepFrozen(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  return Object.isFrozen(value) && Object.values(value).every(isDeepFrozen);
}

describe("what a body answers", () => {
  const cycle: Record<string, unknown> = { name: "loop" };
  cycle.self = cycle;
  cycle.list = [cycle, { up: cycle }];
  const shared = { x: 1 };
  class Point {
    readonly x = 1;
    readonly #secret = 2;
    get sum(): number {
      return this.x + this.#secret;
    }
  }

  it.each<[string, unknown, string]>([
    ["text", "sunny", "sunny"],
    ["empty text", "", ""],
    ["text with half a character", "ok \ud83d", "ok \ufffd"],
    ["undefined", undefined, "done"],
    ["null", null, "null"],
    ["a number", 1.5, "1.5"],
    ["-0", -0, "0"],
    ["NaN", Number.NaN, "null"],
    ["a boolean", false, "false"],
    ["an array", [1, undefined, "x"], '[1,null,"x"]'],
    ["an object", { a: 1, gone: undefined, b: { c: "\ud83d" } }, '{"a":1,"b":{"c":"\ufffd"}}'],
    ["a date", new Date(0), "1970-01-01T00:00:00.000Z"],
    ["a date inside", { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ["a date that is none", { at: new Date(Number.NaN) }, '{"at":null}'],
    ["something with toJSON", { toJSON: () => ({ said: true }) }, '{"said":true}'],
    ["an instance of a class", new Point(), '{"x":1}'],
    ["the key __proto__", JSON.parse('{"__proto__":1}'), '{"__proto__":1}'],
    ["the same object twice", [shared, shared, { shared }], '[{"x":1},{"x":1},{"shared":{"x":1}}]'],
    ["a BigInt", 12n, "[BigInt 12]"],
    ["a BigInt inside", { n: 12n }, '{"n":"[BigInt 12]"}'],
    ["a cycle", cycle, '{"name":"loop","self":"[cycle]","list":["[cycle]",{"up":"[cycle]"}]}'],
    ["a function", () => 1, "[function]"],
    ["a function inside", { f() {}, a: 1 }, '{"f":"[function]","a":1}'],
    ["a symbol", [Symbol("s")], '["[Symbol(s)]"]'],
    ["a Map", new Map([[1, 2]]), "[Map of 1]"],
    ["a Set inside", { s: new Set() }, '{"s":"[Set of 0]"}'],
    ["an error", { e: new Error("broken") }, '{"e":"[Error: broken]"}'],
    ["bytes", new Uint8Array(1000), "[Uint8Array of 1000 bytes]"],
    ["a buffer", new ArrayBuffer(3), "[ArrayBuffer]"],
    ["a regular expression", /x/, "[RegExp]"],
    ["a promise inside", [Promise.resolve(1)], '["[Promise]"]'],
  ])("is said: %s", (_, value, text) => {
    expect(textOf(value)).toBe(text);
  });

  it.each<[string, unknown]>([
    [
      "a getter that throws",
      {
        get x() {
          throw new Error("no");
        },
      },
    ],
    [
      "a toJSON that throws",
      {
        toJSON() {
          throw null;
        },
      },
    ],
    [
      "a proxy that answers nothing",
      new Proxy(
        {},
        {
          get() {
            throw new Error("no");
          },
          ownKeys() {
            throw new Error("no");
          },
        },
      ),
    ],
    [
      "endless depth",
      {
        toJSON() {
          return { again: this };
        },
      },
    ],
    ["depth beyond the stack", deep(200_000)],
  ])("is a readable placeholder, not an error: %s", (_, value) => {
    expect(textOf(value)).toMatch(/^\[not readable as JSON: ./);
  });

  it("is deeply frozen and detached", () => {
    const block = { type: "text", text: "a" } as const;
    const meta = { list: [1] };
    const outcome = outcomeOf(toolResult([block], meta));
    expect(isDeepFrozen(outcome)).toBe(true);
    expect(outcome.content[0]).not.toBe(block);
    expect(outcome.meta).toEqual(meta);
    meta.list.push(2);
    expect(outcome.meta).toEqual({ list: [1] });
    expect(isDeepFrozen(outcomeOf({ a: 1 }))).toBe(true);
  });
});

describe("toolResult", () => {
  it("gives text, or blocks, and what programs want to know", () => {
    expect(outcomeOf(toolResult("hi \ud83d", null))).toEqual({
      content: [{ type: "text", text: "hi \ufffd" }],
      isError: false,
      meta: null,
    });
    const blocks = [
      { type: "text", text: "a chart" },
      { type: "file", mediaType: "image/png", data: { base64: "AA==" } },
    ] as const;
    expect(outcomeOf(toolResult(blocks))).toEqual({ content: blocks, isError: false });
    expect(outcomeOf(toolResult([]))).toEqual({ content: [], isError: false });
  });

  it("only counts as one when it was made by it", () => {
    expect(textOf({ content: "x", meta: 1 })).toBe('{"content":"x","meta":1}');
    expect(textOf([{ type: "text", text: "x" }])).toBe('[{"type":"text","text":"x"}]');
  });

  it("never turns into an error: a block that is none becomes a placeholder, meta is said as JSON says it", () => {
    const blocks = [{ type: "text" }, { type: "nope" }, null, { type: "text", text: "kept" }] as never;
    const { content, isError, meta } = outcomeOf(toolResult(blocks, { at: new Date(0), n: 1n } as never));
    expect(isError).toBe(false);
    expect(content.map((block) => (block as { text: string }).text)).toEqual([
      '[not a content block: {"type":"text"}]',
      '[not a content block: {"type":"nope"}]',
      "[not a content block: null]",
      "kept",
    ]);
    expect(meta).toEqual({ at: "1970-01-01T00:00:00.000Z", n: "[BigInt 1]" });
    expect(outcomeOf(toolResult(5 as never)).content).toEqual([{ type: "text", text: "5" }]);
  });
});

describe("a failure", () => {
  it("#180 of a denial is its reason, without a structured error", () => {
    expect(errorOutcome("not allowed")).toEqual({
      content: [{ type: "text", text: "Error: not allowed" }],
      isError: true,
    });
  });

  it("#183 of this package keeps name and code, others only their text", () => {
    expect(errorOutcome(new TurnloopError("TOOL_TIMEOUT", "too slow"))).toEqual({
      content: [{ type: "text", text: "Error: too slow" }],
      isError: true,
      error: { name: "TurnloopError", code: "TOOL_TIMEOUT" },
    });
    expect(isDeepFrozen(errorOutcome(new TurnloopError("TOOL_TIMEOUT", "too slow")))).toBe(true);
    expect(errorOutcome(Object.assign(new Error("boom"), { code: "ENOENT" }))).toEqual({
      content: [{ type: "text", text: "Error: boom" }],
      isError: true,
    });
    expect(errorOutcome("no", { name: "TurnloopError", code: "UNKNOWN_TOOL" }).error).toEqual({
      name: "TurnloopError",
      code: "UNKNOWN_TOOL",
    });
  });

  it.each<[string, unknown]>([
    ["text", "x"],
    ["empty text", ""],
    ["null", null],
    ["undefined", undefined],
    ["an object without a message", { code: 1 }],
    ["a frozen error", Object.freeze(new Error("frozen"))],
    ["an error without a message", new TypeError()],
    ["a symbol", Symbol("s")],
    ["half a character", new Error("\ud83d")],
    [
      "a message that throws",
      {
        get message() {
          throw new Error("no");
        },
      },
    ],
    [
      "a proxy that throws",
      new Proxy(
        {},
        {
          get() {
            throw 1;
          },
          has() {
            throw 1;
          },
          getPrototypeOf() {
            throw 1;
          },
        },
      ),
    ],
    ["an error whose code is no text", Object.assign(new TurnloopError("X", "x"), { code: 5 })],
  ])("#183 of any kind yields readable, frozen text: %s", (_, thrown) => {
    const outcome = errorOutcome(thrown);
    const { text } = outcome.content[0] as { text: string };
    expect(text).toMatch(/^Error: ./);
    expect(text).not.toContain("[object");
    expect(text.isWellFormed()).toBe(true);
    expect(outcome.error).toBeUndefined();
    expect(isDeepFrozen(outcome)).toBe(true);
  });
});

describe("an outcome that a hook answers", () => {
  it("is taken as it is when it was made here", () => {
    for (const outcome of [outcomeOf("x"), errorOutcome("x")]) expect(checkOutcome(outcome)).toBe(outcome);
  });

  it("#186 is copied and frozen, with nothing but its own fields", () => {
    const given = {
      content: [{ type: "text", text: "x" }],
      isError: true,
      error: { name: "E", code: "C" },
      meta: { a: [1] },
      additionalContext: { content: "note", source: { kind: "me" } },
      other: () => {},
    } as const;
    const outcome = checkOutcome(given);
    const { other: _, additionalContext: __, ...same } = given;
    expect(outcome).toEqual({
      ...same,
      additionalContext: { content: [{ type: "text", text: "note" }], source: { kind: "me" } },
    });
    expect(isDeepFrozen(outcome)).toBe(true);
    expect(checkOutcome(outcome)).toBe(outcome);
    expect(checkOutcome({ content: [], isError: false, meta: undefined, error: undefined })).toEqual({
      content: [],
      isError: false,
    });
  });

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["text", "x"],
    ["a spread of one without content", { isError: false }],
    ["content that is text", { content: "x", isError: false }],
    ["content that holds no blocks", { content: [1], isError: false }],
    ["a block of an unknown type", { content: [{ type: "nope" }], isError: false }],
    ["no isError", { content: [] }],
    ["an error without a code", { content: [], isError: true, error: { name: "E" } }],
    ["an error that is null", { content: [], isError: true, error: null }],
    ["meta that is no JSON", { content: [], isError: false, meta: 1n }],
    ["context without a source", { content: [], isError: false, additionalContext: { content: "x" } }],
    ["context that is null", { content: [], isError: false, additionalContext: null }],
    [
      "context whose source has no kind",
      { content: [], isError: false, additionalContext: { content: "x", source: {} } },
    ],
    [
      "a getter that throws",
      {
        get content() {
          throw new Error("no");
        },
        isError: false,
      },
    ],
  ])("#186 is refused: %s", (_, value) => {
    expect(() => checkOutcome(value)).toThrow(expect.objectContaining({ code: "INVALID_OUTCOME" }) as Error);
  });
});

function deep(levels: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}
