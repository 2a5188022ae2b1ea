/** L, D9 and D10: every request of a step can be made again from the log alone. */
import { rebuildRequest, type ModelRequest } from "turnloop";
import { replayModel, scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf, leftBehind, linesOf, scene, tool, type Scene } from "../support/scene.ts";
import { eventOf, typesOf } from "../support/wait.ts";

const calling = { text: "let me see", toolCalls: [{ name: "look", args: { at: 1 } }] };
const failing = { text: "half", error: { message: "overloaded", code: "BUSY" } };
const json = (value: unknown): string => JSON.stringify(value);

/** A session with tools, steering, context, another configuration, a prefix, a retry and a summary. */
async function eventful(): Promise<Scene> {
  const one = await scene([calling, failing, "seen", "more", failing, "last"], {
    tools: [tool("look", (_, { agent }) => (agent.steer("look closer"), "a thing"))],
    system: "persona on {{nothing}}",
  });
  const { harness, hooks, agent, session } = one;
  hooks.on("agent/session-prefix", () => [{ role: "user", content: [{ type: "text", text: "prefix" }] }]);
  hooks.on("agent/request-error", ({ turn }, next) =>
    turn === 1
      ? { kind: "retry", config: { model: "scripted/model", temperature: 0 } }
      : turn === 4
        ? { kind: "new-step" }
        : next(),
  );
  await one.say("go");
  agent.inject("context", { source: { kind: "clock" } });
  agent.configure({ topP: 0.5 });
  let summarised = false;
  hooks.on("agent/pre-step", () => {
    if (summarised) return;
    summarised = true;
    const nodes = session.events.filter((event) => event.surface).map(({ seq }) => seq);
    const end = session.events.findLast(({ type }) => type === "context/message")!.seq;
    harness.sessions
      .get("session")!
      .append(
        "context/message",
        { id: "summary", content: [{ type: "text", text: "so far" }], source: { kind: "summary" } },
        { surface: { replace: [nodes[0]!, end] }, cites: nodes.filter((seq) => seq <= end) },
      );
  });
  await one.say("on");
  await one.say("and on");
  return one;
}

local("#148 D9 D10 each request, of every step and attempt, is rebuilt byte for byte", async () => {
  const { model, session } = await eventful();
  const places = [
    { turn: 1, step: 1 },
    { turn: 1, step: 2, attempt: 1 },
    { turn: 1, step: 2, attempt: 2 },
    { turn: 3, step: 1 },
    { turn: 4, step: 1 },
    { turn: 4, step: 2 },
  ];
  // The second turn is the injection; a new step follows the failure of the fourth.
  expect(model.requests).toHaveLength(places.length);
  const rebuilt = places.map((at) => rebuildRequest(session.events, at));
  expect(rebuilt.map(json)).toEqual(model.requests.map(json));
  expect(json(rebuildRequest(session.events, { turn: 1, step: 2 }))).toBe(json(model.requests[2]));
});

local("#148 the log is enough after it was stored and read again", async () => {
  const { model, session } = await eventful();
  const again = await scene([], { storage: await leftBehind(session) });
  const rebuilt = rebuildRequest(JSON.parse(json(again.session.events)) as never, { turn: 1, step: 1 });
  expect(json(rebuilt)).toBe(json(model.requests[0]));
});

local("#148 asking for a request that was never made says so", async () => {
  const { session } = await eventful();
  for (const at of [
    { turn: 9, step: 1 },
    { turn: 1, step: 3 },
    { turn: 2, step: 1 },
    { turn: 1, step: 1, attempt: 2 },
    { turn: 1, step: 2, attempt: 3 },
    { turn: 1, step: 2, attempt: 0 },
  ]) {
    expect(() => rebuildRequest(session.events, at), json(at)).toThrow(
      expect.objectContaining({ code: "REQUEST_NOT_FOUND" }),
    );
  }
});

