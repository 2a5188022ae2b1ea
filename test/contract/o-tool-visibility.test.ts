/** O: which tools the model of an agent is shown, and may call. */
import { defineTool, TurnloopError, type AgentScope, type ToolSchema } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, clientTool, resultsOf, staged, talk, tool } from "../support/calls.ts";
import { harnessWith, local } from "../support/fixture.ts";

const named = (schemas: readonly ToolSchema[] = []): string[] => schemas.map(({ name }) => name);

/** An agent on a harness that has the tools a, b and c. */
async function withThree(
  setup: (scope: AgentScope) => void,
  answers = ["done"] as Parameters<typeof scriptedModel>[0],
) {
  const model = scriptedModel(answers);
  const harness = harnessWith({
    model,
    tools: ["a", "b", "c"].map((name) => tool(name, () => `the harness's ${name}`)),
  });
  const { agent } = await harness.agents.open({ id: "session", setup });
  return { model, harness, agent, scope: agent.scope! };
}

local("#194 restrict hides what it denies, or what it does not allow, from this agent alone", async () => {
  const { agent, harness, model } = await withThree(({ tools }) => void tools.restrict({ deny: ["b"] }));
  const { agent: other } = await harness.agents.open({
    id: "other",
    setup: ({ tools }) => void tools.restrict({ allow: ["b"] }),
  });
  await talk(agent);
  expect(named(model.requests[0]!.tools)).toEqual(["a", "c"]);
  expect(agent.scope!.tools.get("b")).toBeUndefined();
  expect(named(other.scope!.tools.schemas())).toEqual(["b"]);
  expect(named(harness.tools.schemas())).toEqual(["a", "b", "c"]);
});

local("#194 several restrictions intersect, and each can be taken back by itself", async () => {
  const { scope } = await withThree(() => {});
  const shown = (): string[] => named(scope.tools.schemas());
  const first = scope.tools.restrict({ allow: ["a", "b"] });
  const second = scope.tools.restrict({ deny: ["a"] });
  expect(shown()).toEqual(["b"]);
  first();
  expect(shown()).toEqual(["b", "c"]);
  first();
  expect(shown()).toEqual(["b", "c"]);
  second();
  expect(shown()).toEqual(["a", "b", "c"]);
});

local("#194 an empty allow hides everything of the harness", async () => {
  const { scope } = await withThree(({ tools }) => void tools.restrict({ allow: [] }));
  expect(named(scope.tools.schemas())).toEqual([]);
});

for (const [what, filter] of [
  ["an unknown name in allow", { allow: ["a", "z"] }],
  ["an unknown name in deny", { deny: ["z"] }],
  ["an empty filter", {}],
  ["an empty deny", { deny: [] }],
  ["a name that is no text", { deny: [1] }],
  ["a filter that is none", undefined],
] as const) {
  local(`#194 restrict throws for ${what}, and hides nothing`, async () => {
    const { scope } = await withThree(() => {});
    expect(() => scope.tools.restrict(filter as never)).toThrow(
      expect.objectContaining({ code: "INVALID_RESTRICTION" }),
    );
    expect(named(scope.tools.schemas())).toEqual(["a", "b", "c"]);
  });
}

local("#194 restrict is for the scope of an agent", async () => {
  const { harness } = await withThree(() => {});
  expect(() => harness.tools.restrict({ deny: ["a"] })).toThrow(TurnloopError);
});

local("#194 an agent's own tool shadows the harness's, and outlives a restriction, in either order", async () => {
  for (const ownFirst of [true, false]) {
    const { agent, model } = await withThree(
      ({ tools }) => {
        if (ownFirst) tools.register(tool("a", () => "the agent's a"));
        tools.restrict({ deny: ["a", "b"] });
        if (!ownFirst) tools.register(tool("a", () => "the agent's a"));
      },
      [calls("a", "b"), "done"],
    );
    const session = await talk(agent);
    expect(named(model.requests[0]!.tools)).toEqual(["a", "c"]);
    expect(resultsOf(session)).toMatchObject([
      { tool: "a", says: "the agent's a" },
      { tool: "b", code: "UNKNOWN_TOOL" },
    ]);
  }
});

local("#194 when an agent's own tool goes, the harness's shows again", async () => {
  const { scope } = await withThree(() => {});
  const off = scope.tools.register(tool("a", () => "the agent's a"));
  const own = scope.tools.get("a");
  off();
  expect(scope.tools.get("a")).toBeDefined();
  expect(scope.tools.get("a")).not.toBe(own);
});

local("#194 the registry is live: what is registered or hidden in a step shows in the next", async () => {
  const { agent, model, harness, scope } = await withThree(() => {}, [calls("grow"), "done"]);
  harness.tools.register(
    tool("grow", () => {
      harness.tools.register(tool("new"));
      scope.tools.restrict({ deny: ["a"] });
    }),
  );
  await talk(agent);
  expect(model.requests.map(({ tools }) => named(tools))).toEqual([
    ["a", "b", "c", "grow"],
    ["b", "c", "grow", "new"],
  ]);
});

local("#194 what is hidden is not called, though it was shown when the model wrote the call", async () => {
  const { agent, hooks, session } = await staged({ model: scriptedModel([calls("a"), "I see"]), tools: [tool("a")] });
  hooks.on("agent/step-result", ({ message }) => {
    agent.scope!.tools.restrict({ deny: ["a"] });
    return message;
  });
  await talk(agent);
  expect(resultsOf(session)).toMatchObject([{ tool: "a", code: "UNKNOWN_TOOL" }]);
});

local("#195 schemas shows name, description and parameters, and nothing else of a tool", async () => {
  const harness = harnessWith({
    tools: [
      defineTool({
        name: "act",
        description: "Acts",
        inputSchema: { type: "object", properties: { n: { type: "number" } } },
        timeoutMs: 1000,
        needsApproval: () => true,
        readOnly: true,
        present: { call: () => undefined },
        execute: () => 1,
      }),
      clientTool("where"),
    ],
  });
  expect(harness.tools.schemas()).toEqual([
    {
      name: "act",
      description: "Acts",
      parameters: { type: "object", properties: { n: { type: "number" } } },
    },
    { name: "where", description: "where", parameters: { type: "object" } },
  ]);
});

local("#195 schemas are copies: what a caller does to them changes nothing", async () => {
  const { agent, harness, model } = await staged({ model: scriptedModel(["done"]), tools: [tool("act")] });
  const [schema] = harness.tools.schemas();
  (schema!.parameters as { type: string }).type = "array";
  await talk(agent);
  expect(model.requests[0]!.tools).toEqual([{ name: "act", description: "act", parameters: { type: "object" } }]);
});

for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, "5"]) {
  local(`#195 a timeoutMs of ${timeoutMs} is refused`, () => {
    expect(() => tool("act", () => 1, { timeoutMs: timeoutMs as number })).toThrow(
      expect.objectContaining({ code: "INVALID_TOOL" }),
    );
  });
}
