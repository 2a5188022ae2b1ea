import { aiSdkModel } from "turnloop/ai-sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  createHarness,
  defineTool,
  run,
  type AgentOptions,
  type ContentBlock,
  type TurnEndReason,
  type Usage,
} from "turnloop";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chunksOf } from "../support/language-model.ts";
import { chat, providerUrl, responses } from "../support/provider-answers.ts";
import {
  fixtures,
  haveFixtures,
  startProviderServer,
  type ProviderServer,
  type SentBody,
} from "../support/provider-server.ts";

let server: ProviderServer;
beforeAll(async () => void (server = await startProviderServer()));
afterAll(() => server.close());

type Client = (baseURL: string) => unknown;
const openaiChat: Client = (baseURL) => createOpenAI({ baseURL, apiKey: "k" }).chat("m");
const openaiResponses: Client = (baseURL) => createOpenAI({ baseURL, apiKey: "k" }).responses("gpt-5.5");
const compatible =
  (name: string): Client =>
  (baseURL) =>
    createOpenAICompatible({ baseURL, name, apiKey: "k", includeUsage: true })("m");

const TOOLS = [
  "weather",
  "get_weather",
  "GetWeatherArgs",
  "get_stock_price",
  "webSearchTool",
  "calculator",
  "llm_version",
];

interface Played {
  /** Of the first answer. */
  readonly content: readonly ContentBlock[];
  readonly usage: Usage | undefined;
  readonly interrupted: boolean;
  /** The name and arguments of each body that ran. */
  readonly ran: readonly [string, unknown][];
  readonly reason: TurnEndReason | { readonly kind: string };
  /** The bodies of all requests. */
  readonly requests: readonly SentBody[];
}

/** A whole turn of the loop, whose first answer is the recorded stream; a second one just says "done". */
async function play(stream: string, client: Client, seed?: number, options: AgentOptions = {}): Promise<Played> {
  const last = client === openaiResponses ? responses("done") : chat({ content: "done" });
  const url = providerUrl(server.url, { stream, ...(seed === undefined ? {} : { seed }) }, { body: last });
  const ran: [string, unknown][] = [];
  const tools = TOOLS.map((name) =>
    defineTool({
      name,
      description: name,
      inputSchema: { type: "object" },
      execute: (args) => void ran.push([name, args]),
    }),
  );
  const harness = createHarness({ model: aiSdkModel(client(url), { onWarning: () => {} }), tools });
  const { agent } = await harness.agents.create(options);
  const { reason } = await run(agent, "go").result;
  const answers = agent.session.events.flatMap((event) => (event.type === "assistant/message" ? [event.data] : []));
  await harness.dispose();
  const { content = [], usage, interrupted = false } = answers[0] ?? {};
  return { content, usage, interrupted, ran, reason, requests: server.requests(url) };
}

const text = (words: unknown): object => ({ type: "text", text: words });
const reasoning = (words: unknown): object => ({ type: "reasoning", text: words });
const call = (name: string, args: string, providerCallId: string): object =>
  expect.objectContaining({
    type: "tool-call",
    name,
    arguments: args,
    meta: expect.objectContaining({ providerCallId }),
  });
/** So long, with that beginning and that end. */
const long = (length: number, begins: string, ends: string): unknown => ({
  asymmetricMatch: (value: unknown) =>
    typeof value === "string" && value.length === length && value.startsWith(begins) && value.endsWith(ends),
  toString: () => `text of ${length} characters: ${begins}...${ends}`,
});

interface Expected {
  readonly stream: string;
  readonly clients: readonly Client[];
  readonly content: readonly unknown[];
  readonly usage?: Usage;
  readonly ran?: readonly [string, unknown][];
  readonly reason?: object;
  readonly interrupted?: boolean;
}

const completed = { kind: "completed" };
const failed = (code: string, message: RegExp): object => ({
  kind: "error",
  step: 1,
  code,
  message: expect.stringMatching(message),
});

