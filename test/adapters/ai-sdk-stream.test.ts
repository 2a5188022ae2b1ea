import { aiSdkModel } from "turnloop/ai-sdk";
import type { ModelChunk } from "turnloop";
import { describe, expect, test } from "vitest";
import { chunksOf, languageModel, stop, streamOf, type Part } from "../support/language-model.ts";

const from = (...parts: Part[]): Promise<ModelChunk[]> => chunksOf(aiSdkModel(languageModel(parts)));
const body = async (...parts: Part[]): Promise<ModelChunk[]> => (await from(...parts, stop)).slice(0, -1);
const meta = (value: unknown) => ({ providerMetadata: { acme: { value } } });

describe("text and reasoning", () => {
  test("stream as blocks of their own, told apart by id, numbered as they are first seen", async () => {
    expect(
      await body(
        { type: "text-start", id: "a" },
        { type: "reasoning-start", id: "a" },
        { type: "text-delta", id: "a", delta: "x" },
        { type: "reasoning-delta", id: "a", delta: "hm" },
        { type: "text-delta", id: "a", delta: "y" },
        { type: "reasoning-end", id: "a" },
        { type: "text-end", id: "a" },
        { type: "text-start", id: "a" },
        { type: "text-delta", id: "a", delta: "z" },
        { type: "text-end", id: "a" },
      ),
    ).toEqual([
      { type: "block-start", index: 0, block: { type: "text" } },
      { type: "delta", index: 0, text: "x" },
      { type: "block-start", index: 1, block: { type: "reasoning" } },
      { type: "delta", index: 1, text: "hm" },
      { type: "delta", index: 0, text: "y" },
      { type: "block-end", index: 1 },
      { type: "block-end", index: 0 },
      { type: "block-start", index: 2, block: { type: "text" } },
      { type: "delta", index: 2, text: "z" },
      { type: "block-end", index: 2 },
    ]);
  });

  test("leave no block behind when nothing comes of them", async () => {
    expect(
      await body(
        { type: "text-start", id: "a" },
        { type: "text-delta", id: "a", delta: "" },
        { type: "text-end", id: "a" },
        { type: "reasoning-end", id: "never begun" },
      ),
    ).toEqual([]);
  });

  test("carry the provider's last metadata at their end, and none before", async () => {
    const start = { type: "reasoning-start", id: "a", ...meta(1) };
    const delta = { type: "reasoning-delta", id: "a", delta: "" };
    expect(await body(start, { type: "reasoning-end", id: "a" })).toEqual([
      { type: "block-start", index: 0, block: { type: "reasoning" } },
      { type: "block-end", index: 0, meta: { acme: { value: 1 } } },
    ]);
    expect((await body(start, { ...delta, ...meta(2) }, { type: "reasoning-end", id: "a" })).at(-1)).toMatchObject({
      meta: { acme: { value: 2 } },
    });
    expect(
      (await body(start, { ...delta, ...meta(2) }, { type: "reasoning-end", id: "a", ...meta(3) })).at(-1),
    ).toMatchObject({
      meta: { acme: { value: 3 } },
    });
    expect(await from(start, { ...delta, delta: "cut" })).not.toContainEqual(
      expect.objectContaining({ meta: expect.anything() }),
    );
  });

  test("carry only what JSON can say of the metadata", async () => {
    const [, end] = await body(
      { type: "text-start", id: "a" },
      { type: "text-end", id: "a", providerMetadata: { acme: { a: undefined, b: 1 } } },
    );
    expect(end).toStrictEqual({ type: "block-end", index: 0, meta: { acme: { b: 1 } } });
    expect(
      await body(
        { type: "text-start", id: "a" },
        { type: "text-end", id: "a", providerMetadata: { acme: { big: 1n } } },
      ),
    ).toEqual([]);
  });
});

