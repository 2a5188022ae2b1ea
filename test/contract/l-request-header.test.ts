/** L and D9: the configuration of a request, and the header that logs it. */
import type { CallConfig } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf, leftBehind, scene, tool } from "../support/scene.ts";
import { endOf, eventOf, typesOf } from "../support/wait.ts";

const calling = { toolCalls: [{ name: "look", args: {} }] };
const look = tool("look");

/** The whole value, at any depth, can be changed nowhere. */
function expectFrozen(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  expect(Object.isFrozen(value), JSON.stringify(value)).toBe(true);
  for (const inner of Object.values(value)) expectFrozen(inner);
}

local("#141 the hook is given a frozen configuration, and answers with one in its place", async () => {
  const other = scriptedModel(["from the other"], { id: "other/model" });
  const { hooks, session, say } = await scene([], {
    models: { other },
    open: { call: { temperature: 0.5, providerOptions: { acme: { deep: [1] } } } },
  });
  const seen: CallConfig[] = [];
  hooks.on("agent/request", async ({ config }, next) => {
    seen.push(config, await next());
    expectFrozen(config);
    expect(() => Object.assign(config, { model: "mutated" })).toThrow(TypeError);
    return { ...config, model: "other", temperature: 1, stop: ["end"] };
  });
  await say("go");
  const asked = { temperature: 0.5, providerOptions: { acme: { deep: [1] } } };
  expect(seen).toEqual([0, 1].map(() => Object.assign({ model: "scripted/model" }, asked)));
  expect(other.requests[0]!.config).toEqual({ ...asked, model: "other", temperature: 1, stop: ["end"] });
  expect(dataOf(session, "assistant/message")[0]!.model).toBe("other/model");
});

local("#141 what the hook answers is detached from what it keeps", async () => {
  const { hooks, model, session, say } = await scene(["one", "two"]);
  const mine = { model: "scripted/model", stop: ["a"] };
  hooks.on("agent/request", () => mine);
  await say("go");
  mine.stop.push("b");
  expect(model.requests[0]!.config.stop).toEqual(["a"]);
  await say("on");
  expect(dataOf(session, "request/header").map(({ header }) => header.config.stop)).toEqual([["a"], ["a", "b"]]);
});

local("#141 an answer that is no configuration ends the turn inside its step", async () => {
  const { hooks, model, say } = await scene(["one"]);
  for (const wrong of [undefined, null, "other", {}, { model: 7 }, { model: "scripted/model", stop: () => {} }]) {
    const off = hooks.on("agent/request", () => wrong as never);
    expect(await say("go"), JSON.stringify(wrong)).toMatchObject({ kind: "error", step: 1 });
    off();
  }
  expect(model.requests).toEqual([]);
  expect(await say("go")).toEqual({ kind: "completed" });
});

local("#142 D9 each step starts from the options, not from what the last request was changed to", async () => {
  const { hooks, model, say } = await scene([calling, "one", "two"], {
    tools: [look],
    open: { call: { temperature: 0.2 } },
  });
  hooks.on("agent/request", async ({ turn, step, config }) =>
    turn === 1 && step === 1 ? { ...config, temperature: 1, seed: 7 } : config,
  );
  await say("go");
  await say("on");
  expect(model.requests.map(({ config }) => config)).toEqual([
    { model: "scripted/model", temperature: 1, seed: 7 },
    { model: "scripted/model", temperature: 0.2 },
    { model: "scripted/model", temperature: 0.2 },
  ]);
});

anywhere("#142 D9 what configure says counts from the next request on, and is logged", async (open) => {
  const midway = async (): Promise<typeof calling> => {
    agent.configure({ temperature: 1 });
    await agent.flush();
    return calling;
  };
  const model = scriptedModel([midway, "one", "two"]);
  const agent = await open({ model, tools: [look], open: { call: { temperature: 0, topK: 3 } } });
  agent.send("go");
  await eventOf(agent.session, "turn/end");
  agent.configure({ topK: 5, stop: ["x"] });
  await agent.flush();
  agent.send("on");
  await eventOf(agent.session, "turn/end", ({ data }) => data.turn === 2);
  expect(model.requests.map(({ config }) => config)).toEqual([
    { model: "scripted/model", temperature: 0, topK: 3 },
    { model: "scripted/model", temperature: 1, topK: 3 },
    { model: "scripted/model", temperature: 1, topK: 5, stop: ["x"] },
  ]);
  expect(dataOf(agent.session, "agent/configured").map(({ patch }) => patch)).toEqual([
    { temperature: 1 },
    { topK: 5, stop: ["x"] },
  ]);
});