const EXPECTED: readonly Expected[] = [
  {
    stream: "deepseek-tool-call",
    clients: [compatible("deepseek")],
    content: [
      reasoning(long(191, "The user is asking for the weather", 'set to "San Francisco".')),
      call("weather", '{"location": "San Francisco"}', "call_00_ioIn7yN9p1ZOMNpDLwd4MgAF"),
    ],
    usage: { input: 19, cacheRead: 320, output: 44, reasoning: 39 },
    ran: [["weather", { location: "San Francisco" }]],
  },
  {
    stream: "deepseek-reasoning",
    clients: [compatible("deepseek")],
    content: [
      reasoning(long(606, "We need to count", "the answer is 3.")),
      text('The word "strawberry" contains three "r"s.'),
    ],
    usage: { input: 18, cacheRead: 0, output: 14, reasoning: 205 },
  },
  {
    stream: "alibaba-tool-call",
    clients: [compatible("alibaba"), openaiChat],
    content: [call("weather", '{"location": "San Francisco"}', "call_eee11723464a4b9eb8cee71d")],
    usage: { input: 295, cacheRead: 0, output: 22, reasoning: 0 },
    ran: [["weather", { location: "San Francisco" }]],
  },
  {
    stream: "mistral-incremental-tool-call",
    clients: [compatible("mistral"), openaiChat],
    content: [call("webSearchTool", '{"query": "current Berlin weather"}', "chatcmpl-tool-9f149c74c42f265b")],
    usage: { input: 43, cacheRead: 128, output: 14, reasoning: 0 },
    ran: [["webSearchTool", { query: "current Berlin weather" }]],
  },
  {
    stream: "groq-tool-call",
    clients: [compatible("groq"), openaiChat],
    content: [call("weather", "{}", "tk85n1k4m")],
    usage: { input: 210, cacheRead: 0, output: 15, reasoning: 0 },
    ran: [["weather", {}]],
  },
  {
    stream: "xai-tool-call",
    clients: [compatible("xai")],
    content: [reasoning("First, the user is"), call("weather", '{"location":"San Francisco"}', "call_55117580")],
    usage: { input: 1, cacheRead: 290, output: 26, reasoning: 196 },
    ran: [["weather", { location: "San Francisco" }]],
  },
  {
    stream: "openai-text",
    clients: [openaiChat, compatible("openai")],
    content: [text(long(1724, "**Holiday Name:** Harmony Day", "and mutual respect."))],
    usage: { input: 16, cacheRead: 0, output: 300, reasoning: 0 },
  },
  {
    stream: "azure-model-router-1",
    clients: [openaiChat, compatible("azure")],
    content: [text("Capital of Denmark.")],
    usage: { input: 15, cacheRead: 0, output: 14, reasoning: 64 },
  },
  {
    stream: "openai-error-1",
    clients: [openaiResponses],
    content: [],
    reason: failed("MODEL_QUOTA", /exceeded your current quota.*billing/),
  },
  {
    stream: "openai-reasoning-encrypted-content-1",
    clients: [openaiResponses],
    content: [
      { ...reasoning(long(163, "**Calculating step-by-step", "the final product.")), meta: expect.anything() },
      call("calculator", '{"a":12,"b":7,"op":"add"}', "call_AB6AaRZ1FYZB2RwS6A5vbdqn"),
      call("calculator", '{"a":19,"b":3,"op":"multiply"}', "call_Q6pW65MUgW9vF59BmItYGos3"),
      call("calculator", '{"a":57,"b":10,"op":"multiply"}', "call_Zl5vIMnD7dVAjgU6FkhmiCZh"),
      { ...text("The final result is **570**."), meta: { openai: { itemId: expect.stringMatching(/^msg_/) } } },
    ],
    usage: { input: 299, cacheRead: 0, output: 12, reasoning: 0 },
    ran: [
      ["calculator", { a: 12, b: 7, op: "add" }],
      ["calculator", { a: 19, b: 3, op: "multiply" }],
      ["calculator", { a: 57, b: 10, op: "multiply" }],
    ],
  },
  {
    stream: "azure-tool-call-1",
    clients: [openaiResponses],
    content: [call("weather", '{"location":"San Francisco"}', "call_H5DxLSFnsGhiROnUiDHmgyc8")],
    usage: { input: 45, cacheRead: 0, output: 24, reasoning: 0 },
    ran: [["weather", { location: "San Francisco" }]],
  },
  {
    stream: "openai-two-parallel-calls",
    clients: [openaiChat, compatible("openai")],
    content: [
      call("GetWeatherArgs", '{"city": "Edinburgh", "country": "GB", "units": "c"}', "call_JMW1whyEaYG438VE1OIflxA2"),
      call("get_stock_price", '{"ticker": "AAPL", "exchange": "NASDAQ"}', "call_DNYTawLBoN8fj3KN6qU9N1Ou"),
    ],
    usage: { input: 149, cacheRead: 0, output: 60, reasoning: 0 },
    ran: [
      ["GetWeatherArgs", { city: "Edinburgh", country: "GB", units: "c" }],
      ["get_stock_price", { ticker: "AAPL", exchange: "NASDAQ" }],
    ],
  },
  {
    stream: "openai-one-call-8",
    clients: [openaiChat, compatible("openai")],
    content: [call("get_weather", '{"city":"New York City"}', "call_4XzlGBLtUe9dy3GVNV4jhq7h")],
    usage: { input: 44, cacheRead: 0, output: 16, reasoning: 0 },
    ran: [["get_weather", { city: "New York City" }]],
  },
  {
    stream: "openai-length",
    clients: [openaiChat, compatible("openai")],
    content: [text('{"')],
    usage: { input: 79, cacheRead: 0, output: 1, reasoning: 0 },
    reason: { kind: "max-tokens" },
  },
  {
    stream: "openai-refusal",
    clients: [openaiChat, compatible("openai")],
    content: [text("I'm sorry, I can't assist with that request.")],
    usage: { input: 79, cacheRead: 0, output: 11, reasoning: 0 },
    reason: { kind: "content-filter" },
  },
  {
    stream: "openrouter-error-mid-stream",
    clients: [compatible("openrouter")],
    content: [reasoning("We need to respond to a greeting. The user")],
    reason: failed("MODEL_ERROR", /400.*Token limit reached/),
    interrupted: true,
  },
  {
    stream: "groq-tool-use-failed",
    clients: [compatible("groq")],
    content: [reasoning(long(412, "We need to call the tool with invalid", "Let's do that."))],
    reason: failed("MODEL_ERROR", /Tool call validation failed.*get_something_by_name/),
    interrupted: true,
  },
  {
    stream: "zai-thinking",
    clients: [compatible("zai")],
    content: [reasoning(long(2173, "\n1.  **Analyze the User's Request:**", '"4".')), text("4")],
    usage: { input: 13, cacheRead: 0, output: 3, reasoning: 561 },
  },
  {
    // A whole call, but no word that the answer is whole: it must not run.
    stream: "kimi-repeated-call-delta",
    clients: [compatible("kimi"), openaiChat],
    content: [],
    reason: failed("STREAM_INTERRUPTED", /before its answer was complete/),
  },
  {
    stream: "kimi-repeated-call-delta-2",
    clients: [compatible("kimi"), openaiChat],
    content: [text("The current version of *llm* is **0.fixed-version**.")],
    usage: { input: 107, cacheRead: 0, output: 15, reasoning: 0 },
  },
];

