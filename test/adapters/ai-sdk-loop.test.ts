import { aiSdkModel } from "turnloop/ai-sdk";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createHarness, defineTool, run, type Agent, type ErrorData, type Harness } from "turnloop";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { chat, lose, providerUrl, sse, type Answer } from "../support/provider-answers.ts";
import { startProviderServer, type ProviderServer } from "../support/provider-server.ts";

let server: ProviderServer;
beforeAll(async () => void (server = await startProviderServer()));
afterAll(() => server.close());

const harnesses: Harness[] = [];
afterEach(() => Promise.all(harnesses.splice(0).map((harness) => harness.dispose())));

const look = defineTool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: ({ at }) => `saw ${at}`,
});

const model = (url: string) =>
  aiSdkModel(createOpenAICompatible({ baseURL: url, name: "acme", apiKey: "sk-0123456789", includeUsage: true })("m1"));

async function agentFor(...answers: Answer[]): Promise<{ agent: Agent; harness: Harness; url: string }> {
  const url = providerUrl(server.url, ...answers);
  const harness = createHarness({ model: model(url), tools: [look] });
  harnesses.push(harness);
  const { agent } = await harness.agents.create();
  return { agent, harness, url };
}

interface Sent {
  readonly role: string;
  readonly content: string;
  readonly tool_call_id?: string;
  readonly tool_calls?: readonly { readonly id: string }[];
}

const partial = { choices: [{ index: 0, delta: { content: "half an answer" } }] };
const calling = (id: string, args: string): Answer => ({
  body: sse(
    { choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id, function: { name: "look", arguments: args } }] } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
  ),
});

test.each<[string, Answer, string, RegExp]>([
  [
    "401",
    { status: 401, body: '{"error":{"message":"Incorrect API key: sk-0123456789"}}' },
    "MODEL_AUTH",
    /^acme\/m1 refused the key \(401\).*Check the API key/,
  ],
  [
    "429",
    { status: 429, body: '{"error":{"message":"slow down"}}' },
    "RATE_LIMITED",
    /asked too often \(429\): slow down/,
  ],
  ["500", { status: 500, body: "boom" }, "MODEL_ERROR", /failed \(500\).*boom/],
  [
    "a web page",
    { headers: { "content-type": "text/html" }, body: "<html>Hello</html>" },
    "MODEL_BAD_RESPONSE",
    /text\/html.*Check the URL/,
  ],
  ["an empty body", { body: "" }, "MODEL_BAD_RESPONSE", /Check the URL/],
  [
    "an error inside a good answer",
    { body: sse(partial, { error: { message: "out of luck" } }) },
    "MODEL_ERROR",
    /out of luck/,
  ],
  [
    "a lost connection",
    { body: sse(partial), sent: sse(partial).indexOf("data: [DONE]"), end: "drop-later" },
    "STREAM_BROKEN",
    /cut off in the middle/,
  ],
  ["an answer without an end", { body: sse(partial) }, "STREAM_INTERRUPTED", /before its answer was complete/],
])(
  "%s ends the turn with a readable error and its code, and keeps the text that came",
  async (_, answer, code, message) => {
    const { agent, url } = await agentFor(answer);
    agent.on("assistant/chunk", ({ data }) => {
      if (data.chunk.type === "delta" && answer.end === "drop-later") void lose(url);
    });
    const { reason, text } = await run(agent, "go").result;
    expect(reason).toMatchObject({ kind: "error", code, message: expect.stringMatching(message) });
    expect(JSON.stringify(agent.session.events)).not.toContain("sk-0123456789");
    const began = answer.body?.includes("half an answer") === true;
    const kept = agent.session.events.flatMap(({ type, data }) => (type === "assistant/message" ? [data] : []));
    const half = { interrupted: true, content: [{ type: "text", text: "half an answer" }] };
    expect(kept).toMatchObject(began ? [half] : []);
    expect(text).toBe(began ? "half an answer" : "");
  },
);

