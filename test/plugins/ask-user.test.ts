/** The tool `askUser`: a question to the person, which outlives whoever asked it. */
import { askUser, createTranscript, type JsonValue } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, resultsOf, staged } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { anywhere } from "../support/fixture.ts";
import { endings, firstLife, liveOn } from "../support/lives.ts";
import { dataOf } from "../support/scene.ts";
import { snapshotWhere } from "../support/wait.ts";

const ID = "call_1_1_1_0/1";
const asks = (args: JsonValue): ScriptedAnswer => calls({ name: "ask_user", args });
const color = { question: "Which color?", options: ["red", "blue"] };

anywhere("a question is an interaction, and the answer is what the model reads", async (open) => {
  const agent = await open({ model: scriptedModel([asks(color), "fine"]), tools: [askUser()] });
  agent.send("go");
  await snapshotWhere(agent, ({ waiting }) => waiting);
  expect(agent.interactions).toEqual([{ id: ID, kind: "question", callId: "call_1_1_1_0", payload: color }]);
  await agent.respond(ID, "blue");
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toEqual([{ tool: "ask_user", says: "blue" }]);
});

test("several questions wait together, and people see what is asked", async () => {
  const { agent, session } = await staged({
    model: scriptedModel([
      calls({ name: "ask_user", args: { question: "Who?" } }, { name: "ask_user", args: { question: "When?" } }),
      "fine",
    ]),
    tools: [askUser()],
  });
  const transcript = createTranscript(agent);
  agent.send("go");
  await snapshotWhere(agent, ({ interactions }) => interactions.length === 2);
  const parts = transcript.getSnapshot().messages.flatMap((message) => message.parts);
  expect(parts).toMatchObject([
    {},
    { state: "asking", call: { title: "Who?" } },
    { state: "asking", call: { title: "When?" } },
  ]);
  await agent.respond("call_1_1_1_1/1", { at: "noon" });
  await agent.respond(ID, "me");
  await agent.whenIdle();
  expect(new Set(resultsOf(session).map((one) => "says" in one && one.says))).toEqual(new Set(['{"at":"noon"}', "me"]));
});

test.each([
  [{}],
  [{ question: " " }],
  [{ question: 7 }],
  [{ question: "Who?", options: "me" }],
  [{ question: "Who?", options: [1] }],
])("%j asks nobody, and the model reads why", async (args) => {
  const { agent, session } = await staged({ model: scriptedModel([asks(args), "fine"]), tools: [askUser()] });
  agent.send("go");
  await agent.whenIdle();
  expect(dataOf(session, "interaction/requested")).toEqual([]);
  expect(resultsOf(session)).toMatchObject([{ code: "INVALID_ARGS" }]);
});

test("after its deadline the model is told, and an answer is refused", async () => {
  const clock = testClock();
  const { agent, session } = await staged({
    model: scriptedModel([asks(color), "fine"]),
    tools: [askUser({ name: "ask_user", expiresInMs: 1000 })],
    clock,
  });
  agent.send("go");
  await snapshotWhere(agent, ({ waiting }) => waiting);
  await clock.advance(1000);
  await expect(agent.respond(ID, "red")).rejects.toMatchObject({ code: "INTERACTION_RESOLVED" });
  await agent.whenIdle();
  expect(resultsOf(session)).toMatchObject([{ code: "INTERACTION_EXPIRED" }]);
});

test.each(endings)("the host dies between question and answer: asked once, answered once (%s)", async (how) => {
  const life = { model: scriptedModel([asks(color)]), tools: [askUser()] };
  const first = await firstLife(life);
  first.agent.send("go");
  await snapshotWhere(first.agent, ({ waiting }) => waiting);
  await first.end(how);

  const second = await liveOn(first.disk, { model: scriptedModel(["fine"]), tools: [askUser()] });
  expect(second.requested).toEqual([ID]);
  expect(second.agent.getSnapshot().waiting).toBe(true);
  await second.agent.respond(ID, "red");
  await second.agent.whenIdle();
  expect(dataOf(second.agent.session, "interaction/requested")).toHaveLength(1);
  expect(resultsOf(second.agent.session)).toEqual([{ tool: "ask_user", says: "red" }]);
});

test.each(endings)("a deadline that passes while nobody runs the agent is past when it is opened (%s)", async (how) => {
  const clock = testClock();
  const tools = [askUser({ expiresInMs: 1000 })];
  const first = await firstLife({ model: scriptedModel([asks(color)]), tools, clock });
  first.agent.send("go");
  await snapshotWhere(first.agent, ({ waiting }) => waiting);
  await first.end(how);
  await clock.advance(5000);

  const second = await liveOn(first.disk, { model: scriptedModel(["fine"]), tools, clock });
  await clock.advance(0);
  await second.agent.whenIdle();
  expect(resultsOf(second.agent.session)).toMatchObject([{ code: "INTERACTION_EXPIRED" }]);
});

test("where there is nobody to ask the model is told so at once", async () => {
  const { agent, session } = await staged({
    model: scriptedModel([asks(color), "fine"]),
    tools: [askUser()],
    interactive: false,
  });
  agent.send("go");
  await agent.whenIdle();
  expect(resultsOf(session)).toMatchObject([{ code: "INTERACTION_UNAVAILABLE" }]);
});
