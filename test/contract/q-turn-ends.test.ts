/** Q: how turns end, and which end wins where several would do. */
import { TurnloopError, type AgentHandle } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect } from "vitest";
import { calls, deafBody, staged, talk, tool } from "../support/calls.ts";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf } from "../support/scene.ts";
import { deferred, endOf, typesOf } from "../support/wait.ts";

/** What `agent/error` has told. */
function errorsOf({ hooks }: Pick<Awaited<ReturnType<typeof staged>>, "hooks">) {
  const errors: { turn: number; step: number; error: Error & { code?: string } }[] = [];
  hooks.on("agent/error", ({ turn, step, error }) => void errors.push({ turn, step, error }));
  return errors;
}

anywhere("#204 a turn that needs nothing more has completed", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  expect(endOf(await talk(agent))).toEqual({ kind: "completed" });
});

anywhere("#204 a turn that is cancelled ends as aborted, with the reason", async (open) => {
  const agent = await open({ model: scriptedModel([{ text: "hm", hang: "deaf" }]) });
  agent.on("assistant/chunk", () => agent.cancel("the user left"));
  expect(endOf(await talk(agent))).toEqual({ kind: "aborted", reason: "the user left" });
});

anywhere("#204 #208 a turn that fails ends as error, with step, message and code", async (open) => {
  const agent = await open({ model: scriptedModel([{ error: { message: "overloaded", code: "BUSY" } }]) });
  expect(endOf(await talk(agent))).toEqual({ kind: "error", step: 1, message: "overloaded", code: "BUSY" });
});

for (const kind of ["max-tokens", "content-filter"] as const) {
  anywhere(`#204 an answer that was cut short ends the turn as ${kind}`, async (open) => {
    const agent = await open({ model: scriptedModel([{ text: "well", finish: kind }]) });
    expect(endOf(await talk(agent))).toEqual({ kind });
  });

  anywhere(`#205 ${kind} of one turn says nothing about the next`, async (open) => {
    const agent = await open({ model: scriptedModel([{ text: "well", finish: kind }, "fine"]) });
    await talk(agent);
    const session = await talk(agent, "again");
    expect(dataOf(session, "turn/end").map(({ reason }) => reason)).toEqual([{ kind }, { kind: "completed" }]);
  });
}

/** A turn of several steps, whatever their answers. */
async function turnOf(answers: ScriptedAnswer[], last?: (stage: Awaited<ReturnType<typeof staged>>) => void) {
  const stage = await staged({ model: scriptedModel(answers), tools: [tool("act")] });
  stage.hooks.on("agent/turn-continuation", ({ step }) => ({ action: step < answers.length ? "continue" : "stop" }));
  last?.(stage);
  return endOf(await talk(stage.agent));
}

const [maxTokens, filtered] = ["max-tokens", "content-filter"].map((finish) => ({ text: "well", finish })) as [
  ScriptedAnswer,
  ScriptedAnswer,
];

local("#205 D16 max-tokens in any step is the end of the turn, and beats content-filter", async () => {
  expect(await turnOf([maxTokens, "fine"])).toEqual({ kind: "max-tokens" });
  expect(await turnOf([maxTokens, calls("act"), "fine"])).toEqual({ kind: "max-tokens" });
  expect(await turnOf([maxTokens, filtered])).toEqual({ kind: "max-tokens" });
  expect(await turnOf([filtered, maxTokens])).toEqual({ kind: "max-tokens" });
  expect(await turnOf([filtered, "fine"])).toEqual({ kind: "content-filter" });
});

local("D16 a cut answer beats a policy's stop", async () => {
  for (const [answer, kind] of [
    [maxTokens, "max-tokens"],
    [filtered, "content-filter"],
  ] as const) {
    const end = await turnOf([answer, "fine"], ({ hooks }) => {
      hooks.on("agent/turn-stop", () => ({ stop: { by: "limit", reason: "enough" } }));
    });
    expect(end).toEqual({ kind });
  }
});

local("#205 D16 an error, a cancel and a disposal each beat a cut answer", async () => {
  expect(await turnOf([maxTokens, { error: { message: "down" } }])).toMatchObject({ kind: "error", step: 2 });
  const cancelled = await turnOf([maxTokens, "fine"], ({ agent }) => {
    agent.on("step/start", ({ data }) => void (data.step === 2 && agent.cancel("enough")));
  });
  expect(cancelled).toEqual({ kind: "aborted", reason: "enough" });
  const { agent, handle, session } = await staged({ model: scriptedModel([maxTokens]) });
  agent.on("step/end", () => void handle.dispose());
  agent.send("go");
  await agent.whenIdle();
  expect(endOf(session)).toEqual({ kind: "disposed" });
});

/** How a turn ends whose step does this once its tool runs. */
async function stoppedIn(act: (stage: { agent: AgentHandle["agent"]; handle: AgentHandle }) => void) {
  const deaf = deafBody();
  const { agent, handle, session } = await staged({
    model: scriptedModel([calls("act")]),
    tools: [tool("act", deaf.body)],
  });
  agent.send("go");
  await deaf.running;
  act({ agent, handle });
  await agent.whenIdle();
  return endOf(session);
}

local("#206 D16 a disposal beats a cancel, whichever came first", async () => {
  expect(await stoppedIn(({ agent, handle }) => (agent.cancel("x"), void handle.dispose()))).toEqual({
    kind: "disposed",
  });
  expect(await stoppedIn(({ agent, handle }) => (void handle.dispose(), agent.cancel("x")))).toEqual({
    kind: "disposed",
  });
});

local("D16 of two cancels the first counts", async () => {
  expect(await stoppedIn(({ agent }) => (agent.cancel("first"), agent.cancel("second")))).toEqual({
    kind: "aborted",
    reason: "first",
  });
});