local("#148 D9 D10 a request that was stopped before its answer can be rebuilt too", async () => {
  const silent = (): { hang: "deaf"; chunks: [] } => (one.agent.cancel("enough"), { hang: "deaf", chunks: [] });
  const one: Scene = await scene([silent, failing, silent]);
  one.hooks.on("agent/request-error", () => ({ kind: "retry", config: { model: "scripted/model", temperature: 0 } }));
  expect(await one.say("go")).toMatchObject({ kind: "aborted" });
  expect(await one.say("on")).toMatchObject({ kind: "aborted" });
  const places = [
    { turn: 1, step: 1, attempt: 1 },
    { turn: 2, step: 1, attempt: 1 },
    { turn: 2, step: 1, attempt: 2 },
  ];
  const rebuilt = places.map((at) => rebuildRequest(one.session.events, at));
  expect(one.model.requests.map(({ config }) => config.temperature)).toEqual([undefined, undefined, 0]);
  expect(rebuilt.map(json)).toEqual(one.model.requests.map(json));
});

anywhere("#149 each request begins with the whole of the one before", async (open) => {
  const model = scriptedModel([calling, calling, "one", "two"]);
  const agent = await open({ model, tools: [tool("look")], system: "persona" });
  agent.send("go");
  await eventOf(agent.session, "turn/end");
  agent.send("on");
  await eventOf(agent.session, "turn/end", ({ data }) => data.turn === 2);
  const texts = model.requests.map(({ messages }) => messages.map(json));
  expect(texts.map(({ length }) => length)).toEqual([1, 3, 5, 7]);
  for (const [i, text] of texts.entries()) {
    const before = texts[i - 1] ?? [];
    expect(text.slice(0, before.length)).toEqual(before);
  }
});

local("#149 unless something was replaced in between", async () => {
  const { model } = await eventful();
  expect(linesOf(model.requests[3]!.messages)).toEqual([
    "user: prefix",
    "user: <summary>\nso far\n</summary>",
    "user: on",
  ]);
});

local("D9 requests outside steps are logged as model/aux, with their usage, and change no other request", async () => {
  const { harness, session, say, model } = await scene(["one", "two"]);
  await say("go");
  harness.sessions.get("session")!.append("model/aux", { purpose: "title", model: "acme/small", usage: { input: 3 } });
  await say("on");
  expect(dataOf(session, "model/aux")).toEqual([{ purpose: "title", model: "acme/small", usage: { input: 3 } }]);
  expect(linesOf(model.requests[1]!.messages)).toEqual(["user: go", "assistant: one", "user: on"]);
});

local("D10 a replaying model knows attempts: the session happens again, the same", async () => {
  const { session } = await eventful();
  const first = session.events.slice(0, session.events.findIndex(({ type }) => type === "turn/end") + 1);
  const again = await scene([], {
    model: replayModel(first),
    tools: [tool("look", (_, { agent }) => (agent.steer("look closer"), "a thing"))],
    system: "persona on {{nothing}}",
  });
  again.hooks.on("agent/session-prefix", () => [{ role: "user", content: [{ type: "text", text: "prefix" }] }]);
  again.hooks.on("agent/request-error", () => ({
    kind: "retry",
    config: { model: "scripted/model", temperature: 0 },
  }));
  expect(await again.say("go")).toEqual({ kind: "completed" });
  expect(typesOf(again.session)).toEqual(first.map(({ type }) => type).filter((type) => type !== "assistant/chunk"));
});

local("D10 a replaying model refuses a request that differs from the recorded one", async () => {
  const { session, say } = await scene(["one"]);
  await say("go");
  const again = await scene([], { model: replayModel(session.events) });
  expect(await again.say("something else")).toMatchObject({ kind: "error", code: "REPLAY_MISMATCH" });
});

// What a wire or a store may hand in: a log whose headers are far behind, or that begins with a seed.
local("#148 the header of an earlier instance does not leak into the first request of the next", async () => {
  const first = await scene(["one"], { system: "old persona" });
  await first.say("go");
  const again = await scene(["two"], { storage: await leftBehind(first.session), system: "new persona" });
  await again.say("on");
  const at = (turn: number): ModelRequest => rebuildRequest(again.session.events, { turn, step: 1 });
  expect([at(1).system, at(2).system]).toEqual(["old persona", "new persona"]);
});
