/** I: what happens in a step, and in which order. */
import type { HookName } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf, linesOf, scene, tool, type Scene } from "../support/scene.ts";
import { deferred, typesOf } from "../support/wait.ts";

const AROUND: readonly HookName[] = [
  "prompt/assemble",
  "agent/session-prefix",
  "agent/request",
  "model/stream",
  "agent/step-result",
  "tools/pre-execute",
  "tools/execute",
  "tools/post-execute",
  "agent/turn-continuation",
];
const TOLD: readonly HookName[] = ["agent/pre-step", "tools/result", "agent/turn-stop"];

/** Every hook and every event of a turn, in the order in which they happen; a row of chunks is one. */
function record({ hooks }: Scene): string[] {
  const seen: string[] = [];
  for (const name of AROUND) {
    hooks.on(name, ((_: unknown, next: () => unknown) => (seen.push(`(${name})`), next())) as never);
  }
  for (const name of TOLD) hooks.on(name, (() => void seen.push(`(${name})`)) as never);
  hooks.on("session/event", ({ event: { type } }) => {
    if (type === "inbox/queued" || (type === "assistant/chunk" && seen.at(-1) === type)) return;
    seen.push(type);
  });
  return seen;
}

local("#108 the order of a step", async () => {
  const one = await scene([{ toolCalls: [{ name: "look", args: {} }] }, "seen"], { tools: [tool("look")] });
  const seen = record(one);
  one.hooks.on("tools/post-execute", () => ({
    kind: "accept",
    additionalContext: { content: "context", source: { kind: "hook" } },
  }));
  one.agent.on("tool/start", () => void one.agent.steer("steering", { id: "s" }));
  await one.say("go");
  expect(seen).toEqual([
    "turn/start",
    "user/message",
    "(prompt/assemble)",
    "(agent/session-prefix)",
    "(agent/pre-step)",
    "step/start",
    "(agent/request)",
    "request/header",
    "(model/stream)",
    "assistant/chunk",
    "(agent/step-result)",
    "assistant/message",
    "tool/call",
    "(tools/pre-execute)",
    "tool/start",
    "(tools/execute)",
    "(tools/post-execute)",
    "tool/result",
    "(tools/result)",
    "context/message",
    "steering/message",
    "step/end",
    "(agent/turn-continuation)",
    "(agent/turn-stop)",
    "(prompt/assemble)",
    "(agent/pre-step)",
    "step/start",
    "(agent/request)",
    "(model/stream)",
    "assistant/chunk",
    "(agent/step-result)",
    "assistant/message",
    "step/end",
    "(agent/turn-continuation)",
    "(agent/turn-stop)",
    "turn/end",
  ]);
});

