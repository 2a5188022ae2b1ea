/** T: which events may stand where in a log (D6). */
import { createHarness, TurnloopError, type Session } from "turnloop";
import { describe, expect } from "vitest";
import { local } from "../support/fixture.ts";
import { stepStart, turnEnd, turnStart, user, type Line } from "../support/made-log.ts";
import { typesOf } from "../support/wait.ts";

declare module "turnloop" {
  interface SessionEventMap {
    "note/added": { note: string };
  }
}

function aSession(): Promise<Session> {
  return createHarness().sessions.create({ id: "s" });
}

function append(session: Session, { type, data, surface }: Line): void {
  session.append(type, data, surface === undefined ? {} : { surface });
}

/** The code with which an append is refused. */
function refusal(session: Session, line: Line): string | undefined {
  try {
    append(session, line);
    return undefined;
  } catch (error) {
    return TurnloopError.is(error) ? error.code : `not a TurnloopError: ${String(error)}`;
  }
}

/** Every type of the core, with data that it takes. */
const place = { turn: 1, step: 1 } as const;
const message = { id: "m", content: [], source: { kind: "user" } } as const;
const inTurn: readonly Line[] = [
  { type: "turn/resumed", data: { turn: 1, attempt: 1 } },
  { type: "turn/end", data: { turn: 1, reason: { kind: "completed" } } },
  { type: "step/start", data: place },
  { type: "step/end", data: place },
  { type: "user/message", data: message, surface: "append" },
  { type: "prompt/blocked", data: { ...message, reason: "no" } },
  { type: "context/message", data: message, surface: "append" },
  { type: "steering/message", data: { ...message, turn: 1 }, surface: "append" },
  { type: "request/header", data: { header: { config: { model: "m" } }, reason: "initial" } },
  { type: "request/failed", data: { ...place, attempt: 1, error: { message: "no" }, next: "fail" } },
  { type: "assistant/chunk", data: { ...place, chunk: { type: "delta", index: 0, text: "a" } } },
  { type: "assistant/message", data: { ...place, model: "m", content: [] }, surface: "append" },
  { type: "tool/call", data: { ...place, callId: "c", name: "n", arguments: "" } },
  { type: "tool/start", data: { ...place, callId: "c", attempt: 1 } },
  { type: "tool/progress", data: { callId: "c", value: 1 } },
  { type: "tool/result", data: { ...place, callId: "c", content: [], isError: false }, surface: "append" },
  { type: "interaction/requested", data: { id: "i", kind: "k", payload: 1 } },
  { type: "interaction/claimed", data: { id: "i", client: "c" } },
  { type: "interaction/resolved", data: { id: "i", outcome: "cancelled" } },
];
const bookkeeping: readonly Line[] = [
  { type: "inbox/queued", data: { ...message, as: "inject" } },
  { type: "inbox/dropped", data: { ids: ["m"], reason: "withdrawn" } },
  { type: "agent/cancelled", data: { id: "c", reason: "cancelled", dropped: [] } },
  { type: "agent/configured", data: { patch: {} } },
  { type: "session/titled", data: { title: "t" } },
  { type: "model/aux", data: { purpose: "title", model: "m" } },
];

describe("places", () => {
  for (const line of inTurn) {
    local(`D6 #222 ${line.type} cannot stand between turns`, async () => {
      const session = await aSession();
      expect(refusal(session, line)).toBe("MISPLACED_EVENT");
      expect(session.seq).toBe(0);
    });
  }

  for (const line of bookkeeping) {
    local(`D6 #222 ${line.type} may stand between turns and inside one`, async () => {
      const session = await aSession();
      append(session, line);
      append(session, turnStart(1));
      append(session, line);
      append(session, turnEnd(1));
      expect(typesOf(session)).toEqual([line.type, "turn/start", line.type, "turn/end"]);
    });
  }

  local("D6 boundaries are in order: one turn at a time, one step at a time, each with the next number", async () => {
    const session = await aSession();
    expect(refusal(session, turnStart(2))).toBe("MISPLACED_EVENT");
    append(session, turnStart(1));
    expect(refusal(session, turnStart(2))).toBe("MISPLACED_EVENT");
    expect(refusal(session, stepStart(1, 2))).toBe("MISPLACED_EVENT");
    expect(refusal(session, { type: "step/end", data: place })).toBe("MISPLACED_EVENT");
    append(session, stepStart(1, 1));
    expect(refusal(session, stepStart(1, 2))).toBe("MISPLACED_EVENT");
    expect(refusal(session, turnEnd(1))).toBe("MISPLACED_EVENT");
    expect(refusal(session, { type: "step/end", data: { turn: 1, step: 2 } })).toBe("MISPLACED_EVENT");
    append(session, { type: "step/end", data: place });
    expect(refusal(session, turnEnd(2))).toBe("MISPLACED_EVENT");
    append(session, turnEnd(1));
    expect(typesOf(session)).toEqual(["turn/start", "step/start", "step/end", "turn/end"]);
  });

  local("D6 a plugin's type stands between turns once it is defined so, and no longer than that", async () => {
    const { sessions } = createHarness();
    const session = await sessions.create({ id: "s" });
    const note = { type: "note/added", data: { note: "n" } } as const;
    expect(refusal(session, note)).toBe("MISPLACED_EVENT");
    const off = sessions.define("note/added", { betweenTurns: true });
    append(session, note);
    off();
    expect(refusal(session, note)).toBe("MISPLACED_EVENT");
    sessions.define("note/added", { betweenTurns: false });
    expect(refusal(session, note)).toBe("MISPLACED_EVENT");
    append(session, turnStart(1));
    append(session, note);
    append(session, turnEnd(1));
    expect(typesOf(session)).toEqual(["note/added", "turn/start", "note/added", "turn/end"]);
  });

  local("D6 no definition lets a type of the core leave its turn", async () => {
    const { sessions } = createHarness();
    const session = await sessions.create({ id: "s" });
    expect(() => sessions.define("user/message", { betweenTurns: true })).toThrow(TurnloopError);
    expect(refusal(session, user("hello"))).toBe("MISPLACED_EVENT");
  });
});
