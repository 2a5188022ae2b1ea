/** D5 and D6: notifications are read from the log, and every verb may be called from whoever listens. */
import type { Agent, SessionEventType } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, clientTool, staged, tool } from "../support/calls.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { textsOf } from "../support/held.ts";
import { codeOf } from "../support/lifecycle.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { endOf, typesOf } from "../support/wait.ts";

/** Calls `act` on the first event of the type only. */
function once(agent: Agent, type: SessionEventType, act: () => void): void {
  const off = agent.on(type, () => {
    off();
    act();
  });
}

anywhere("D5 #250 agent.on hears the events of its type as the log has them, and no others", async (open) => {
  const model = scriptedModel([calls("look"), "done"]);
  const agent = await open({ model, tools: [tool("look")] });
  const heard: unknown[] = [];
  const types = ["turn/start", "step/start", "assistant/chunk", "step/end", "turn/end"] as const;
  for (const type of types) agent.on(type, (event) => void heard.push(event));
  agent.send("go");
  await agent.whenIdle();
  const { session } = agent;
  expect(heard).toEqual(session.events.filter((event) => types.includes(event.type as "turn/start")));
  for (const event of heard) expect(session.events).toContain(event);
});

anywhere("D5 agent.on ends with its undo and with its signal, and an aborted signal never begins", async (open) => {
  const agent = await open({ model: scriptedModel(["one", "two"]) });
  const heard: string[] = [];
  const controller = new AbortController();
  const off = agent.on("turn/end", () => void heard.push("undone"));
  agent.on("turn/end", () => void heard.push("signal"), { signal: controller.signal });
  agent.on("turn/end", () => void heard.push("never"), { signal: AbortSignal.abort() });
  agent.send("one");
  await agent.whenIdle();
  off();
  off();
  controller.abort();
  agent.send("two");
  await agent.whenIdle();
  expect(heard).toEqual(["undone", "signal"]);
});

local("D5 #215 a listener of agent.on that throws or rejects is reported, and disturbs nobody", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  const heard: string[] = [];
  agent.on("turn/start", () => {
    throw new Error("thrown");
  });
  agent.on("turn/start", async () => {
    throw new Error("rejected");
  });
  agent.on("turn/start", ({ type }) => void heard.push(type));
  agent.send("hello");
  await agent.whenIdle();
  expect(heard).toEqual(["turn/start"]);
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  expect(harness.diagnostics.map(({ code, message }) => [code, message])).toEqual([
    ["LISTENER_FAILED", "a listener of the session failed: thrown"],
    ["LISTENER_FAILED", "a listener of the session failed: rejected"],
  ]);
});

// In this very frame, which only the loop itself can show.
local("D6 send from a listener commits at once, and every listener sees the log in order", async () => {
  const { agent } = await staged({ model: scriptedModel(["one", "two"]) });
  const { session } = agent;
  const first: number[] = [];
  const second: number[] = [];
  let inside: unknown;
  session.subscribe(({ seq }) => void first.push(seq));
  once(agent, "turn/end", () => {
    const { seq } = session;
    const id = agent.send("again");
    inside = [session.at(seq)?.type, session.seq - seq, agent.queue.at(-1)?.id === id];
  });
  session.subscribe(({ seq }) => void second.push(seq));
  agent.send("go");
  await agent.whenIdle();
  expect(inside).toEqual(["inbox/queued", 1, true]);
  const all = session.events.map(({ seq }) => seq);
  expect(first).toEqual(all);
  expect(second).toEqual(all);
  expect(textsOf(session)).toEqual(["go", "again"]);
});

// In this very frame, which only the loop itself can show.
local("D6 an append made inside a listener is told only when the running dispatch has ended", async () => {
  const { agent } = await staged({ model: scriptedModel(["one"]) });
  const told: string[] = [];
  agent.session.subscribe(({ type }) => {
    told.push(`a ${type}`);
    if (type !== "turn/start") return;
    agent.inject("note");
    told.push("a is done");
  });
  agent.session.subscribe(({ type }) => void told.push(`b ${type}`));
  agent.send("go");
  await agent.whenIdle();
  expect(told.slice(2, 7)).toEqual([
    "a turn/start",
    "a is done",
    "b turn/start",
    "a context/message",
    "b context/message",
  ]);
});

// In this very frame, which only the loop itself can show.
local("D6 #222 steer, inject, configure and withdraw take effect from inside a listener", async () => {
  const model = scriptedModel([calls("look"), "done"]);
  const { agent } = await staged({ model, tools: [tool("look")] });
  let gone: Promise<boolean> | undefined;
  once(agent, "step/start", () => {
    agent.steer("left");
    agent.inject("it rains", { source: { kind: "weather" } });
    agent.configure({ temperature: 0.5 });
    gone = agent.withdraw(agent.send("never"));
  });
  agent.send("go");
  await agent.whenIdle();
  expect(await gone).toBe(true);
  expect(linesOf(model.requests[1]!.messages)).toEqual([
    "user: go",
    "user: <weather>\nit rains\n</weather>",
    "assistant: ",
    "tool: done",
    "user: left",
  ]);
  // The request of the step that was opening already takes it: its configuration was not made yet.
  expect(model.requests.map(({ config }) => config.temperature)).toEqual([0.5, 0.5]);
  expect(textsOf(agent.session)).toEqual(["go"]);
});

