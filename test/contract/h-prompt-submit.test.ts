/** H and D15: what happens to a message between the queue and the history. */
import { run, type ContentBlock } from "turnloop";
import { expect } from "vitest";
import { local } from "../support/fixture.ts";
import { dataOf, leftBehind, linesOf, scene } from "../support/scene.ts";
import { deferred, endOf, eventOf, textOf, typesOf } from "../support/wait.ts";

const said = (content: readonly ContentBlock[]): string => textOf(content);

local("#100 every message passes, in order, and is allowed by default", async () => {
  const { hooks, agent, session } = await scene(["hello"]);
  const passed: string[] = [];
  hooks.on("agent/prompt-submit", async ({ id, content, source }, next) => {
    const decision = await next();
    passed.push(`${id} ${said(content)} ${source.kind} ${decision.kind}`);
    expect(typesOf(session).filter((type) => type === "user/message")).toHaveLength(passed.length - 1);
    return decision;
  });
  for (const id of ["a", "b", "c"]) agent.send(id.toUpperCase(), { id });
  await agent.whenIdle();
  expect(passed).toEqual(["a A user allow", "b B user allow", "c C user allow"]);
  expect(dataOf(session, "turn/start")).toHaveLength(1);
  expect(dataOf(session, "user/message").map(({ id }) => id)).toEqual(["a", "b", "c"]);
});

local("#100 the hook runs inside the turn, outside any step, with the turn's signal", async () => {
  const { hooks, agent, session, say } = await scene();
  let signal: AbortSignal | undefined;
  hooks.on("agent/prompt-submit", (payload, next) => {
    signal = payload.signal;
    expect(signal.aborted).toBe(false);
    agent.cancel("no");
    return next();
  });
  expect(await say("hi")).toMatchObject({ kind: "aborted" });
  expect(signal?.aborted).toBe(true);
  expect(typesOf(session)).toEqual(["inbox/queued", "turn/start", "agent/cancelled", "turn/end"]);
});

local("#101 what replaces the content is recorded instead, and what is added comes right behind", async () => {
  const { hooks, agent, session, model } = await scene(["hello"]);
  hooks.on("agent/prompt-submit", ({ content }) => ({
    kind: "allow",
    content: said(content).toUpperCase(),
    additionalContext: { content: `about ${said(content)}`, source: { kind: "memory", index: 7 } },
  }));
  agent.send("one", { id: "m1", source: { kind: "user", name: "Ada" } });
  agent.send("two", { id: "m2" });
  await agent.whenIdle();
  expect(typesOf(session).slice(2, 7)).toEqual([
    "turn/start",
    "user/message",
    "context/message",
    "user/message",
    "context/message",
  ]);
  expect(dataOf(session, "user/message")).toEqual([
    { id: "m1", content: [{ type: "text", text: "ONE" }], source: { kind: "user", name: "Ada" } },
    { id: "m2", content: [{ type: "text", text: "TWO" }], source: { kind: "user" } },
  ]);
  expect(dataOf(session, "context/message")[0]).toMatchObject({
    content: [{ type: "text", text: "about one" }],
    source: { kind: "memory", index: 7 },
  });
  expect(linesOf(model.requests[0]!.messages)).toEqual([
    "user: ONE",
    "user: <memory>\nabout one\n</memory>",
    "user: TWO",
    "user: <memory>\nabout two\n</memory>",
  ]);
});

local("#101 the content of an answer may be blocks, and is detached from what the hook keeps", async () => {
  const { hooks, session, say } = await scene(["hello"]);
  const mine = [{ type: "text" as const, text: "mine" }];
  hooks.on("agent/prompt-submit", () => ({ kind: "allow", content: mine }));
  await say("one");
  mine[0]!.text = "changed";
  expect(dataOf(session, "user/message")[0]!.content).toEqual([{ type: "text", text: "mine" }]);
});

local("#102 what is blocked is recorded with its original content and the reason; its siblings go on", async () => {
  const { hooks, agent, session, model } = await scene(["hello"]);
  hooks.on("agent/prompt-submit", async ({ id }, next) => {
    await next();
    return id === "b" ? { kind: "block", reason: "not b" } : { kind: "allow" };
  });
  for (const id of ["a", "b", "c"]) agent.send(id, { id, source: { kind: "cli" } });
  await agent.whenIdle();
  expect(typesOf(session).slice(3, 7)).toEqual(["turn/start", "user/message", "prompt/blocked", "user/message"]);
  expect(dataOf(session, "prompt/blocked")).toEqual([
    { id: "b", content: [{ type: "text", text: "b" }], source: { kind: "cli" }, reason: "not b" },
  ]);
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: a", "user: c"]);
  expect(endOf(session)).toEqual({ kind: "completed" });
});

