import { aiSdkModel } from "turnloop/ai-sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, LoadAPIKeyError, UnsupportedFunctionalityError } from "@ai-sdk/provider";
import { TurnloopError, type ModelChunk } from "turnloop";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chunksOf, languageModel, request } from "../support/language-model.ts";
import { chat, lose, providerUrl, sse, type Answer } from "../support/provider-answers.ts";
import { startProviderServer, type ProviderServer } from "../support/provider-server.ts";

interface Failure {
  readonly code: string;
  readonly message: string;
  readonly status?: number;
  readonly retryAfterMs?: number;
}

/** What a model fails with when the client throws that. */
async function failureOf(thrown: unknown, options: object = {}): Promise<Failure> {
  const model = aiSdkModel(languageModel([], { doStream: () => Promise.reject(thrown) }), options);
  const error: unknown = await chunksOf(model).catch((caught: unknown) => caught);
  if (!TurnloopError.is(error)) throw new Error("this should have failed", { cause: error });
  expect(error.cause).toBe(thrown);
  return error;
}

const apiError = (fields: Partial<ConstructorParameters<typeof APICallError>[0]>): APICallError =>
  new APICallError({ message: "", url: "https://example.com", requestBodyValues: {}, ...fields });
const said = (message: string, more: object = {}): string => JSON.stringify({ error: { message, ...more } });

describe("what a provider answers with is told by a code and a status:", () => {
  test.each<[string, Partial<ConstructorParameters<typeof APICallError>[0]>, string]>([
    ["a wrong key", { statusCode: 401, responseBody: said("who?") }, "MODEL_AUTH"],
    ["no right", { statusCode: 403, responseBody: said("not yours") }, "MODEL_AUTH"],
    ["too many requests", { statusCode: 429, responseBody: said("slow down") }, "RATE_LIMITED"],
    [
      "too many tokens per minute",
      {
        statusCode: 429,
        responseBody: said("Request too large: tokens per minute (TPM): Limit 6000, please reduce the length"),
      },
      "RATE_LIMITED",
    ],
    [
      "a used-up quota",
      { statusCode: 429, responseBody: said("You exceeded your current quota", { code: "insufficient_quota" }) },
      "MODEL_QUOTA",
    ],
    ["an unpaid bill", { statusCode: 402, responseBody: said("Insufficient credits") }, "MODEL_QUOTA"],
    [
      "an empty purse",
      { statusCode: 400, responseBody: said("Your credit balance is too low to access the API") },
      "MODEL_QUOTA",
    ],
    [
      "overload",
      { statusCode: 529, responseBody: said("Overloaded", { type: "overloaded_error" }) },
      "MODEL_OVERLOADED",
    ],
    ["no service", { statusCode: 503, message: "Service Unavailable" }, "MODEL_OVERLOADED"],
    ["a fault of its own", { statusCode: 500, responseBody: "boom" }, "MODEL_ERROR"],
    ["an unknown model", { statusCode: 404, responseBody: said("The model `x` does not exist") }, "MODEL_ERROR"],
    [
      "a filter, at Azure",
      { statusCode: 400, responseBody: said("x", { code: "content_filter" }) },
      "CONTENT_FILTERED",
    ],
    [
      "a filter, at Anthropic",
      { statusCode: 400, responseBody: said("Output blocked by content filtering policy") },
      "CONTENT_FILTERED",
    ],
    ["a time-out", { statusCode: 408, responseBody: said("x") }, "MODEL_UNREACHABLE"],
    [
      "too long, at Bedrock",
      { statusCode: 400, responseBody: said("Input is too long for requested model.") },
      "CONTEXT_OVERFLOW",
    ],
    [
      "too long with what was asked for, at Anthropic",
      {
        statusCode: 400,
        responseBody: said("input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000"),
      },
      "CONTEXT_OVERFLOW",
    ],
    [
      "too long, at Qwen",
      { statusCode: 400, responseBody: said("Range of input length should be [1, 30720]") },
      "CONTEXT_OVERFLOW",
    ],
    ["a web page", { statusCode: 404, responseBody: "<!DOCTYPE html><html></html>" }, "MODEL_BAD_RESPONSE"],
    ["a web page of a proxy in trouble", { statusCode: 502, responseBody: " <html></html>" }, "MODEL_ERROR"],
  ])("%s", async (_, fields, code) => {
    const failure = await failureOf(apiError(fields));
    expect(failure).toMatchObject({ code, status: fields.statusCode });
    expect(failure.message).toMatch(/^acme\/m1 .*\(\d{3}\).*[.]$/s);
  });

  test.each([
    ["-5", undefined],
    ["abc 12", undefined],
    ["5, 10", undefined],
    ["12abc", undefined],
    ["Infinity", undefined],
    ["1e400", undefined],
    ["9".repeat(400), Number.MAX_SAFE_INTEGER],
    ["", undefined],
    ["0", 0],
    [" 7 ", 7000],
    ["1.5", 1500],
    ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
  ])("a Retry-After of %o is read as %o ms, or not at all", async (after, retryAfterMs) => {
    const failure = await failureOf(apiError({ statusCode: 429, responseHeaders: { "retry-after": after } }));
    expect(failure.retryAfterMs).toBe(retryAfterMs);
    const precise = await failureOf(apiError({ statusCode: 429, responseHeaders: { "retry-after-ms": after } }));
    const isNumber = retryAfterMs !== undefined && !after.includes("GMT");
    expect(precise.retryAfterMs).toBe(isNumber ? Math.min(Number(after), Number.MAX_SAFE_INTEGER) : undefined);
  });

  test("a quota that will be there again in a minute is a limit of rate", async () => {
    const headers = { "retry-after": "34" };
    const responseBody = said("You exceeded your current quota, please check your plan and billing details.");
    const failure = await failureOf(apiError({ statusCode: 429, responseHeaders: headers, responseBody }));
    expect(failure).toMatchObject({ code: "RATE_LIMITED", retryAfterMs: 34_000 });
  });

  test.each([
    said("x", { code: "context_length_exceeded" }),
    said("This model's maximum context length is 8192 tokens"),
    said("x", { type: "exceed_context_size_error" }),
    said("prompt is too long: 210000 tokens > 200000 maximum"),
    said("The input token count (1100000) exceeds the maximum number of tokens allowed"),
    said("Please reduce the length of the messages or completion."),
    said("This model's maximum prompt length is 131072 but the request contains 200000 tokens"),
    said("Your request exceeded model token limit: 8192"),
  ])("more than the model can read: %s", async (responseBody) => {
    expect(await failureOf(apiError({ statusCode: 400, responseBody }))).toMatchObject({ code: "CONTEXT_OVERFLOW" });
  });

  test("more than the server takes at all", async () => {
    expect(await failureOf(apiError({ statusCode: 413 }))).toMatchObject({ code: "CONTEXT_OVERFLOW", status: 413 });
  });
});

