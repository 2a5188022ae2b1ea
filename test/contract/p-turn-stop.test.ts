/** P, D21: a policy that ends a turn for good. */
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, staged, talk, tool } from "../support/calls.ts";
import { local } from "../support/fixture.ts";
import { dataOf } from "../support/scene.ts";
import { endOf, typesOf } from "../support/wait.ts";

const enough = { stop: { by: "limit", reason: "enough" } };
const stopped = { kind: "stopped", by: "limit", reason: "enough" };

local("#199 D21 a stop ends the turn as stopped, by whom and why, behind the results of its calls", async () => {
  const { agent, hooks, session } = await staged({ model: scriptedModel([calls("act")]), tools: [tool("act")] });
  hooks.on("agent/turn-stop", () => enough);
  await talk(agent);
  expect(typesOf(session).slice(-4)).toEqual(["tool/start", "tool/result", "step/end", "turn/end"]);
  expect(endOf(session)).toEqual(stopped);
});

local("#199 the listeners are awaited one after another, the harness's first, until one stops", async () => {
  const asked: string[] = [];
  const { agent, hooks, session } = await staged({ model: scriptedModel(["one"]) });
  agent.scope!.hooks.on("agent/turn-stop", () => void asked.push("never"));
  hooks.on("agent/turn-stop", async () => {
    await Promise.resolve();
    asked.push("first");
  });
  hooks.on("agent/turn-stop", async () => {
    asked.push("second");
    return enough;
  });
  hooks.on("agent/turn-stop", () => {
    asked.push("third");
    return { stop: { by: "other", reason: "other" } };
  });
  await talk(agent);
  expect(asked).toEqual(["first", "second"]);
  expect(endOf(session)).toEqual(stopped);
});

local("#199 a stop wins over calls, over a reason to go on, and over steering, which is dropped", async () => {
  const { agent, hooks, session, model } = await staged({
    model: scriptedModel([calls("act"), "never"]),
    tools: [tool("act")],
  });
  let id = "";
  hooks.on("agent/turn-continuation", ({ turn }, next) => {
    if (turn > 1) return next();
    id = agent.steer("wait");
    return { action: "continue", reason: { content: "go on", source: { kind: "x" } } };
  });
  hooks.on("agent/turn-stop", () => enough);
  await talk(agent);
  expect(endOf(session)).toEqual(stopped);
  expect(typesOf(session).slice(-4)).toEqual(["step/end", "inbox/queued", "turn/end", "inbox/dropped"]);
  expect(dataOf(session, "inbox/dropped")).toEqual([{ ids: [id], reason: "stopped" }]);
  expect(dataOf(session, "steering/message")).toEqual([]);
  expect(dataOf(session, "turn/start")).toHaveLength(1);
  expect(model.requests).toHaveLength(1);
});

local(
  "#200 a stop also drops steering that comes with turn/end and with the flush; what is sent survives",
  async () => {
    const { agent, hooks, session } = await staged({ model: scriptedModel(["one", "two"]) });
    const steered: string[] = [];
    const sent: string[] = [];
    hooks.on("agent/turn-stop", ({ turn }) => (turn === 1 ? enough : undefined));
    agent.on("turn/end", ({ data }) => {
      if (data.turn > 1) return;
      steered.push(agent.steer("at the end"));
      sent.push(agent.send("next"));
    });
    hooks.on("session/flush", async () => {
      if (steered.length !== 1) return;
      steered.push(agent.steer("in the flush"));
      await Promise.resolve();
      sent.push(agent.send("and next"));
    });
    await talk(agent);
    expect(dataOf(session, "inbox/dropped").flatMap(({ ids }) => ids)).toEqual(steered);
    expect(dataOf(session, "turn/start").map(({ messages }) => messages)).toEqual([[expect.any(String)], sent]);
    expect(dataOf(session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["stopped", "completed"]);
  },
);

local("#202 D21 turn-stop is asked behind every step, whether the turn would go on or not", async () => {
  const asked: [number, number][] = [];
  const { agent, hooks } = await staged({ model: scriptedModel([calls("act"), "one", "two"]), tools: [tool("act")] });
  hooks.on("agent/turn-stop", ({ turn, step }) => void asked.push([turn, step]));
  await talk(agent);
  await talk(agent, "again");
  expect(asked).toEqual([
    [1, 1],
    [1, 2],
    [2, 1],
  ]);
});

local("#202 turn-stop is not asked when a step has failed or was cancelled, nor when all was blocked", async () => {
  const { agent, hooks, session } = await staged({
    model: scriptedModel([{ error: { message: "down" } }, { text: "one", hang: "polite" }]),
  });
  hooks.on("agent/turn-stop", () => expect.unreachable());
  await talk(agent);
  agent.on("assistant/chunk", () => agent.cancel());
  await talk(agent, "again");
  hooks.on("agent/prompt-submit", () => ({ kind: "block", reason: "no" }));
  await talk(agent, "and again");
  expect(dataOf(session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["error", "aborted", "rejected"]);
});

// In plain JavaScript `step > 9 && { stop }` answers false, and it must not silence the policies behind it.
for (const answer of [
  false,
  null,
  0,
  "",
  {},
  { stop: true },
  { stop: { by: "x" } },
  { stop: { by: 1, reason: "x" } },
]) {
  local(
    `#199 D21 a turn-stop that answers ${JSON.stringify(answer)} is an error, not a way around the others`,
    async () => {
      const { agent, hooks, session } = await staged({
        model: scriptedModel([calls("act"), "one"]),
        tools: [tool("act")],
      });
      hooks.on("agent/turn-stop", () => answer as never);
      hooks.on("agent/turn-stop", () => enough);
      await talk(agent);
      expect(endOf(session)).toMatchObject({ kind: "error", step: 1, code: "INVALID_DECISION" });
    },
  );
}

local("#199 an ordinary turn follows a stopped one", async () => {
  const { agent, hooks, session } = await staged({ model: scriptedModel(["one", "two"]) });
  const off = hooks.on("agent/turn-stop", () => enough);
  await talk(agent);
  off();
  await talk(agent, "again");
  expect(dataOf(session, "turn/end").map(({ reason }) => reason)).toEqual([stopped, { kind: "completed" }]);
});
