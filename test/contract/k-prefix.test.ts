/** K: the messages in front of every request of one instance. */
import type { Message } from "turnloop";
import { expect } from "vitest";
import { local } from "../support/fixture.ts";
import { dataOf, leftBehind, linesOf, scene, tool } from "../support/scene.ts";
import { deferred, endOf, eventOf, typesOf } from "../support/wait.ts";

const user = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] });
const calling = { toolCalls: [{ name: "look", args: {} }] };

local("#134 the prefix is composed once, before the first pre-step, and stands in front of every request", async () => {
  const { hooks, agent, say, model } = await scene([calling, "one", "two"], { tools: [tool("look")] });
  const seen: string[] = [];
  hooks.on("agent/session-prefix", async (payload, next) => {
    expect(payload.agent).toBe(agent);
    expect(payload.signal.aborted).toBe(false);
    seen.push("composed");
    return [...(await next()), user("prefix")];
  });
  const prefixes: unknown[] = [];
  hooks.on("agent/pre-step", ({ step, prefix }) => {
    seen.push(`pre-step ${step}`);
    prefixes.push(prefix);
  });
  expect(seen).toEqual([]);
  await say("go");
  await say("on");
  expect(seen).toEqual(["composed", "pre-step 1", "pre-step 2", "pre-step 1"]);
  expect(model.requests.map(({ messages }) => linesOf(messages)[0])).toEqual(Array(3).fill("user: prefix"));
  expect(new Set(prefixes).size).toBe(1);
  expect(new Set(model.requests.map(({ messages }) => messages[0])).size).toBe(1);
});

local("#134 the prefix is frozen, whoever is handed it", async () => {
  const { hooks, say, model } = await scene(["one"]);
  hooks.on("agent/session-prefix", () => [user("prefix")]);
  let handed: readonly Message[] = [];
  hooks.on("agent/pre-step", ({ prefix }) => void (handed = prefix));
  await say("go");
  for (const message of [handed[0]!, model.requests[0]!.messages[0]!]) {
    expect(() => Object.assign(message.content[0]!, { text: "changed" })).toThrow(TypeError);
  }
  expect(() => (handed as Message[]).push(user("more"))).toThrow(TypeError);
});

local("#135 the prefix is no history: the header alone records it", async () => {
  const { hooks, session, say } = await scene(["one"]);
  hooks.on("agent/session-prefix", () => [user("prefix")]);
  await say("go");
  expect(linesOf(session.deriveMessages())).toEqual(["user: go", "assistant: one"]);
  const holding = session.events.filter((event) => JSON.stringify(event).includes("prefix")).map(({ type }) => type);
  expect(holding).toEqual(["request/header"]);
  expect(dataOf(session, "request/header")[0]!.header.prefix).toEqual([user("prefix")]);
});

local("#136 it begins as a frozen empty list; adding behind next() gives the order of registration", async () => {
  const { hooks, say, model } = await scene(["one"]);
  const seeds: (readonly Message[])[] = [];
  hooks.on("agent/session-prefix", async (_, next) => [...(await next()), user("outermost, so last")]);
  hooks.on("agent/session-prefix", async (_, next) => [user("in front"), ...(await next())]);
  hooks.on("agent/session-prefix", async (_, next) => {
    const seed = await next();
    seeds.push(seed);
    expect(() => (seed as Message[]).push(user("no"))).toThrow(TypeError);
    return [...seed, user("innermost")];
  });
  await say("go");
  expect(seeds).toEqual([[]]);
  expect(linesOf(model.requests[0]!.messages)).toEqual([
    "user: in front",
    "user: innermost",
    "user: outermost, so last",
    "user: go",
  ]);
});

local("#136 prepending around next() puts what was registered first in front", async () => {
  const { hooks, say, model } = await scene(["one"]);
  for (const text of ["first", "second"]) {
    hooks.on("agent/session-prefix", async (_, next) => [user(text), ...(await next())]);
  }
  await say("go");
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: first", "user: second", "user: go"]);
});

local("#136 nobody listening, or an empty answer, means no prefix at all", async () => {
  for (const listen of [false, true]) {
    const { hooks, session, say } = await scene(["one"]);
    if (listen) hooks.on("agent/session-prefix", () => []);
    await say("go");
    expect(dataOf(session, "request/header")[0]!.header).not.toHaveProperty("prefix");
  }
});

local("#137 what a listener keeps a hold of cannot change it", async () => {
  const { hooks, say, model } = await scene(["one", "two"]);
  const mine = { type: "text" as const, text: "mine" };
  const list: Message[] = [{ role: "user", content: [mine] }];
  hooks.on("agent/session-prefix", () => list);
  await say("go");
  mine.text = "changed";
  list.push(user("more"));
  await say("on");
  expect(linesOf(model.requests[1]!.messages)[0]).toBe("user: mine");
  expect(linesOf(model.requests[1]!.messages)[1]).toBe("user: go");
});