describe("tool calls", () => {
  test("are written as they stream, and the whole call has the last word", async () => {
    expect(
      await body(
        { type: "tool-input-start", id: "t1", toolName: "look" },
        { type: "tool-input-start", id: "t2", toolName: "find" },
        { type: "tool-input-delta", id: "t1", delta: '{"a"' },
        { type: "tool-input-delta", id: "t2", delta: "{}" },
        { type: "tool-input-delta", id: "t1", delta: "" },
        { type: "tool-input-end", id: "t1" },
        { type: "tool-call", toolCallId: "t1", toolName: "look", input: '{"a":1}', ...meta("m") },
        { type: "tool-call", toolCallId: "t2", toolName: "find", input: "{}" },
      ),
    ).toEqual([
      { type: "block-start", index: 0, block: { type: "tool-call", id: "t1", name: "look" } },
      { type: "block-start", index: 1, block: { type: "tool-call", id: "t2", name: "find" } },
      { type: "delta", index: 0, text: '{"a"' },
      { type: "delta", index: 1, text: "{}" },
      {
        type: "block-end",
        index: 0,
        block: { type: "tool-call", callId: "t1", name: "look", arguments: '{"a":1}', meta: { acme: { value: "m" } } },
      },
      { type: "block-end", index: 1, block: { type: "tool-call", callId: "t2", name: "find", arguments: "{}" } },
    ]);
  });

  test("may come whole, and with one id twice", async () => {
    const call = { type: "tool-call", toolCallId: "0", toolName: "look", input: "" };
    const block = { type: "tool-call", callId: "0", name: "look", arguments: "" };
    expect(await body(call, call)).toEqual([
      { type: "block-end", index: 0, block },
      { type: "block-end", index: 1, block },
    ]);
  });

  test("whose input is an object are taken as its JSON", async () => {
    const [end] = await body({ type: "tool-call", toolCallId: "0", toolName: "look", input: { city: "Oslo" } });
    expect(end).toMatchObject({ block: { arguments: '{"city":"Oslo"}' } });
  });
});

test("what the provider runs becomes a block for each part, in order, and no tool call", async () => {
  const run = { toolName: "search", providerExecuted: true };
  const chunks = await body(
    { type: "tool-input-start", id: "w1", ...run },
    { type: "tool-input-delta", id: "w1", delta: "{}" },
    { type: "tool-call", toolCallId: "w1", input: "{}", ...run, ...meta(1) },
    { type: "tool-result", toolCallId: "w1", toolName: "search", result: "half", preliminary: true },
    { type: "tool-result", toolCallId: "w1", toolName: "search", result: { hits: [1], none: undefined }, ...meta(2) },
    { type: "tool-result", toolCallId: "w2", toolName: "search", result: "no", isError: true },
    { type: "tool-approval-request", approvalId: "a1", toolCallId: "w3" },
    { type: "custom", kind: "acme.note", ...meta(3) },
    { type: "reasoning-file", mediaType: "image/png", data: { type: "data", data: "AAAA" } },
  );
  expect(chunks).toEqual(
    [
      { name: "search", data: { type: "call", id: "w1", input: "{}" }, meta: { acme: { value: 1 } } },
      {
        name: "search",
        data: { type: "result", id: "w1", result: { hits: [1] }, isError: false },
        meta: { acme: { value: 2 } },
      },
      { name: "search", data: { type: "result", id: "w2", result: "no", isError: true } },
      { name: "tool-approval-request", data: { type: "approval-request", id: "a1", callId: "w3" } },
      { name: "acme.note", data: { type: "custom", kind: "acme.note" }, meta: { acme: { value: 3 } } },
      { name: "reasoning-file", data: { type: "reasoning-file", mediaType: "image/png", file: { base64: "AAAA" } } },
    ].map((block, index) => ({ type: "block-end", index, block: { type: "provider-tool", ...block } })),
  );
});