local("#142 D9 what was configured outlives the host, what a hook had changed does not", async () => {
  const first = await scene(["one"]);
  first.agent.configure({ temperature: 0.3 });
  first.hooks.on("agent/request", ({ config }) => ({ ...config, seed: 1 }));
  await first.say("go");
  const again = await scene(["two"], { storage: await leftBehind(first.session) });
  await again.say("on");
  expect(again.model.requests[0]!.config).toEqual({ model: "scripted/model", temperature: 0.3 });
});

local("#143 without a model the step fails, naming the agent", async () => {
  const { model: _, ...one } = await scene([], { id: "lonely", model: undefined as never });
  expect(await one.say("go")).toMatchObject({
    kind: "error",
    step: 1,
    code: "NO_MODEL",
    message: expect.stringContaining("lonely") as never,
  });
  expect(typesOf(one.session).slice(3)).toEqual(["step/start", "step/end", "turn/end"]);
});

local("#143 the hook alone may supply the model", async () => {
  const only = scriptedModel(["hello"]);
  const { hooks, say } = await scene([], { model: undefined as never, models: { only } });
  hooks.on("agent/request", ({ config }) => ({ ...config, model: "only" }));
  expect(await say("go")).toEqual({ kind: "completed" });
  expect(only.requests[0]!.config).toEqual({ model: "only" });
});

anywhere(
  "#144 D9 the header stands inside the step, before the first chunk, and says all that is sent",
  async (open) => {
    const model = scriptedModel(["hello"], { id: "acme/m1" });
    const agent = await open({
      models: { fast: model },
      model: "fast",
      system: "persona",
      tools: [look],
      open: { call: { temperature: 0 } },
    });
    agent.send("go");
    await eventOf(agent.session, "turn/end");
    const types = agent.session.events.map(({ type }) => type);
    expect(types.slice(3, 6)).toEqual(["step/start", "request/header", "assistant/chunk"]);
    expect(dataOf(agent.session, "request/header")).toEqual([
      {
        reason: "initial",
        header: {
          config: { model: "fast", temperature: 0 },
          modelId: "acme/m1",
          system: "persona",
          tools: [{ name: "look", description: "look", parameters: { type: "object" } }],
        },
      },
    ]);
  },
);

local("#144 the header is in the log when the model is called", async () => {
  const one = await scene([() => ({ text: typesOf(one.session).at(-1)! })]);
  await one.say("go");
  expect(dataOf(one.session, "assistant/message")[0]!.content).toEqual([{ type: "text", text: "request/header" }]);
});

local("#145 D9 initial once, then nothing while it is the same, then whole again when it changes", async () => {
  const { agent, session, say } = await scene([calling, "one", "two", "three"], { tools: [look], system: "persona" });
  await say("go");
  expect(dataOf(session, "request/header").map(({ reason }) => reason)).toEqual(["initial"]);
  agent.configure({ temperature: 1 });
  await say("on");
  await say("and on");
  const headers = dataOf(session, "request/header");
  expect(headers.map(({ reason }) => reason)).toEqual(["initial", "change"]);
  const { config, ...same } = headers[0]!.header;
  expect(headers[1]!.header).toEqual({ ...same, config: { ...config, temperature: 1 } });
});

local("#145 a header that was logged as its request was stopped is not logged again", async () => {
  const { agent, session, say, model } = await scene(["one"]);
  const off = agent.on("request/header", () => agent.cancel("not now"));
  expect(await say("go")).toEqual({ kind: "aborted", reason: "not now" });
  off();
  expect(await say("on")).toEqual({ kind: "completed" });
  expect(model.requests).toHaveLength(1);
  expect(dataOf(session, "request/header").map(({ reason }) => reason)).toEqual(["initial"]);
});