test.each<[string, unknown, string]>([
  ["a missing key", new LoadAPIKeyError({ message: "OpenAI API key is missing." }), "MODEL_AUTH"],
  ["a file that it cannot take", new UnsupportedFunctionalityError({ functionality: "audio" }), "MODEL_UNSUPPORTED"],
  ["a network that is down, in Chromium", new TypeError("Failed to fetch"), "MODEL_UNREACHABLE"],
  [
    "a network that is down, in Firefox",
    new TypeError("NetworkError when attempting to fetch resource."),
    "MODEL_UNREACHABLE",
  ],
  ["a network that is down, in Safari", new TypeError("Load failed"), "MODEL_UNREACHABLE"],
  [
    "a network that is down, in Node",
    apiError({ message: "Cannot connect to API: getaddrinfo ENOTFOUND x" }),
    "MODEL_UNREACHABLE",
  ],
  ["a text", "just a text", "MODEL_ERROR"],
  ["nothing", undefined, "MODEL_ERROR"],
  [
    "what cannot be looked at",
    {
      get message(): string {
        throw new Error("no");
      },
    },
    "MODEL_ERROR",
  ],
  [
    "a chain without an end",
    Object.defineProperty(new Error("round"), "cause", {
      get(this: unknown) {
        return this;
      },
    }),
    "MODEL_ERROR",
  ],
])("a client that throws %s fails with a code", async (_, thrown, code) => {
  expect(await failureOf(thrown)).toMatchObject({ code, message: expect.stringMatching(/^acme\/m1 /) });
});

test("the three usual causes are named where nobody was reached", async () => {
  const { message } = await failureOf(new TypeError("Failed to fetch"));
  expect(message).toMatch(/offline.*URL.*CORS/);
});

