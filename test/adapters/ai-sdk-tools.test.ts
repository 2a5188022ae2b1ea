import { aiSdkTools } from "turnloop/ai-sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { dynamicTool, jsonSchema, tool, zodSchema } from "ai";
import {
  createHarness,
  run,
  type ContentBlock,
  type JsonValue,
  type SessionEvent,
  type ToolDefinition,
} from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";

interface Ran {
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  readonly events: readonly SessionEvent[];
}

/** One call of the first tool, in a loop with a scripted model. */
async function call(tools: readonly ToolDefinition[], args: unknown, context?: unknown): Promise<Ran> {
  const name = tools[0]!.name;
  const answers: ScriptedAnswer[] = [{ toolCalls: [{ name, args }] }, "done"];
  const harness = createHarness({ model: scriptedModel(answers), tools, interactive: false });
  const { agent } = await harness.agents.create({ context });
  await run(agent, "go").result;
  const events = [...agent.session.events];
  await harness.dispose();
  const result = events.find((event): event is SessionEvent<"tool/result"> => event.type === "tool/result");
  if (!result) throw new Error("the tool was not called");
  return { content: result.data.content, isError: result.data.isError, events };
}

const words = ({ content }: Ran): string =>
  content.map((block) => (block.type === "text" ? block.text : block.type)).join();

describe("the input of a tool", () => {
  const execute = (input: unknown): unknown => input;
  const kinds: [string, unknown][] = [
    ["zod", z.object({ city: z.string() })],
    ["zodSchema", zodSchema(z.object({ city: z.string() }))],
    [
      "jsonSchema with a validator",
      jsonSchema(
        { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
        {
          validate: (value) =>
            typeof (value as { city?: unknown }).city === "string"
              ? { success: true, value }
              : { success: false, error: new Error("city must be text") },
        },
      ),
    ],
    ["a function that makes it", () => zodSchema(z.object({ city: z.string() }))],
  ];

  test.each(kinds)("is shown to the model and validated: %s", async (_, inputSchema) => {
    const tools = aiSdkTools({
      weather: tool({ description: "Tells the weather", inputSchema: inputSchema as z.ZodType, execute }),
    });
    const harness = createHarness({ model: scriptedModel([]), tools });
    expect(harness.tools.schemas()).toMatchObject([
      {
        name: "weather",
        description: "Tells the weather",
        parameters: { type: "object", properties: { city: { type: "string" } } },
      },
    ]);
    await harness.dispose();
    expect(words(await call(tools, { city: "Oslo" }))).toBe('{"city":"Oslo"}');
    const refused = await call(tools, { city: 7 });
    expect(refused.isError).toBe(true);
    expect(words(refused)).toMatch(/city/);
  });

  test("may be plain JSON Schema, or nothing at all", async () => {
    const [plain] = aiSdkTools({ t: { inputSchema: jsonSchema({ type: "object" }), execute } });
    expect(words(await call([plain!], { any: 1 }))).toBe('{"any":1}');
    expect(words(await call(aiSdkTools({ t: { execute: () => "ok" } }), {}))).toBe("ok");
  });

  test.each<[string, unknown, RegExp]>([
    [
      "a schema that comes later",
      { inputSchema: jsonSchema(Promise.resolve({ type: "object" })), execute },
      /"t".*known at once/,
    ],
    ["no schema", { inputSchema: "text", execute }, /"t".*inputSchema/],
    ["a tool that the provider runs", createOpenAI({ apiKey: "k" }).tools.webSearch(), /"t".*providerTools/],
    ["a description that is no text", { description: () => "x", execute }, /"t".*description/],
  ])("is refused with INVALID_TOOL: %s", (_, given, message) => {
    expect(() => aiSdkTools({ t: given })).toThrow(
      expect.objectContaining({ code: "INVALID_TOOL", message: expect.stringMatching(message) }),
    );
  });
});

describe("the body of a tool", () => {
  test("gets its arguments and the AI SDK's options", async () => {
    const seen: unknown[] = [];
    const body = tool({
      inputSchema: z.object({ a: z.number() }),
      execute: (input, options) => void seen.push(input, options),
    });
    const ran = await call(aiSdkTools({ t: body }), { a: 1 }, { user: "ada" });
    const callIds = ran.events.flatMap((event) => (event.type === "tool/start" ? [event.data.callId] : []));
    expect(seen).toEqual([
      { a: 1 },
      expect.objectContaining({
        toolCallId: callIds[0],
        messages: [],
        abortSignal: expect.any(AbortSignal),
        context: { user: "ada" },
      }),
    ]);
    expect(words(ran)).toBe("done");
  });

  test("may be a generator: its last yield is the result, those before are progress", async () => {
    const body = tool({
      inputSchema: z.object({}),
      async *execute() {
        yield { pct: 10 };
        yield { pct: 90 };
        yield "all of it";
      },
    });
    const ran = await call(aiSdkTools({ t: body }), {});
    const progress = ran.events.flatMap((event): JsonValue[] =>
      event.type === "tool/progress" ? [event.data.value] : [],
    );
    expect(progress).toEqual([{ pct: 10 }, { pct: 90 }]);
    expect(words(ran)).toBe("all of it");
  });

  test("answers the model with an error when it throws", async () => {
    const ran = await call(
      aiSdkTools({
        t: dynamicTool({ inputSchema: z.object({}), execute: () => Promise.reject(new Error("no luck")) }),
      }),
      {},
    );
    expect(ran.isError).toBe(true);
    expect(words(ran)).toContain("no luck");
  });

  test("keeps its `this`", async () => {
    const counter = {
      count: 41,
      inputSchema: z.object({}),
      execute(this: { count: number }) {
        return (this.count += 1);
      },
    };
    expect(words(await call(aiSdkTools({ counter }), {}))).toBe("42");
  });
});

describe("what a tool has prepared for the model with toModelOutput", () => {
  const prepared = (output: unknown): Promise<Ran> =>
    call(aiSdkTools({ t: { inputSchema: z.object({}), execute: () => "raw", toModelOutput: () => output } }), {});

  test("is what the model gets", async () => {
    expect(words(await prepared({ type: "text", value: "short" }))).toBe("short");
    expect(words(await prepared({ type: "json", value: { a: 1 } }))).toBe('{"a":1}');
    expect(await prepared({ type: "error-text", value: "bad" })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("bad") }],
    });
    expect(await prepared({ type: "error-json", value: { code: 5 } })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('{"code":5}') }],
    });
    expect(await prepared({ type: "execution-denied", reason: "not now" })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("not now") }],
    });
  });

  test("may hold files, in the form of any version", async () => {
    const { content } = await prepared({
      type: "content",
      value: [
        { type: "text", text: "see" },
        { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } },
        { type: "media", mediaType: "image/png", data: "BBBB" },
        { type: "image-url", url: "https://example.com/a.png" },
        { type: "custom" },
      ],
    });
    expect(content).toEqual([
      { type: "text", text: "see" },
      { type: "file", mediaType: "image/png", data: { base64: "AAAA" } },
      { type: "file", mediaType: "image/png", data: { base64: "BBBB" } },
      { type: "file", mediaType: "image/*", data: { url: "https://example.com/a.png" } },
    ]);
  });
});