for (const hook of [
  "agent/prompt-submit",
  "agent/session-prefix",
  "agent/pre-step",
  "agent/request",
  "model/stream",
  "agent/step-result",
  "tools/pre-execute",
  "tools/execute",
  "tools/post-execute",
  "agent/turn-continuation",
  "agent/turn-stop",
] as const) {
  for (const [how, reason] of [
    ["cancel", { kind: "aborted", reason: "enough" }],
    ["disposal", { kind: "disposed" }],
  ] as const) {
    local(`D16 #206 a ${how} while ${hook} awaits wins, though the hook then throws`, async () => {
      const stage = await staged({ model: scriptedModel([calls("act"), "done"]), tools: [tool("act")] });
      const { agent, handle, hooks, session } = stage;
      const errors = errorsOf(stage);
      hooks.on(hook, (async () => {
        if (how === "cancel") agent.cancel("enough");
        else void handle.dispose();
        throw new Error("the hook was aborted");
      }) as never);
      agent.send("go");
      await agent.whenIdle();
      expect(endOf(session)).toEqual(reason);
      expect(errors).toEqual([]);
    });
  }
}

local("#206 D16 an error that was reported before the disposal stays an error", async () => {
  const { agent, handle, hooks, session } = await staged({
    model: scriptedModel([{ error: { message: "down", code: "DOWN" } }]),
  });
  let disposed: Promise<void> | undefined;
  hooks.on("agent/error", () => void (disposed ??= handle.dispose()));
  agent.send("go");
  await agent.whenIdle();
  await disposed;
  expect(endOf(session)).toEqual({ kind: "error", step: 1, message: "down", code: "DOWN" });
  expect(agent.status).toBe("disposed");
});

local(
  "#207 a disposal in mid turn: the status is told, the turn ends as disposed, boundaries are balanced",
  async () => {
    const { agent, handle, hooks, session } = await staged({ model: scriptedModel([{ text: "a b", hang: "deaf" }]) });
    const told: string[] = [];
    hooks.on("agent/status", ({ status }) => void told.push(status));
    const streaming = deferred();
    agent.on("assistant/chunk", ({ data }) => void (data.chunk.type === "delta" && streaming.resolve()));
    agent.send("go");
    await streaming.promise;
    await handle.dispose();
    expect(told).toEqual(["running", "disposed"]);
    expect(typesOf(session).slice(-3)).toEqual(["assistant/message", "step/end", "turn/end"]);
    expect(endOf(session)).toEqual({ kind: "disposed" });
  },
);

local("#208 agent/error is the live twin of the reason, once per failure", async () => {
  const cause = new TurnloopError("NOPE", "not today");
  const stage = await staged({ model: scriptedModel(["one", "two"]) });
  const errors = errorsOf(stage);
  stage.hooks.on("agent/step-result", () => {
    throw cause;
  });
  await talk(stage.agent);
  expect(errors).toEqual([{ turn: 1, step: 1, error: cause }]);
  expect(errors[0]!.error).toBe(cause);
  expect(endOf(stage.session)).toEqual({ kind: "error", step: 1, message: "not today", code: "NOPE" });
  expect(stage.session.events.filter((event) => JSON.stringify(event).includes("not today"))).toHaveLength(1);
});

for (const [what, thrown, message] of [
  ["text", "just text", "just text"],
  ["undefined", undefined, "undefined was thrown"],
  ["null", null, "null was thrown"],
  ["a number", 42, "42 was thrown"],
  ["an object with a message", { message: "odd" }, "odd"],
] as const) {
  local(`#208 ${what} that is thrown becomes an Error coded UNKNOWN, and keeps it as its cause`, async () => {
    const stage = await staged({ model: scriptedModel(["one"]) });
    const errors = errorsOf(stage);
    stage.hooks.on("agent/step-result", () => {
      throw thrown;
    });
    await talk(stage.agent);
    expect(endOf(stage.session)).toEqual({ kind: "error", step: 1, message, code: "UNKNOWN" });
    expect(errors[0]!.error).toBeInstanceOf(Error);
    expect(errors[0]!.error).toMatchObject({ code: "UNKNOWN", cause: thrown });
  });
}

local("#208 a code that is absent, or no text, is left out", async () => {
  for (const error of [new Error("plain"), Object.assign(new Error("plain"), { code: 42 })]) {
    const { agent, hooks, session } = await staged({ model: scriptedModel(["one"]) });
    hooks.on("agent/step-result", () => {
      throw error;
    });
    expect(endOf(await talk(agent))).toEqual({ kind: "error", step: 1, message: "plain" });
    void session;
  }
});

local("#209 the step of an error is 0 before the first step, and the last step that began after", async () => {
  const failing = async (
    hook: "agent/prompt-submit" | "agent/pre-step" | "agent/request" | "agent/turn-stop",
    at: number,
  ) => {
    const stage = await staged({ model: scriptedModel([calls("act"), "done"]), tools: [tool("act")] });
    const errors = errorsOf(stage);
    let times = 0;
    stage.hooks.on(hook, ((_: unknown, next?: () => unknown) => {
      times += 1;
      if (times === at) throw new Error("broken");
      return next?.();
    }) as never);
    await talk(stage.agent);
    const end = endOf(stage.session) as { step: number };
    expect(errors.map(({ step }) => step)).toEqual([end.step]);
    return end.step;
  };
  expect(await failing("agent/prompt-submit", 1)).toBe(0);
  expect(await failing("agent/pre-step", 1)).toBe(0);
  expect(await failing("agent/request", 1)).toBe(1);
  expect(await failing("agent/pre-step", 2)).toBe(1);
  expect(await failing("agent/request", 2)).toBe(2);
  expect(await failing("agent/turn-stop", 2)).toBe(2);
});
