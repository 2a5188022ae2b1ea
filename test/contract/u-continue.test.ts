/** U: `interrupted: "continue"` (D24): where a turn goes on, and how often. */
import { memoryStorage, type HarnessOptions, type SessionEvent, type SessionStorage } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { describe, expect } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { failingStorage, faultyStage, hangs, holds } from "../support/failing-storage.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { calm, codeOf, codeThrownBy } from "../support/lifecycle.ts";
import { mortal, storedEvents } from "../support/mortal.ts";
import { dataOf, leftBehind, linesOf, scene } from "../support/scene.ts";
import { endOf, eventOf, typesOf } from "../support/wait.ts";

const going = { interrupted: "continue" } as const;

/** What a host leaves that dies in the turn of `go`, behind the first event that fits. */
async function died(
  answers: readonly ScriptedAnswer[],
  isLast: (event: SessionEvent) => boolean,
  options: HarnessOptions = {},
): Promise<{ storage: SessionStorage; seq: number }> {
  const { session, say } = await scene(answers, options);
  await say("go");
  const seq = session.events.findIndex(isLast) + 1;
  expect(seq).toBeGreaterThan(0);
  return { storage: await leftBehind(session, session.events.slice(0, seq)), seq };
}

/** The types from there on, without chunks. */
function since(session: { readonly events: readonly SessionEvent[] }, seq: number): string[] {
  return session.events.slice(seq).flatMap(({ type }) => (type === "assistant/chunk" ? [] : [type]));
}

const is =
  (type: string, n = 1) =>
  (event: SessionEvent): boolean =>
    event.type === type && (n -= 1) === 0;