local("#145 a new instance logs its first header even when nothing has changed", async () => {
  const first = await scene(["one"]);
  await first.say("go");
  const again = await scene(["two", "three"], { storage: await leftBehind(first.session) });
  await again.say("on");
  await again.say("and on");
  const headers = dataOf(again.session, "request/header");
  expect(headers.map(({ reason }) => reason)).toEqual(["initial", "resume"]);
  expect(headers[1]!.header).toEqual(headers[0]!.header);
});

local("#145 a resumed session that never asked a model begins with initial", async () => {
  const first = await scene();
  first.agent.inject("context", { source: { kind: "x" } });
  const again = await scene(["two"], { storage: await leftBehind(first.session) });
  await again.say("on");
  expect(dataOf(again.session, "request/header").map(({ reason }) => reason)).toEqual(["initial"]);
});

local("#146 what is empty is absent, and what is equal, in any order of its keys, is no change", async () => {
  const { hooks, session, say, model } = await scene(["1", "2", "3", "4"]);
  let config: CallConfig = { model: "scripted/model", stop: ["a", "b"], temperature: 1 };
  hooks.on("agent/request", () => config);
  await say("go");
  config = { temperature: 1, stop: ["a", "b"], model: "scripted/model" };
  await say("same");
  config = { ...config, stop: ["b", "a"] };
  await say("other order of the stop list");
  config = { ...config, stop: ["b"] };
  await say("shorter stop list");
  const headers = dataOf(session, "request/header");
  expect(headers.map(({ header }) => header.config.stop)).toEqual([["a", "b"], ["b", "a"], ["b"]]);
  expect(Object.keys(headers[0]!.header)).toEqual(["config", "modelId"]);
  expect(Object.keys(model.requests[0]!)).toEqual(["config", "messages"]);
});

local("#146 another order of the tools is a change, and so is another prompt", async () => {
  const { harness, hooks, session, say } = await scene(["1", "2", "3"], { tools: [tool("a"), tool("b")] });
  await say("go");
  hooks.on("prompt/assemble", async (_, next) => {
    const assembly = await next();
    return { ...assembly, tools: assembly.tools.toReversed() };
  });
  await say("other order");
  harness.prompt.section({ name: "more", text: "more" });
  await say("other prompt");
  expect(
    dataOf(session, "request/header").map(({ reason, header }) => [
      reason,
      header.tools!.map(({ name }) => name).join(""),
      header.system,
    ]),
  ).toEqual([
    ["initial", "ab", undefined],
    ["change", "ba", undefined],
    ["change", "ba", "more"],
  ]);
});

local("#147 D9 the request is deeply frozen, and holds neither the session's id nor its signal", async () => {
  const one = await scene([calling, "one"], {
    id: "a-very-special-id",
    tools: [look],
    system: "persona",
    open: { call: { providerOptions: { acme: { deep: [{ er: 1 }] } } } },
  });
  one.hooks.on("agent/session-prefix", () => [{ role: "user", content: [{ type: "text", text: "prefix" }] }]);
  const options: { signal: AbortSignal; sessionId: string }[] = [];
  const { stream } = one.model;
  one.model.stream = (request, given) => (options.push(given), stream.call(one.model, request, given));
  await one.say("go");
  for (const request of one.model.requests) {
    expectFrozen(request);
    expect(Object.keys(request)).toEqual(["config", "system", "tools", "messages"]);
    expect(JSON.stringify(request)).not.toContain("a-very-special-id");
  }
  const [{ signal, sessionId }] = options as [(typeof options)[0]];
  expect(sessionId).toBe("a-very-special-id");
  expect(signal).toBeInstanceOf(AbortSignal);
  expect(Object.isFrozen(signal)).toBe(false);
  expect(endOf(one.session)).toEqual({ kind: "completed" });
});

local("#147 the schema of a message's output is part of the configuration, frozen like the rest", async () => {
  const { agent, session, model } = await scene(['{"a":1}', "plain"]);
  const schema = { type: "object", properties: { a: { type: "number" } } };
  agent.send("as JSON", { output: schema });
  agent.send("plain");
  await agent.whenIdle();
  expect(model.requests.map(({ config }) => config.responseFormat)).toEqual([{ type: "json", schema }, undefined]);
  expectFrozen(model.requests[0]);
  for (const data of dataOf(session, "request/header")) expectFrozen(data);
});

// #150 and #151 [N] (defaults per exact model, route capacity) are adopted by no decision and not in the code.
