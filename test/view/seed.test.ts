/** Sessions that begin with a history from elsewhere. */
import {
  createHarness,
  createTranscript,
  eventsFromMessages,
  TurnloopError,
  type Message,
  type Session,
} from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";

const user = (words: string): Message => ({ role: "user", content: [{ type: "text", text: words }] });
const assistant = (words: string): Message => ({ role: "assistant", content: [{ type: "text", text: words }] });
const calls = (...ids: string[]): Message => ({
  role: "assistant",
  content: ids.map((callId) => ({ type: "tool-call", callId, name: "t", arguments: `{"from":"${callId}"}` })),
});
const result = (callId: string, words: string): Message => ({
  role: "tool",
  content: [{ type: "tool-result", callId, name: "t", content: [{ type: "text", text: words }], isError: false }],
});

const seeded = (messages: readonly Message[]): Promise<Session> =>
  createHarness().sessions.create({ seed: eventsFromMessages(messages) });

/** Each call with the text of its result, as the next request would show them. */
async function pairs(messages: readonly Message[]): Promise<[string, string][]> {
  const blocks = (await seeded(messages)).deriveMessages().flatMap((message) => message.content);
  return blocks.flatMap((call): [string, string][] => {
    if (call.type !== "tool-call") return [];
    const results = blocks.filter((block) => block.type === "tool-result" && block.callId === call.callId);
    expect(results).toHaveLength(1);
    const [answer] = results;
    const [first] = answer?.type === "tool-result" ? answer.content : [];
    return [[call.arguments, first?.type === "text" ? first.text : ""]];
  });
}

test("a history is taken over: the same messages, with their sources and models", async () => {
  const messages: Message[] = [
    { ...user("hi"), source: { kind: "slack", who: "ada" } },
    { ...assistant("hello"), model: "lab/small" },
    { ...user("more"), source: { kind: "user" } },
    { ...assistant("sure"), model: "lab/small" },
  ];
  const session = await seeded(messages);
  expect(session.deriveMessages()).toEqual(messages);
  expect(
    createTranscript(session)
      .getSnapshot()
      .messages.map((message) => message.turn),
  ).toEqual([1, 1, 2, 2]);
});

test("the session goes on: the next request shows the history and the new message", async () => {
  const model = scriptedModel(["fine"]);
  const harness = createHarness({ model });
  const seed = eventsFromMessages([user("hi"), calls("x"), result("x", "42"), assistant("it is 42")]);
  const { agent } = await harness.agents.create({ id: "chat", seed });
  agent.send("thanks");
  await agent.whenIdle();
  expect(model.requests[0]!.messages.map((message) => message.role)).toEqual([
    "user",
    "assistant",
    "tool",
    "assistant",
    "user",
  ]);
  expect(agent.session.events.at(-1)).toMatchObject({
    type: "turn/end",
    data: { turn: 2, reason: { kind: "completed" } },
  });
});

test("results go to their calls wherever they stood, and ids that repeat are told apart", async () => {
  expect(await pairs([user("go"), calls("a", "b"), user("wait"), result("b", "B"), result("a", "A")])).toEqual([
    ['{"from":"a"}', "A"],
    ['{"from":"b"}', "B"],
  ]);
  expect(await pairs([user("go"), calls("z"), result("z", "1"), calls("z"), result("z", "2")])).toEqual([
    ['{"from":"z"}', "1"],
    ['{"from":"z"}', "2"],
  ]);
  expect(await pairs([user("go"), calls("z", "z"), result("z", "1"), result("z", "2")])).toEqual([
    ['{"from":"z"}', "1"],
    ['{"from":"z"}', "2"],
  ]);
});

test("a call without a result is answered as unknown; a result without a call is left out", async () => {
  const [lone] = await pairs([user("go"), calls("z"), user("hello?"), calls("z"), result("z", "late")]);
  expect(lone![1]).toContain("not known");
  const session = await seeded([user("go"), result("ghost", "boo"), assistant("ok")]);
  expect(JSON.stringify(session.deriveMessages())).not.toContain("boo");
  const results = (await seeded([calls("a")])).events.filter((event) => event.type === "tool/result");
  expect(results).toMatchObject([{ data: { isError: true, error: { code: "TOOL_OUTCOME_UNKNOWN" } } }]);
});

test("the provider's ids are kept beside the new ones", () => {
  const events = eventsFromMessages([user("go"), calls("toolu_1"), result("toolu_1", "ok")]);
  expect(events.find((event) => event.type === "tool/call")).toMatchObject({
    data: { callId: "call_1_1_1_0", providerCallId: "toolu_1" },
  });
});

test("every turn and step is closed, every event numbered, and an empty history is no events", () => {
  expect(eventsFromMessages([])).toEqual([]);
  const events = eventsFromMessages([assistant("welcome"), user("a"), user("b"), { role: "assistant", content: [] }]);
  expect(events.map((event) => event.seq)).toEqual(events.map((_, place) => place));
  expect(events.map((event) => event.type)).toEqual([
    "turn/start",
    "step/start",
    "assistant/message",
    "step/end",
    "turn/end",
    "turn/start",
    "user/message",
    "user/message",
    "turn/end",
  ]);
});

test("what is no message is refused, naming its place", () => {
  const bad = [user("ok"), { role: "system", content: [] }] as unknown as Message[]; // what a caller in JavaScript may hand in
  expect(() => eventsFromMessages(bad)).toThrow(
    expect.objectContaining({ code: "INVALID_CONTENT", message: expect.stringContaining("message 1") }),
  );
  expect(() => eventsFromMessages([{ role: "user", content: [null as never] }])).toThrow(TurnloopError);
});