test("files and sources of any version become blocks", async () => {
  const file = (data: unknown): Part => ({ type: "file", mediaType: "image/png", data });
  const bytes = Uint8Array.from({ length: 10_000 }, (_, at) => at % 256);
  const chunks = await body(
    file("AAAA"),
    file(bytes),
    file({ type: "data", data: new Uint8Array([0, 0, 0]) }),
    file({ type: "url", url: new URL("https://example.com/a.png") }),
    file({ type: "unheard of" }),
    { type: "source", sourceType: "url", id: "1", url: "https://example.com", title: "Example", ...meta(1) },
    { type: "source", sourceType: "document", id: "2", mediaType: "text/plain", title: "Notes", filename: "n.txt" },
    { type: "source", sourceType: "url", id: "3", url: "https://example.org" },
  );
  const data = (kept: object) => ({ type: "file", mediaType: "image/png", data: kept });
  expect(chunks.map((chunk) => "block" in chunk && chunk.block)).toEqual([
    data({ base64: "AAAA" }),
    data({ base64: Buffer.from(bytes).toString("base64") }),
    data({ base64: "AAAA" }),
    data({ url: "https://example.com/a.png" }),
    { type: "source", url: "https://example.com", title: "Example", meta: { acme: { value: 1 } } },
    { type: "source", title: "Notes" },
    { type: "source", url: "https://example.org" },
  ]);
});

test("parts that say nothing to the loop, and parts of tomorrow, are passed over", async () => {
  const quiet = ["ping", "response-metadata", "raw", "tool-input-end", "hologram"];
  expect(await body(...quiet.map((type) => ({ type, id: "x" })))).toEqual([]);
});

describe("usage", () => {
  const usageOf = async (usage: unknown): Promise<unknown> => {
    const chunks = await from({ ...stop, usage });
    return chunks.find((chunk) => chunk.type === "usage")?.usage;
  };

  test.each<[string, unknown, unknown]>([
    [
      "all counts",
      {
        inputTokens: { total: 10, noCache: 5, cacheRead: 3, cacheWrite: 2 },
        outputTokens: { total: 9, text: 4, reasoning: 5 },
      },
      { input: 5, cacheRead: 3, cacheWrite: 2, output: 4, reasoning: 5 },
    ],
    ["totals alone", { inputTokens: { total: 10 }, outputTokens: { total: 9 } }, { input: 10, output: 9 }],
    [
      "a total and its parts",
      { inputTokens: { total: 10, cacheRead: 4, cacheWrite: 1 }, outputTokens: { total: 9, reasoning: 9 } },
      { input: 5, cacheRead: 4, cacheWrite: 1, output: 0, reasoning: 9 },
    ],
    [
      "reasoning beside the total",
      { inputTokens: {}, outputTokens: { total: 26, text: -170, reasoning: 196 } },
      { output: 26, reasoning: 196 },
    ],
    [
      "the numbers of V2",
      { inputTokens: 10, outputTokens: 9, totalTokens: 19, cachedInputTokens: 4, reasoningTokens: 2 },
      { input: 6, cacheRead: 4, output: 7, reasoning: 2 },
    ],
    ["less of them", { inputTokens: 10, outputTokens: undefined, totalTokens: NaN }, { input: 10 }],
    [
      "what is no count",
      { inputTokens: { total: NaN, cacheRead: -1, cacheWrite: "2" }, outputTokens: { total: Infinity } },
      undefined,
    ],
    ["nothing", {}, undefined],
    ["null", null, undefined],
  ])("of %s is told as disjoint counts", async (_, given, expected) => {
    expect(await usageOf(given)).toEqual(expected);
  });

  test("comes right before the finish, and nothing after it", async () => {
    const chunks = await from(
      { ...stop, usage: { inputTokens: { total: 1 }, outputTokens: {} } },
      { type: "text-delta", id: "1", delta: "late" },
    );
    expect(chunks.map(({ type }) => type)).toEqual(["usage", "finish"]);
  });
});