describe("how long to wait is taken from", () => {
  const waitOf = async (responseHeaders: Record<string, string>, responseBody?: string): Promise<number | undefined> =>
    (await failureOf(apiError({ statusCode: 429, responseHeaders, ...(responseBody ? { responseBody } : {}) })))
      .retryAfterMs;

  test("retry-after-ms before retry-after, in seconds or as a date", async () => {
    expect(await waitOf({ "retry-after-ms": "1500", "retry-after": "9" })).toBe(1500);
    expect(await waitOf({ "retry-after": "2.5" })).toBe(2500);
    const inAMinute = await waitOf({ "retry-after": new Date(Date.now() + 60_000).toUTCString() });
    expect(inAMinute).toBeGreaterThan(50_000);
    expect(inAMinute).toBeLessThanOrEqual(60_000);
    expect(await waitOf({ "retry-after": "Mon, 01 Jan 2001 00:00:00 GMT" })).toBe(0);
  });

  test("the body, where Google says it; nothing else", async () => {
    expect(await waitOf({}, '{"error":{"details":[{"retryDelay": "34s"}]}}')).toBe(34_000);
    expect(await waitOf({ "retry-after": "soon" })).toBeUndefined();
    expect(await waitOf({})).toBeUndefined();
  });
});

test("no key or header is in a message", async () => {
  const secrets = [
    "sk-proj-aB3dEf9hIjKlMnOp",
    "AIzaSyA1234567890bcdefghijk",
    "0123456789abcdef0123456789abcdef",
    "team-blue-token",
  ];
  const [openai, google, azure, header] = secrets as [string, string, string, string];
  const words = `Incorrect API key provided: ${openai}. Authorization: Bearer ${azure}, x-goog ${google}, ${azure}, custom ${header}; sk-ab***********yz`;
  for (const responseBody of [said(words), words]) {
    const { message } = await failureOf(apiError({ statusCode: 401, responseBody }), { headers: { "x-team": header } });
    for (const secret of [...secrets, "sk-ab"]) expect(message).not.toContain(secret);
    expect(message).toContain("Incorrect API key provided");
  }
});

test("names of models and plain words stay readable", async () => {
  const words = "The model `gpt-5.5-mini-2026-07-18` does not exist or key-value pairs are wrong; see request-timeouts";
  expect((await failureOf(apiError({ statusCode: 404, responseBody: said(words) }))).message).toContain(words);
});

test("a long message is cut, and never in the middle of a character", async () => {
  const { message } = await failureOf(apiError({ statusCode: 400, responseBody: said("a🙂".repeat(5000)) }));
  expect(message.length).toBeLessThan(600);
  expect(message.isWellFormed()).toBe(true);
});

