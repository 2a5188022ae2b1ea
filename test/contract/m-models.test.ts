/** M: which model answers, what may stand around it, and what it counts. */
import { addUsage, createHarness, run, usageOf, type Model, type ModelChunk, type Usage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { anywhere, local } from "../support/fixture.ts";
import { chunksIn, dataOf, scene, tool } from "../support/scene.ts";
import { deferred, endOf, eventOf, textOf, typesOf } from "../support/wait.ts";

const rowOf = (chunk: ModelChunk | readonly ModelChunk[]): readonly ModelChunk[] => [chunk].flat();
const code = (name: string): unknown => expect.objectContaining({ code: name });

local("#168 a second model of one name is refused, and everything stays as it was", async () => {
  const { harness, say, session } = await scene(["from the first"]);
  const before = harness.models.names();
  expect(() => harness.models.register("scripted/model", scriptedModel(["from the second"]))).toThrow(
    code("DUPLICATE_ADAPTER"),
  );
  expect(harness.models.names()).toEqual(before);
  await say("hi");
  expect(textOf(dataOf(session, "assistant/message")[0]!.content)).toBe("from the first");
});

local("#168 the undo of a registration takes back its own and no other", () => {
  const { models } = createHarness();
  const first = scriptedModel([]);
  const off = models.register("m", first);
  off();
  models.register("m", first);
  off();
  expect(models.get("m")).toBe(first);
  expect(models.get("constructor")).toBeUndefined();
});

local(
  "#168 a model that nobody has registered is NO_ADAPTER: for a harness, an agent and a configuration",
  async () => {
    expect(() => createHarness({ model: "nobody" })).toThrow(code("NO_ADAPTER"));
    const { harness, agent, say } = await scene(["fine"]);
    await expect(harness.agents.create({ model: "nobody" })).rejects.toThrow(code("NO_ADAPTER"));
    agent.configure({ model: "__proto__" });
    expect(await say("hi")).toMatchObject({ kind: "error", step: 1, code: "NO_ADAPTER" });
    agent.configure({ model: "scripted/model" });
    expect(await say("hi")).toEqual({ kind: "completed" });
  },
);

local("#168 a model may be registered later, and unregistered between steps", async () => {
  const { harness, agent, say } = await scene([], { models: {} });
  const off = harness.models.register("late", scriptedModel(["hello"]));
  agent.configure({ model: "late" });
  expect(await say("hi")).toEqual({ kind: "completed" });
  off();
  expect(await say("hi")).toMatchObject({ kind: "error", code: "NO_ADAPTER" });
});

local("#168 model/stream can wrap the stream", async () => {
  const { hooks, agent, session, say, model } = await scene(["hello you"]);
  hooks.on("model/stream", async (payload, next) => {
    expect(payload.agent).toBe(agent);
    expect(payload.request).toEqual(model.requests[0] ?? payload.request);
    expect(payload.signal.aborted).toBe(false);
    const stream = await next();
    return (async function* () {
      for await (const chunk of stream) {
        for (const one of rowOf(chunk)) {
          yield one.type === "delta" ? { ...one, text: one.text.toUpperCase() } : one;
        }
      }
    })();
  });
  expect(await say("hi")).toEqual({ kind: "completed" });
  expect(textOf(dataOf(session, "assistant/message")[0]!.content)).toBe("HELLO YOU");
});

local("#168 model/stream can replace the stream, and the model is not asked", async () => {
  const { hooks, session, say, model } = await scene();
  hooks.on("model/stream", () =>
    (async function* () {
      yield [
        { type: "delta", index: 0, text: "from a cache" },
        { type: "finish", reason: { kind: "stop" } },
      ] as ModelChunk[];
    })(),
  );
  expect(await say("hi")).toEqual({ kind: "completed" });
  expect(textOf(dataOf(session, "assistant/message")[0]!.content)).toBe("from a cache");
  expect(model.requests).toEqual([]);
});

local("#168 model/stream can narrow the signal: its abort is a failure of the request, not of the turn", async () => {
  const { hooks, session, say } = await scene([{ text: "half", hang: "polite" }, "whole"]);
  hooks.on("model/stream", async ({ signal }, next) => {
    const stall = new AbortController();
    const stream = await next({ signal: AbortSignal.any([signal, stall.signal]) });
    return (async function* () {
      for await (const chunk of stream) {
        yield chunk;
        if (rowOf(chunk).some((one) => one.type === "block-end"))
          stall.abort(Object.assign(new Error("it stalls"), { code: "STALLED" }));
      }
    })();
  });
  hooks.on("agent/request-error", ({ error }, next) => (error.code === "STALLED" ? { kind: "retry" } : next()));
  expect(await say("hi")).toEqual({ kind: "completed" });
  expect(dataOf(session, "request/failed")).toMatchObject([{ error: { message: "it stalls", code: "STALLED" } }]);
});

local("D17 #168 a hook around the stream that never answers holds up no cancel", async () => {
  const { hooks, agent, session, say } = await scene();
  const asked = deferred();
  hooks.on("model/stream", () => (asked.resolve(), new Promise(() => {})));
  const reason = say("hi");
  await asked.promise;
  agent.cancel("enough");
  expect(await reason).toEqual({ kind: "aborted", reason: "enough" });
  expect(chunksIn(session)).toEqual([]);
});

local("#168 a retry of the hook itself runs the model again", async () => {
  const { hooks, session, say, model } = await scene([{ error: { message: "no" } }, "yes"]);
  hooks.on("model/stream", async (_, next) =>
    (async function* () {
      for (const last of [false, true]) {
        const rows: (ModelChunk | readonly ModelChunk[])[] = [];
        for await (const chunk of await next()) rows.push(chunk);
        if (last || !JSON.stringify(rows).includes('"error"')) yield* rows;
      }
    })(),
  );
  expect(await say("hi")).toEqual({ kind: "completed" });
  expect(model.requests).toHaveLength(2);
  expect(typesOf(session)).not.toContain("request/failed");
});

local("#153 a model is called as a method of itself", async () => {
  class Mine implements Model {
    readonly id = "mine/model";
    readonly #text = "private";
    async *stream(): AsyncGenerator<ModelChunk> {
      yield { type: "delta", index: 0, text: this.#text };
      yield { type: "finish", reason: { kind: "stop" } };
    }
  }
  const { session, say } = await scene([], { model: new Mine() });
  expect(await say("hi")).toEqual({ kind: "completed" });
  expect(textOf(dataOf(session, "assistant/message")[0]!.content)).toBe("private");
});

anywhere("#169 counts of usage are disjoint: they are kept apart, and add up per model and turn", async (open) => {
  const first: Usage = { input: 10, cacheRead: 100, cacheWrite: 7, output: 3, reasoning: 20 };
  const second: Usage = { input: 1, output: 2 };
  const model = scriptedModel([
    { toolCalls: [{ name: "look", args: {} }], usage: first },
    { text: "seen", usage: second },
    { text: "more", usage: second },
  ]);
  const agent = await open({ model, tools: [tool("look")] });
  const result = await run(agent, "go").result;
  const sum = { input: 11, cacheRead: 100, cacheWrite: 7, output: 5, reasoning: 20 };
  expect(result.usage).toEqual(sum);
  agent.send("on");
  await eventOf(agent.session, "turn/end", ({ data }) => data.turn === 2);
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  expect(dataOf(agent.session, "assistant/message").map(({ usage }) => usage)).toEqual([first, second, second]);
  const { total, byModel, byTurn } = usageOf(agent.session);
  expect(total).toEqual({ ...sum, input: 12, output: 7 });
  expect(byModel).toEqual({ "scripted/model": total });
  expect([...byTurn]).toEqual([
    [1, sum],
    [2, second],
  ]);
});

local("#169 a count that nobody knows stays absent, and what is no number is not added", () => {
  expect(addUsage({}, {})).toEqual({});
  expect(addUsage({ input: 1 }, undefined)).toEqual({ input: 1 });
  expect(addUsage({ input: 1 }, { output: 2, reasoning: Number.NaN })).toEqual({ input: 1, output: 2 });
});