// In this very frame, which only the loop itself can show.
local("D6 cancel from inside a listener ends the turn there", async () => {
  const { agent } = await staged({ model: scriptedModel(["never"]) });
  once(agent, "user/message", () => agent.cancel("from a listener"));
  agent.send("go");
  await agent.whenIdle();
  expect(typesOf(agent.session)).toEqual(["inbox/queued", "turn/start", "user/message", "agent/cancelled", "turn/end"]);
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "from a listener" });
});

anywhere("D6 continue from a listener of turn/end runs another turn", async (open) => {
  const model = scriptedModel(["one", "two"]);
  const agent = await open({ model });
  once(agent, "turn/end", () => agent.continue());
  agent.send("go");
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start").map(({ trigger }) => trigger.kind)).toEqual(["message", "continue"]);
  expect(linesOf(model.requests[1]!.messages)).toEqual(["user: go", "assistant: one"]);
});

anywhere("D6 claim and respond may be called from the listener of the question", async (open) => {
  const agent = await open({ model: scriptedModel([calls("paint"), "done"]), tools: [clientTool("paint")] });
  let claimed: Promise<void> | undefined;
  let answered: Promise<void> | undefined;
  agent.on("interaction/requested", ({ data: { id } }) => {
    claimed = agent.claim(id);
    answered = agent.respond(id, { value: "red" });
  });
  agent.send("go");
  await agent.whenIdle();
  expect(await Promise.allSettled([claimed, answered])).toMatchObject([
    { status: "fulfilled" },
    { status: "fulfilled" },
  ]);
  expect(dataOf(agent.session, "tool/result").map(({ content }) => content)).toEqual([[{ type: "text", text: "red" }]]);
});

anywhere("D6 a verb that throws inside a listener throws there alone", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  const codes: (string | undefined)[] = [];
  once(agent, "step/start", () => {
    void codeOf(() => agent.continue()).then((code) => codes.push(code));
    agent.send(undefined as never);
  });
  agent.send("go");
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  expect(codes).toEqual(["TURN_OPEN"]);
  expect(dataOf(agent.session, "inbox/queued")).toHaveLength(1);
});

local(
  "D6 #215 a listener of agent.subscribe that throws disturbs neither the loop nor the other listeners",
  async () => {
    const harness = harnessWith({ model: scriptedModel(["one", "two"]) });
    const { agent } = await harness.agents.open({ id: "s" });
    const seen = new Set<string>();
    const throwing = new Set(["idle", "running"]);
    agent.subscribe(() => {
      if (throwing.delete(agent.getSnapshot().status)) throw new Error("no");
    });
    agent.subscribe(() => void seen.add(agent.getSnapshot().status));
    agent.send("go");
    await agent.whenIdle();
    agent.send("again");
    await agent.whenIdle();
    expect(textsOf(agent.session)).toEqual(["go", "again"]);
    expect([...seen]).toEqual(["idle", "running"]);
    expect(harness.diagnostics.map(({ code }) => code)).toEqual(["LISTENER_FAILED", "LISTENER_FAILED"]);
  },
);

local("D6 verbs may be called from the hooks that only tell", async () => {
  const model = scriptedModel(["one", "two"]);
  const harness = harnessWith({ model });
  const { agent } = await harness.agents.open({ id: "s" });
  const off = harness.hooks.on("session/event", ({ event }) => {
    if (event.type !== "assistant/message") return;
    off();
    agent.steer("and more");
  });
  const quit = harness.hooks.on("agent/queued", ({ message }) => {
    quit();
    agent.inject(`about ${message.id}`, { source: { kind: "note" } });
  });
  agent.send("go", { id: "m1" });
  await agent.whenIdle();
  expect(linesOf(model.requests[1]!.messages)).toEqual([
    "user: <note>\nabout m1\n</note>",
    "user: go",
    "assistant: one",
    "user: and more",
  ]);
});

local("D6 #97 bookkeeping stands between turns, and a turn's own events never do", async () => {
  const harness = harnessWith({ model: scriptedModel([]) });
  const { agent } = await harness.agents.open({ id: "s" });
  const { session } = agent.scope!;
  agent.configure({ temperature: 0 });
  session.append("session/titled", { title: "a" });
  session.append("model/aux", { purpose: "title", model: "m" });
  expect(typesOf(session)).toEqual(["agent/configured", "session/titled", "model/aux"]);
  const source = { kind: "user" };
  for (const [type, data] of [
    ["user/message", { id: "a", content: [], source }],
    ["context/message", { id: "a", content: [], source }],
    ["steering/message", { turn: 1, id: "a", content: [], source }],
    ["prompt/blocked", { id: "a", content: [], source, reason: "r" }],
    ["tool/progress", { callId: "c", value: 1 }],
    ["step/start", { turn: 1, step: 1 }],
    ["turn/end", { turn: 1, reason: { kind: "completed" } }],
    ["interaction/resolved", { id: "a", outcome: "cancelled" }],
  ] as const) {
    const surface = type.endsWith("/message") ? { surface: "append" as const } : {};
    expect(await codeOf(() => session.append(type, data as never, surface)), type).toBe("MISPLACED_EVENT");
  }
  expect(session.seq).toBe(3);
});