local("#109 steering that waits before a step stands outside it, that which came with the tools inside", async () => {
  const { hooks, agent, session, say, model } = await scene(
    [{ toolCalls: [{ name: "look", args: {} }] }, "one", "two"],
    { tools: [tool("look", () => void agent.steer("with the tools", { id: "inside", source: { kind: "tool" } }))] },
  );
  hooks.on("agent/prompt-submit", (_, next) => {
    agent.steer("before", { id: "before" });
    return next();
  });
  hooks.on("agent/turn-continuation", ({ step }, next) => {
    if (step === 2) agent.steer("between", { id: "between" });
    return next();
  });
  await say("go");
  const place = (id: string): string[] => {
    const at = session.events.findIndex((event) => event.type === "steering/message" && event.data.id === id);
    const before = session.events.slice(0, at).findLast(({ type }) => /^(turn|step)\//.test(type))!;
    const after = session.events.slice(at).find(({ type }) => /^(turn|step)\//.test(type))!;
    return [before.type, after.type];
  };
  expect(place("before")).toEqual(["turn/start", "step/start"]);
  expect(place("inside")).toEqual(["step/start", "step/end"]);
  expect(place("between")).toEqual(["step/end", "step/start"]);
  expect(dataOf(session, "steering/message")[1]).toEqual({
    turn: 1,
    id: "inside",
    content: [{ type: "text", text: "with the tools" }],
    source: { kind: "tool" },
  });
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: go", "user: before"]);
  expect(linesOf(model.requests[2]!.messages).slice(-2)).toEqual(["assistant: one", "user: between"]);
});

local("#111 pre-step hooks run one after another, awaited, outside any step, and veto nothing", async () => {
  const { harness, hooks, session, say } = await scene(["hello"], { system: "Be kind." });
  hooks.on("agent/session-prefix", async (_, next) => [
    ...(await next()),
    { role: "user" as const, content: [{ type: "text" as const, text: "prefix" }] },
  ]);
  const seen: string[] = [];
  const gate = deferred();
  const payloads: object[] = [];
  hooks.on("agent/pre-step", async (payload) => {
    payloads.push(payload);
    seen.push(`first, after ${typesOf(session).at(-1)}`);
    gate.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    seen.push("first has ended");
    return { stop: { by: "me", reason: "a veto" } } as never;
  });
  hooks.on("agent/pre-step", () => (seen.push("second"), false as never));
  harness.agents.get("session")!.scope!.hooks.on("agent/pre-step", () => void seen.push("the agent's own"));
  expect(await say("hi")).toEqual({ kind: "completed" });
  expect(seen).toEqual(["first, after user/message", "first has ended", "second", "the agent's own"]);
  expect(payloads).toMatchObject([{ turn: 1, step: 1, system: "Be kind.", prefix: [{ role: "user" }] }]);
  expect((payloads[0] as { signal: AbortSignal }).signal).toBeInstanceOf(AbortSignal);
});

local("#112 what a pre-step hook appends stands before step/start, and is part of this request", async () => {
  const { hooks, agent, session, say, model } = await scene([{ toolCalls: [{ name: "look", args: {} }] }, "ok"], {
    tools: [tool("look")],
  });
  hooks.on("agent/pre-step", async ({ step }) => {
    agent.inject(`before step ${step}`, { source: { kind: "hook" } });
  });
  await say("go");
  const shown = typesOf(session).filter((type) => /context|step|turn/.test(type));
  expect(shown).toEqual([
    "turn/start",
    "context/message",
    "step/start",
    "step/end",
    "context/message",
    "step/start",
    "step/end",
    "turn/end",
  ]);
  expect(linesOf(model.requests[0]!.messages).at(-1)).toBe("user: <hook>\nbefore step 1\n</hook>");
  expect(linesOf(model.requests[1]!.messages).at(-1)).toBe("user: <hook>\nbefore step 2\n</hook>");
});

local("#116 the history is taken right before step/start: what its listeners add comes later", async () => {
  const { agent, say, model } = await scene([{ toolCalls: [{ name: "look", args: {} }] }, "ok"], {
    tools: [tool("look")],
  });
  agent.on("step/start", ({ data }) => {
    if (data.step === 1) agent.inject("at the boundary", { source: { kind: "late" } });
  });
  await say("go");
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: go"]);
  expect(linesOf(model.requests[1]!.messages)[1]).toBe("user: <late>\nat the boundary\n</late>");
});

local("#117 what is added while the request is made or answered joins the next one", async () => {
  const { hooks, agent, say, model } = await scene(
    [async () => (agent.inject("while answering", { source: { kind: "x" } }), "one"), "two"],
    {},
  );
  hooks.on("agent/request", async ({ turn }, next) => {
    if (turn === 1) agent.inject("while asking", { source: { kind: "x" } });
    return next();
  });
  await say("go");
  await say("on");
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: go"]);
  expect(linesOf(model.requests[1]!.messages)).toEqual([
    "user: go",
    "user: <x>\nwhile asking\n</x>",
    "user: <x>\nwhile answering\n</x>",
    "assistant: one",
    "user: on",
  ]);
});

anywhere("#117 an injection while a tool runs waits for its result, and joins the next request", async (open) => {
  const model = scriptedModel([{ toolCalls: [{ name: "look", args: {} }] }, "ok"]);
  const look = tool("look", (_, { agent: inside }) => {
    inside.inject("by the way", { source: { kind: "x" } });
    return "seen";
  });
  const agent = await open({ model, tools: [look] });
  agent.send("go");
  await agent.whenIdle();
  expect(linesOf(model.requests[1]!.messages)).toEqual([
    "user: go",
    "assistant: ",
    "tool: seen",
    "user: <x>\nby the way\n</x>",
  ]);
});