describe("where a turn goes on", () => {
  local(
    "D24 died in mid stream: the step is closed, its text stays off the surface, and a new step begins",
    async () => {
      const { storage, seq } = await died(["one two three"], is("assistant/chunk", 3));
      const { agent, session } = await scene(["whole"], { ...going, storage });
      await agent.whenIdle();
      expect(since(session, seq)).toEqual([
        "turn/resumed",
        "step/end",
        "step/start",
        "request/header",
        "assistant/message",
        "step/end",
        "turn/end",
      ]);
      expect(linesOf(session.deriveMessages())).toEqual(["user: go", "assistant: whole"]);
      expect(endOf(session)).toEqual({ kind: "completed" });
    },
  );

  local(
    "D24 died in a tool batch: what was not started runs, what may run twice runs again, the rest is unknown",
    async () => {
      const ran: string[] = [];
      const tools = [
        tool("once", () => ran.push("once")),
        tool("again", () => ran.push("again"), { idempotent: true, parallel: true }),
        tool("look", () => ran.push("look"), { readOnly: true }),
      ];
      const { disk, killAfter, storage, dead } = mortal();
      // The last mark: two bodies are under way side by side, and one has not begun.
      killAfter("tool/start", ({ data }) => data.callId === "call_1_1_1_1");
      const first = await scene([calls("again", "look", "once"), "done"], { storage, tools });
      first.agent.send("go");
      await dead;
      await first.agent.whenIdle();
      const { length } = await storedEvents(disk);

      ran.length = 0;
      const { agent, session } = await scene(["done"], { ...going, storage: disk, tools });
      await agent.whenIdle();
      expect(ran).toEqual(["again", "look", "once"]);
      expect(dataOf(session, "tool/result").map(({ isError }) => isError)).toEqual([false, false, false]);
      expect(dataOf(session, "tool/start").map(({ callId, attempt }) => `${callId} ${attempt}`)).toEqual([
        "call_1_1_1_0 1",
        "call_1_1_1_1 1",
        "call_1_1_1_0 2",
        "call_1_1_1_1 2",
        "call_1_1_1_2 1",
      ]);
      expect(since(session, length)[0]).toBe("turn/resumed");
      expect(endOf(session)).toEqual({ kind: "completed" });
    },
  );

  local("D24 D22 a body that may not run twice is answered TOOL_OUTCOME_UNKNOWN, and the step goes on", async () => {
    let runs = 0;
    const tools = [tool("once", () => (runs += 1)), tool("next")];
    const { storage, seq } = await died([calls("once", "next"), "done"], is("tool/start"), { tools });
    expect(runs).toBe(1);
    const { agent, session } = await scene(["I see"], { ...going, storage, tools });
    await agent.whenIdle();
    expect(runs).toBe(1);
    expect(dataOf(session, "tool/result").map(({ error }) => error?.code)).toEqual(["TOOL_OUTCOME_UNKNOWN", undefined]);
    expect(since(session, seq).slice(0, 4)).toEqual(["turn/resumed", "tool/result", "tool/call", "tool/start"]);
    expect(linesOf(session.deriveMessages()).at(-1)).toBe("assistant: I see");
  });

  local("D24 a tool that is not there any more has an unknown outcome where it was started", async () => {
    const tools = [tool("look", () => "seen", { readOnly: true })];
    const { storage } = await died([calls("look"), "done"], is("tool/start"), { tools });
    const { agent, session } = await scene(["I see"], { ...going, storage });
    await agent.whenIdle();
    expect(dataOf(session, "tool/result").map(({ error }) => error?.code)).toEqual(["TOOL_OUTCOME_UNKNOWN"]);
  });

  local("D24 died behind all results: the step is closed, and the next one begins", async () => {
    const { storage, seq } = await died([calls("look"), "done"], is("tool/result"), { tools: [tool("look")] });
    const { agent, session } = await scene(["done"], { ...going, storage });
    await agent.whenIdle();
    expect(since(session, seq).slice(0, 3)).toEqual(["turn/resumed", "step/end", "step/start"]);
  });

  local("D24 died between steps: the next step begins", async () => {
    const { storage, seq } = await died([calls("look"), "done"], is("step/end"), { tools: [tool("look")] });
    const { agent, session, model } = await scene(["done"], { ...going, storage });
    await agent.whenIdle();
    expect(since(session, seq).slice(0, 2)).toEqual(["turn/resumed", "step/start"]);
    expect(model.requests).toHaveLength(1);
  });

  local(
    "D24 died when all was said: the policies are asked once more, and the turn ends without the model",
    async () => {
      const { storage, seq } = await died(["done"], is("step/end"));
      const asked: string[] = [];
      const { agent, session, model } = await scene([], {
        ...going,
        storage,
        plugins: [
          ({ hooks }) =>
            hooks.on("agent/turn-continuation", ({ decision }, next) => {
              asked.push(decision.action);
              return next();
            }),
        ],
      });
      await agent.whenIdle();
      expect(asked).toEqual(["stop"]);
      expect(since(session, seq)).toEqual(["turn/resumed", "turn/end"]);
      expect(model.requests).toEqual([]);
      expect(endOf(session)).toEqual({ kind: "completed" });
    },
  );

  local("D24 died before its first step: what it took and has not asked about is put before the hooks", async () => {
    const { storage, seq } = await died(["done"], is("turn/start"));
    const submitted: string[] = [];
    const { agent, session } = await scene(["done"], {
      ...going,
      storage,
      plugins: [
        ({ hooks }) =>
          hooks.on("agent/prompt-submit", ({ id }, next) => {
            submitted.push(id);
            return next();
          }),
      ],
    });
    await agent.whenIdle();
    expect(submitted).toEqual(dataOf(session, "inbox/queued").map(({ id }) => id));
    expect(since(session, seq).slice(0, 3)).toEqual(["turn/resumed", "user/message", "step/start"]);
  });

  local("D24 #103 and when all of it is blocked now, the turn is rejected", async () => {
    const { storage } = await died(["done"], is("turn/start"));
    const { agent, session } = await scene([], {
      ...going,
      storage,
      plugins: [({ hooks }) => hooks.on("agent/prompt-submit", async () => ({ kind: "block", reason: "no" }))],
    });
    await agent.whenIdle();
    expect(endOf(session)).toEqual({ kind: "rejected", reason: "no" });
  });

  local("D24 #205 an answer that was cut short before the death still decides how the turn ends", async () => {
    const { storage } = await died([{ text: "and so", finish: "max-tokens" }], is("step/end"));
    const { agent, session } = await scene([], { ...going, storage });
    await agent.whenIdle();
    expect(endOf(session)).toEqual({ kind: "max-tokens" });
  });

  local("D24 #205 one that died with its host does not", async () => {
    const isFinish = (event: SessionEvent): boolean =>
      event.type === "assistant/chunk" && event.data.chunk.type === "finish";
    const { storage } = await died([{ text: "and so", finish: "max-tokens" }], isFinish);
    const { agent, session } = await scene(["whole"], { ...going, storage });
    await agent.whenIdle();
    expect(endOf(session)).toEqual({ kind: "completed" });
  });

  local("D24 D20 a request that had failed for good is not made again: the turn ends with its error", async () => {
    const error = { message: "no such model", code: "MODEL_ERROR" };
    for (const last of ["request/failed", "step/end"]) {
      const { storage } = await died([{ error }], is(last));
      const { agent, session, model } = await scene([], { ...going, storage });
      await agent.whenIdle();
      expect(endOf(session)).toMatchObject({ kind: "error", step: 1, code: "MODEL_ERROR" });
      expect(model.requests).toEqual([]);
    }
  });

  local("D24 D13 steering that was accepted before the death steers the turn that goes on", async () => {
    const { agent: first, session: log } = await scene([calls("look"), "done"], {
      tools: [tool("look", () => void first.steer("left", { id: "m2" }))],
    });
    first.send("go");
    await first.whenIdle();
    const seq = log.events.findIndex(is("inbox/queued", 2)) + 1;
    const storage = await leftBehind(log, log.events.slice(0, seq));
    const queued: string[] = [];
    const { agent, session } = await scene(["done"], {
      ...going,
      storage,
      plugins: [
        ({ hooks }) =>
          hooks.on("agent/session-start", ({ agent: { queue } }) => void queued.push(...queue.map(({ as }) => as))),
      ],
    });
    await agent.whenIdle();
    expect(queued).toEqual(["steer"]);
    expect(dataOf(session, "steering/message").map(({ id, turn }) => `${id} ${turn}`)).toEqual(["m2 1"]);
  });
});