describe.skipIf(!haveFixtures)("recorded streams (skipped where TURNLOOP_FIXTURES has none)", () => {
  test.each(EXPECTED)(
    "$stream gives its message, its calls, its usage and its end, wherever the bytes are cut",
    async (expected) => {
      const { stream, clients, content, usage, ran = [], reason = completed, interrupted = false } = expected;
      for (const client of clients) {
        for (const seed of [undefined, 1, 2]) {
          const played = await play(`${stream}.sse`, client, seed);
          expect(played.content).toEqual(content);
          expect(played).toMatchObject({ usage, ran, reason, interrupted });
          expect(played.requests).toHaveLength(ran.length > 0 ? 2 : 1);
        }
      }
    },
  );

  test("each recorded stream is among those above", async () => {
    const { readdirSync } = await import("node:fs");
    expect(readdirSync(fixtures).toSorted()).toEqual(EXPECTED.map(({ stream }) => `${stream}.sse`).toSorted());
  });

  test("forty ways to cut the bytes give the same chunks", async () => {
    const cut = (seed?: number) => {
      const url = providerUrl(server.url, {
        stream: "openai-two-parallel-calls.sse",
        ...(seed === undefined ? {} : { seed }),
      });
      return chunksOf(aiSdkModel(openaiChat(url)));
    };
    const whole = await cut();
    for (let seed = 1; seed <= 40; seed += 1) expect(await cut(seed)).toEqual(whole);
  });
});

