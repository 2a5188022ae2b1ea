/** T: the history that a model reads, derived from the surface of a log. */
import { createHarness, createTranscript, memoryStorage, type Message, type Session } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import { local } from "../support/fixture.ts";
import {
  assistant,
  called,
  context,
  line,
  logOf,
  plainTurn,
  result,
  said,
  started,
  stepEnd,
  stepStart,
  storageOf,
  turnEnd,
  turnStart,
  user,
  type Line,
} from "../support/made-log.ts";
import { unwatchedHarness } from "../support/unwatched.ts";

/** The history of a log as it stands in a storage. */
async function historyOf(...lines: readonly (Line | readonly Line[])[]): Promise<Message[]> {
  const { sessions } = createHarness({ storage: await storageOf(logOf(...lines)) });
  return (await sessions.load("s"))!.deriveMessages();
}

function append(session: Session, { type, data, surface, cites }: Line): void {
  session.append(type, data, { ...(surface && { surface }), ...(cites && { cites }) });
}

const steering = (id: string): Line =>
  line(
    "steering/message",
    { turn: 1, id, content: [{ type: "text", text: id }], source: { kind: "user", name: "ada" } },
    { surface: "append" },
  );

describe("what each event becomes", () => {
  local("#227 D7 a user/message is a user message with its source, word for word", async () => {
    const content = [
      { type: "text", text: "look" },
      { type: "file", mediaType: "image/png", data: { base64: "AA==" } },
    ] as const;
    const source = { kind: "user", name: "ada" };
    const message = line("user/message", { id: "m", content, source }, { surface: "append" });
    expect(await historyOf(turnStart(1), message, turnEnd(1))).toEqual([{ role: "user", content, source }]);
  });

  local("#227 D7 a steering/message is a user message, word for word", async () => {
    expect(await historyOf(turnStart(1), steering("faster"), turnEnd(1))).toEqual([
      { role: "user", content: [{ type: "text", text: "faster" }], source: { kind: "user", name: "ada" } },
    ]);
  });

  local("#227 D7 a context/message is a user message in a tag that names the kind of its source", async () => {
    const [message] = await historyOf(turnStart(1), context("it rains", "weather"), turnEnd(1));
    expect(message).toEqual({
      role: "user",
      content: [
        { type: "text", text: "<weather>\n" },
        { type: "text", text: "it rains" },
        { type: "text", text: "\n</weather>" },
      ],
      source: { kind: "weather" },
    });
  });

  local("#227 a source cannot break out of its tag", async () => {
    for (const kind of ["a b", "x></x><y", "", "ünï", "\n"]) {
      const [message] = await historyOf(turnStart(1), context("text", kind), turnEnd(1));
      const [open, , close] = message!.content.map((block) => (block.type === "text" ? block.text : ""));
      expect(open).toMatch(/^<[\w-]+>\n$/);
      expect(close).toBe(`\n</${open!.slice(1, -2)}>`);
    }
  });

  local("#227 an assistant/message is an assistant message with its model, unless it is empty", async () => {
    const history = await historyOf(
      turnStart(1),
      user("hello"),
      stepStart(1, 1),
      assistant(1, 1, ""),
      stepEnd(1, 1),
      stepStart(1, 2),
      assistant(1, 2, "hi"),
      stepEnd(1, 2),
      turnEnd(1),
    );
    expect(history.slice(1)).toEqual([
      { role: "assistant", content: [{ type: "text", text: "hi" }], model: "scripted/model" },
    ]);
  });

  local("#227 D7 a tool/result is a message of role tool with one block, which has the name of its call", async () => {
    const history = await historyOf(
      turnStart(1),
      stepStart(1, 1),
      assistant(1, 1, "", "a"),
      called(1, 1, "a"),
      result(1, 1, "a"),
      stepEnd(1, 1),
      turnEnd(1),
    );
    const content = [{ type: "text", text: "a is done" }];
    expect(history[1]).toEqual({
      role: "tool",
      content: [{ type: "tool-result", callId: "a", name: "work", content, isError: false }],
    });
  });

  local("#227 what is log-only yields no message", async () => {
    const source = { kind: "user" };
    const history = await historyOf(
      line("session/titled", { title: "t" }),
      turnStart(1),
      line("prompt/blocked", { id: "m", content: [{ type: "text", text: "blocked" }], source, reason: "no" }),
      stepStart(1, 1),
      line("assistant/chunk", { turn: 1, step: 1, chunk: { type: "delta", index: 0, text: "a" } }),
      line("tool/progress", { callId: "a", value: 1 }),
      line("model/aux", { purpose: "title", model: "m" }),
      stepEnd(1, 1),
      turnEnd(1),
    );
    expect(history).toEqual([]);
  });
});

describe("results follow their calls", () => {
  const calls = [turnStart(1), user("do"), stepStart(1, 1), assistant(1, 1, "", "a", "b", "c")];
  const end = [stepEnd(1, 1), turnEnd(1)];
  const inOrder = [
    "user: do",
    "assistant: calls a calls b calls c",
    "tool: answers a",
    "tool: answers b",
    "tool: answers c",
  ];

  local("#227 D7 in call order, whatever their order in the log", async () => {
    const history = await historyOf(calls, result(1, 1, "c"), result(1, 1, "a"), result(1, 1, "b"), end);
    expect(said(history)).toEqual(inOrder);
  });

  local("#227 D7 what stands between them in an older log comes after them", async () => {
    const history = await historyOf(
      calls,
      result(1, 1, "b"),
      steering("faster"),
      result(1, 1, "a"),
      context("note"),
      result(1, 1, "c"),
      end,
    );
    expect(said(history)).toEqual([...inOrder, "user: faster", "user: <user>\n note \n</user>"]);
  });

  local("#227 D7 a user message between them comes after them as well", async () => {
    const history = await historyOf(calls, result(1, 1, "b"), user("more"), result(1, 1, "a"), result(1, 1, "c"), end);
    expect(said(history)).toEqual([...inOrder, "user: more"]);
  });

  local("#227 a result without a call, or a second one, stays in the log alone", async () => {
    const history = await historyOf(
      turnStart(1),
      result(1, 1, "nobody"),
      stepStart(1, 1),
      assistant(1, 1, "", "a"),
      result(1, 1, "a", "first"),
      result(1, 1, "a", "second"),
      end,
    );
    expect(said(history)).toEqual(["assistant: calls a", "tool: answers a"]);
    expect(history[1]!.content[0]).toMatchObject({ content: [{ text: "first" }] });
  });
});