describe("turn/resumed", () => {
  local("D24 is stored before the model is asked", async () => {
    const { storage: inner } = await died(["done"], is("user/message"));
    const storage = failingStorage(inner);
    storage.next(holds);
    const { agent, session, model } = await scene(["done"], { ...going, storage });
    await storage.tries(1);
    await calm();
    expect(typesOf(session).at(-1)).toBe("turn/resumed");
    expect(model.requests).toEqual([]);
    storage.heal();
    await agent.whenIdle();
    expect(model.requests).toHaveLength(1);
  });

  local("D24 D22 a storage that does not take it ends the turn in STORAGE_UNAVAILABLE", async () => {
    const { storage: inner } = await died(["done"], is("user/message"));
    const model = scriptedModel([]);
    const { clock, harness, storage } = faultyStage({ ...going, inner, model });
    storage.always(hangs);
    const { agent } = await harness.agents.open({ id: "session" });
    await clock.sleeping(5000);
    await clock.advance(5000);
    await eventOf(agent.session, "turn/end");
    expect(endOf(agent.session)).toMatchObject({ kind: "error", step: 0, code: "STORAGE_UNAVAILABLE" });
    expect(model.requests).toEqual([]);
  });

  local("D24 counts the attempts from that of the first host; a turn has three, however far it comes", async () => {
    const { disk } = mortal();
    const first = mortal(disk);
    first.killAfter("step/end");
    const tools = [tool("look")];
    const life = await scene([calls("look"), calls("look"), "done"], { storage: first.storage, tools });
    await life.say("go");
    for (let attempt = 2; attempt <= 3; attempt += 1) {
      const { storage, killAfter } = mortal(disk);
      killAfter("step/end");
      const { agent } = await scene([calls("look"), calls("look"), "done"], { ...going, storage, tools });
      await agent.whenIdle();
      expect(dataOf({ events: await storedEvents(disk) } as never, "turn/resumed").at(-1)).toEqual({
        turn: 1,
        attempt,
      });
    }
    const { agent, session, model } = await scene(["never asked"], { ...going, storage: disk, tools });
    expect(endOf(session)).toEqual({ kind: "interrupted" });
    await agent.whenIdle();
    expect(dataOf(session, "turn/resumed").map(({ attempt }) => attempt)).toEqual([2, 3]);
    expect(dataOf(session, "step/start")).toHaveLength(3);
    expect(model.requests).toEqual([]);
  });

  local("D24 D13 a message that kills its turn before it is in is dropped at the third opening", async () => {
    const { disk } = mortal();
    for (let lives = 0; lives < 3; lives += 1) {
      const { storage, killAfter } = mortal(disk);
      killAfter(lives === 0 ? "turn/start" : "turn/resumed");
      const { agent } = await scene(["never stored"], { ...going, storage });
      if (lives === 0) agent.send("kill", { id: "m1" });
      await agent.whenIdle();
    }
    const { agent, session, diagnostics } = await scene([], { ...going, storage: disk });
    await agent.whenIdle();
    expect(diagnostics).toContain("MESSAGE_DROPPED");
    expect(dataOf(session, "inbox/dropped")).toEqual([{ ids: ["m1"], reason: "cut short" }]);
    expect(dataOf(session, "turn/start")).toHaveLength(1);
  });
});

