/** Section C with D17: an end that meets somebody deaf. */
import { defineTool, memoryStorage, type SessionStorage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { testClock } from "../support/clock.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { calm, isPending, promptly, toldBy } from "../support/lifecycle.ts";
import { deferred, endOf, eventOf } from "../support/wait.ts";

const forever = (): Promise<never> => new Promise(() => {});

for (const where of [
  "agent/prompt-submit",
  "agent/session-prefix",
  "agent/pre-step",
  "agent/request",
  "agent/step-result",
  "agent/turn-continuation",
  "agent/turn-stop",
  "prompt/assemble",
  "model/stream",
] as const) {
  local(`D17 #43 a listener of ${where} that never answers does not hold up the end`, async () => {
    const harness = harnessWith({ model: scriptedModel(["hi"]) });
    const { agent, dispose } = await harness.agents.create();
    const entered = deferred();
    agent.scope!.hooks.on(where, () => {
      entered.resolve();
      return forever();
    });
    agent.send("hello");
    await entered.promise;
    await promptly(dispose());
    expect(endOf(agent.session)).toEqual({ kind: "disposed" });
  });
}

local("D17 #43 a model that ignores its signal does not hold up the end", async () => {
  const harness = harnessWith({ model: scriptedModel([{ text: "let me think", hang: "deaf" }]) });
  const { agent, dispose } = await harness.agents.create();
  agent.send("hello");
  await eventOf(agent.session, "assistant/chunk");
  await promptly(dispose());
  expect(endOf(agent.session)).toEqual({ kind: "disposed" });
});

local("D17 #43 a tool that ignores its signal does not hold up the end", async () => {
  const wait = defineTool({ name: "wait", description: "Waits", inputSchema: {}, execute: forever });
  const model = scriptedModel([{ toolCalls: [{ name: "wait", args: {} }] }]);
  const harness = harnessWith({ model, tools: [wait] });
  const { agent, dispose } = await harness.agents.create();
  agent.send("hello");
  await eventOf(agent.session, "tool/start");
  await promptly(dispose());
  expect(endOf(agent.session)).toEqual({ kind: "disposed" });
});

/** A storage whose writes never come back from a moment on. */
function deafStorage(): SessionStorage & { goDeaf(): void } {
  const inner = memoryStorage();
  let isDeaf = false;
  return {
    ...inner,
    append: (batch) => (isDeaf ? forever() : inner.append(batch)),
    goDeaf: () => void (isDeaf = true),
  };
}

local("D17 #49 a storage that never answers holds up the end for its bound, and every stage is run", async () => {
  const clock = testClock();
  const storage = deafStorage();
  const harness = harnessWith({ storage, clock, model: scriptedModel([{ text: "let me think", hang: "polite" }]) });
  const { agent, dispose } = await harness.agents.create({ id: "s" });
  let unwound = false;
  agent.scope!.use(() => () => void (unwound = true));
  agent.send("hello");
  await eventOf(agent.session, "assistant/chunk");
  await agent.flush();
  storage.goDeaf();
  const told = toldBy(harness.hooks);
  const disposed = dispose();
  expect(await isPending(disposed)).toBe(true);
  await clock.advance(5000);
  await promptly(disposed);
  expect(told).toEqual(["agent/status s disposed", "agent/disposed s", "session/disposed s"]);
  expect(unwound).toBe(true);
  expect(harness.diagnostics.map(({ code }) => code)).toContain("SESSION_DEGRADED");
});

local("D17 #40 the harness ends too, when a storage never answers", async () => {
  const clock = testClock();
  const storage = deafStorage();
  const harness = harnessWith({ storage, clock });
  const { agent } = await harness.agents.create({ id: "s" });
  storage.goDeaf();
  agent.inject("it is raining");
  const disposed = harness.dispose();
  await calm();
  await clock.advance(5000);
  await promptly(disposed);
  expect(agent.status).toBe("disposed");
});

local("D17 #49 a listener of session/flush that never answers holds up the end for its bound", async () => {
  const clock = testClock();
  const harness = harnessWith({ clock, model: scriptedModel([{ text: "let me think", hang: "polite" }]) });
  const { agent, dispose } = await harness.agents.create({ id: "s" });
  const gate = deferred();
  agent.send("hello");
  await eventOf(agent.session, "assistant/chunk");
  agent.scope!.hooks.on("session/flush", () => gate.promise);
  const told = toldBy(harness.hooks);
  const disposed = dispose();
  await calm();
  await clock.advance(5000);
  try {
    await promptly(disposed);
  } finally {
    gate.resolve();
  }
  expect(told).toEqual(["agent/status s disposed", "agent/disposed s", "session/disposed s"]);
});
