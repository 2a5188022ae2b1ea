/** Adding up what a session used. */
import { createHarness, createTimeline, usageOf } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";

test("usage adds up answers and failed attempts by turn and model; counts that nobody gave stay absent", async () => {
  const model = scriptedModel(
    [
      { text: "one", usage: { input: 10, output: 1 } },
      { text: "no", usage: { input: 20 }, error: { message: "again" } },
      { text: "two", usage: { input: 20, cacheRead: 5, output: 2 } },
    ],
    { id: "lab/small" },
  );
  const harness = createHarness({
    model,
    plugins: [({ hooks }) => hooks.on("agent/request-error", () => ({ kind: "retry" }))],
  });
  const { agent } = await harness.agents.open({ id: "chat" });
  agent.send("a");
  await agent.whenIdle();
  agent.send("b");
  await agent.whenIdle();
  const usage = usageOf(agent.session);
  expect(usage.total).toEqual({ input: 50, cacheRead: 5, output: 3 });
  expect(usage.byModel).toEqual({ "lab/small": { input: 50, cacheRead: 5, output: 3 } });
  expect([...usage.byTurn]).toEqual([
    [1, { input: 10, output: 1 }],
    [2, { input: 40, cacheRead: 5, output: 2 }],
  ]);
});

test("requests outside of steps count for their model, and between turns for no turn", async () => {
  const session = await createHarness().sessions.create();
  session.append("model/aux", { purpose: "title", model: "__proto__", usage: { output: 4 } });
  const usage = usageOf(session);
  expect(usage.total).toEqual({ output: 4 });
  expect(Object.entries(usage.byModel)).toEqual([["__proto__", { output: 4 }]]);
  expect(usage.byTurn.size).toBe(0);
});

test("what a fork inherited is not counted again", async () => {
  const harness = createHarness({
    model: scriptedModel([
      { text: "one", usage: { output: 1 } },
      { text: "two", usage: { output: 2 } },
    ]),
  });
  const { agent } = await harness.agents.open({ id: "chat" });
  agent.send("a");
  await agent.whenIdle();
  const { agent: fork } = await harness.agents.fork({ from: "chat" });
  expect(usageOf(fork.session).total).toEqual({});
  fork.send("b");
  await fork.whenIdle();
  expect(usageOf(fork.session).total).toEqual({ output: 2 });
});

test("what an answer had told when a cancel cut it off counts once, whether a part of it is kept or not", async () => {
  const usage = { type: "usage", usage: { input: 7 } } as const;
  const call = { type: "block-start", index: 0, block: { type: "tool-call", name: "look" } } as const;
  for (const first of [call, { type: "delta", index: 0, text: "Hel" } as const]) {
    const model = scriptedModel([{ chunks: [first, usage], hang: "deaf" }], { id: "lab/small" });
    const { agent } = await createHarness({ model }).agents.open({ id: "chat" });
    agent.on("assistant/chunk", ({ data }) => void (data.chunk.type === "usage" && agent.cancel()));
    agent.send("go");
    await agent.whenIdle();
    expect(usageOf(agent.session).byModel).toEqual({ "lab/small": { input: 7 } });
    expect([...usageOf(agent.session).byTurn]).toEqual([[1, { input: 7 }]]);
  }
});

test("what is left of an answer that failed for good counts with its attempt, and not once more", async () => {
  const half = { text: "half", usage: { input: 10, output: 1 } };
  const harness = createHarness({ model: scriptedModel([{ ...half, error: { message: "broke" } }, half]) });
  const { agent } = await harness.agents.open({ id: "chat" });
  agent.send("a");
  await agent.whenIdle();
  expect(agent.session.events).toContainEqual(
    expect.objectContaining({ type: "assistant/message", data: expect.objectContaining({ interrupted: true }) }),
  );
  expect(usageOf(agent.session).total).toEqual({ input: 10, output: 1 });
  const [turn] = createTimeline(agent).getSnapshot().spans;
  expect(turn!.usage).toEqual({ input: 10, output: 1 });
  expect(turn!.children[0]!.children).toHaveLength(1);
  agent.send("b");
  await agent.whenIdle();
  expect(usageOf(agent.session).total).toEqual({ input: 20, output: 2 });
});
