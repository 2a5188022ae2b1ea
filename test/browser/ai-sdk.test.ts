import { aiSdkModel } from "turnloop/ai-sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createHarness, defineTool, run, type RunResult } from "turnloop";
import { expect, inject, test } from "vitest";
import { chat, lose, providerUrl, responses, sse, type Answer } from "../support/provider-answers.ts";

const provider = inject("provider");

const look = defineTool({
  name: "weather",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: () => "sunny",
});

async function play(model: unknown, onText?: () => unknown): Promise<RunResult> {
  const harness = createHarness({ model: aiSdkModel(model, { onWarning: () => {} }), tools: [look] });
  const { agent } = await harness.agents.create();
  agent.on("assistant/chunk", ({ data }) => {
    if (data.chunk.type === "delta") onText?.();
  });
  const result = await run(agent, "go").result;
  await harness.dispose();
  return result;
}

const at = (baseURL: string): unknown =>
  createOpenAICompatible({ baseURL, name: "acme", apiKey: "k", includeUsage: true })("m1");
const compatible = (...answers: Answer[]): unknown => at(providerUrl(provider, ...answers));

test("a page talks to a provider of the Chat Completions dialect, cut anywhere", async () => {
  const calling = sse(
    {
      choices: [
        {
          index: 0,
          delta: {
            tool_calls: [{ index: 0, id: "c1", function: { name: "weather", arguments: '{"city":"Tromsø 🙂"}' } }],
          },
        },
      ],
    },
    { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] },
  );
  for (const seed of [1, 2, 3]) {
    const { text, reason } = await play(
      compatible({ body: calling, seed }, { body: chat({ content: "It is " }, { content: "sunny 🙂" }), seed }),
    );
    expect({ text, reason }).toEqual({ text: "It is sunny 🙂", reason: { kind: "completed" } });
  }
});

test("a page talks to a provider of the Responses dialect", async () => {
  const baseURL = providerUrl(provider, { body: responses("hello"), seed: 4 });
  expect((await play(createOpenAI({ baseURL, apiKey: "k" }).responses("gpt-5.5"))).text).toBe("hello");
});

test.skipIf(!inject("haveFixtures"))("a page plays a recorded tool call", async () => {
  const { text, messages } = await play(
    compatible({ stream: "deepseek-tool-call.sse", seed: 5 }, { body: chat({ content: "done" }) }),
  );
  expect(text).toBe("done");
  expect(messages.flatMap(({ content }) => content)).toContainEqual(
    expect.objectContaining({ type: "tool-call", name: "weather", arguments: '{"location": "San Francisco"}' }),
  );
});

test("a server that does not allow the page says nothing else than one that is not there: the message names the causes", async () => {
  const refused = { kind: "error", code: "MODEL_UNREACHABLE", message: expect.stringMatching(/offline.*URL.*CORS/) };
  expect((await play(compatible({ cors: false }))).reason).toMatchObject(refused);
  expect((await play(at("http://127.0.0.1:9/v1"))).reason).toMatchObject(refused);
});

test("bad answers are told as in Node", async () => {
  expect((await play(compatible({ status: 401, body: '{"error":{"message":"no"}}' }))).reason).toMatchObject({
    code: "MODEL_AUTH",
  });
  expect((await play(compatible({ headers: { "content-type": "text/html" }, body: "<html>" }))).reason).toMatchObject({
    code: "MODEL_BAD_RESPONSE",
  });
});

test("a connection that is lost in mid answer keeps the text that came", async () => {
  const body = chat({ content: "partial" }, { content: "more" });
  const url = providerUrl(provider, { body, sent: body.indexOf("more"), end: "drop-later" });
  const { reason, text } = await play(at(url), () => lose(url));
  expect({ reason, text }).toMatchObject({ reason: { code: "STREAM_BROKEN" }, text: "partial" });
});