local("#137 an answer that is no list of messages ends the turn, and the next one composes again", async () => {
  const { hooks, session, say, model } = await scene(["one"]);
  for (const wrong of [
    undefined,
    null,
    "text",
    [{ role: "system", content: [] }],
    [{ role: "user" }],
    [null],
    [() => {}],
  ]) {
    const off = hooks.on("agent/session-prefix", () => wrong as never);
    expect(await say("go"), JSON.stringify(wrong)).toMatchObject({ kind: "error", step: 0, code: "INVALID_CONTENT" });
    off();
  }
  expect(typesOf(session)).not.toContain("step/start");
  expect(await say("go")).toEqual({ kind: "completed" });
  expect(model.requests).toHaveLength(1);
});

local("#138 a cancel while it is composed discards it; the next turn composes anew", async () => {
  const { hooks, agent, session, say, model } = await scene(["one"]);
  const gate = deferred();
  let times = 0;
  hooks.on("agent/session-prefix", async () => {
    times += 1;
    if (times > 1) return [user("second")];
    agent.cancel("not yet");
    await gate.promise;
    return [user("first")];
  });
  expect(await say("go")).toEqual({ kind: "aborted", reason: "not yet" });
  gate.resolve();
  expect(await say("again")).toEqual({ kind: "completed" });
  expect(times).toBe(2);
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: second", "user: go", "user: again"]);
  expect(dataOf(session, "request/header")).toMatchObject([
    { reason: "initial", header: { prefix: [user("second")] } },
  ]);
});

local("#138 so does a cancel that a listener makes before it answers at once", async () => {
  const { hooks, agent, session, say } = await scene(["one"]);
  let times = 0;
  hooks.on("agent/session-prefix", () => {
    if ((times += 1) === 1) agent.cancel("not yet");
    return [user(`prefix ${times}`)];
  });
  await say("go");
  await say("again");
  expect(dataOf(session, "request/header")[0]!.header.prefix).toEqual([user("prefix 2")]);
});

local("#138 a disposal while it is composed logs nothing of it", async () => {
  const { hooks, agent, session, dispose } = await scene();
  const ended = deferred();
  hooks.on("agent/session-prefix", async () => {
    void dispose().then(ended.resolve);
    return [user("prefix")];
  });
  agent.send("go");
  await ended.promise;
  expect(endOf(session)).toEqual({ kind: "disposed" });
  expect(typesOf(session)).not.toContain("request/header");
});

local("#138 a composition that throws is tried again in the next turn", async () => {
  const { hooks, say } = await scene(["one"]);
  let times = 0;
  hooks.on("agent/session-prefix", async () => {
    if ((times += 1) === 1) throw new Error("no file");
    return [user("prefix")];
  });
  expect(await say("go")).toEqual({ kind: "error", step: 0, message: "no file" });
  expect(await say("go")).toEqual({ kind: "completed" });
  expect(times).toBe(2);
});

local("#139 a resumed and a forked session compose anew, and the resume header shows the drift", async () => {
  const first = await scene(["one"]);
  first.hooks.on("agent/session-prefix", () => [user("monday")]);
  await first.say("go");
  const again = await scene(["two", "three"], { storage: await leftBehind(first.session) });
  let day = "tuesday";
  again.hooks.on("agent/session-prefix", () => [user(day)]);
  await again.say("on");
  day = "wednesday";
  const fork = await again.harness.agents.fork({ from: "session", id: "fork" });
  fork.agent.send("fork");
  await eventOf(fork.agent.session, "turn/end", ({ data }) => data.turn === 3);
  const headers = dataOf(fork.agent.session, "request/header");
  expect(headers.map(({ reason, header }) => [reason, linesOf(header.prefix!)[0]])).toEqual([
    ["initial", "user: monday"],
    ["resume", "user: tuesday"],
    ["resume", "user: wednesday"],
  ]);
  expect(linesOf(again.model.requests[1]!.messages)).toEqual([
    "user: wednesday",
    "user: go",
    "assistant: one",
    "user: on",
    "assistant: two",
    "user: fork",
  ]);
});

local("#140 what a composing listener appends joins the request that is being made", async () => {
  const { hooks, agent, say, model } = await scene(["one"]);
  hooks.on("agent/session-prefix", () => {
    agent.inject("found on the way", { source: { kind: "hook" } });
    return [user("prefix")];
  });
  await say("go");
  expect(linesOf(model.requests[0]!.messages)).toEqual([
    "user: prefix",
    "user: go",
    "user: <hook>\nfound on the way\n</hook>",
  ]);
});
