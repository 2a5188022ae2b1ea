/** T: appending to a session log: what enters, where it may stand, and who is told in which order. */
import { createHarness, TurnloopError, type Session, type SessionEvent, type SessionEventType } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { context, turnEnd, turnStart, user, type Line } from "../support/made-log.ts";
import { deferred, typesOf } from "../support/wait.ts";

const titled = (title: string): Line => ({ type: "session/titled", data: { title } });

/** A session without an agent. */
function aSession(options: Parameters<typeof harnessWith>[0] = {}): Promise<Session> {
  return harnessWith(options).sessions.create({ id: "s" });
}

function append(session: Session, { type, data, surface, cites }: Line): SessionEvent {
  return session.append(type, data, { ...(surface && { surface }), ...(cites && { cites }) });
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

describe("append", () => {
  local(
    "#219 an event is numbered by its place, gets whole milliseconds, and is returned as it is in the log",
    async () => {
      let now = 1234.9;
      const session = await aSession({ clock: { now: () => now, sleep: () => new Promise(() => {}) } });
      const first = append(session, turnStart(1));
      now = 1235.2;
      const second = append(session, turnEnd(1));
      expect([first, second]).toEqual([
        { seq: 0, time: 1234, ...turnStart(1) },
        { seq: 1, time: 1235, ...turnEnd(1) },
      ]);
      expect(first).toBe(session.at(0));
      expect(session.events[1]).toBe(second);
      expect(session.seq).toBe(2);
    },
  );

  local("#219 an event is deeply frozen, and what the caller holds is neither frozen nor part of it", async () => {
    const session = await aSession();
    const data = { patch: { stop: ["a"] } };
    const event = session.append("agent/configured", data);
    data.patch.stop.push("b");
    expect(event.data).toEqual({ patch: { stop: ["a"] } });
    expect([event, event.data, event.data.patch, event.data.patch.stop].every(Object.isFrozen)).toBe(true);
    expect(Object.isFrozen(data.patch.stop)).toBe(false);
  });

  local("#219 #221 surface and cites are copied and frozen too", async () => {
    const session = await aSession();
    append(session, turnStart(1));
    append(session, user("hello"));
    const range: [number, number] = [1, 1];
    const event = session.append("context/message", context("sum").data as never, {
      surface: { replace: range },
      cites: [range],
    });
    range[0] = 0;
    expect(event.surface).toEqual({ replace: [1, 1] });
    expect(event.cites).toEqual([[1, 1]]);
    expect([event.surface, event.cites, event.cites![0]].every(Object.isFrozen)).toBe(true);
    append(session, turnEnd(1));
  });

  local("#219 what a type of the core must hold is looked at, and the log is as it was", async () => {
    const session = await aSession();
    append(session, turnStart(1));
    const bad: Line[] = [
      { type: "step/start", data: { turn: 1 } as never },
      { type: "step/start", data: { turn: 1.5, step: 1 } },
      { type: "tool/progress", data: { value: null } as never },
      { type: "session/titled", data: { title: 3 } as never },
      { type: "session/titled", data: ["title"] as never },
      { type: "session/titled", data: null as never },
      {
        type: "user/message",
        data: { id: "m", content: "text", source: { kind: "user" } } as never,
        surface: "append",
      },
      {
        type: "tool/result",
        data: { turn: 1, step: 1, callId: "c", content: [], isError: 0 } as never,
        surface: "append",
      },
    ];
    const before = session.events;
    expect(bad.map((line) => refusal(session, line))).toEqual(bad.map(() => "INVALID_CONTENT"));
    expect(session.events).toBe(before);
    append(session, turnEnd(1));
  });

  local("#224 events is one frozen snapshot until the next append, and an earlier one never grows", async () => {
    const session = await aSession();
    append(session, titled("one"));
    const before = session.events;
    expect(session.events).toBe(before);
    expect(Object.isFrozen(before)).toBe(true);
    append(session, titled("two"));
    expect(before).toHaveLength(1);
    expect(session.events).toHaveLength(2);
    expect(session.events).not.toBe(before);
  });
});

describe("refusals", () => {
  local("#223 D11 an append that is refused leaves nothing behind, and nobody is told", async () => {
    const harness = harnessWith();
    const session = await harness.sessions.create({ id: "s" });
    const heard: string[] = [];
    session.subscribe(({ type }) => void heard.push(type));
    harness.hooks.on("session/event", ({ event }) => void heard.push(event.type));
    const before = session.events;
    expect(refusal(session, user("hello"))).toBe("MISPLACED_EVENT");
    expect(refusal(session, { ...titled("x"), surface: "append" } as never)).toBe("INVALID_SURFACE");
    expect(refusal(session, { type: "session/titled", data: { title: undefined } as never })).toBe("INVALID_CONTENT");
    expect(session.events).toBe(before);
    expect(heard).toEqual([]);
    append(session, titled("fine"));
    expect(heard).toEqual(["session/titled", "session/titled"]);
    expect(session.seq).toBe(1);
  });

  local("#223 D11 no listener can veto: one that throws is reported, and the event stands", async () => {
    const harness = harnessWith();
    const session = await harness.sessions.create({ id: "s" });
    const veto = (): never => {
      throw new Error("not with me");
    };
    harness.hooks.on("session/event", veto);
    session.subscribe(veto);
    session.subscribe(async () => veto());
    const heard: number[] = [];
    session.subscribe(({ seq }) => void heard.push(seq));
    append(session, titled("stands"));
    await Promise.resolve();
    expect(session.events.map((event) => event.data)).toEqual([{ title: "stands" }]);
    expect(heard).toEqual([0]);
    expect(harness.diagnostics.map(({ code }) => code)).toEqual([
      "LISTENER_FAILED",
      "LISTENER_FAILED",
      "LISTENER_FAILED",
    ]);
  });

  local("#223 D11 a session whose agent is gone is read-only, and says why", async () => {
    const { agents, sessions } = createHarness();
    const { agent, dispose } = await agents.open({ id: "s" });
    const session = sessions.get("s")!;
    agent.inject("known");
    await dispose();
    const before = session.events;
    expect(refusal(session, titled("late"))).toBe("READ_ONLY");
    expect(session.events).toBe(before);
  });
});

describe("telling", () => {
  local(
    "D6 #222 an append from inside a listener commits at once, and every listener hears the log in order",
    async () => {
      const harness = harnessWith();
      const session = await harness.sessions.create({ id: "s" });
      const heard: Record<string, number[]> = { before: [], writer: [], after: [], hook: [] };
      session.subscribe(({ seq }) => void heard["before"]!.push(seq));
      session.subscribe(({ seq }) => {
        heard["writer"]!.push(seq);
        if (seq > 1) return;
        const event = append(session, titled(`because of ${seq}`));
        expect(event).toBe(session.at(event.seq));
        expect(session.seq).toBe(event.seq + 1);
      });
      session.subscribe(({ seq }) => void heard["after"]!.push(seq));
      harness.hooks.on("session/event", ({ event }) => void heard["hook"]!.push(event.seq));
      append(session, titled("first"));
      expect(heard).toEqual({ before: [0, 1, 2], writer: [0, 1, 2], after: [0, 1, 2], hook: [0, 1, 2] });
      expect(harness.diagnostics).toEqual([]);
    },
  );

  local("D6 #222 a listener that is refused an append is told so, and the others are not disturbed", async () => {
    const harness = harnessWith();
    const session = await harness.sessions.create({ id: "s" });
    const heard: number[] = [];
    session.subscribe(() => void append(session, user("misplaced")));
    session.subscribe(({ seq }) => void heard.push(seq));
    append(session, titled("one"));
    append(session, titled("two"));
    expect(heard).toEqual([0, 1]);
    expect(harness.diagnostics.map(({ code }) => code)).toEqual(["LISTENER_FAILED", "LISTENER_FAILED"]);
  });

  local("D6 verbs may be called from listeners of the log: what they append comes after what was heard", async () => {
    const { agents } = createHarness({ model: scriptedModel(["one", "two"]) });
    const { agent } = await agents.open({ id: "s" });
    const heard: SessionEventType[] = [];
    agent.on("turn/start", ({ data }) => {
      if (data.turn === 1) agent.send("once more");
    });
    agent.session.subscribe(({ type }) => void (type === "assistant/chunk" || heard.push(type)));
    agent.send("hello");
    await agent.whenIdle();
    expect(heard.slice(0, 4)).toEqual(["inbox/queued", "turn/start", "inbox/queued", "user/message"]);
    expect(heard).toEqual(typesOf(agent.session));
  });

  local(
    "#222 who subscribes from inside a listener hears what comes next, and with `from` all of it, once",
    async () => {
      const session = await aSession();
      const late: number[] = [];
      const whole: number[] = [];
      const off = session.subscribe(() => {
        off();
        append(session, titled("from inside"));
        session.subscribe(({ seq }) => void late.push(seq));
        session.subscribe(({ seq }) => void whole.push(seq), { from: 0 });
      });
      append(session, titled("first"));
      append(session, titled("third"));
      expect(whole).toEqual([0, 1, 2]);
      expect(late).toEqual([2]);
    },
  );

  local("#233 after its undo, or once its signal has aborted, a listener hears no further event", async () => {
    const session = await aSession();
    const heard: string[] = [];
    const controller = new AbortController();
    const off = session.subscribe(({ seq }) => void heard.push(`undone ${seq}`));
    session.subscribe(({ seq }) => void heard.push(`aborted ${seq}`), { signal: controller.signal });
    append(session, titled("one"));
    off();
    controller.abort();
    append(session, titled("two"));
    expect(heard).toEqual(["undone 0", "aborted 0"]);
  });

  local("#233 a signal that aborts during the replay ends it, for good", async () => {
    const session = await aSession();
    append(session, titled("one"));
    append(session, titled("two"));
    const heard: number[] = [];
    const controller = new AbortController();
    session.subscribe(
      ({ seq }) => {
        heard.push(seq);
        controller.abort();
      },
      { from: 0, signal: controller.signal },
    );
    append(session, titled("three"));
    expect(heard).toEqual([0]);
  });
});

describe("detaching", () => {
  local(
    "#233 a session that is disposed from inside a listener is gone only after everybody has heard the event",
    async () => {
      const { agents, hooks } = createHarness();
      const { agent, dispose } = await agents.open({ id: "s" });
      const told: string[] = [];
      const ended = deferred();
      hooks.on("session/disposed", () => void told.push("disposed"));
      agent.session.subscribe(() => void dispose().then(ended.resolve));
      agent.session.subscribe(({ type }) => void told.push(type));
      hooks.on("session/event", ({ event }) => void told.push(`hook ${event.type}`));
      agent.configure({ temperature: 1 });
      await ended.promise;
      expect(told).toEqual(["agent/configured", "hook agent/configured", "disposed"]);
    },
  );

  local("#233 a session is disposed exactly once, and its log takes nothing after that", async () => {
    const { agents, hooks, sessions } = createHarness({ model: scriptedModel(["hi"]) });
    const { agent, dispose } = await agents.open({ id: "s" });
    const session = sessions.get("s")!;
    let disposed = 0;
    const after: string[] = [];
    hooks.on("session/disposed", () => {
      disposed += 1;
      session.subscribe(({ type }) => void after.push(type));
    });
    agent.send("hello");
    await Promise.all([dispose(), dispose()]);
    await dispose();
    expect(disposed).toBe(1);
    expect(refusal(session, titled("late"))).toBe("READ_ONLY");
    expect(after).toEqual([]);
    expect(sessions.get("s")).toBeUndefined();
  });

  local(
    "#233 a session that is detached while it is announced is disposed once, after all have heard of it",
    async () => {
      const harness = createHarness();
      const told: string[] = [];
      harness.hooks.on("session/created", () => void harness.dispose());
      harness.hooks.on("session/created", () => void told.push("created"));
      harness.hooks.on("session/disposed", () => void told.push("disposed"));
      await expect(harness.agents.create({ id: "s" })).rejects.toThrow(TurnloopError);
      await harness.dispose();
      expect(told).toEqual(["created", "disposed"]);
    },
  );
});
