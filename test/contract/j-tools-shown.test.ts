/** J: which tools a request shows, and in which order. */
import { createHarness, defineTool, type ToolSchema } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { anywhere, local } from "../support/fixture.ts";
import { scene, tool } from "../support/scene.ts";
import { eventOf } from "../support/wait.ts";

const code = (name: string): unknown => expect.objectContaining({ code: name });
const names = (tools: readonly ToolSchema[] | undefined): string[] => (tools ?? []).map(({ name }) => name);
const letters = (...all: string[]) => all.map((name) => tool(name));

anywhere("#128 D3 the tools of the registry are shown: name, description and parameters", async (open) => {
  const model = scriptedModel(["hello"]);
  const look = defineTool({
    name: "look",
    description: "Looks at a thing",
    inputSchema: { type: "object", properties: { at: { type: "string" } } },
    timeoutMs: 5,
    execute: () => "seen",
  });
  const agent = await open({ model, tools: [look] });
  agent.send("hi");
  await eventOf(agent.session, "turn/end");
  expect(model.requests[0]!.tools).toEqual([
    {
      name: "look",
      description: "Looks at a thing",
      parameters: { type: "object", properties: { at: { type: "string" } } },
    },
  ]);
});

local("#128 D3 the registry is asked at every assembly: a tool may come and go between steps", async () => {
  const { harness, hooks, say, model } = await scene([{ toolCalls: [{ name: "a", args: {} }] }, "ok", "ok"], {
    tools: [tool("a")],
  });
  let off = (): void => {};
  hooks.on("agent/turn-continuation", ({ turn, step }, next) => {
    if (turn === 1 && step === 1) off = harness.tools.register(tool("b"));
    return next();
  });
  await say("go");
  off();
  await say("on");
  expect(model.requests.map(({ tools }) => names(tools))).toEqual([["a"], ["a", "b"], ["a"]]);
});

local("#128 what an agent's restriction hides is not shown to it", async () => {
  const { say, model, agent } = await scene(["one", "two"], { tools: letters("a", "b", "c") });
  const off = agent.scope!.tools.restrict({ deny: ["b"] });
  await say("go");
  off();
  await say("on");
  expect(model.requests.map(({ tools }) => names(tools))).toEqual([
    ["a", "c"],
    ["a", "b", "c"],
  ]);
});

anywhere("#129 tools go by name, in code units", async (open) => {
  const model = scriptedModel(["hello"]);
  const agent = await open({ model, tools: letters("b", "a10", "a2", "Z", "_x", "a") });
  agent.send("hi");
  await eventOf(agent.session, "turn/end");
  expect(names(model.requests[0]!.tools)).toEqual(["Z", "_x", "a", "a10", "a2", "b"]);
});

anywhere("#129 toolOrder says otherwise, with * for the rest", async (open) => {
  const model = scriptedModel(["hello"]);
  const agent = await open({ model, tools: letters("b", "d", "c", "a"), toolOrder: ["d", "*", "a"] });
  agent.send("hi");
  await eventOf(agent.session, "turn/end");
  expect(names(model.requests[0]!.tools)).toEqual(["d", "b", "c", "a"]);
});

local("#129 toolOrder needs * exactly once, and names nothing twice", () => {
  for (const toolOrder of [[], ["a"], ["*", "*"], ["*", "a", "a"], ["*", 7 as never], "*" as never]) {
    expect(() => createHarness({ tools: letters("a"), toolOrder })).toThrow(code("INVALID_TOOL_ORDER"));
  }
});

local("#129 a name that nobody has registered rejects every assembly, one that is hidden does not", async () => {
  const { harness, say, agent, model } = await scene(["hello"], {
    tools: letters("a", "b"),
    toolOrder: ["late", "b", "*"],
  });
  expect(await say("hi")).toMatchObject({ kind: "error", step: 0, code: "INVALID_TOOL_ORDER" });
  await expect(harness.prompt.assemble()).rejects.toThrow(code("INVALID_TOOL_ORDER"));
  harness.tools.register(tool("late"));
  agent.scope!.tools.restrict({ deny: ["b"] });
  expect(await say("hi")).toEqual({ kind: "completed" });
  expect(names(model.requests[0]!.tools)).toEqual(["late", "a"]);
});

local("#129 no tool can be named like the marker", () => {
  expect(() => createHarness({ tools: [tool("*")] })).toThrow(code("INVALID_TOOL"));
});

local("#130 the order comes before the hook, and what the hook answers is final", async () => {
  const { hooks, say, model } = await scene(["hello"], { tools: letters("b", "a", "c") });
  const seen: string[][] = [];
  const extra = { name: "extra", description: "Extra", parameters: { type: "object" } };
  hooks.on("prompt/assemble", async (_, next) => {
    const assembly = await next();
    seen.push(names(assembly.tools));
    return { ...assembly, tools: [...assembly.tools.toReversed().filter(({ name }) => name !== "b"), extra] };
  });
  await say("hi");
  expect(seen).toEqual([["a", "b", "c"]]);
  expect(names(model.requests[0]!.tools)).toEqual(["c", "a", "extra"]);
});

local("#130 what one step's hook changes does not leak into the next, nor into the registry", async () => {
  const { harness, hooks, say, model } = await scene(["one", "two", "three"], { tools: letters("a") });
  const original = harness.tools.schemas();
  let off = hooks.on("prompt/assemble", async (_, next) => {
    const assembly = await next();
    const tools = assembly.tools.map((one) => Object.assign(structuredClone(one), { description: "changed" }));
    return { ...assembly, tools };
  });
  await say("go");
  off();
  off = hooks.on("prompt/assemble", async (_, next) => {
    const assembly = await next();
    Object.assign(assembly.tools[0]!.parameters, { title: "changed in place" });
    return assembly;
  });
  // Shared and frozen, where the statement says cloned: a change in place fails instead of leaking.
  expect(await say("on")).toMatchObject({ kind: "error", step: 0 });
  off();
  await say("on");
  const parameters = { type: "object" };
  expect(model.requests.map(({ tools }) => tools)).toEqual([
    [{ name: "a", description: "changed", parameters }],
    [{ name: "a", description: "a", parameters }],
  ]);
  Object.assign(harness.tools.schemas()[0]!.parameters, { title: "mine" });
  expect(harness.tools.schemas()).toEqual(original);
});

local("#130 an answer that is no assembly ends the turn before any request", async () => {
  const { hooks, say, model } = await scene(["hello"]);
  for (const change of [
    () => undefined,
    (assembly: object) => ({ ...assembly, sections: undefined }),
    (assembly: object) => ({ ...assembly, sections: [{ name: "x", order: 1 }] }),
    (assembly: object) => ({ ...assembly, tools: [{ name: "x" }] }),
    (assembly: object) => ({ ...assembly, tools: [{ name: "x", description: "", parameters: { run() {} } }] }),
    (assembly: object) => ({ ...assembly, variables: { v: 1 } }),
  ]) {
    const off = hooks.on("prompt/assemble", async (_, next) => change(await next()) as never);
    expect(await say("hi"), String(change)).toMatchObject({ kind: "error", step: 0, code: "INVALID_PROMPT" });
    off();
  }
  expect(model.requests).toEqual([]);
  expect(await say("hi")).toEqual({ kind: "completed" });
});