test("needsApproval asks, as a flag or as a function of the arguments", async () => {
  const asked: unknown[] = [];
  const needsApproval = (input: { a: number }, options: object): boolean => {
    asked.push(options);
    return input.a > 3;
  };
  const sums = aiSdkTools({ t: { inputSchema: z.object({ a: z.number() }), needsApproval, execute: () => "ran" } });
  expect(words(await call(sums, { a: 1 }))).toBe("ran");
  expect(await call(sums, { a: 4 })).toMatchObject({ isError: true });
  expect(asked).toContainEqual(expect.objectContaining({ toolCallId: expect.any(String), messages: [] }));
  const always = aiSdkTools({ t: { inputSchema: z.object({}), needsApproval: true, execute: () => "ran" } });
  expect(await call(always, {})).toMatchObject({ isError: true });
});

test("a tool without a body runs at the client", async () => {
  const harness = createHarness({
    model: scriptedModel([{ toolCalls: [{ name: "where", args: {} }] }, "thanks"]),
    tools: aiSdkTools({ where: tool({ inputSchema: z.object({}), outputSchema: z.string() }) }),
  });
  const { agent } = await harness.agents.create();
  const { result } = run(agent, "where am I?");
  const asked = await new Promise<string>((found) => {
    agent.on("interaction/requested", ({ data }) => found(`${data.kind} ${data.id}`));
  });
  expect(asked).toMatch(/^client-tool /);
  await agent.respond(asked.split(" ")[1]!, { value: "Oslo" });
  expect((await result).text).toBe("thanks");
  await harness.dispose();
});