test("whoever decides about a retry is told the status and how long to wait", async () => {
  const { agent, harness, url } = await agentFor(
    { status: 429, headers: { "retry-after-ms": "1" }, body: "{}" },
    { body: chat({ content: "now" }) },
  );
  const errors: ErrorData[] = [];
  harness.hooks.on("agent/request-error", ({ error }) => {
    errors.push(error);
    return { kind: "retry", afterMs: error.retryAfterMs ?? 60_000 };
  });
  expect((await run(agent, "go").result).text).toBe("now");
  expect(errors).toEqual([expect.objectContaining({ code: "RATE_LIMITED", status: 429, retryAfterMs: 1 })]);
  expect(server.requests(url)).toHaveLength(2);
});

test("a cancel ends a turn whose provider never answers, and lets go of the connection", async () => {
  const { agent, url } = await agentFor({ silent: true }, { body: chat({ content: "hello again" }) });
  const { result } = run(agent, "go");
  await server.asked(url);
  agent.cancel("enough");
  expect((await result).reason).toEqual({ kind: "aborted", reason: "enough" });
  await server.abandoned(url);
  expect((await run(agent, "again").result).text).toBe("hello again");
});

test("a cancel in mid answer keeps the text, and the conversation goes on from there", async () => {
  const { agent, url } = await agentFor(
    { body: sse(partial).replace("data: [DONE]", ""), end: "hang" },
    { body: chat({ content: "and the rest" }) },
  );
  agent.on("assistant/chunk", ({ data }) => {
    if (data.chunk.type === "delta") agent.cancel("enough");
  });
  expect(await run(agent, "go").result).toMatchObject({ reason: { kind: "aborted" }, text: "half an answer" });
  await server.abandoned(url);
  await agent.whenIdle();
  const other = run(agent, "go on");
  await other.result;
  expect(server.requests(url)[1]!["messages"]).toEqual([
    { role: "user", content: "go" },
    { role: "assistant", content: "half an answer" },
    { role: "user", content: "go on" },
  ]);
});

test("one id for all calls does not mix them up", async () => {
  const steps = [1, 2, 3].map((at) => calling("Z", `{"at":${at}}`));
  const { agent, url } = await agentFor(...steps, { body: chat({ content: "done" }) });
  expect((await run(agent, "go").result).text).toBe("done");
  const messages: Sent[] = server.requests(url).at(-1)!["messages"];
  const called = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id));
  expect(new Set(called).size).toBe(3);
  expect(
    messages.filter(({ role }) => role === "tool").map(({ tool_call_id, content }) => [tool_call_id, content]),
  ).toEqual(called.map((id, at) => [id, `saw ${at + 1}`]));
});

test("arguments that are no JSON do not run, are answered with an error, and do not spoil the next request", async () => {
  const { agent, url } = await agentFor(calling("c1", '{"at":"x" "n":1}'), { body: chat({ content: "sorry" }) });
  expect((await run(agent, "go").result).text).toBe("sorry");
  const [, assistant, result] = server.requests(url)[1]!["messages"];
  expect(JSON.parse(assistant.tool_calls[0].function.arguments)).toEqual({ malformed_arguments: '{"at":"x" "n":1}' });
  expect(result).toMatchObject({ role: "tool", tool_call_id: "c1" });
  expect(agent.session.events.some(({ type }) => type === "tool/start")).toBe(false);
});

test("an agent that goes over to another provider takes no ids and no reasoning of the first along", async () => {
  const thinking = sse(
    { choices: [{ index: 0, delta: { reasoning_content: "hm" } }] },
    {
      choices: [
        {
          index: 0,
          delta: { tool_calls: [{ index: 0, id: "first|id", function: { name: "look", arguments: '{"at":1}' } }] },
        },
      ],
    },
    { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
  );
  const first = providerUrl(server.url, { body: thinking }, { body: chat({ content: "seen" }) });
  const second = providerUrl(server.url, { body: chat({ content: "hello" }) });
  const other = aiSdkModel(createOpenAICompatible({ baseURL: second, name: "other", apiKey: "k" })("m2"));
  const harness = createHarness({ model: model(first), models: { other }, tools: [look] });
  harnesses.push(harness);
  const { agent } = await harness.agents.create();
  await run(agent, "go").result;
  expect(JSON.stringify(server.requests(first)[1])).toContain('"reasoning_content":"hm"');
  agent.configure({ model: "other" });
  await run(agent, "go on").result;
  const sent = JSON.stringify(server.requests(second)[0]);
  expect(sent).not.toMatch(/reasoning_content|first\|id/);
  expect(sent).toContain("saw 1");
});
