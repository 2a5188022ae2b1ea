/** P: whether a turn goes on behind a step. */
import type { ContinuationDecision } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, staged, talk, tool } from "../support/calls.ts";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { endOf, eventOf, textOf, typesOf } from "../support/wait.ts";

const because = { content: "check your work", source: { kind: "reviewer" } };

anywhere("#196 a turn goes on behind tool calls, and stops behind an answer without", async (open) => {
  const agent = await open({ model: scriptedModel([calls("act"), calls("act"), "done"]), tools: [tool("act")] });
  const session = await talk(agent);
  expect(dataOf(session, "step/start").map(({ step }) => step)).toEqual([1, 2, 3]);
  expect(endOf(session)).toEqual({ kind: "completed" });
});

anywhere("#196 a turn goes on behind a call that failed or does not exist", async (open) => {
  const agent = await open({ model: scriptedModel([calls("nope"), "I see"]) });
  expect(dataOf(await talk(agent), "step/start")).toHaveLength(2);
});

local(
  "#196 steering that came during a step is drained behind its tools, inside it, and makes another step",
  async () => {
    const { agent, session, model } = await staged({ model: scriptedModel(["one", "two"]) });
    let steered = false;
    agent.on("assistant/chunk", () => {
      if (!steered) agent.steer("and more");
      steered = true;
    });
    await talk(agent);
    expect(typesOf(session)).toEqual([
      "inbox/queued",
      "turn/start",
      "user/message",
      "step/start",
      "request/header",
      "inbox/queued",
      "assistant/message",
      "steering/message",
      "step/end",
      "step/start",
      "assistant/message",
      "step/end",
      "turn/end",
    ]);
    expect(linesOf(model.requests[1]!.messages)).toEqual(["user: go", "assistant: one", "user: and more"]);
  },
);

local("#196 the listeners see the default: go on behind calls or steering, else stop", async () => {
  const seen: ContinuationDecision[] = [];
  const { agent, hooks } = await staged({
    model: scriptedModel([calls("act"), "one", "two"]),
    tools: [tool("act")],
  });
  agent.on("assistant/message", ({ data }) => void (data.step === 2 && agent.steer("more")));
  hooks.on("agent/turn-continuation", async ({ decision }, next) => {
    expect(await next()).toBe(decision);
    seen.push(decision);
    return decision;
  });
  await talk(agent);
  expect(seen).toEqual([{ action: "continue" }, { action: "continue" }, { action: "stop" }]);
});

local("#196 a listener may stop a turn that would go on, and the calls have their results", async () => {
  const { agent, hooks, session } = await staged({ model: scriptedModel([calls("act")]), tools: [tool("act")] });
  hooks.on("agent/turn-continuation", () => ({ action: "stop" }));
  await talk(agent);
  expect(dataOf(session, "tool/result")).toHaveLength(1);
  expect(endOf(session)).toEqual({ kind: "completed" });
});

local("#197 a reason to go on steers the next step, without having been queued", async () => {
  const queued: unknown[] = [];
  const { agent, hooks, session, model } = await staged({ model: scriptedModel(["one", "two"]) });
  hooks.on("agent/turn-continuation", ({ step }, next) =>
    step === 1 ? { action: "continue", reason: because } : next(),
  );
  await agent.flush();
  agent.send("go");
  hooks.on("agent/queued", ({ message }) => void queued.push(message));
  await agent.whenIdle();
  expect(typesOf(session).slice(5)).toEqual([
    "assistant/message",
    "step/end",
    "steering/message",
    "step/start",
    "assistant/message",
    "step/end",
    "turn/end",
  ]);
  expect(dataOf(session, "steering/message")).toEqual([
    { turn: 1, id: expect.any(String), content: [{ type: "text", text: "check your work" }], source: because.source },
  ]);
  expect(queued).toEqual([]);
  expect(dataOf(session, "inbox/queued")).toHaveLength(1);
  expect(linesOf(model.requests[1]!.messages).at(-1)).toBe("user: check your work");
});

local("#197 a turn can go on without a reason, and makes another step", async () => {
  const { agent, hooks, session } = await staged({ model: scriptedModel(["one", "two"]) });
  hooks.on("agent/turn-continuation", ({ step }, next) => (step === 1 ? { action: "continue" } : next()));
  await talk(agent);
  expect(dataOf(session, "step/start")).toHaveLength(2);
  expect(dataOf(session, "steering/message")).toEqual([]);
});