local("#102 a blocked message is told to whoever runs it, though the turn goes on", async () => {
  const { hooks, agent } = await scene(["hello"]);
  hooks.on("agent/prompt-submit", ({ content }, next) =>
    said(content) === "bad" ? { kind: "block", reason: "bad" } : next(),
  );
  const results = [run(agent, "bad").result, run(agent, "good").result];
  expect((await Promise.all(results)).map(({ reason }) => reason)).toEqual([
    { kind: "blocked", reason: "bad" },
    { kind: "completed" },
  ]);
});

local(
  "#103 when all are blocked the turn is rejected with the last reason, without a step, and is flushed",
  async () => {
    const { hooks, agent, session, model } = await scene();
    const flushed: unknown[] = [];
    hooks.on("agent/prompt-submit", ({ id }) => ({ kind: "block", reason: `no ${id}` }));
    hooks.on("session/flush", () => void flushed.push(endOf(session)));
    agent.send("a", { id: "a" });
    agent.send("b", { id: "b" });
    await agent.whenIdle();
    expect(typesOf(session)).toEqual([
      "inbox/queued",
      "inbox/queued",
      "turn/start",
      "prompt/blocked",
      "prompt/blocked",
      "turn/end",
    ]);
    expect(endOf(session)).toEqual({ kind: "rejected", reason: "no b" });
    expect(flushed).toEqual([{ kind: "rejected", reason: "no b" }]);
    expect(model.requests).toEqual([]);
    expect(session.durable).toBe("stored");
  },
);

local("#104 what was blocked never reaches the history", async () => {
  const { hooks, session, say, model } = await scene(["hello", "again"]);
  hooks.on("agent/prompt-submit", ({ content }, next) =>
    said(content) === "secret" ? { kind: "block", reason: "no" } : next(),
  );
  await say("hi");
  await say("secret");
  await say("more");
  expect(JSON.stringify(session.deriveMessages())).not.toContain("secret");
  expect(linesOf(model.requests[1]!.messages)).toEqual(["user: hi", "assistant: hello", "user: more"]);
});

local("#105 D15 a hook that throws ends the turn; its message is dropped, those behind it run next", async () => {
  const { hooks, agent, session, model, errors } = await scene(["hello"]);
  hooks.on("agent/prompt-submit", ({ id }, next) => {
    if (id === "b") throw new Error("boom");
    return next();
  });
  for (const id of ["a", "b", "c", "d"]) agent.send(id, { id });
  await agent.whenIdle();
  expect(typesOf(session).slice(4)).toEqual([
    "turn/start",
    "user/message",
    "inbox/dropped",
    "turn/end",
    "turn/start",
    "user/message",
    "user/message",
    "step/start",
    "request/header",
    "assistant/message",
    "step/end",
    "turn/end",
  ]);
  expect(dataOf(session, "inbox/dropped")).toEqual([{ ids: ["b"], reason: "error" }]);
  expect(endOf(session, 1)).toEqual({ kind: "error", step: 0, message: "boom" });
  expect(errors.map(({ turn, step, error }) => [turn, step, error.message])).toEqual([[1, 0, "boom"]]);
  expect(dataOf(session, "turn/start").map(({ messages }) => messages)).toEqual([
    ["a", "b", "c", "d"],
    ["c", "d"],
  ]);
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: a", "user: c", "user: d"]);
});

local("#105 a rejection counts as a throw, and so does an answer that is no decision", async () => {
  const { hooks, say, session } = await scene(["hello"]);
  const wrong: unknown[] = [
    () => Promise.reject(new Error("later")),
    () => undefined,
    () => ({ kind: "maybe" }),
    () => ({ kind: "block" }),
    () => ({ kind: "allow", content: 7 }),
    () => ({ kind: "allow", content: [{ type: "text" }] }),
  ];
  for (const listener of wrong) {
    const off = hooks.on("agent/prompt-submit", listener as never);
    expect(await say("hi"), String(listener)).toMatchObject({ kind: "error", step: 0 });
    off();
  }
  expect(await say("hi")).toEqual({ kind: "completed" });
  expect(dataOf(session, "user/message")).toHaveLength(1);
});

