/** I: steps that are stopped, that fail, and that close. */
import { expect } from "vitest";
import { local } from "../support/fixture.ts";
import { dataOf, scene, tool } from "../support/scene.ts";
import { deferred, endOf, textOf, typesOf } from "../support/wait.ts";

local("#110 from the first hook of a turn on there is a signal, and a cancel aborts it", async () => {
  for (const name of ["agent/prompt-submit", "agent/session-prefix", "agent/pre-step", "agent/request"] as const) {
    const { hooks, agent, say } = await scene();
    let signal: AbortSignal | undefined;
    hooks.on(name, ((payload: { signal: AbortSignal }) => {
      ({ signal } = payload);
      expect(signal.aborted).toBe(false);
      agent.cancel(name);
      return new Promise(() => {});
    }) as never);
    expect(await say("hi")).toEqual({ kind: "aborted", reason: name });
    expect(signal?.aborted).toBe(true);
    expect(signal?.reason).toMatchObject({ code: "ABORTED", message: name });
  }
});

local("#110 however a turn ends, what a later cancel could abort is gone", async () => {
  const one = await scene(["done", { error: { message: "out of luck" } }, "done"]);
  let explode = false;
  one.hooks.on("agent/pre-step", () => {
    if (explode) throw new Error("boom");
  });
  const signals: AbortSignal[] = [];
  one.hooks.on("prompt/assemble", (_, next) => next());
  one.hooks.on("agent/prompt-submit", ({ signal }, next) => (signals.push(signal), next()));
  for (const kind of ["completed", "error", "error", "completed"]) {
    explode = signals.length === 2;
    expect(await one.say("go")).toMatchObject({ kind });
    await one.agent.whenIdle();
    const before = one.session.seq;
    one.agent.cancel("too late");
    expect(one.session.seq).toBe(before);
    explode = false;
  }
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false, false, false]);
});

local("#113 a pre-step hook that throws ends the turn in error, and invents no step", async () => {
  const { hooks, session, say, model, errors } = await scene([{ toolCalls: [{ name: "look", args: {} }] }, "ok"], {
    tools: [tool("look")],
  });
  const off = hooks.on("agent/pre-step", async ({ step }) => {
    if (step === 2) throw new TypeError("boom");
  });
  expect(await say("go")).toEqual({ kind: "error", step: 1, message: "boom" });
  expect(typesOf(session).slice(-2)).toEqual(["step/end", "turn/end"]);
  expect(errors.map(({ turn, step, error }) => [turn, step, error.name])).toEqual([[1, 1, "TypeError"]]);
  off();
  expect(await say("again")).toEqual({ kind: "completed" });
  expect(model.requests).toHaveLength(2);
});

for (const name of ["prompt/assemble", "agent/session-prefix", "agent/pre-step"] as const) {
  local(`#114 a cancel in ${name} opens no step and asks no model`, async () => {
    const { hooks, agent, session, say, model } = await scene();
    hooks.on(name, ((_: unknown, next?: () => unknown) => {
      agent.cancel("not this");
      return next?.();
    }) as never);
    expect(await say("hi")).toEqual({ kind: "aborted", reason: "not this" });
    expect(typesOf(session)).toEqual(["inbox/queued", "turn/start", "user/message", "agent/cancelled", "turn/end"]);
    expect(model.requests).toEqual([]);
  });

  local(`#114 a disposal in ${name} does the same, and is stronger than a cancel`, async () => {
    const { hooks, agent, session, dispose, model } = await scene();
    const ended = deferred();
    hooks.on(name, (() => {
      agent.cancel("not this");
      void dispose().then(ended.resolve);
      return new Promise(() => {});
    }) as never);
    agent.send("hi");
    await ended.promise;
    expect(typesOf(session)).toEqual(["inbox/queued", "turn/start", "user/message", "agent/cancelled", "turn/end"]);
    expect(endOf(session)).toEqual({ kind: "disposed" });
    expect(model.requests).toEqual([]);
  });
}

local("#115 a pre-step hook that disposes and then throws: disposed", async () => {
  const { hooks, agent, session, dispose, errors } = await scene();
  const ended = deferred();
  hooks.on("agent/pre-step", () => {
    void dispose().then(ended.resolve);
    throw new Error("boom");
  });
  agent.send("hi");
  await ended.promise;
  expect(endOf(session)).toEqual({ kind: "disposed" });
  expect(errors).toEqual([]);
});

const AWAITED = [
  "agent/prompt-submit",
  "prompt/assemble",
  "agent/session-prefix",
  "agent/pre-step",
  "agent/request",
  "model/stream",
  "agent/request-error",
  "agent/step-result",
  "tools/pre-execute",
  "tools/execute",
  "tools/post-execute",
  "agent/turn-continuation",
  "agent/turn-stop",
] as const;

for (const name of AWAITED) {
  // A rejection that nobody handles would fail the run.
  local(`#115 D16 D17 a cancel in ${name} beats what the hook then throws, at once or later`, async () => {
    for (const later of [false, true]) {
      const one = await scene(
        [name === "agent/request-error" ? { error: { message: "no" } } : { toolCalls: [{ name: "look", args: {} }] }],
        { tools: [tool("look")] },
      );
      const thrown = deferred();
      one.hooks.on(name, (async () => {
        one.agent.cancel("enough");
        if (later) await new Promise((resolve) => setImmediate(resolve));
        thrown.resolve();
        throw new Error("boom");
      }) as never);
      expect(await one.say("hi")).toEqual({ kind: "aborted", reason: "enough" });
      await thrown.promise;
      await one.agent.whenIdle();
      expect(one.errors).toEqual([]);
    }
  });
}

local("#118 step/start is in the log when it is told", async () => {
  const { session, say } = await scene(["hello"]);
  const found: unknown[] = [];
  session.subscribe((event) => {
    if (event.type === "step/start") found.push(session.events.at(-1) === event, session.at(event.seq) === event);
  });
  await say("hi");
  expect(found).toEqual([true, true]);
});

local("#118 a step that is stopped as it closes is closed once", async () => {
  const { agent, session, say } = await scene(["hello"]);
  agent.on("step/end", () => agent.cancel("at the end"));
  expect(await say("hi")).toEqual({ kind: "aborted", reason: "at the end" });
  expect(dataOf(session, "step/end")).toEqual([{ turn: 1, step: 1 }]);
});

local("#118 a step that a plugin has closed is not closed again", async () => {
  const { harness, hooks, session, say } = await scene(["hello", "again"]);
  const off = hooks.on("agent/step-result", (_, next) => {
    harness.sessions.get(session.id)!.append("step/end", { turn: 1, step: 1 });
    return next();
  });
  expect(await say("hi")).toMatchObject({ kind: "error" });
  expect(dataOf(session, "step/end")).toEqual([{ turn: 1, step: 1 }]);
  off();
  expect(await say("on")).toEqual({ kind: "completed" });
});

local("#118 D11 a step/start that is refused ends the turn, and owes nothing of its own", async () => {
  const { harness, hooks, session, say, model } = await scene(["hello"]);
  const off = hooks.on("agent/pre-step", () => {
    harness.sessions.get(session.id)!.append("step/start", { turn: 1, step: 1 });
  });
  expect(await say("hi")).toMatchObject({ kind: "error", code: "MISPLACED_EVENT" });
  expect(typesOf(session).filter((type) => type.startsWith("step"))).toEqual(["step/start", "step/end"]);
  expect(model.requests).toEqual([]);
  off();
  expect(await say("on")).toEqual({ kind: "completed" });
  expect(textOf(model.requests[0]!.messages[1]!.content)).toBe("on");
});
