/** J and D3: the system prompt, its sections and variables. What it says of tools is in j-tools-shown. */
import { createHarness, type Harness, type HarnessOptions, type PromptContext } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { dataOf, scene, tool } from "../support/scene.ts";
import { eventOf, endOf } from "../support/wait.ts";

const code = (name: string): unknown => expect.objectContaining({ code: name });
const rendered = async ({ prompt }: Pick<Harness, "prompt">): Promise<string> => prompt.render(await prompt.assemble());
const quiet = (options: HarnessOptions = {}): Harness => createHarness({ onDiagnostic() {}, ...options });

anywhere("#119 D3 `system` is the whole system prompt, taken literally", async (open) => {
  const model = scriptedModel(["hello"]);
  const agent = await open({ model, system: "Say {{ nothing }} and {{model}}." });
  agent.send("hi");
  await eventOf(agent.session, "turn/end");
  expect(model.requests[0]!.system).toBe("Say {{ nothing }} and {{model}}.");
  expect(dataOf(agent.session, "request/header")[0]!.header.system).toBe("Say {{ nothing }} and {{model}}.");
});

local("#119 the prompt is assembled once a step, for its agent; what is rendered is what is sent", async () => {
  const { harness, hooks, agent, session, say, model } = await scene(
    [{ toolCalls: [{ name: "look", args: {} }] }, "ok"],
    {
      tools: [tool("look")],
    },
  );
  const contexts: PromptContext[] = [];
  const assemblies: string[] = [];
  harness.prompt.section({ name: "asked", text: (context) => (contexts.push(context), `asked ${contexts.length}`) });
  harness.prompt.section({ name: "fixed", text: "fixed" });
  hooks.on("prompt/assemble", async (_, next) => {
    const assembly = await next();
    assemblies.push(harness.prompt.render(assembly));
    return assembly;
  });
  await say("go");
  expect(contexts).toHaveLength(2);
  for (const context of contexts) {
    expect(context.agent).toBe(agent);
    expect(context.session).toBe(session);
  }
  expect(assemblies).toEqual(["asked 1\n\nfixed", "asked 2\n\nfixed"]);
  expect(model.requests.map(({ system }) => system)).toEqual(assemblies);
});

local("#119 an agent's own sections go with the harness's, into its own requests alone", async () => {
  const { harness, say, model } = await scene(["hello", "hello"], {
    system: "harness",
    open: { setup: ({ prompt }) => void prompt.section({ name: "mine", text: "mine" }) },
  });
  const other = await harness.agents.create({ id: "other" });
  await say("hi");
  other.agent.send("hi");
  await other.agent.whenIdle();
  expect(model.requests.map(({ system }) => system)).toEqual(["harness\n\nmine", "harness"]);
});

local("#120 sections are unique on a layer, and their order is finite", () => {
  const { prompt } = quiet();
  prompt.section({ name: "rules", text: "x" });
  expect(() => prompt.section({ name: "rules", text: "y" })).toThrow(code("DUPLICATE_SECTION"));
  for (const order of [Number.NaN, Infinity, -Infinity, "1", null]) {
    expect(() => prompt.section({ name: "other", order: order as never, text: "x" })).toThrow(code("INVALID_SECTION"));
  }
});

local("#120 sections go by ascending order; equal ones stay as they were registered", async () => {
  const harness = quiet();
  for (const [name, order] of [
    ["d", 7],
    ["b", 5],
    ["a", -1],
    ["c", 5],
    ["e", 7.5],
  ] as const) {
    harness.prompt.section({ name, order, text: name });
  }
  expect(await rendered(harness)).toBe("a\n\nb\n\nc\n\nd\n\ne");
});

local("#121 empty sections are dropped, and with none left there is no system field at all", async () => {
  const { harness, say, model, session } = await scene(["hello", "hello"]);
  harness.prompt.section({ name: "empty", text: "" });
  harness.prompt.section({ name: "later", text: () => undefined });
  harness.prompt.section({ name: "blank", text: async () => "  \n" });
  await say("hi");
  expect(model.requests[0]).not.toHaveProperty("system");
  expect(dataOf(session, "request/header")[0]!.header).not.toHaveProperty("system");
  harness.prompt.section({ name: "first", order: -5, text: "first" });
  harness.prompt.section({ name: "last", text: "last" });
  await say("hi");
  expect(model.requests[1]!.system).toBe("first\n\nlast");
});

local("D3 #122 the harness adds no words of its own; identity and persona have their places", async () => {
  const { sections } = await quiet().prompt.assemble();
  expect(sections.map(({ name, order, text }) => [name, order, text])).toEqual([
    ["identity", -100, ""],
    ["persona", 0, ""],
  ]);
  const harness = quiet({ system: "persona" });
  harness.prompt.section({ name: "identity", text: "identity" });
  harness.prompt.section({ name: "between", order: -50, text: "between" });
  harness.prompt.section({ name: "rules", text: "rules" });
  expect(await rendered(harness)).toBe("identity\n\nbetween\n\npersona\n\nrules");
});

