/** `turnloop/otel`, with the real SDK and an exporter in memory. */
import { SpanStatusCode, trace } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { otel } from "turnloop/otel";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { scene } from "../support/scene.ts";

const exporter = new InMemorySpanExporter();
beforeAll(() => {
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
});
beforeEach(() => exporter.reset());
afterAll(() => trace.disable());

/** The spans by name, each with that of its parent. */
function tree(): string[] {
  const spans = exporter.getFinishedSpans();
  const nameOf = (id: string | undefined): string =>
    spans.find((span) => span.spanContext().spanId === id)?.name ?? "-";
  return spans.map((span) => `${nameOf(span.parentSpanContext?.spanId)} > ${span.name}`);
}

test("a turn is a span, and in it are its requests and its tools, with usage and without content", async () => {
  const one = await scene([calls("look"), { text: "a secret", usage: { input: 5, output: 3 } }], {
    tools: [tool("look", () => "also secret")],
    plugins: [otel()],
  });
  await one.say("my secret");
  expect(tree()).toEqual([
    "invoke_agent > chat scripted/model",
    "invoke_agent > execute_tool look",
    "invoke_agent > chat scripted/model",
    "- > invoke_agent",
  ]);
  const [, called, answer, turn] = exporter.getFinishedSpans();
  expect(called!.attributes).toMatchObject({ "gen_ai.tool.name": "look", "gen_ai.tool.call.id": expect.any(String) });
  expect(answer!.attributes).toMatchObject({
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "model",
    "gen_ai.provider.name": "scripted",
    "gen_ai.usage.input_tokens": 5,
    "gen_ai.usage.output_tokens": 3,
  });
  expect(turn!.attributes).toMatchObject({ "gen_ai.conversation.id": "session" });
  expect(JSON.stringify(exporter.getFinishedSpans().map(({ attributes }) => attributes))).not.toContain("secret");
});

test("with content it tells arguments, results and answers", async () => {
  const one = await scene([calls({ name: "look", args: { at: "sea" } }), "blue"], {
    tools: [tool("look", () => "waves")],
    plugins: [otel({ content: true })],
  });
  await one.say("go");
  const all = JSON.stringify(exporter.getFinishedSpans().map(({ attributes }) => attributes));
  for (const word of ["sea", "waves", "blue"]) expect(all).toContain(word);
});

test("what fails is marked, attempts are one span, and nothing stays open", async () => {
  const one = await scene(
    [{ error: { message: "slow", code: "RATE_LIMITED" } }, calls("break"), { error: { message: "gone" } }],
    {
      tools: [
        tool("break", () => {
          throw new Error("broken");
        }),
      ],
      plugins: [otel()],
    },
  );
  let tries = 0;
  one.hooks.on("agent/request-error", () => ((tries += 1) === 1 ? { kind: "retry" } : { kind: "fail" }));
  await one.say("go");
  const spans = exporter.getFinishedSpans();
  expect(spans.map(({ name, status }) => [name.split(" ")[0], status.code === SpanStatusCode.ERROR])).toEqual([
    ["chat", true],
    ["execute_tool", true],
    ["chat", true],
    ["invoke_agent", true],
  ]);
});

test("a cancel in mid answer ends all spans; taken back, the plugin makes none", async () => {
  const one = await scene([{ text: "Hm", hang: "deaf" }, "fine"]);
  const off = one.harness.use(otel());
  one.agent.on("assistant/chunk", () => one.agent.cancel());
  await one.say("go");
  expect(tree()).toEqual(["invoke_agent > chat scripted/model", "- > invoke_agent"]);
  off();
  exporter.reset();
  await one.say("again");
  expect(exporter.getFinishedSpans()).toEqual([]);
});
