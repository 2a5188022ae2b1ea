/** T: the surface of a log, and the history that is derived from it. */
import { createHarness, TurnloopError, type Session, type SurfaceOp, type Cite } from "turnloop";
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
  turnEnd,
  turnStart,
  user,
  type Line,
} from "../support/made-log.ts";
import { unwatchedHarness } from "../support/unwatched.ts";

/** A session that holds the lines, written one by one, and is never told of to a model. */
async function sessionOf(...lines: readonly (Line | readonly Line[])[]): Promise<Session> {
  const session = await createHarness().sessions.create({ id: "s" });
  for (const one of lines.flat()) append(session, one);
  return session;
}

function append(session: Session, { type, data, surface, cites }: Line): void {
  session.append(type, data, { ...(surface && { surface }), ...(cites && { cites }) });
}

function refusal(session: Session, made: Line): string | undefined {
  const before = session.events;
  try {
    append(session, made);
    return undefined;
  } catch (error) {
    expect(session.events).toBe(before);
    return TurnloopError.is(error) ? error.code : String(error);
  }
}

const summary = (id: string, replace: readonly [number, number], cites?: readonly Cite[]): Line =>
  line("context/message", context(id, "summary").data as never, {
    surface: { replace },
    cites: cites ?? [replace],
  });
/** A summary as a model reads it. */
const summarised = (id: string): string => `user: <summary>\n ${id} \n</summary>`;

/** One turn: two calls, answered in the other order, then a last word. Surface nodes: 1, 3, 8, 9, 12. */
const callsTurn: readonly Line[] = [
  turnStart(1),
  user("do it"),
  stepStart(1, 1),
  assistant(1, 1, "I do", "a", "b"),
  called(1, 1, "a"),
  started(1, 1, "a"),
  called(1, 1, "b"),
  started(1, 1, "b"),
  result(1, 1, "b"),
  result(1, 1, "a"),
  stepEnd(1, 1),
  stepStart(1, 2),
  assistant(1, 2, "done"),
  stepEnd(1, 2),
];

describe("markers", () => {
  const messages: readonly Line[] = [
    user("u"),
    context("c"),
    line("steering/message", { turn: 1, id: "s", content: [], source: { kind: "user" } }, { surface: "append" }),
    assistant(1, 1, "a"),
    result(1, 1, "r"),
  ];
  for (const message of messages) {
    local(`#221 ${message.type} must say how it enters the surface`, async () => {
      const session = await sessionOf(turnStart(1), stepStart(1, 1));
      if (message.type === "tool/result") append(session, assistant(1, 1, "", "r"));
      const { surface: _, ...without } = message as Line & { surface?: SurfaceOp };
      expect(refusal(session, without as Line)).toBe("INVALID_SURFACE");
      append(session, message);
      append(session, stepEnd(1, 1));
      append(session, turnEnd(1));
    });
  }

  local("#221 what yields no message must not carry surface", async () => {
    const session = await sessionOf(turnStart(1));
    for (const other of [stepStart(1, 1), turnEnd(1), called(1, 1, "a"), line("session/titled", { title: "t" })]) {
      expect(refusal(session, { ...other, surface: "append" })).toBe("INVALID_SURFACE");
    }
    append(session, turnEnd(1));
  });

  local("#221 surface is append or a range of earlier events, and nothing else", async () => {
    const session = await sessionOf(turnStart(1), user("u"));
    const ops: unknown[] = ["prepend", {}, null, 1, { replace: 1 }, { replace: [1] }, { replace: [1, 1, 1] }];
    ops.push({ replace: ["1", "1"] }, { replace: [1, 2] }, { replace: [-1, 1] }, { replace: [0.5, 1] });
    for (const surface of ops) {
      expect(refusal(session, { ...context("c"), surface: surface as SurfaceOp }), JSON.stringify(surface)).toBe(
        "INVALID_SURFACE",
      );
    }
    append(session, turnEnd(1));
  });

  local("#221 D7 cites name earlier events, each once: numbers, or ranges with both ends", async () => {
    const session = await sessionOf(turnStart(1), user("u"), user("v"));
    const citing = (cites: unknown): Line =>
      line("model/aux", { purpose: "p", model: "m" }, { cites: cites as Cite[] });
    const bad: unknown[] = [
      [3],
      [-1],
      [0.5],
      ["1"],
      [[1]],
      [[2, 1]],
      [[1, 3]],
      [[0, 1, 2]],
      [1, 1],
      [
        [0, 1],
        [0, 1],
      ],
      1,
    ];
    for (const cites of bad) expect(refusal(session, citing(cites)), JSON.stringify(cites)).toBe("INVALID_SURFACE");
    for (const cites of [[0], [[0, 2]], [0, [1, 2]], [2, 0], []])
      expect(refusal(session, citing(cites))).toBeUndefined();
    append(session, turnEnd(1));
  });

  local("#221 D7 a seq that is named alone and within a range is named twice", async () => {
    const session = await sessionOf(turnStart(1), user("u"), user("v"));
    const citing = (cites: Cite[]): Line => line("model/aux", { purpose: "p", model: "m" }, { cites });
    for (const cites of [
      [1, [0, 2]],
      [
        [0, 1],
        [1, 2],
      ],
      [1, [1, 1]],
    ] as Cite[][]) {
      expect(refusal(session, citing(cites)), JSON.stringify(cites)).toBe("INVALID_SURFACE");
    }
    append(session, turnEnd(1));
  });
});