local("#106 context without a source is refused, and never taken for the user's", async () => {
  const { hooks, say, session } = await scene();
  hooks.on("agent/prompt-submit", () => ({ kind: "allow", additionalContext: { content: "who am I" } as never }));
  expect(await say("hi")).toMatchObject({ kind: "error", step: 0, code: "INVALID_CONTENT" });
  expect(dataOf(session, "context/message")).toEqual([]);
  expect(dataOf(session, "user/message")).toEqual([]);
  expect(dataOf(session, "inbox/dropped")).toMatchObject([{ reason: "error" }]);
});

local("#107 a rejection swallows nothing that came after the batch was taken", async () => {
  const { hooks, agent, session, model } = await scene(["hello"]);
  hooks.on("agent/prompt-submit", ({ id }, next) => {
    if (id !== "bad") return next();
    agent.send("late", { id: "late" });
    agent.steer("steering", { id: "steering" });
    return { kind: "block", reason: "bad" };
  });
  agent.send("bad", { id: "bad" });
  await agent.whenIdle();
  expect(endOf(session, 1)).toEqual({ kind: "rejected", reason: "bad" });
  expect(dataOf(session, "turn/start")[1]!.messages).toEqual(["late", "steering"]);
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: late", "user: steering"]);
});

local("D15 a cancel names every message of the turn that is not in the history yet", async () => {
  const { hooks, agent, session } = await scene();
  const asked = deferred();
  hooks.on("agent/prompt-submit", ({ id }, next) => {
    if (id !== "b") return next();
    asked.resolve();
    return new Promise(() => {});
  });
  for (const id of ["a", "b", "c"]) agent.send(id, { id });
  await asked.promise;
  agent.send("d", { id: "d" });
  agent.cancel("stop");
  await agent.whenIdle();
  expect(dataOf(session, "agent/cancelled")).toMatchObject([{ turn: 1, reason: "stop", dropped: ["b", "c", "d"] }]);
  expect(typesOf(session).slice(3)).toEqual([
    "turn/start",
    "user/message",
    "inbox/queued",
    "agent/cancelled",
    "turn/end",
  ]);
  expect(agent.queue).toEqual([]);
});

local("D15 D14 a cancel that keeps the queue runs what had not entered the history as the next turn", async () => {
  const { hooks, agent, session, model } = await scene(["hello"]);
  let cancelled = false;
  hooks.on("agent/prompt-submit", ({ id }, next) => {
    if (id === "b" && !cancelled) {
      cancelled = true;
      agent.cancel("pause", { queue: "keep" });
    }
    return next();
  });
  for (const id of ["a", "b", "c"]) agent.send(id, { id });
  await agent.whenIdle();
  expect(endOf(session, 1)).toEqual({ kind: "aborted", reason: "pause" });
  expect(dataOf(session, "agent/cancelled")).toMatchObject([{ dropped: [] }]);
  expect(dataOf(session, "turn/start").map(({ messages }) => messages)).toEqual([
    ["a", "b", "c"],
    ["b", "c"],
  ]);
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: a", "user: b", "user: c"]);
});

local("D15 a message stays in the queue until its turn is open, and shows as taken from then on", async () => {
  const { hooks, agent } = await scene(["hello"]);
  const queued: string[][] = [];
  const note = (): void => void queued.push(agent.getSnapshot().queue.map(({ id }) => id));
  hooks.on("agent/status", ({ status }) => void (status === "running" && note()));
  agent.on("turn/start", note);
  agent.send("a", { id: "a" });
  note();
  await agent.whenIdle();
  expect(queued).toEqual([["a"], ["a"], []]);
});

local("D15 a host that dies while a hook looks at a message leaves it queued", async () => {
  const { hooks, agent, session } = await scene();
  hooks.on("agent/prompt-submit", ({ id }, next) => (id === "b" ? new Promise(() => {}) : next()));
  agent.send("a", { id: "a" });
  agent.send("b", { id: "b" });
  await eventOf(session, "user/message");
  const storage = await leftBehind(session);
  const again = await scene(["hello"], { storage });
  await again.agent.whenIdle();
  expect(endOf(again.session, 1)).toEqual({ kind: "interrupted" });
  expect(dataOf(again.session, "turn/start")[1]!.messages).toEqual(["b"]);
  expect(linesOf(again.model.requests[0]!.messages)).toEqual(["user: a", "user: b"]);
});
