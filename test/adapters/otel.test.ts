/** `turnloop/otel`, with the real SDK and an exporter in memory. */
import { SpanStatusCode, trace } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { memoryStorage, subagents } from "turnloop";
import { otel } from "turnloop/otel";
import { scriptedModel } from "turnloop/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { calls, deafBody, tool } from "../support/calls.ts";
import { mortal } from "../support/mortal.ts";
import { scene } from "../support/scene.ts";
import { eventOf, snapshotWhere } from "../support/wait.ts";

const exporter = new InMemorySpanExporter();
const open = new Set<unknown>();
const watch = {
  onStart: (span: unknown) => void open.add(span),
  onEnd: (span: unknown) => void open.delete(span),
  forceFlush: async () => {},
  shutdown: async () => {},
};
beforeAll(() => {
  const spanProcessors = [new SimpleSpanProcessor(exporter), watch];
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
});
beforeEach(() => exporter.reset());
afterEach(() => expect(open.size).toBe(0));
afterAll(() => trace.disable());

/** The spans by name, each with that of its parent. */
function tree(): string[] {
  const spans = exporter.getFinishedSpans();
  const nameOf = (id: string | undefined): string =>
    spans.find((span) => span.spanContext().spanId === id)?.name ?? "-";
  return spans.map((span) => `${nameOf(span.parentSpanContext?.spanId)} > ${span.name}`);
}

const all = (): string =>
  JSON.stringify(exporter.getFinishedSpans().map(({ attributes, status }) => [attributes, status]));
const named = (name: string) => exporter.getFinishedSpans().filter((span) => span.name.startsWith(name));
const messagesOf = (span: { attributes: Record<string, unknown> }, key: string): unknown =>
  JSON.parse(String(span.attributes[`gen_ai.${key}`]));

test("a turn is a span, in it are its steps, and in those requests and tools, with usage and without content", async () => {
  const usage = { input: 5, cacheRead: 2, cacheWrite: 1, output: 3, reasoning: 4 };
  const one = await scene([calls("look"), { text: "a secret", usage }], {
    tools: [tool("look", () => "also secret")],
    plugins: [otel()],
    open: { call: { temperature: 0.5 } },
  });
  await one.say("my secret");
  expect(tree()).toEqual([
    "step 1 > chat model",
    "step 1 > execute_tool look",
    "invoke_agent > step 1",
    "step 2 > chat model",
    "invoke_agent > step 2",
    "- > invoke_agent",
  ]);
  const [, answer] = named("chat");
  expect(named("execute_tool")[0]!.attributes).toMatchObject({
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "look",
    "gen_ai.tool.call.id": "call_1_1_1_0",
  });
  expect(answer!.attributes).toMatchObject({
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "model",
    "gen_ai.request.temperature": 0.5,
    "gen_ai.response.model": "model",
    "gen_ai.response.finish_reasons": ["stop"],
    "gen_ai.provider.name": "scripted",
    "gen_ai.usage.input_tokens": 8,
    "gen_ai.usage.cache_read.input_tokens": 2,
    "gen_ai.usage.cache_creation.input_tokens": 1,
    "gen_ai.usage.output_tokens": 7,
    "gen_ai.usage.reasoning.output_tokens": 4,
  });
  expect(named("invoke_agent")[0]!.attributes).toMatchObject({
    "gen_ai.conversation.id": "session",
    "turnloop.turn.end": "completed",
  });
  expect(all()).not.toContain("secret");
});

test("a model that is not named again is known in the next turn", async () => {
  const one = await scene(["one", "two"], { plugins: [otel()] });
  await one.say("hi");
  await one.say("hi");
  expect(named("chat").map(({ name }) => name)).toEqual(["chat model", "chat model"]);
});

test("with content it tells what is sent, called and answered, as the conventions say it", async () => {
  const one = await scene([calls({ name: "look", args: { at: "sea" } }), "blue"], {
    system: "You look.",
    tools: [tool("look", () => "waves")],
    plugins: [otel({ content: true })],
  });
  await one.say("go");
  const [first, second] = named("chat");
  const call = { type: "tool_call", id: "call_1_1_1_0", name: "look", arguments: { at: "sea" } };
  expect(messagesOf(first!, "system_instructions")).toEqual([{ type: "text", content: "You look." }]);
  expect(messagesOf(first!, "tool.definitions")).toMatchObject([{ type: "function", name: "look" }]);
  expect(messagesOf(first!, "output.messages")).toEqual([
    { role: "assistant", parts: [call], finish_reason: "tool_call" },
  ]);
  expect(messagesOf(second!, "input.messages")).toEqual([
    { role: "user", parts: [{ type: "text", content: "go" }] },
    { role: "assistant", parts: [call] },
    {
      role: "tool",
      parts: [{ type: "tool_call_response", id: call.id, response: [{ type: "text", content: "waves" }] }],
    },
  ]);
  const [called] = named("execute_tool");
  expect(messagesOf(called!, "tool.call.arguments")).toEqual({ at: "sea" });
  expect(messagesOf(called!, "tool.call.result")).toEqual([{ type: "text", content: "waves" }]);
});