describe.skipIf(!haveFixtures)("the next request gives back what the provider needs", () => {
  test("Chat Completions: the call with the provider's id, its arguments, and the result", async () => {
    const { requests } = await play("openai-one-call-8.sse", openaiChat);
    const id = "call_4XzlGBLtUe9dy3GVNV4jhq7h";
    expect(requests[1]!["messages"].slice(1)).toEqual([
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id, type: "function", function: { name: "get_weather", arguments: '{"city":"New York City"}' } },
        ],
      },
      { role: "tool", tool_call_id: id, content: "done" },
    ]);
  });

  test("DeepSeek: the reasoning beside the call", async () => {
    const { requests } = await play("deepseek-tool-call.sse", compatible("deepseek"));
    expect(requests[1]!["messages"][1]).toMatchObject({
      role: "assistant",
      reasoning_content: expect.stringMatching(/^The user is asking/),
      tool_calls: [{ id: "call_00_ioIn7yN9p1ZOMNpDLwd4MgAF" }],
    });
  });

  test("Responses: references to stored items", async () => {
    const { requests } = await play("openai-reasoning-encrypted-content-1.sse", openaiResponses);
    const input: { type?: string; id?: string; call_id?: string }[] = requests[1]!["input"];
    expect(input.map(({ type, id, call_id }) => [type, id?.slice(0, 3) ?? call_id])).toEqual([
      [undefined, undefined],
      ["item_reference", "rs_"],
      ["function_call", "call_AB6AaRZ1FYZB2RwS6A5vbdqn"],
      ["function_call", "call_Q6pW65MUgW9vF59BmItYGos3"],
      ["function_call", "call_Zl5vIMnD7dVAjgU6FkhmiCZh"],
      ["item_reference", "msg"],
      ["function_call_output", "call_AB6AaRZ1FYZB2RwS6A5vbdqn"],
      ["function_call_output", "call_Q6pW65MUgW9vF59BmItYGos3"],
      ["function_call_output", "call_Zl5vIMnD7dVAjgU6FkhmiCZh"],
    ]);
  });

  test("Responses without storage: the encrypted reasoning itself", async () => {
    const stream = "openai-reasoning-encrypted-content-1.sse";
    const providerOptions = { openai: { store: false, include: ["reasoning.encrypted_content"] } };
    const { requests } = await play(stream, openaiResponses, undefined, { call: { providerOptions } });
    const recorded = [...readFileSync(join(fixtures, stream), "utf8").matchAll(/"encrypted_content":"([^"]+)"/g)].map(
      ([, content]) => content,
    );
    const [, sent] = requests[1]!["input"];
    expect(sent).toMatchObject({ type: "reasoning", summary: [{ type: "summary_text" }] });
    expect(recorded).toContain(sent.encrypted_content);
  });
});