describe("replacing", () => {
  local("#225 D7 a summary takes the place of a range, both ends included; the log is untouched", async () => {
    const session = await sessionOf(plainTurn(1), plainTurn(2), turnStart(3), user("question 3"));
    const before = session.events;
    append(session, summary("sum", [1, 9]));
    expect(said(session.deriveMessages())).toEqual([summarised("sum"), "user: question 3"]);
    expect(session.events.slice(0, before.length)).toEqual(before);
    expect(session.seq).toBe(before.length + 1);
    append(session, turnEnd(3));
  });

  local("#225 a range in the middle is replaced where it stood, and a summary can be summarised", async () => {
    const session = await sessionOf(plainTurn(1), plainTurn(2), turnStart(3), user("question 3"));
    append(session, summary("first", [3, 7]));
    const seq = session.seq - 1;
    expect(said(session.deriveMessages())).toEqual([
      "user: question 1",
      summarised("first"),
      "assistant: answer 2",
      "user: question 3",
    ]);
    append(session, summary("second", [1, seq], [1, seq]));
    expect(said(session.deriveMessages())).toEqual([summarised("second"), "assistant: answer 2", "user: question 3"]);
    append(session, turnEnd(3));
  });

  local("#225 an unknown or inverted range is refused: its ends are messages that still stand", async () => {
    const session = await sessionOf(plainTurn(1), turnStart(2), user("question 2"));
    append(session, summary("sum", [1, 3]));
    const seq = session.seq - 1;
    for (const range of [
      [0, 7],
      [2, 7],
      [1, 7],
      [3, 3],
      [7, 1],
      // The summary stands in front of what is older than itself.
      [7, seq],
      [seq + 1, seq + 1],
    ] as const) {
      expect(refusal(session, summary("bad", range, [[0, seq]])), String(range)).toBe("INVALID_SURFACE");
    }
    expect(refusal(session, summary("good", [seq, 7], [seq, 7]))).toBeUndefined();
    append(session, turnEnd(2));
  });

  local("#225 cites must cover every message that is replaced", async () => {
    const session = await sessionOf(plainTurn(1), turnStart(2), user("question 2"));
    for (const cites of [[], [1], [3], [[1, 2]]] as const) {
      const { type, data } = context("sum");
      expect(refusal(session, { type, data, surface: { replace: [1, 3] }, cites })).toBe("INVALID_SURFACE");
    }
    expect(refusal(session, summary("one by one", [1, 3], [3, 1]))).toBeUndefined();
    append(session, turnEnd(2));
  });

  local("#225 D7 only a context/message may replace a range", async () => {
    const session = await sessionOf(plainTurn(1), turnStart(2), user("question 2"));
    const envelope = { surface: { replace: [1, 3] }, cites: [[1, 3]] } as const;
    const steering = line("steering/message", { turn: 2, id: "s", content: [], source: { kind: "user" } });
    for (const other of [user("u"), assistant(2, 1, "a"), result(2, 1, "r"), steering]) {
      expect(refusal(session, { ...other, ...envelope })).toBe("INVALID_SURFACE");
    }
    append(session, turnEnd(2));
  });

  local("#225 D7 a tool/result may replace the result of the same call, and no other", async () => {
    const session = await sessionOf(callsTurn);
    const pruned = (callId: string, replace: readonly [number, number]): Line => ({
      ...result(1, 1, callId, "pruned"),
      surface: { replace },
      cites: [[1, 12]],
    });
    for (const [callId, at] of [
      ["a", [8, 8]],
      ["b", [9, 9]],
      ["a", [8, 9]],
      ["a", [3, 3]],
      ["a", [1, 1]],
    ] as const) {
      expect(refusal(session, pruned(callId, at)), `${callId} ${at.join()}`).toBe("INVALID_SURFACE");
    }
    append(session, pruned("a", [9, 9]));
    const [, , first, second] = session.deriveMessages();
    expect([first, second]).toMatchObject([
      { role: "tool", content: [{ callId: "a", content: [{ text: "pruned" }] }] },
      { role: "tool", content: [{ callId: "b", content: [{ text: "b is done" }] }] },
    ]);
    const last = session.seq - 1;
    append(session, { ...pruned("a", [last, last]), cites: [last] });
    expect(session.deriveMessages()).toHaveLength(5);
    append(session, turnEnd(1));
  });

  // Depth, and what is negative of it, are not to be seen from outside: what is seen is which ranges are taken.
  local(
    "#238 a range can be replaced if and only if no call is parted from its result by either of its ends",
    async () => {
      const nodes = [1, 3, 8, 9, 12];
      const taken: string[] = [];
      for (const [i, start] of nodes.entries()) {
        for (const end of nodes.slice(i)) {
          const session = await sessionOf(callsTurn);
          if (refusal(session, summary("sum", [start, end])) === undefined) taken.push(`${start}-${end}`);
          append(session, turnEnd(1));
        }
      }
      expect(taken).toEqual(["1-1", "1-9", "1-12", "3-9", "3-12", "12-12"]);
    },
  );

  local("#238 an unanswered call cannot be cut off from the result that is still to come", async () => {
    const session = await sessionOf(callsTurn.slice(0, 9));
    expect(refusal(session, summary("sum", [1, 8]))).toBe("INVALID_SURFACE");
    expect(refusal(session, summary("sum", [1, 1]))).toBeUndefined();
    append(session, result(1, 1, "a"));
    expect(said(session.deriveMessages())).toEqual([
      summarised("sum"),
      "assistant: I do calls a calls b",
      "tool: answers a",
      "tool: answers b",
    ]);
    append(session, stepEnd(1, 1));
    append(session, turnEnd(1));
  });

  local("#238 what counts is the surface, not the log: a call that was summarised away counts no more", async () => {
    const session = await sessionOf(callsTurn);
    append(session, summary("sum", [3, 9]));
    const seq = session.seq - 1;
    expect(refusal(session, summary("more", [1, seq], [1, seq]))).toBeUndefined();
    expect(said(session.deriveMessages())).toEqual([summarised("more"), "assistant: done"]);
    append(session, turnEnd(1));
  });

  local(
    "#238 D22 a call that a closed turn has left without a result counts as answered, as the history answers it",
    async () => {
      const left = [turnStart(1), user("do"), stepStart(1, 1), assistant(1, 1, "", "a"), stepEnd(1, 1), turnEnd(1)];
      const { sessions, dispose } = unwatchedHarness();
      const session = await sessions.create({ id: "s", seed: logOf(left, turnStart(2), user("go on")) });
      expect(said(session.deriveMessages())).toEqual([
        "user: do",
        "assistant: calls a",
        "tool: fails a",
        "user: go on",
      ]);
      expect(refusal(session, summary("sum", [1, 3]))).toBeUndefined();
      expect(said(session.deriveMessages())).toEqual([summarised("sum"), "user: go on"]);
      await dispose();
    },
  );
});