describe("deriving", () => {
  local("#226 gives a fresh array of shared, frozen messages", async () => {
    const session = await createHarness().sessions.create({ id: "s", seed: logOf(plainTurn(1)) });
    const first = session.deriveMessages();
    const second = session.deriveMessages();
    expect(first).not.toBe(second);
    expect(first).toEqual(second);
    expect(first.every((message, i) => message === second[i] && Object.isFrozen(message))).toBe(true);
    expect(first.every(({ content }) => Object.isFrozen(content))).toBe(true);
    first.pop();
    expect(session.deriveMessages()).toHaveLength(2);
  });

  local("#226 a message is the same object after later events and after a replacement elsewhere", async () => {
    const session = await createHarness().sessions.create({ id: "s", seed: logOf(plainTurn(1), plainTurn(2)) });
    const [, , third, fourth] = session.deriveMessages();
    append(session, turnStart(3));
    append(session, user("question 3"));
    append(session, {
      ...line("context/message", context("sum", "summary").data as never),
      surface: { replace: [1, 3] },
      cites: [[1, 3]],
    });
    append(session, turnEnd(3));
    const after = session.deriveMessages();
    expect(after[1]).toBe(third);
    expect(after[2]).toBe(fourth);
  });

  local("#226 what is derived bit by bit equals what a replay of the whole log gives", async () => {
    const storage = memoryStorage();
    const { sessions } = createHarness({ storage });
    const session = await sessions.create({ id: "s" });
    const lines: Line[] = [
      ...plainTurn(1),
      turnStart(2),
      user("do"),
      stepStart(2, 1),
      assistant(2, 1, "", "a", "b"),
      result(2, 1, "b"),
      { ...context("sum", "summary"), surface: { replace: [1, 3] }, cites: [[1, 3]] },
      result(2, 1, "a"),
      { ...result(2, 1, "b", "pruned"), surface: { replace: [10, 10] }, cites: [10] },
      stepEnd(2, 1),
      turnEnd(2),
    ];
    for (const one of lines) {
      append(session, one);
      session.deriveMessages();
    }
    await session.flush();
    const replayed = await createHarness({ storage }).sessions.load("s");
    expect(replayed!.deriveMessages()).toEqual(session.deriveMessages());
    expect(said(session.deriveMessages())).toHaveLength(5);
  });
});

describe("two readers of one log", () => {
  local("#234 people read all that was ever said, the model what the surface holds", async () => {
    const model = scriptedModel(["answer 3"]);
    const storage = await storageOf(logOf(plainTurn(1), plainTurn(2)));
    const { agents, sessions, hooks } = createHarness({ model, storage });
    const { agent } = await agents.open({ id: "s" });
    hooks.on("agent/pre-step", () => {
      sessions
        .get("s")!
        .append(
          "context/message",
          { id: "sum", content: [{ type: "text", text: "it was about two" }], source: { kind: "summary" } },
          { surface: { replace: [1, 9] }, cites: [[1, 9]] },
        );
    });
    agent.send("question 3");
    await agent.whenIdle();
    expect(said(model.requests[0]!.messages)).toEqual([
      "user: <summary>\n it was about two \n</summary>",
      "user: question 3",
    ]);
    const { messages } = createTranscript(agent).getSnapshot();
    expect(
      messages.map(({ role, parts }) => `${role}: ${parts.map((part) => ("text" in part ? part.text : "")).join("")}`),
    ).toEqual([
      "user: question 1",
      "assistant: answer 1",
      "user: question 2",
      "assistant: answer 2",
      "user: question 3",
      "mark: it was about two",
      "assistant: answer 3",
    ]);
  });

  local(
    "#226 #236 D22 a call that was left without a result in a closed turn is answered in the history alone",
    async () => {
      const left = logOf(
        turnStart(1),
        user("do"),
        stepStart(1, 1),
        assistant(1, 1, "", "a", "b"),
        called(1, 1, "a"),
        started(1, 1, "a"),
        stepEnd(1, 1),
        turnEnd(1),
        plainTurn(2),
      );
      const model = scriptedModel(["fine"]);
      const { agents } = unwatchedHarness({ model, storage: await storageOf(left) });
      const { agent, dispose } = await agents.open({ id: "s" });
      expect(agent.session.events).toEqual(left);
      agent.send("go on");
      await agent.whenIdle();
      expect(said(model.requests[0]!.messages)).toEqual([
        "user: do",
        "assistant: calls a calls b",
        "tool: fails a",
        "tool: fails b",
        "user: question 2",
        "assistant: answer 2",
        "user: go on",
      ]);
      const [unknown, unstarted] = model.requests[0]!.messages.slice(2).map(({ content }) => content[0]);
      expect(unknown).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/outcome is unknown/i) }],
      });
      expect(unstarted).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/not started/i) }] });
      await dispose();
    },
  );
});
