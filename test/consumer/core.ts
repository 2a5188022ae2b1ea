/** A program of somebody who installed the package and nothing else. */
import { createHarness, defineTool, run, TurnloopError, type Plugin, type SessionEvent } from "turnloop";
import { scriptedModel } from "turnloop/testing";

declare module "turnloop" {
  interface SessionEventMap {
    "todo/write": { readonly todos: readonly string[] };
  }
}

const weather = defineTool({
  name: "weather",
  description: "The weather of a city",
  inputSchema: { type: "object", properties: { city: { type: "string" } } },
  execute: ({ city }: { city: string }) => `sunny in ${city}`,
});

const atMost =
  (steps: number): Plugin =>
  ({ hooks }) =>
    hooks.on("agent/turn-stop", ({ step }) =>
      step >= steps ? { stop: { by: "atMost", reason: "enough" } } : undefined,
    );

const model = scriptedModel([{ toolCalls: [{ name: "weather", args: { city: "Oslo" } }] }, "Sunny."]);
const harness = createHarness({ model, tools: [weather], plugins: [atMost(5)] });
const { agent } = await harness.agents.open({ id: "consumer" });

const types: SessionEvent["type"][] = [];
const turn = run(agent, "How is the weather?");
for await (const event of turn) types.push(event.type);
const { text, reason } = await turn.result;
if (text !== "Sunny." || reason.kind !== "completed" || !types.includes("tool/result")) {
  throw new TurnloopError("CONSUMER", `the turn ended with ${JSON.stringify({ text, reason, types })}`);
}
await harness.dispose();
