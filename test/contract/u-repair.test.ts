/** U: what opening a session makes of a turn that was cut short. */
import { createHarness, defineTool, type SessionEvent, type SessionEventType } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import { local } from "../support/fixture.ts";
import {
  assistant,
  called,
  line,
  logOf,
  plainTurn,
  queued,
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
import { endOf } from "../support/wait.ts";

const INTERRUPTED = { kind: "interrupted" } as const;

/** What opening adds to a log. */
async function repairOf(events: readonly SessionEvent[]): Promise<readonly SessionEvent[]> {
  const { agents } = createHarness({ storage: await storageOf(events) });
  const { agent } = await agents.open({ id: "s" });
  expect(agent.session.events.slice(0, events.length)).toEqual(events);
  return agent.session.events.slice(events.length);
}

const unanswered = (callId: string, code: string): object => ({
  type: "tool/result",
  surface: "append",
  data: { turn: 1, step: 1, callId, isError: true, error: { code } },
});

const begun: readonly Line[] = [turnStart(1), user("do"), stepStart(1, 1)];
const end = [stepEnd(1, 1), turnEnd(1, INTERRUPTED)];
const delta = (text: string): Line =>
  line("assistant/chunk", { turn: 1, step: 1, chunk: { type: "delta", index: 0, text } });

describe("what is whole", () => {
  local("#235 an empty log and a balanced one are left as they are", async () => {
    expect(await repairOf(logOf(plainTurn(1)))).toEqual([]);
    expect(await repairOf(logOf(plainTurn(1), line("session/titled", { title: "t" })))).toEqual([]);
    const { agents } = createHarness();
    expect((await agents.open({ id: "s" })).agent.session.events).toEqual([]);
  });

  local("#235 a log is repaired once: opened again it stays as it is", async () => {
    const storage = await storageOf(logOf(begun, assistant(1, 1, "", "a")));
    const first = createHarness({ storage });
    const { agent } = await first.agents.open({ id: "s" });
    await agent.flush();
    await first.dispose();
    const { agent: again } = await createHarness({ storage }).agents.open({ id: "s" });
    expect(again.session.events).toEqual(agent.session.events);
    expect(again.session.seq).toBe(8);
  });

  local("#241 the repair is stored like any other event, and what was stored before stays as it was", async () => {
    const events = logOf(begun, assistant(1, 1, "", "a"));
    const storage = await storageOf(events);
    const { agents, sessions } = createHarness({ storage });
    const { agent } = await agents.open({ id: "s" });
    await agent.flush();
    const stored = await createHarness({ storage }).sessions.load("s");
    expect(stored!.events).toEqual(agent.session.events);
    expect(stored!.events.slice(0, events.length)).toEqual(events);
    expect(sessions.get("s")!.durable).toBe("stored");
  });

  local("D26 #241 loading a session to read it repairs nothing", async () => {
    const events = logOf(begun, assistant(1, 1, "", "a"));
    const { sessions } = createHarness({ storage: await storageOf(events) });
    expect((await sessions.load("s"))!.events).toEqual(events);
  });
});

describe("an open turn", () => {
  local(
    "#235 without a step is ended as interrupted; seq goes on, and the time is that of the last event",
    async () => {
      const added = await repairOf(logOf(turnStart(1), user("do")));
      expect(added).toEqual([{ seq: 2, time: 1001, ...turnEnd(1, INTERRUPTED) }]);
    },
  );

  local("#235 with an open step has that ended too", async () => {
    expect(await repairOf(logOf(begun))).toEqual([
      { seq: 3, time: 1002, ...stepEnd(1, 1) },
      { seq: 4, time: 1002, ...turnEnd(1, INTERRUPTED) },
    ]);
  });

  local("#235 between two steps is ended", async () => {
    expect(await repairOf(logOf(begun, assistant(1, 1, "", "a"), result(1, 1, "a"), stepEnd(1, 1)))).toMatchObject([
      turnEnd(1, INTERRUPTED),
    ]);
  });

  local("#235 D19 in mid stream keeps the text that had come, marked as interrupted", async () => {
    const call = { type: "block-start", index: 1, block: { type: "tool-call", name: "work" } } as const;
    const chunks = [delta("half "), delta("a word"), line("assistant/chunk", { turn: 1, step: 1, chunk: call })];
    expect(await repairOf(logOf(begun, chunks))).toMatchObject([
      {
        type: "assistant/message",
        surface: "append",
        cites: [[3, 5]],
        time: 1005,
        data: { turn: 1, step: 1, content: [{ type: "text", text: "half a word" }], interrupted: true },
      },
      ...end,
    ]);
    expect(await repairOf(logOf(begun, delta(" \n ")))).toMatchObject(end);
  });

  local("#235 #237 D22 owes each call its result, in the order of the answer: not started, or not known", async () => {
    const events = logOf(
      begun,
      assistant(1, 1, "", "a", "b", "c", "d"),
      called(1, 1, "a"),
      started(1, 1, "a"),
      result(1, 1, "a"),
      called(1, 1, "b"),
      started(1, 1, "b"),
      called(1, 1, "c"),
    );
    const added = await repairOf(events);
    expect(added).toMatchObject([
      { ...unanswered("b", "TOOL_OUTCOME_UNKNOWN"), cites: [7] },
      { ...unanswered("c", "TOOL_NOT_STARTED"), cites: [9] },
      called(1, 1, "d"),
      { ...unanswered("d", "TOOL_NOT_STARTED"), cites: [12] },
      ...end,
    ]);
    expect(added.map(({ time }) => time)).toEqual(added.map(() => 1009));
  });

  local("#236 calls that were answered are left alone, and only what is owed is added", async () => {
    const added = await repairOf(
      logOf(begun, assistant(1, 1, "", "a", "b"), called(1, 1, "a"), called(1, 1, "b"), result(1, 1, "b")),
    );
    expect(added).toMatchObject([{ ...unanswered("a", "TOOL_NOT_STARTED"), cites: [4] }, ...end]);
  });

  local("#237 what is told to the model says whether it may call again", async () => {
    const events = logOf(begun, assistant(1, 1, "", "a", "b"), called(1, 1, "a"), started(1, 1, "a"));
    const texts = (await repairOf(events))
      .filter((event) => event.type === "tool/result")
      .map((event) => event.data.content[0]);
    expect(texts).toMatchObject([
      { text: expect.stringMatching(/outcome is unknown.*verify before/is) },
      { text: expect.stringMatching(/not started.*may be called again/is) },
    ]);
  });

  local("#236 D22 owes a result too where an earlier step of the turn has left a call without one", async () => {
    const events = logOf(
      begun,
      assistant(1, 1, "", "a", "b"),
      called(1, 1, "a"),
      started(1, 1, "a"),
      stepEnd(1, 1),
      stepStart(1, 2),
      assistant(1, 2, "", "c"),
    );
    const { agents, dispose } = unwatchedHarness({ storage: await storageOf(events) });
    const { agent } = await agents.open({ id: "s" });
    const results = agent.session.events.slice(events.length).filter(({ type }) => type === "tool/result");
    expect(results.map((event) => (event as SessionEvent<"tool/result">).data)).toMatchObject([
      { callId: "a", error: { code: "TOOL_OUTCOME_UNKNOWN" } },
      { callId: "b", error: { code: "TOOL_NOT_STARTED" } },
      { callId: "c", error: { code: "TOOL_NOT_STARTED" } },
    ]);
    expect(said(agent.session.deriveMessages())).toEqual([
      "user: do",
      "assistant: calls a calls b",
      "tool: fails a",
      "tool: fails b",
      "assistant: calls c",
      "tool: fails c",
    ]);
    await dispose();
  });

  local(
    "#236 D22 the history answers calls of closed turns with the very results that repair would write",
    async () => {
      const calls = [assistant(1, 1, "", "a", "b"), called(1, 1, "a"), started(1, 1, "a")];
      const closed = await unwatchedHistory(logOf(begun, calls, stepEnd(1, 1), turnEnd(1)));
      const { agents } = createHarness({ storage: await storageOf(logOf(begun, calls)) });
      const { agent } = await agents.open({ id: "s" });
      expect(closed).toEqual(agent.session.deriveMessages());
    },
  );

  local("#235 ends what it asked: an interaction that a dead body waited for is cancelled", async () => {
    const asked = line("interaction/requested", { id: "a/1", kind: "question", payload: "really?", callId: "a" });
    const events = logOf(begun, assistant(1, 1, "", "a"), called(1, 1, "a"), started(1, 1, "a"), asked);
    expect(await repairOf(events)).toMatchObject([
      line("interaction/resolved", { id: "a/1", outcome: "cancelled" }),
      unanswered("a", "TOOL_OUTCOME_UNKNOWN"),
      ...end,
    ]);
  });

  local("#235 D13 is closed before what is still queued runs", async () => {
    const model = scriptedModel(["fine"]);
    const events = logOf(queued("do"), turnStart(1, ["do"]), queued("next"), user("do"), stepStart(1, 1));
    const { agents } = createHarness({ model, storage: await storageOf(events) });
    const { agent } = await agents.open({ id: "s" });
    await agent.whenIdle();
    expect(endOf(agent.session, 1)).toEqual(INTERRUPTED);
    expect(said(model.requests[0]!.messages)).toEqual(["user: do", "user: next"]);
  });
});

async function unwatchedHistory(events: readonly SessionEvent[]): Promise<unknown> {
  const { agents, dispose } = unwatchedHarness({ storage: await storageOf(events) });
  const { agent } = await agents.open({ id: "s" });
  const history = agent.session.deriveMessages();
  expect(agent.session.events).toEqual(events);
  await dispose();
  return history;
}

describe("death at any moment", () => {
  /** A conversation with all that a log can hold: tools alone and together, a failure, steering, a cancel. */
  async function conversation(): Promise<readonly SessionEvent[]> {
    const model = scriptedModel([
      {
        text: "let me",
        toolCalls: [
          { name: "look", args: {} },
          { name: "look", args: {} },
          { name: "write", args: {} },
        ],
      },
      { error: { message: "busy" } },
      { reasoning: "hm", text: "it is so" },
      {
        text: "again",
        toolCalls: [
          { name: "write", args: {} },
          { name: "nothing", args: {} },
        ],
      },
      { text: "and that", hang: "polite" },
    ]);
    const { agents, hooks } = createHarness({ model, tools: tools() });
    hooks.on("agent/request-error", () => ({ kind: "retry" }));
    const { agent } = await agents.open({ id: "s" });
    agent.on("tool/start", ({ data }) => void (data.turn === 1 && agent.steer("hurry")));
    agent.on("tool/result", ({ data }) => void (data.turn === 1 && agent.inject("noted")));
    agent.send("first");
    await agent.whenIdle();
    agent.on("assistant/chunk", ({ data }) => void (data.step === 2 && agent.cancel()));
    agent.send("second");
    agent.send("and more");
    await agent.whenIdle();
    return agent.session.events;
  }

  const tools = (ran: string[] = []): ReturnType<typeof defineTool>[] =>
    (["look", "write"] as const).map((name) =>
      defineTool({
        name,
        description: name,
        inputSchema: { type: "object" },
        readOnly: name === "look",
        execute: (_: unknown, { callId }) => void ran.push(callId),
      }),
    );

  local("#235 #237 wherever a log ends, opening makes it whole, loses nothing, runs no tool, and goes on", async () => {
    const events = await conversation();
    expect(events.length).toBeGreaterThan(50);
    for (let cut = 1; cut < events.length; cut += 1) {
      const left = events.slice(0, cut);
      const ran: string[] = [];
      const model = scriptedModel(["what was queued", "well"]);
      const harness = createHarness({ model, storage: await storageOf(left), tools: tools(ran) });
      const { agent } = await harness.agents.open({ id: "s" });
      await agent.whenIdle();
      agent.send("go on");
      await agent.whenIdle();
      const where = `cut at ${cut}, after ${left.at(-1)!.type}`;
      expect(agent.session.events.slice(0, cut), where).toEqual(left);
      expect(ran, where).toEqual([]);
      expect(endOf(agent.session), where).toEqual({ kind: "completed" });
      expect(fates(agent.session.events), where).toEqual([]);
      await harness.dispose();
    }
  });

  /** The messages that were accepted, and came to no end or to more than one. */
  function fates(events: readonly SessionEvent[]): string[] {
    const ends = new Set<SessionEventType>(["user/message", "steering/message", "context/message", "prompt/blocked"]);
    const accepted = events.flatMap((event) => (event.type === "inbox/queued" ? [event.data.id] : []));
    const ended = events.flatMap((event) => {
      if (event.type === "inbox/dropped") return event.data.ids;
      if (event.type === "agent/cancelled") return event.data.dropped;
      return ends.has(event.type) ? [(event.data as { id: string }).id] : [];
    });
    return accepted.filter((id) => ended.filter((one) => one === id).length !== 1);
  }
});