describe("the finish reason", () => {
  const finish = (finishReason: unknown): Promise<ModelChunk[]> =>
    from({ type: "text-delta", id: "1", delta: "a" }, { ...stop, finishReason });

  test.each<[unknown, object]>([
    [{ unified: "stop" }, { kind: "stop" }],
    [{ unified: "length", raw: "length" }, { kind: "max-tokens" }],
    [{ unified: "content-filter" }, { kind: "content-filter" }],
    [{ unified: "tool-calls" }, { kind: "tool-calls" }],
    [
      { unified: "other", raw: "pause_turn" },
      { kind: "other", raw: "pause_turn" },
    ],
    [
      { unified: "other", raw: undefined },
      { kind: "other", raw: "other" },
    ],
    ["length", { kind: "max-tokens" }],
    ["unknown", { kind: "other", raw: "unknown" }],
    [
      { unified: "error", raw: "MALFORMED_FUNCTION_CALL" },
      {
        kind: "error",
        code: "MODEL_ERROR",
        message: "acme/m1 failed in the middle of its answer: MALFORMED_FUNCTION_CALL. Send again.",
      },
    ],
    [
      { unified: "interrupted" },
      {
        kind: "error",
        code: "STREAM_INTERRUPTED",
        message: "acme/m1 stopped before its answer was complete. Send again.",
      },
    ],
  ])("%j is told as %j", async (given, expected) => {
    expect((await finish(given)).at(-1)).toEqual({ type: "finish", reason: expected });
  });

  test("interrupted before anything came means that no model was there", async () => {
    const stream = streamOf([{ ...stop, finishReason: { unified: "interrupted" } }]);
    const answer = { stream, response: { headers: { "content-type": "text/html" } } };
    const chunks = await chunksOf(aiSdkModel(languageModel([], { doStream: async () => answer })));
    expect(chunks).toEqual([
      {
        type: "finish",
        reason: {
          kind: "error",
          code: "MODEL_BAD_RESPONSE",
          message:
            "acme/m1 answered with nothing that can be read (text/html). Check the URL: it must lead to the provider's API.",
        },
      },
    ]);
  });
});

describe("of several errors in a stream", () => {
  const error = (message: string): Part => ({ type: "error", error: { message, type: "server_error", code: 503 } });

  test("the first is the failure; what comes after it is ignored, but for the usage", async () => {
    const chunks = await from(
      { type: "text-delta", id: "1", delta: "par" },
      error("first"),
      { type: "text-delta", id: "1", delta: "tial" },
      error("second"),
      { ...stop, usage: { inputTokens: { total: 1 }, outputTokens: {} } },
    );
    expect(chunks.slice(1)).toEqual([
      { type: "delta", index: 0, text: "par" },
      { type: "usage", usage: { input: 1 } },
      {
        type: "finish",
        reason: {
          kind: "error",
          code: "MODEL_OVERLOADED",
          status: 503,
          message: "acme/m1 is overloaded (503): first. Send again later, or use another model.",
        },
      },
    ]);
  });

  test("it is the failure also when the stream ends, or breaks, without a finish", async () => {
    expect((await from(error("first"))).at(-1)).toMatchObject({ type: "finish", reason: { code: "MODEL_OVERLOADED" } });
    const breaking = new ReadableStream({
      start: (out) => out.enqueue(error("first")),
      pull: () => Promise.reject(new TypeError("terminated")),
    });
    const chunks = await chunksOf(aiSdkModel(languageModel([], { doStream: async () => ({ stream: breaking }) })));
    expect(chunks).toMatchObject([{ type: "finish", reason: { code: "MODEL_OVERLOADED" } }]);
  });
});

test("a hundred thousand chunks cost linear work", async () => {
  const deltas: Part[] = Array.from({ length: 100_000 }, () => ({ type: "tool-input-delta", id: "t", delta: "x" }));
  const parts = [{ type: "tool-input-start", id: "t", toolName: "write" }, ...deltas, stop];
  const started = performance.now();
  expect(await from(...parts)).toHaveLength(100_002);
  expect(performance.now() - started).toBeLessThan(5_000);
});