test.each([false, true])("what fails is marked with its code; what it says is content (%s)", async (content) => {
  const broken = tool("break", () => {
    throw new Error("a secret is broken");
  });
  const one = await scene(
    [
      { error: { message: "slow secret", code: "RATE_LIMITED" } },
      calls("break"),
      { error: { message: "gone secret" } },
    ],
    { tools: [broken], plugins: [otel({ content })] },
  );
  let tries = 0;
  one.hooks.on("agent/request-error", () => ((tries += 1) === 1 ? { kind: "retry" } : { kind: "fail" }));
  await one.say("go");
  const told = exporter
    .getFinishedSpans()
    .map(({ name, status, attributes }) => [name, status.code === SpanStatusCode.ERROR && attributes["error.type"]]);
  expect(told).toEqual([
    ["chat model", "RATE_LIMITED"],
    ["chat model", false],
    ["execute_tool break", expect.any(String)],
    ["step 1", false],
    ["chat model", "MODEL_ERROR"],
    ["step 2", false],
    ["invoke_agent", "MODEL_ERROR"],
  ]);
  expect(all().includes("secret")).toBe(content);
});

test.each(["cancel", "dispose"] as const)(
  "a %s in mid answer and one in mid call end all spans, as no errors of the model",
  async (how) => {
    const one = await scene([{ text: "Hm", hang: "deaf" }], { plugins: [otel()] });
    const chunk = eventOf(one.session, "assistant/chunk");
    one.agent.send("go");
    await chunk;
    if (how === "cancel") one.agent.cancel();
    else await one.dispose();
    await one.agent.whenIdle();
    expect(tree()).toEqual(["step 1 > chat model", "invoke_agent > step 1", "- > invoke_agent"]);
    const [turn] = named("invoke_agent");
    expect(turn!.attributes["turnloop.turn.end"]).toBe(how === "cancel" ? "aborted" : "disposed");
    expect(exporter.getFinishedSpans().some(({ status }) => status.code === SpanStatusCode.ERROR)).toBe(false);

    exporter.reset();
    const { body, running } = deafBody();
    const two = await scene([calls("wait")], { tools: [tool("wait", body)], plugins: [otel()] });
    two.agent.send("go");
    await running;
    if (how === "cancel") two.agent.cancel();
    else await two.dispose();
    await two.agent.whenIdle();
    expect(named("execute_tool wait")[0]!.attributes["error.type"]).toBe("TOOL_ABORTED");
  },
);

test("taken back in mid answer, the plugin ends what is open and makes no more", async () => {
  const one = await scene([{ text: "Hm", hang: "deaf" }, "fine"]);
  const off = one.harness.use(otel());
  const chunk = eventOf(one.session, "assistant/chunk");
  one.agent.send("go");
  await chunk;
  off();
  expect(tree()).toEqual(["step 1 > chat model", "invoke_agent > step 1", "- > invoke_agent"]);
  exporter.reset();
  one.agent.cancel();
  await one.say("again");
  expect(exporter.getFinishedSpans()).toEqual([]);
});

test("a turn that was parked, and one that its host died in, go on in spans of their own", async () => {
  const disk = memoryStorage();
  const pay = tool("pay", () => "paid", { needsApproval: true });
  const first = await scene([calls("pay")], { storage: disk, tools: [pay], plugins: [otel()] });
  first.agent.send("go");
  await snapshotWhere(first.agent, ({ interactions }) => interactions.length > 0);
  await first.harness.dispose();
  expect(named("invoke_agent")).toHaveLength(1);
  exporter.reset();

  const second = await scene(["fine"], { storage: disk, tools: [pay], plugins: [otel()] });
  await second.agent.respond(second.agent.interactions[0]!.id, { decision: "allow" });
  await second.agent.whenIdle();
  expect(tree()).toEqual([
    "invoke_agent > execute_tool pay",
    "step 2 > chat model",
    "invoke_agent > step 2",
    "- > invoke_agent",
  ]);
  exporter.reset();

  const { storage, disk: left, killAfter, dead } = mortal();
  killAfter("assistant/chunk");
  const dying = await scene([{ text: "Hm", hang: "deaf" }], { storage, plugins: [otel()] });
  dying.agent.send("go");
  await dead;
  await dying.harness.dispose();
  exporter.reset();
  const next = await scene(["fine"], { storage: left, interrupted: "continue", plugins: [otel()] });
  await next.agent.whenIdle();
  expect(tree()).toEqual(["step 2 > chat model", "invoke_agent > step 2", "- > invoke_agent"]);
});

test("the turn of a helper is inside of the call that it works for", async () => {
  const models = {
    parent: scriptedModel([calls({ name: "delegate", args: { task: "x" } }), "fine"]),
    helper: scriptedModel(["done"]),
  };
  const one = await scene([], { model: "parent", models, plugins: [otel(), subagents({ model: "helper" })] });
  await one.say("go");
  expect(tree()).toEqual([
    "step 1 > chat model",
    "step 1 > chat model",
    "invoke_agent > step 1",
    "execute_tool delegate > invoke_agent",
    "step 1 > execute_tool delegate",
    "invoke_agent > step 1",
    "step 2 > chat model",
    "invoke_agent > step 2",
    "- > invoke_agent",
  ]);
  expect(new Set(exporter.getFinishedSpans().map((span) => span.spanContext().traceId)).size).toBe(1);
  expect(named("invoke_agent")[0]!.attributes["gen_ai.agent.name"]).toBe("delegate");
});
