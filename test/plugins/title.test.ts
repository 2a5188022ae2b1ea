/** The policy `title`: a name for the session, beside the conversation. */
import { title, usageOf, type HarnessOptions } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, staged, talk, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { firstLife, liveOn } from "../support/lives.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { deferred, eventOf, typesOf } from "../support/wait.ts";

/** An agent, and a small model that writes its titles. */
async function titled(
  answers: readonly ScriptedAnswer[],
  titles: readonly ScriptedAnswer[],
  more: Omit<HarnessOptions, "model"> = {},
) {
  const small = scriptedModel(titles, { id: "scripted/small" });
  const plugins = [title({ model: "small" })];
  const stage = await staged({ model: scriptedModel(answers), models: { small }, plugins, ...more });
  return { ...stage, small };
}

test("a session is named after its first answered turn, once", async () => {
  const { agent, session, small, harness } = await titled(
    ["the capital is Paris", "you are welcome"],
    [{ text: "“Capital of France”\n", usage: { input: 30, output: 5 } }],
  );
  await talk(agent, "What is the capital of France?");
  await eventOf(session, "session/titled");
  await talk(agent, "Thanks!");
  expect(dataOf(session, "session/titled")).toEqual([{ title: "Capital of France" }]);
  expect(small.requests).toHaveLength(1);
  expect(linesOf(small.requests[0]!.messages)[0]).toContain("User: What is the capital of France?");
  expect(linesOf(small.requests[0]!.messages)[0]).toContain("Assistant: the capital is Paris");
  await agent.flush();
  expect((await harness.sessions.list()).sessions[0]!.title).toBe("Capital of France");
});

test("what it costs is in the log, and adds up", async () => {
  const { agent, session } = await titled(
    [{ text: "hi", usage: { input: 10 } }],
    [{ text: "A", usage: { input: 30 } }],
  );
  await talk(agent);
  await eventOf(session, "session/titled");
  expect(dataOf(session, "model/aux")).toEqual([{ purpose: "title", model: "scripted/small", usage: { input: 30 } }]);
  expect(usageOf(session).total).toEqual({ input: 40 });
  expect(usageOf(session).byModel).toEqual({ "scripted/model": { input: 10 }, "scripted/small": { input: 30 } });
});

test("without a model of its own it asks the one that has answered", async () => {
  const { agent, session, model } = await titled(["hi", "A title"], [], { plugins: [title()] });
  await talk(agent);
  await eventOf(session, "session/titled");
  expect(model.requests).toHaveLength(2);
  expect(model.requests[1]!.config).toEqual({ model: "scripted/model" });
});

test("nothing waits for it: the agent goes on while a title is written", async () => {
  const answer = deferred<string>();
  const { agent, session } = await titled(["one", "two"], [() => answer.promise]);
  await talk(agent);
  await talk(agent);
  expect(typesOf(session)).not.toContain("session/titled");
  answer.resolve("Late");
  expect((await eventOf(session, "session/titled")).data.title).toBe("Late");
});

test("a name that a person gives meanwhile stays", async () => {
  const answer = deferred<string>();
  const { agent, session, harness } = await titled(["one", "two"], [() => answer.promise]);
  await talk(agent);
  await harness.sessions.rename("session", "Mine");
  answer.resolve("Theirs");
  await eventOf(session, "model/aux");
  await talk(agent);
  expect(dataOf(session, "session/titled")).toEqual([{ title: "Mine" }]);
});

test.each(["deaf", "polite"] as const)(
  "a disposal waits for no title, and nothing is written after it (%s)",
  async (hang) => {
    const { agent, session, handle, small } = await titled(["one"], [{ text: "Never", hang }]);
    await talk(agent);
    expect(small.requests).toHaveLength(1);
    await handle.dispose();
    expect(typesOf(session)).not.toContain("session/titled");
  },
);

test("a model that never answers is given up, and tried again after the next turn", async () => {
  const clock = testClock();
  const { agent, session, diagnostics } = await titled(["one", "two"], [{ hang: "deaf" }, "A title"], { clock });
  await talk(agent);
  await clock.advance(120_000);
  expect(dataOf(session, "model/aux")).toMatchObject([{ error: { code: "AUX_TIMEOUT" } }]);
  expect(diagnostics).toMatchObject([{ code: "TITLE_FAILED" }]);
  await talk(agent);
  expect((await eventOf(session, "session/titled")).data.title).toBe("A title");
});

test("a title that fails is told and logged, and tried three times", async () => {
  const failure = { error: { code: "RATE_LIMITED", message: "slow down" } };
  const { agent, session, small, diagnostics } = await titled(
    ["1", "2", "3", "4"],
    Array.from({ length: 9 }, () => failure),
  );
  for (let n = 1; n <= 4; n += 1) await talk(agent);
  expect(small.requests).toHaveLength(3);
  expect(dataOf(session, "model/aux")).toEqual(
    Array.from({ length: 3 }, () => ({ purpose: "title", model: "scripted/small", ...failure })),
  );
  expect(diagnostics.map(({ code }) => code)).toEqual(Array(3).fill("TITLE_FAILED"));
});

test("a session without an answer, and one with a title of its own, are left alone", async () => {
  const { agent, harness, small } = await titled([{ error: { message: "down" } }, "hi"], ["never"]);
  await talk(agent);
  const other = await harness.agents.create({ id: "named", meta: { title: "Mine" } });
  await talk(other.agent);
  expect(small.requests).toEqual([]);
});

test("an agent that another one owns has no title", async () => {
  const { agent, session, harness, small } = await titled([calls("delegate"), "the child", "done"], ["The parent"], {
    tools: [
      tool("delegate", async (_, call) => {
        const child = await harness.agents.open({ id: "child", owner: call.agent });
        await talk(child.agent);
        return "done";
      }),
    ],
  });
  await talk(agent);
  await eventOf(session, "session/titled");
  expect(small.requests).toHaveLength(1);
  expect(dataOf(harness.sessions.get("child")!, "session/titled")).toEqual([]);
});

test("a host that dies while a title is written leaves a session that the next one names", async () => {
  const options = (titles: readonly ScriptedAnswer[]): HarnessOptions => ({
    model: scriptedModel(["one"]),
    models: { small: scriptedModel(titles) },
    plugins: [title({ model: "small" })],
  });
  const first = await firstLife(options([{ hang: "deaf" }]));
  await talk(first.agent);
  await first.end("killed");
  const second = await liveOn(first.disk, options(["Found again"]));
  expect(typesOf(second.agent.session)).not.toContain("session/titled");
  await talk(second.agent);
  expect((await eventOf(second.agent.session, "session/titled")).data.title).toBe("Found again");
});

test("taken away, it writes nothing, not even what it has begun", async () => {
  const answer = deferred<string>();
  const { agent, session, harness, small } = await titled(["one", "two"], [() => answer.promise], { plugins: [] });
  const off = harness.use(title({ model: "small" }));
  await talk(agent);
  expect(small.requests).toHaveLength(1);
  off();
  answer.resolve("Too late");
  await talk(agent);
  expect(typesOf(session)).not.toContain("session/titled");
  expect(small.requests).toHaveLength(1);
});