describe("through real clients over HTTP,", () => {
  let server: ProviderServer;
  beforeAll(async () => void (server = await startProviderServer()));
  afterAll(() => server.close());

  const clients: [string, (baseURL: string) => unknown][] = [
    ["openai chat", (baseURL) => createOpenAI({ baseURL, apiKey: "sk-secret-0123456789" }).chat("m1")],
    ["openai responses", (baseURL) => createOpenAI({ baseURL, apiKey: "sk-secret-0123456789" }).responses("gpt-5.5")],
    [
      "openai-compatible",
      (baseURL) => createOpenAICompatible({ baseURL, name: "acme", apiKey: "sk-secret-0123456789" })("m1"),
    ],
  ];
  const text = { choices: [{ index: 0, delta: { content: "partial" } }] };

  /** The text that came, and the failure at the end of it, thrown or streamed. */
  async function outcome(model: unknown, onText?: () => unknown): Promise<Partial<Failure> & { text: string }> {
    const seen: ModelChunk[] = [];
    let failure: Partial<Failure> = {};
    try {
      const signal = new AbortController().signal;
      for await (const some of aiSdkModel(model).stream(request(), { signal, sessionId: "s" })) {
        seen.push(...[some].flat());
        if (seen.some(({ type }) => type === "delta")) await onText?.();
      }
      const last = seen.at(-1);
      if (last?.type === "finish" && last.reason.kind === "error") failure = last.reason;
    } catch (error) {
      failure = error as Failure;
    }
    const { code, message, status, retryAfterMs } = failure;
    const came = seen.map((chunk) => (chunk.type === "delta" ? chunk.text : "")).join("");
    expect(message).not.toContain("secret");
    return { text: came, ...JSON.parse(JSON.stringify({ code, message, status, retryAfterMs })) };
  }

  describe.each(clients)("%s", (name, client) => {
    const ask = (answer: Answer) => {
      const url = providerUrl(server.url, answer);
      return outcome(client(url), answer.end === "drop-later" ? () => lose(url) : undefined);
    };

    test("tells the status of an answer that is an error", async () => {
      expect(await ask({ status: 401, body: said("Incorrect API key provided: sk-secret-0123456789") })).toMatchObject({
        code: "MODEL_AUTH",
        status: 401,
      });
      expect(await ask({ status: 429, headers: { "retry-after": "7" }, body: said("slow down") })).toMatchObject({
        code: "RATE_LIMITED",
        status: 429,
        retryAfterMs: 7000,
      });
      expect(await ask({ status: 500, body: "boom" })).toMatchObject({
        code: "MODEL_ERROR",
        status: 500,
        message: expect.stringContaining("boom"),
      });
      expect(await ask({ status: 503 })).toMatchObject({ code: "MODEL_OVERLOADED", status: 503 });
    });

    test("tells what is no answer of a model: a web page, JSON, nothing", async () => {
      const page = { headers: { "content-type": "text/html" }, body: "<!doctype html><p>Hello" };
      expect(await ask(page)).toMatchObject({
        code: "MODEL_BAD_RESPONSE",
        message: expect.stringMatching(/text\/html.*URL/),
      });
      expect(await ask({ ...page, status: 404 })).toMatchObject({ code: "MODEL_BAD_RESPONSE", status: 404 });
      expect(await ask({ headers: { "content-type": "application/json" }, body: said("x") })).toMatchObject({
        code: "MODEL_BAD_RESPONSE",
      });
      expect(await ask({ body: "" })).toMatchObject({ code: "MODEL_BAD_RESPONSE" });
    });

    test("tells that nobody is there", async () => {
      expect(await outcome(client("http://127.0.0.1:9/v1"))).toMatchObject({ code: "MODEL_UNREACHABLE" });
    });

    test("tells a connection that was lost before anything came", async () => {
      expect(await ask({ end: "drop" })).toMatchObject({ code: "STREAM_BROKEN", text: "" });
    });

    if (name === "openai responses") return;

    test("keeps what came before an error, before a loss, and before an end that came too soon", async () => {
      const dead = { error: { message: "The server had an error", type: "server_error" } };
      expect(await ask({ body: sse(text, dead) })).toMatchObject({
        text: "partial",
        message: expect.stringContaining("The server had an error"),
      });
      const lost = chat({ content: "partial" }, { content: "more" });
      expect(await ask({ body: lost, sent: lost.indexOf("more"), end: "drop-later" })).toMatchObject({
        text: "partial",
        code: "STREAM_BROKEN",
      });
      expect(await ask({ body: sse(text) })).toMatchObject({ text: "partial", code: "STREAM_INTERRUPTED" });
    });

    test("tells an event that is no JSON, and errors of an unusual form", async () => {
      const broken = `data: ${JSON.stringify(text)}\n\ndata: : PING\n\n${chat({ content: "more" })}`;
      expect(await ask({ body: broken })).toMatchObject({ text: "partial", code: "MODEL_BAD_RESPONSE" });
      expect(await ask({ body: sse(text, { error: "out of luck" }) })).toMatchObject({
        text: "partial",
        code: "MODEL_ERROR",
        message: expect.stringContaining("out of luck"),
      });
    });
  });

  test("a cancel ends a request that is never answered, and lets go of the connection", async () => {
    for (const [, client] of clients) {
      const url = providerUrl(server.url, { silent: true });
      const control = new AbortController();
      const answer = chunksOf(aiSdkModel(client(url)), request(), control.signal);
      await server.asked(url);
      control.abort();
      expect(await answer).toEqual([{ type: "finish", reason: { kind: "aborted" } }]);
      await server.abandoned(url);
    }
  });

  test("a cancel in the middle of an answer keeps what came, and lets go of the connection", async () => {
    for (const [, client] of clients.filter(([name]) => name !== "openai responses")) {
      const url = providerUrl(server.url, { body: sse(text).replace("data: [DONE]", ""), end: "hang" });
      const control = new AbortController();
      const seen: ModelChunk[] = [];
      for await (const some of aiSdkModel(client(url)).stream(request(), { signal: control.signal, sessionId: "s" })) {
        seen.push(...[some].flat());
        if (seen.some(({ type }) => type === "delta")) control.abort();
      }
      expect(seen.slice(1)).toEqual([
        { type: "delta", index: 0, text: "partial" },
        { type: "finish", reason: { kind: "aborted" } },
      ]);
      await server.abandoned(url);
    }
  });
});