local("D3 models, agents and sessions are reached from every scope through its harness", async () => {
  const seen: Harness[] = [];
  const harness = quiet({ plugins: [(scope) => void seen.push(scope.harness)] });
  const { agent } = await harness.agents.create({ setup: (scope) => void seen.push(scope.harness) });
  seen.push(agent.scope!.harness, harness.harness);
  expect(new Set(seen.flatMap(({ models, agents, sessions }) => [models, agents, sessions])).size).toBe(3);
  expect(seen.map((one) => one.agents)).toEqual(Array(4).fill(harness.agents));
  expect(agent.scope!.harness.models).toBe(harness.models);
});

for (const first of ["agent", "harness"]) {
  local(`#123 an agent's section hides the harness's of the same name (first: ${first})`, async () => {
    const harness = quiet(first === "harness" ? { system: "harness" } : {});
    const { agent, dispose } = await harness.agents.create({
      setup: ({ prompt }) => void prompt.section({ name: "persona", order: 0, text: "agent" }),
    });
    if (first === "agent") harness.prompt.section({ name: "persona", order: 0, text: "harness" });
    const { prompt } = agent.scope!;
    expect(await rendered({ prompt })).toBe("agent");
    expect(await rendered(harness)).toBe("harness");
    await dispose();
    expect(await rendered(harness)).toBe("harness");
    const { agent: next } = await harness.agents.create();
    expect(await rendered(next.scope!)).toBe("harness");
  });
}

local("#124 the variables model and cwd are there, resolved for the agent", async () => {
  const { harness, say, model } = await scene(["one"], {
    models: { other: scriptedModel([]) },
    open: { meta: { cwd: "/home/ada" } },
  });
  harness.prompt.section({ name: "where", text: "{{model}} in {{cwd}}" });
  await say("go");
  expect(model.requests[0]!.system).toBe("scripted/model in /home/ada");
  const { agent, session } = (await harness.agents.create({ model: "other", meta: { cwd: "/tmp" } })).agent.scope!;
  const { prompt } = agent.scope!;
  expect(prompt.render(await prompt.assemble({ agent, session }))).toBe("other in /tmp");
});

local("#124 D9 the variable model follows what configure has said, from the next step on", async () => {
  const { harness, agent, say, model } = await scene(["one"], { models: { other: scriptedModel(["two"]) } });
  harness.prompt.section({ name: "who", text: "You are {{model}}." });
  await say("go");
  agent.configure({ model: "other" });
  await say("on");
  expect(model.requests[0]!.system).toBe("You are scripted/model.");
  expect(dataOf(agent.session, "request/header").at(-1)!.header).toMatchObject({
    config: { model: "other" },
    system: "You are other.",
  });
});

local("#125 variables are unique on a layer, named like names, and an agent's hide the harness's", async () => {
  const harness = quiet();
  harness.prompt.variable("who", "harness");
  harness.prompt.section({ name: "x", text: "{{who}}" });
  expect(() => harness.prompt.variable("who", "again")).toThrow(code("DUPLICATE_VARIABLE"));
  for (const name of ["", "Who", "1st", "a-b", "a b", "__proto__", "ä"]) {
    expect(() => harness.prompt.variable(name, "x"), name).toThrow(code("INVALID_VARIABLE"));
  }
  const { agent, dispose } = await harness.agents.create({
    setup: ({ prompt }) => void prompt.variable("who", async () => "agent"),
  });
  expect(await rendered(agent.scope!)).toBe("agent");
  expect(await rendered(harness)).toBe("harness");
  await dispose();
  expect(await rendered(harness)).toBe("harness");
});

local("#125 undefined is no value: an agent's undefined hides the harness's value too", async () => {
  const { harness, say, model } = await scene(["hello"], {
    open: { setup: ({ prompt }) => void prompt.variable("who", () => undefined) },
  });
  harness.prompt.variable("who", "harness");
  expect(await say("not used")).toEqual({ kind: "completed" });
  harness.prompt.section({ name: "x", text: "{{who}}" });
  expect(await say("used")).toMatchObject({ kind: "error", code: "INVALID_PROMPT" });
  expect(model.requests).toHaveLength(1);
});