local("#197 the reason comes before steering that waits", async () => {
  const { agent, hooks, session } = await staged({ model: scriptedModel(["one", "two"]) });
  hooks.on("agent/turn-continuation", ({ turn, step }, next) => {
    if (turn > 1 || step > 1) return next();
    agent.steer("from a person");
    return { action: "continue", reason: because };
  });
  await talk(agent);
  expect(dataOf(session, "steering/message").map(({ content }) => textOf(content))).toEqual([
    "check your work",
    "from a person",
  ]);
});

// Where the ancestor looks at a reason only when it logs it, we do so when it is given: either way the turn
// fails, and nothing of it is logged.
for (const [what, reason] of [
  ["has no source", { content: "x" }],
  ["is no content", { content: 3, source: { kind: "x" } }],
  ["has a source without a kind", { content: "x", source: {} }],
] as const) {
  local(`#197 a reason that ${what} ends the turn in an error`, async () => {
    const { agent, hooks, session, model } = await staged({ model: scriptedModel(["one"]) });
    hooks.on("agent/turn-continuation", () => ({ action: "continue", reason: reason as never }));
    await talk(agent);
    expect(endOf(session)).toMatchObject({ kind: "error", step: 1, code: "INVALID_CONTENT" });
    expect(dataOf(session, "steering/message")).toEqual([]);
    expect(model.requests).toHaveLength(1);
  });
}

for (const [where, steerIn] of [
  [
    "a listener of step/end",
    (stage: Awaited<ReturnType<typeof staged>>) =>
      void stage.agent.on(
        "step/end",
        ({ data }) => void (data.turn === 1 && data.step === 1 && stage.agent.steer("wait")),
      ),
  ],
  [
    "a listener of turn-continuation",
    ({ agent, hooks }: Awaited<ReturnType<typeof staged>>) =>
      void hooks.on("agent/turn-continuation", ({ turn, step }) => {
        if (turn === 1 && step === 1) agent.steer("wait");
        return { action: "stop" };
      }),
  ],
  [
    "a listener of turn-stop",
    ({ agent, hooks }: Awaited<ReturnType<typeof staged>>) =>
      void hooks.on("agent/turn-stop", ({ turn, step }) => void (turn === 1 && step === 1 && agent.steer("wait"))),
  ],
] as const) {
  local(`#198 steering from ${where} overrides an ordinary stop`, async () => {
    const stage = await staged({ model: scriptedModel(["one", "two"]) });
    steerIn(stage);
    await talk(stage.agent);
    expect(typesOf(stage.session).slice(5)).toEqual([
      "assistant/message",
      "step/end",
      "inbox/queued",
      "steering/message",
      "step/start",
      "assistant/message",
      "step/end",
      "turn/end",
    ]);
    expect(dataOf(stage.session, "turn/start")).toHaveLength(1);
  });
}

for (const hook of ["agent/turn-continuation", "agent/turn-stop"] as const) {
  local(`#201 a listener of ${hook} that throws ends the turn in an error, and the driver lives`, async () => {
    const { agent, hooks, session } = await staged({ model: scriptedModel(["one", "two"]) });
    let times = 0;
    hooks.on(hook, ((_: unknown, next?: () => unknown) => {
      times += 1;
      if (times === 1) throw new Error("broken");
      return next?.();
    }) as never);
    await talk(agent);
    expect(endOf(session)).toEqual({ kind: "error", step: 1, message: "broken" });
    await talk(agent, "again");
    expect(endOf(session)).toEqual({ kind: "completed" });
  });
}

for (const [what, answer] of [
  ["nothing", undefined],
  ["another action", { action: "pause" }],
  ["true", true],
] as const) {
  local(`#201 a continuation that answers ${what} ends the turn in an error`, async () => {
    const { agent, hooks, session } = await staged({ model: scriptedModel(["one"]) });
    hooks.on("agent/turn-continuation", () => answer as never);
    await talk(agent);
    expect(endOf(session)).toMatchObject({ kind: "error", step: 1, code: "INVALID_DECISION" });
  });
}

local(
  "#201 a cancel while a continuation waits ends the turn as aborted, whatever the listener then does",
  async () => {
    const { agent, hooks, session } = await staged({ model: scriptedModel(["one"]) });
    hooks.on("agent/turn-continuation", async ({ signal }) => {
      await new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new Error("I was aborted")));
        agent.cancel("enough");
      });
      return { action: "continue" };
    });
    agent.send("go");
    await eventOf(session, "turn/end");
    expect(endOf(session)).toEqual({ kind: "aborted", reason: "enough" });
  },
);

// #203, one notification instead of both, is newer than what the decisions took up: D21 keeps the two.