describe("what a history is made of", () => {
  local("#225 D7 a replacement without cites cites what it replaces, runs of neighbours as ranges", async () => {
    const session = await sessionOf(callsTurn, turnEnd(1));
    const types = (): string[] => session.history().map(({ seq, type }) => `${seq} ${type}`);
    expect(types()).toEqual([
      "1 user/message",
      "3 assistant/message",
      "8 tool/result",
      "9 tool/result",
      "12 assistant/message",
    ]);
    const before = session.history();
    expect(session.history()).toBe(before);
    expect(Object.isFrozen(before)).toBe(true);
    append(session, turnStart(2));
    expect(session.history()).toBe(before);
    const { data } = context("s", "summary");
    const event = session.append("context/message", data as never, { surface: { replace: [1, 9] } });
    expect(event.cites).toEqual([1, 3, [8, 9]]);
    expect(types()).toEqual([`${event.seq} context/message`, "12 assistant/message"]);
    append(session, turnEnd(2));
  });

  local("#225 a range that is not there is refused, cites or not", async () => {
    const session = await sessionOf(callsTurn, turnEnd(1), turnStart(2));
    expect(
      refusal(
        session,
        line("context/message", context("s", "summary").data as never, { surface: { replace: [2, 9] } }),
      ),
    ).toBe("INVALID_SURFACE");
    append(session, turnEnd(2));
  });
});