test.each([
  "{{town}}",
  "{{nothing}}",
  "{{ city }}",
  "{{city }}",
  "{{City}}",
  "{{}}",
  "{{{city}}}",
  "{{city} and {{city}}",
  "{{ci{{city}}",
  "{{constructor}}",
  "{{toString}}",
  "{{__proto__}}",
])("#126 rendering refuses %s", async (text) => {
  const harness = quiet();
  harness.prompt.variable("city", "Oslo");
  harness.prompt.variable("nothing", () => undefined);
  harness.prompt.section({ name: "place", text: `before ${text} after` });
  await expect(rendered(harness)).rejects.toThrow(code("INVALID_PROMPT"));
});

test.each([
  ["{{city}} and {{city}}", "Oslo and Oslo"],
  ["a lone {{ stays", "a lone {{ stays"],
  ["{{city}} {{", "Oslo {{"],
  ["}} stays", "}} stays"],
  ["{city} { {city} }", "{city} { {city} }"],
  ["{{tricky}}", "{{city}} $& {{ x }}"],
])("#126 rendering gives %j as %j", async (text, expected) => {
  const harness = quiet();
  harness.prompt.variable("city", "Oslo");
  harness.prompt.variable("tricky", "{{city}} $& {{ x }}");
  harness.prompt.section({ name: "place", text });
  expect(await rendered(harness)).toBe(expected);
});

local("#127 a prompt that cannot be rendered ends the turn before any request; the next one works", async () => {
  const { harness, session, say, model } = await scene(["hello"]);
  const off = harness.prompt.section({ name: "place", text: "in {{town}}" });
  const reason = await say("hi");
  expect(reason).toMatchObject({ kind: "error", step: 0, code: "INVALID_PROMPT" });
  expect((reason as { message: string }).message).toMatch(/section "place".*\{\{town\}\}/);
  expect(dataOf(session, "step/start")).toEqual([]);
  expect(model.requests).toEqual([]);
  off();
  expect(await say("hi")).toEqual({ kind: "completed" });
});

local("#127 so does a section or a variable whose function fails, at once or later", async () => {
  const { harness, say } = await scene(["hello"]);
  const failing = [() => Promise.reject(new Error("no file")), () => 7 as never, () => null as never];
  for (const text of failing) {
    const off = harness.prompt.section({ name: "place", text });
    expect(await say("hi"), String(text)).toMatchObject({ kind: "error", step: 0, code: "INVALID_PROMPT" });
    off();
    const undo = [harness.prompt.variable("v", text), harness.prompt.section({ name: "place", text: "{{v}}" })];
    expect(await say("hi"), String(text)).toMatchObject({ kind: "error", step: 0, code: "INVALID_PROMPT" });
    for (const one of undo) one();
  }
  expect(await say("hi")).toEqual({ kind: "completed" });
});

local("D4 #131 a registration is told, and no listener can veto it", async () => {
  const harness = harnessWith();
  const told: string[] = [];
  harness.hooks.on("prompt/change", () => {
    told.push("prompt/change");
    throw new Error("no");
  });
  harness.hooks.on("tools/change", () => void told.push("tools/change"));
  const off = harness.prompt.section({ name: "x", text: "x" });
  harness.prompt.variable("v", "v");
  harness.tools.register(tool("look"));
  expect(await rendered(harness)).toBe("x");
  off();
  off();
  expect(await rendered(harness)).toBe("");
  expect(told).toEqual(["prompt/change", "prompt/change", "tools/change", "prompt/change"]);
  expect(harness.diagnostics.map((one) => one.code)).toEqual(Array(3).fill("LISTENER_FAILED"));
});

local("#132 a bare assemble, without an agent, works", async () => {
  const harness = quiet({ model: scriptedModel([]), tools: [tool("look")] });
  harness.prompt.section({ name: "x", text: (context) => `${JSON.stringify(context)} {{model}}` });
  const assembly = await harness.prompt.assemble();
  expect(assembly.variables).toEqual({ model: "scripted/model", cwd: undefined });
  expect(assembly.tools.map(({ name }) => name)).toEqual(["look"]);
  expect(harness.prompt.render(assembly)).toBe("{} scripted/model");
});

// #133 [N] (dynamic context at the tail of the history) is adopted by no decision and is not in the code:
// `inject` from a pre-step hook (#112) is the place to do it.

local("#119 a hook may rewrite the prompt of one step, and leaves nothing behind", async () => {
  const { harness, hooks, session, say, model } = await scene(["one", "two"], { system: "persona" });
  const off = hooks.on("prompt/assemble", async (_, next) => {
    const assembly = await next();
    return { ...assembly, sections: [...assembly.sections, { name: "more", order: 1, text: "and {{model}}" }] };
  });
  await say("go");
  off();
  await say("on");
  expect(model.requests.map(({ system }) => system)).toEqual(["persona\n\nand scripted/model", "persona"]);
  expect(endOf(session)).toEqual({ kind: "completed" });
  expect(harness.tools.schemas()).toEqual([]);
});