describe("what is not continued", () => {
  local("D24 without the option a turn is closed; a resume may say otherwise than its harness", async () => {
    const { storage } = await died(["done"], is("user/message"));
    const harness = harnessWith({ storage, model: scriptedModel(["done"]) });
    const { agent } = await harness.agents.resume({ id: "session", interrupted: "continue" });
    await agent.whenIdle();
    expect(endOf(agent.session)).toEqual({ kind: "completed" });

    const { storage: other } = await died(["done"], is("user/message"));
    const { agent: closed } = await harnessWith({ storage: other, ...going }).agents.open({
      id: "session",
      interrupted: "close",
    });
    expect(endOf(closed.session)).toEqual({ kind: "interrupted" });
  });

  local("D24 D14 a turn that was cancelled before the death ends as aborted", async () => {
    const { agent: first, session: log } = await scene([{ text: "half", hang: "polite" }]);
    first.send("go");
    await eventOf(log, "assistant/chunk");
    first.cancel("enough");
    await first.whenIdle();
    const seq = log.events.findIndex(is("agent/cancelled")) + 1;
    const storage = await leftBehind(log, log.events.slice(0, seq));
    const { session } = await scene([], { ...going, storage });
    expect(endOf(session)).toEqual({ kind: "aborted", reason: "enough" });
    expect(typesOf(session)).not.toContain("turn/resumed");
  });

  local("D24 an injection that was cut short has no turn to go on with", async () => {
    const { agent: first, session: log } = await scene([]);
    first.inject("by the way");
    const storage = await leftBehind(log, log.events.slice(0, 2));
    const { agent, session, model } = await scene([], { ...going, storage });
    await agent.whenIdle();
    expect(endOf(session)).toEqual({ kind: "interrupted" });
    expect(model.requests).toEqual([]);
  });

  local("D24 D13 a turn that a seed has left open was never this session's own", async () => {
    const { storage } = await died(["done"], is("user/message"));
    const seed = await storedEvents(storage);
    const harness = harnessWith({ ...going, storage: memoryStorage(), model: scriptedModel([]) });
    const { agent } = await harness.agents.create({ id: "s", seed });
    await agent.whenIdle();
    expect(endOf(agent.session)).toEqual({ kind: "interrupted" });
  });

  local("D24 a cancel stops a turn that goes on, from the first moment that anybody sees it", async () => {
    const { storage } = await died(["done"], is("user/message"));
    const { agent, session, model } = await scene([], {
      ...going,
      storage,
      plugins: [({ hooks }) => hooks.on("agent/session-start", ({ agent: opened }) => opened.cancel("not again"))],
    });
    await agent.whenIdle();
    expect(endOf(session)).toEqual({ kind: "aborted", reason: "not again" });
    expect(model.requests).toEqual([]);
  });

  local("D24 a disposal ends it like any other turn", async () => {
    const { storage } = await died(["done"], is("user/message"));
    const { agent, session, dispose } = await scene([{ text: "half", hang: "deaf" }], { ...going, storage });
    await eventOf(session, "assistant/chunk");
    await dispose();
    expect(agent.status).toBe("disposed");
    expect(endOf(session)).toEqual({ kind: "disposed" });
  });

  local("D24 neither word of the two is INVALID_OPTIONS", async () => {
    const interrupted = "maybe" as "close";
    expect(codeThrownBy(() => harnessWith({ interrupted }))).toBe("INVALID_OPTIONS");
    expect(await codeOf(harnessWith().agents.resume({ id: "s", interrupted }))).toBe("INVALID_OPTIONS");
  });
});
