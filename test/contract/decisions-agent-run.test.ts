/** D30: `run` sends a message, follows the turn that takes it, and says how that ended. */
import { run, type Run, type SessionEvent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { all, heldAnswer, heldTool } from "../support/held.ts";
import { codeOf } from "../support/lifecycle.ts";
import { linesOf } from "../support/scene.ts";
import { eventOf } from "../support/wait.ts";

const typesIn = async (running: Run<unknown>): Promise<string[]> =>
  (await all<SessionEvent>(running)).map(({ type }) => type).filter((type) => type !== "assistant/chunk");

const HANGING = { text: "on and on", hang: "deaf" } as const;

anywhere("D30 the result says how the turn ended, what it said, what it added and what it cost", async (open) => {
  const model = scriptedModel([
    "before",
    { text: "let me look", toolCalls: [{ name: "look", args: {} }], usage: { input: 3, output: 4 } },
    { text: "it is blue", usage: { input: 10, cacheRead: 2, output: 1 } },
  ]);
  const agent = await open({ model, tools: [tool("look", () => "blue")] });
  await run(agent, "hello").result;
  const before = agent.session.deriveMessages().length;
  const result = await run(agent, "what colour?").result;
  expect(result).toEqual({
    reason: { kind: "completed" },
    turn: 2,
    text: "it is blue",
    messages: agent.session.deriveMessages().slice(before),
    usage: { input: 13, cacheRead: 2, output: 5 },
    output: undefined,
  });
  expect(linesOf(result.messages)).toEqual([
    "user: what colour?",
    "assistant: let me look",
    "tool: blue",
    "assistant: it is blue",
  ]);
});

local(
  "D30 the messages of a result are what the history has of the turn: context in its tag, results in call order",
  async () => {
    const held = heldTool({ parallel: true });
    const quick = { ...tool("quick", () => "quick", { parallel: true }) };
    const harness = harnessWith({ model: scriptedModel([calls("held", "quick"), "done"]), tools: [held.tool, quick] });
    const { agent } = await harness.agents.open({ id: "s" });
    const running = run(agent, "go");
    await eventOf(agent.session, "tool/result");
    agent.inject("it rains", { source: { kind: "weather" } });
    held.answer("held");
    const { messages } = await running.result;
    expect(messages).toEqual(agent.session.deriveMessages());
    expect(linesOf(messages)).toEqual([
      "user: go",
      "assistant: ",
      "tool: held",
      "tool: quick",
      "user: <weather>\nit rains\n</weather>",
      "assistant: done",
    ]);
  },
);

anywhere("D30 iterating gives the events of the turn, from its start to its end, whenever it begins", async (open) => {
  const agent = await open({ model: scriptedModel(["one", "two", "three"]) });
  await run(agent, "before").result;
  const running = run(agent, "go");
  const early = all(running);
  await running.result;
  agent.send("behind");
  await agent.whenIdle();
  const late = await all(running);
  const { events } = agent.session;
  const from = events.findIndex(({ type, data }) => type === "turn/start" && (data as { turn: number }).turn === 2);
  const to = events.findIndex(({ type, data }) => type === "turn/end" && (data as { turn: number }).turn === 2);
  expect(await early).toEqual(events.slice(from, to + 1));
  expect(late).toEqual(await early);
});

anywhere(
  "D30 textStream gives the text of the turn as it is written, without reasoning and arguments",
  async (open) => {
    const model = scriptedModel([
      { reasoning: "hm", text: "let me ", toolCalls: [{ name: "look", args: { a: 1 } }] },
      "see it",
    ]);
    const agent = await open({ model, tools: [tool("look")] });
    const running = run(agent, "go");
    expect(await all(running.textStream())).toEqual(["let ", "me ", "see ", "it"]);
  },
);

anywhere(
  "D30 a turn that ends in an error resolves the result, and throws from the iterations, at their end",
  async (open) => {
    const answer = { text: "half", error: { message: "the model is out", code: "OVERLOADED" } };
    const agent = await open({ model: scriptedModel([answer]) });
    const running = run(agent, "go");
    const seen: string[] = [];
    const reading = (async () => {
      for await (const { type } of running) seen.push(type);
    })();
    expect(await codeOf(reading)).toBe("OVERLOADED");
    expect(seen.at(-1)).toBe("turn/end");
    await expect(all(running.textStream())).rejects.toThrow("the model is out");
    expect((await running.result).reason).toEqual({
      kind: "error",
      step: 1,
      message: "the model is out",
      code: "OVERLOADED",
    });
  },
);

local("D30 an error without a code is thrown as TURN_FAILED", async () => {
  const harness = harnessWith({ model: scriptedModel(["never"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("agent/pre-step", () => {
    throw new Error("no");
  });
  const running = run(agent, "go");
  expect(await codeOf(all(running))).toBe("TURN_FAILED");
  expect((await running.result).reason).toEqual({ kind: "error", step: 0, message: "no" });
});

anywhere("D30 an aborted turn resolves the result with its reason, and ends the iterations", async (open) => {
  const agent = await open({ model: scriptedModel([HANGING]) });
  const running = run(agent, "go");
  await eventOf(
    agent.session,
    "assistant/chunk",
    ({ data: { chunk } }) => chunk.type === "delta" && chunk.text === "on",
  );
  agent.cancel("enough");
  expect(await running.result).toMatchObject({
    reason: { kind: "aborted", reason: "enough" },
    turn: 1,
    text: "on and on",
  });
  expect((await typesIn(running)).at(-1)).toBe("turn/end");
});

local("D30 a blocked message resolves as blocked, with its reason, alone or beside others that run", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("agent/prompt-submit", async ({ content: [block] }, next) =>
    (block as { text: string }).text.startsWith("bad") ? { kind: "block", reason: "not that" } : next(),
  );
  const alone = run(agent, "bad");
  expect(await alone.result).toMatchObject({ reason: { kind: "blocked", reason: "not that" }, turn: 1, text: "" });
  const [bad, good] = [run(agent, "bad too"), run(agent, "good")];
  expect((await bad.result).reason).toEqual({ kind: "blocked", reason: "not that" });
  expect((await good.result).reason).toEqual({ kind: "completed" });
  expect(await typesIn(alone)).toEqual(["turn/start", "prompt/blocked", "turn/end"]);
});

anywhere("D30 a message that is dropped or withdrawn before a turn took it resolves as dropped", async (open) => {
  const held = heldAnswer("hi");
  const agent = await open({ model: scriptedModel([held.answer]) });
  const first = run(agent, "go");
  await held.asked;
  const [withdrawn, dropped] = [run(agent, "one"), run(agent, "two")];
  await agent.withdraw(withdrawn.id);
  agent.cancel("enough");
  for (const running of [withdrawn, dropped]) {
    const result = await running.result;
    expect(result).toEqual({ reason: { kind: "dropped" }, text: "", messages: [], usage: {}, output: undefined });
    expect(await all(running)).toEqual([]);
    expect(await all(running.textStream())).toEqual([]);
  }
  expect((await first.result).reason).toEqual({ kind: "aborted", reason: "enough" });
  held.give();
});

anywhere("D30 messages that one turn took share its result", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  const [one, two] = [run(agent, "one"), run(agent, "two")];
  expect(one.id).not.toBe(two.id);
  expect(await one.result).toEqual(await two.result);
  expect((await one.result).turn).toBe(1);
});

anywhere("D30 leaving an iteration stops following, and nothing else", async (open) => {
  const agent = await open({ model: scriptedModel(["one two three"]) });
  const running = run(agent, "go");
  for await (const text of running.textStream()) {
    expect(text).toBe("one ");
    break;
  }
  expect(await running.result).toMatchObject({ reason: { kind: "completed" }, text: "one two three" });
});
