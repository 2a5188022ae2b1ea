/** One turn with a tool call, and a cancel that a deaf model cannot stop: the same program in every runtime. */
import { createHarness, defineTool, run } from "../../dist/index.js";
import { scriptedModel } from "../../dist/testing.js";

/** Answers `ok`, or throws. */
export async function smoke() {
  await turnWithToolCall();
  await cancelOfDeafModel();
  return "ok";
}

async function turnWithToolCall() {
  const weather = defineTool({
    name: "weather",
    description: "The weather of a city",
    inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    execute: ({ city }) => `sunny in ${city}`,
  });
  const model = scriptedModel([{ toolCalls: [{ name: "weather", args: { city: "Oslo" } }] }, "It is sunny."]);
  const harness = createHarness({ model, tools: [weather] });
  const { agent } = await harness.agents.open({ id: "smoke" });

  const { reason, text } = await run(agent, "How is the weather in Oslo?").result;
  equal(reason.kind, "completed");
  equal(text, "It is sunny.");
  const told = JSON.stringify(model.requests[1].messages);
  equal(told.includes("sunny in Oslo"), true);
  await harness.dispose();
}

async function cancelOfDeafModel() {
  const asked = Promise.withResolvers();
  const model = {
    id: "deaf",
    stream() {
      asked.resolve();
      return { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) };
    },
  };
  const harness = createHarness({ model });
  const { agent } = await harness.agents.open({ id: "deaf" });
  const turn = run(agent, "Hello?");
  await asked.promise;
  agent.cancel("enough");
  const { reason } = await turn.result;
  equal(reason.kind, "aborted");
  equal(reason.reason, "enough");
  await harness.dispose();
}

function equal(actual, expected) {
  if (actual !== expected) throw new Error(`expected ${expected}, got ${actual}`);
}
