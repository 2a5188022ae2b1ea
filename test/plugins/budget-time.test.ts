/** `budget({ ms })`: time acts in the middle of a step, and the turn still ends as stopped, with nothing dangling. */
import { budget, memoryStorage, retry, toolTimeout, type HarnessOptions } from "turnloop";
import type { ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, clientTool, deafBody, resultsOf, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { heldTool } from "../support/held.ts";
import { leftBehind, linesOf, scene } from "../support/scene.ts";
import { deferred, endOf, eventOf, snapshotWhere, typesOf } from "../support/wait.ts";

const STOPPED = { kind: "stopped", by: "budget", reason: "the budget of 5000 ms a turn is used up" };
const CHUNKS = [
  { type: "delta", index: 0, text: "Hel" },
  { type: "block-start", index: 1, block: { type: "tool-call", name: "work" } },
  { type: "delta", index: 1, text: '{"a":' },
] as const;

async function stage(answers: readonly ScriptedAnswer[], options: HarnessOptions & { id?: string } = {}) {
  const clock = testClock();
  const one = await scene(answers, { clock, plugins: [budget({ ms: 5000 })], tools: [tool("work")], ...options });
  return { ...one, clock };
}

test.each(["polite", "deaf"] as const)("an answer ends where it is, without its calls (a %s model)", async (hang) => {
  const signals: AbortSignal[] = [];
  const one = await stage([(_, { signal }) => (signals.push(signal), { chunks: CHUNKS, hang }), "fine"]);
  const said = one.say("go");
  await eventOf(
    one.session,
    "assistant/chunk",
    ({ data }) => data.chunk === undefined || data.chunk.type === "block-start",
  );
  await one.clock.sleeping(5000);
  await one.clock.advance(4999);
  expect(endOf(one.session)).toBeUndefined();
  await one.clock.advance(1);
  expect(await said).toEqual(STOPPED);
  expect(linesOf(one.session.deriveMessages())).toEqual(["user: go", "assistant: Hel"]);
  expect(typesOf(one.session)).not.toContain("tool/call");
  expect(signals[0]!.reason).toMatchObject({ code: "TURN_STOPPED", message: STOPPED.reason });
  expect(await one.say("again")).toEqual({ kind: "completed" });
});

test("a model that has said nothing yet is not waited for, and leaves no message", async () => {
  const one = await stage([{ chunks: [], hang: "deaf" }]);
  const said = one.say("go");
  await one.clock.sleeping(5000);
  await one.clock.advance(5000);
  expect(await said).toEqual(STOPPED);
  expect(typesOf(one.session)).not.toContain("assistant/message");
});

test("a body is given up, those behind it do not begin, and each call has its result", async () => {
  const { body, running } = deafBody();
  const signals: AbortSignal[] = [];
  const one = await stage([calls("work", "slow", "work"), "never"], {
    tools: [tool("work"), tool("slow", (args, call) => (signals.push(call.signal), body(args, call)))],
  });
  const said = one.say("go");
  await running;
  await one.clock.advance(5000);
  expect(await said).toEqual(STOPPED);
  expect(resultsOf(one.session)).toMatchObject([
    { tool: "work", says: "done" },
    { tool: "slow", code: "TOOL_ABORTED" },
    { tool: "work", code: "ABORTED_BEFORE_DISPATCH", fails: expect.stringContaining(STOPPED.reason) as string },
  ]);
  expect(signals[0]!.aborted).toBe(true);
  expect(one.model.requests).toHaveLength(1);
});

test.each(["agent/pre-step", "prompt/assemble", "agent/request", "agent/step-result", "tools/pre-execute"] as const)(
  "a hook that hangs is not waited for: %s",
  async (name) => {
    const hung = deferred();
    const one = await stage([calls("work"), "never"]);
    one.hooks.on(name, () => (hung.resolve(), new Promise<never>(() => {})));
    const said = one.say("go");
    await hung.promise;
    await one.clock.advance(4999);
    expect(endOf(one.session)).toBeUndefined();
    await one.clock.advance(1);
    expect(await said).toEqual(STOPPED);
  },
);

test("a storage that hangs before a body is not waited for", async () => {
  const storage = memoryStorage();
  const [hung, gate] = [deferred(), deferred()];
  const one = await stage([calls("work"), "never"], {
    plugins: [budget({ ms: 3000 })],
    storage: {
      ...storage,
      append: async (batch) => {
        if (batch.events.some(({ type }) => type === "tool/start")) await (hung.resolve(), gate.promise);
        return storage.append(batch);
      },
    },
  });
  one.agent.send("go");
  await hung.promise;
  await one.clock.advance(3000);
  await eventOf(one.session, "turn/end");
  expect(endOf(one.session)).toMatchObject({ kind: "stopped", by: "budget" });
  expect(resultsOf(one.session)).toMatchObject([{ tool: "work", code: "TOOL_ABORTED" }]);
  gate.resolve();
});

test("it adds up over steps, and each turn has its own", async () => {
  const slow = (ms: number): ReturnType<typeof tool> =>
    tool("slow", async () => {
      await one.clock.advance(ms);
      return "done";
    });
  const one = await stage([calls("slow"), calls("slow"), "one", calls("slow"), calls("slow"), "two"], {
    tools: [slow(2000)],
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  const two = await stage([calls("slow"), calls("slow"), calls("slow"), "never"], {
    tools: [tool("slow", () => two.clock.advance(2000))],
  });
  expect(await two.say("go")).toEqual(STOPPED);
});

test("a wait for another try is cut short, and no request follows", async () => {
  const busy: ScriptedAnswer = {
    chunks: [{ type: "finish", reason: { kind: "error", message: "no", code: "RATE_LIMITED", retryAfterMs: 60_000 } }],
  };
  for (const order of ["budget first", "retry first"]) {
    const plugins = [budget({ ms: 5000 }), retry()];
    const one = await stage([busy, "never"], { plugins: order === "budget first" ? plugins : plugins.toReversed() });
    const said = one.say("go");
    await eventOf(one.session, "request/failed");
    await one.clock.sleeping(5000);
    await one.clock.advance(5000);
    expect(await said).toEqual(STOPPED);
    expect(one.model.requests).toHaveLength(1);
  }
});

test("the time in which a person is asked does not count, before the body or in it", async () => {
  const one = await stage([calls("ask"), calls("rm"), "fine"], {
    tools: [tool("ask", (_, { ask }) => ask("sure?")), tool("rm", () => "gone", { needsApproval: true })],
  });
  const said = one.say("go");
  for (const [id, answer] of [
    ["call_1_1_1_0/1", "yes"],
    ["call_1_2_1_0/approval", { decision: "allow" }],
  ] as const) {
    await snapshotWhere(one.agent, ({ interactions }) => interactions.some((open) => open.id === id));
    await one.clock.advance(60_000);
    await one.agent.respond(id, answer);
  }
  expect(await said).toEqual({ kind: "completed" });
});

test("a client's tool is on the clock from the moment that a client has claimed it", async () => {
  const one = await stage([calls("page"), "never"], { tools: [clientTool("page")] });
  const said = one.say("go");
  await snapshotWhere(one.agent, ({ interactions }) => interactions.length === 1);
  await one.clock.advance(60_000);
  await one.agent.claim("call_1_1_1_0/client");
  await one.clock.sleeping(5000);
  await one.clock.advance(5000);
  expect(await said).toEqual(STOPPED);
  expect(resultsOf(one.session)).toMatchObject([{ code: "TOOL_ABORTED" }]);
  expect(one.agent.interactions).toEqual([]);
});

test("the time that a client takes counts against the steps behind it", async () => {
  const one = await stage([calls("page"), { chunks: [], hang: "deaf" }], { tools: [clientTool("page")] });
  const said = one.say("go");
  await snapshotWhere(one.agent, ({ interactions }) => interactions.length === 1);
  await one.clock.advance(60_000);
  await one.agent.claim("call_1_1_1_0/client");
  await one.clock.advance(3000);
  await one.agent.respond("call_1_1_1_0/client", { value: 1 });
  await eventOf(one.session, "step/start", ({ data }) => data.step === 2);
  await one.clock.sleeping(2000);
  await one.clock.advance(1999);
  expect(endOf(one.session)).toBeUndefined();
  await one.clock.advance(1);
  expect(await said).toEqual(STOPPED);
});

test("a body that works beside a call that waits for a person is on the clock", async () => {
  const { body, running } = deafBody();
  const one = await stage([calls("ask", "slow"), "never"], {
    tools: [tool("ask", (_, { ask }) => ask("sure?"), { parallel: true }), tool("slow", body, { parallel: true })],
  });
  const said = one.say("go");
  await running;
  await snapshotWhere(one.agent, ({ interactions }) => interactions.length === 1);
  await one.clock.advance(5000);
  expect(await said).toEqual(STOPPED);
  expect(resultsOf(one.session)).toMatchObject([{ code: "TOOL_ABORTED" }, { tool: "slow", code: "TOOL_ABORTED" }]);
  await expect(one.agent.respond("call_1_1_1_0/1", "yes")).rejects.toThrow(/cancelled already/);
});

test("what a body works beside a call that waits counts against the steps behind it", async () => {
  const held = heldTool({ parallel: true });
  const one = await stage([calls("ask", "held"), { chunks: [], hang: "deaf" }], {
    tools: [tool("ask", (_, { ask }) => ask("sure?"), { parallel: true }), held.tool],
  });
  const said = one.say("go");
  await held.started;
  await snapshotWhere(one.agent, ({ interactions }) => interactions.length === 1);
  await one.clock.advance(3000);
  held.answer("done");
  await eventOf(one.session, "tool/result");
  // Now there is nothing but the person.
  await one.clock.advance(60_000);
  await one.agent.respond("call_1_1_1_0/1", "yes");
  await eventOf(one.session, "step/start", ({ data }) => data.step === 2);
  await one.clock.sleeping(2000);
  await one.clock.advance(1999);
  expect(endOf(one.session)).toBeUndefined();
  await one.clock.advance(1);
  expect(await said).toEqual(STOPPED);
});

test("a model that hears no signal is let go by its iterator", async () => {
  const asked = deferred();
  const left = deferred();
  const iterator = {
    next: () => (asked.resolve(), new Promise<never>(() => {})),
    return: () => (left.resolve(), Promise.resolve({ done: true as const, value: undefined })),
  };
  const one = await stage([], { model: { id: "m", stream: () => ({ [Symbol.asyncIterator]: () => iterator }) } });
  const said = one.say("go");
  await asked.promise;
  await one.clock.advance(5000);
  await left.promise;
  expect(await said).toEqual(STOPPED);
});

test("a parked turn has no timer, and the time of its host's absence does not count", async () => {
  const tools = [tool("rm", () => "gone", { needsApproval: true })];
  const before = await stage([calls("rm")], { tools });
  before.agent.send("go");
  await snapshotWhere(before.agent, ({ waiting }) => waiting);
  const storage = await leftBehind(before.session);
  await before.dispose();
  expect(endOf(before.session)).toBeUndefined();
  const clock = testClock(before.clock.now() + 86_400_000);
  const sleeps: number[] = [];
  const after = await scene(["fine"], {
    clock: { ...clock, sleep: (ms, signal) => (sleeps.push(ms), clock.sleep(ms, signal)) },
    plugins: [budget({ ms: 5000 })],
    storage,
    tools,
  });
  expect(sleeps).toEqual([]);
  await after.agent.respond("call_1_1_1_0/approval", { decision: "allow" });
  await after.agent.whenIdle();
  expect(endOf(after.session)).toEqual({ kind: "completed" });
});

test("a turn that is taken up again after a crash goes on with what it had left", async () => {
  const { body, running } = deafBody();
  const before = await stage([calls("slow")], { tools: [tool("slow", body, { idempotent: true })] });
  before.agent.send("go");
  await running;
  await before.clock.advance(3000);
  before.agent.scope!.session.append("tool/progress", { callId: "call_1_1_1_0", value: 1 });
  const storage = await leftBehind(before.session);
  const clock = testClock(before.clock.now() + 86_400_000);
  const again = deafBody();
  const after = await scene(["never"], {
    clock,
    plugins: [budget({ ms: 5000 })],
    storage,
    tools: [tool("slow", again.body, { idempotent: true })],
    interrupted: "continue",
  });
  await again.running;
  await clock.advance(1999);
  expect(endOf(after.session)).toBeUndefined();
  await clock.advance(1);
  await after.agent.whenIdle();
  expect(endOf(after.session)).toEqual(STOPPED);
  expect(resultsOf(after.session)).toMatchObject([{ code: "TOOL_ABORTED" }]);
  await before.dispose();
});

test.each(["cancel", "dispose"] as const)(
  "a %s in the middle is what it is, and the next turn is whole",
  async (how) => {
    const one = await stage([{ chunks: CHUNKS, hang: "deaf" }, calls("work"), "fine"]);
    one.agent.send("go");
    await eventOf(one.session, "assistant/chunk");
    if (how === "dispose") await one.dispose();
    else one.agent.cancel("enough");
    await eventOf(one.session, "turn/end");
    await one.clock.advance(10_000);
    expect(endOf(one.session, 1)).toMatchObject({ kind: how === "cancel" ? "aborted" : "disposed" });
    if (how === "dispose") return;
    expect(await one.say("again")).toEqual({ kind: "completed" });
    expect(resultsOf(one.session)).toEqual([{ tool: "work", says: "done" }]);
  },
);

test("beside a tool's own limit the shorter of the two acts", async () => {
  const { body, running } = deafBody();
  const one = await stage([calls("slow"), "fine"], {
    plugins: [budget({ ms: 5000 }), toolTimeout(1000)],
    tools: [tool("slow", body)],
  });
  const said = one.say("go");
  await running;
  await one.clock.advance(1000);
  expect(await said).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toMatchObject([{ code: "TOOL_TIMEOUT" }]);
});
