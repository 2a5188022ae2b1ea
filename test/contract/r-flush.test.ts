/** R: what is stored when, and what becomes of what a turn has left over. */
import { memoryStorage, type SessionStorage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, deafBody, staged, talk, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { anywhere, local } from "../support/fixture.ts";
import { storedEvents } from "../support/mortal.ts";
import { dataOf } from "../support/scene.ts";
import { deferred, endOf, eventOf, snapshotWhere, textOf, typesOf } from "../support/wait.ts";

type Stage = Awaited<ReturnType<typeof staged>>;

/** What was last in the log whenever the flush was heard. */
function flushesOf({ hooks, session }: Pick<Stage, "hooks" | "session">): string[] {
  const flushes: string[] = [];
  hooks.on("session/flush", () => {
    const last = session.events.at(-1)!;
    flushes.push(last.type === "turn/end" ? last.data.reason.kind : last.type);
  });
  return flushes;
}

const ends: [string, (stage: Stage) => unknown][] = [
  ["completed", ({ agent }) => agent.send("go")],
  [
    "rejected",
    ({ agent, hooks }) => (hooks.on("agent/prompt-submit", () => ({ kind: "block", reason: "no" })), agent.send("go")),
  ],
  ["aborted", ({ agent }) => (agent.on("assistant/chunk", () => agent.cancel()), agent.send("go"))],
  [
    "error",
    ({ agent, hooks }) => {
      hooks.on("agent/request", () => {
        throw new Error("broken");
      });
      agent.send("go");
    },
  ],
  ["disposed", ({ agent, handle }) => (agent.on("assistant/chunk", () => void handle.dispose()), agent.send("go"))],
];
for (const [kind, go] of ends) {
  local(`#210 a turn that ends as ${kind} is flushed, once and before the agent is idle`, async () => {
    const storage = memoryStorage();
    const stage = await staged({ model: scriptedModel(["one"]), storage });
    const flushes = flushesOf(stage);
    go(stage);
    await stage.agent.whenIdle();
    expect(flushes).toEqual([kind]);
    expect((await storedEvents(storage)).at(-1)).toMatchObject({ type: "turn/end", data: { reason: { kind } } });
  });
}

local("#210 neither the next turn nor idle comes before the flush has ended", async () => {
  const gate = deferred();
  const { agent, hooks, session } = await staged({ model: scriptedModel(["one", "two"]) });
  const status: string[] = [];
  hooks.on("agent/status", (told) => void status.push(told.status));
  hooks.on("session/flush", () => (dataOf(session, "turn/end").length === 1 ? gate.promise : undefined));
  agent.send("go");
  await eventOf(session, "turn/end");
  agent.send("again");
  await agent.flush();
  expect(dataOf(session, "turn/start")).toHaveLength(1);
  expect(status).toEqual(["running"]);
  gate.resolve();
  await agent.whenIdle();
  expect(dataOf(session, "turn/start")).toHaveLength(2);
  expect(status).toEqual(["running", "idle"]);
});

local("#210 an idle inject is a turn that is flushed too", async () => {
  const stage = await staged({ model: scriptedModel([]) });
  const flushes = flushesOf(stage);
  stage.agent.inject("by the way");
  await stage.agent.flush();
  expect(flushes).toEqual(["completed"]);
});

local(
  "#211 a flush awaits all of its listeners, the agent's own too, and tells the failure once all have ended",
  async () => {
    const { agent, hooks, harness } = await staged({ model: scriptedModel([]) });
    const ended: string[] = [];
    const gate = deferred();
    hooks.on("session/flush", async () => {
      await gate.promise;
      ended.push("slow");
    });
    hooks.on("session/flush", () => {
      gate.resolve();
      throw new Error("the disk is full");
    });
    agent.scope!.hooks.on("session/flush", async () => {
      await gate.promise;
      ended.push("the agent's");
    });
    await expect(harness.sessions.flush(agent.scope!.session)).rejects.toThrow("the disk is full");
    expect(ended).toEqual(["slow", "the agent's"]);
  },
);

local("#211 a flush resolves when all of it is stored", async () => {
  const storage = memoryStorage();
  const { agent, harness, session } = await staged({ model: scriptedModel([]), storage });
  agent.inject("by the way");
  await harness.sessions.flush(agent.scope!.session);
  expect(await storedEvents(storage)).toEqual(session.events);
});

local("#211 a flush of a session that is gone rejects", async () => {
  const { agent, handle, harness } = await staged({ model: scriptedModel([]) });
  const { session } = agent.scope!;
  await handle.dispose();
  await expect(harness.sessions.flush(session)).rejects.toMatchObject({ code: "SESSION_CLOSED" });
});

for (const [what, fail] of [
  [
    "throws",
    () => {
      throw new Error("the disk is full");
    },
  ],
  ["rejects", () => Promise.reject(new Error("the disk is full"))],
] as const) {
  local(
    `#212 a flush that ${what} is told as agent/error and diagnostic, not in the log, and the driver goes on`,
    async () => {
      const { agent, hooks, session, diagnostics } = await staged({ model: scriptedModel(["one", "two"]) });
      const errors: unknown[] = [];
      hooks.on("agent/error", ({ turn, step, error }) => void errors.push([turn, step, error.message]));
      const off = hooks.on("session/flush", fail);
      await talk(agent);
      expect(errors).toEqual([[1, 0, "the disk is full"]]);
      expect(diagnostics.map(({ code }) => code)).toEqual(["FLUSH_FAILED"]);
      expect(typesOf(session).at(-1)).toBe("turn/end");
      expect(endOf(session)).toEqual({ kind: "completed" });
      off();
      await talk(agent, "again");
      expect(errors).toHaveLength(1);
      expect(dataOf(session, "turn/end")).toHaveLength(2);
    },
  );
}

/** A storage that fails, or does not answer, while it is told to. */
function moody(disk = memoryStorage()) {
  let mood: "well" | "failing" | "silent" = "well";
  const silence: (() => void)[] = [];
  const storage: SessionStorage = {
    ...disk,
    async append(batch) {
      if (mood === "failing") throw new Error("the disk is full");
      if (mood === "silent") await new Promise<void>((resolve) => silence.push(resolve));
      await disk.append(batch);
    },
  };
  return {
    disk,
    storage,
    be(next: typeof mood) {
      mood = next;
      for (const speak of silence.splice(0)) speak();
    },
  };
}

for (const mood of ["failing", "silent"] as const) {
  local(`#212 D25 a ${mood} storage holds a turn's end up for 5 s and no longer; nothing is lost`, async () => {
    const clock = testClock();
    const { storage, disk, be } = moody();
    const { agent, hooks, session } = await staged({ model: scriptedModel(["one", "two"]), storage, clock });
    const errors: unknown[] = [];
    hooks.on("agent/error", ({ step, error }) => void errors.push([step, (error as { code?: string }).code]));
    be(mood);
    const began = clock.now();
    agent.send("go");
    await clock.sleeping(5000);
    await clock.advance(5000);
    await agent.whenIdle();
    expect(clock.now() - began).toBe(5000);
    expect(errors).toEqual([[0, "SESSION_DEGRADED"]]);
    expect(agent.getSnapshot().durable).toBe("degraded");
    expect(endOf(session)).toEqual({ kind: "completed" });

    await talk(agent, "again");
    expect(dataOf(session, "turn/end")).toHaveLength(2);
    be("well");
    await clock.advance(5000);
    await snapshotWhere(agent, ({ durable }) => durable === "stored");
    expect(await storedEvents(disk)).toEqual(session.events);
  });

  local(`#207 D17 a ${mood} storage holds a disposal up for 5 s and no longer`, async () => {
    const clock = testClock();
    const { storage, be } = moody();
    const { agent, handle } = await staged({ model: scriptedModel([{ text: "hm", hang: "deaf" }]), storage, clock });
    be(mood);
    agent.send("go");
    await eventOf(agent.session, "assistant/chunk");
    const disposed = handle.dispose();
    await clock.sleeping(5000);
    await clock.advance(5000);
    await disposed;
    expect(agent.status).toBe("disposed");
    be("well");
  });
}

for (const [what, end] of [
  ["a turn's end", ({ agent }) => agent.whenIdle()],
  ["a disposal", ({ handle }) => handle.dispose()],
] as [string, (stage: Stage) => Promise<void>][]) {
  local(`#210 #212 D17 a deaf listener of the flush holds ${what} up for 5 s and no longer`, async () => {
    const clock = testClock();
    const stage = await staged({ model: scriptedModel(["one"]), clock });
    const { agent, hooks, session } = stage;
    const errors: number[] = [];
    hooks.on("agent/error", ({ step }) => void errors.push(step));
    const gate = deferred();
    hooks.on("session/flush", () => gate.promise);
    agent.send("go");
    await eventOf(session, "turn/end");
    await snapshotWhere(agent, ({ durable }) => durable === "stored");
    const ended = end(stage);
    try {
      expect(await Promise.race([clock.sleeping(5000).then(() => "bounded"), eventLoopTurns(20)])).toBe("bounded");
      await clock.advance(5000);
      await ended;
      expect(errors).toEqual([0]);
    } finally {
      gate.resolve();
    }
  });
}

/** Long enough for whatever would happen without any waiting. */
async function eventLoopTurns(n: number): Promise<string> {
  for (let i = 0; i < n; i += 1) {
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
  return "never";
}

local("#213 leftover steering becomes an ordinary message in its place, and is queued once", async () => {
  const { agent, hooks, session } = await staged({ model: scriptedModel(["one", "two"]) });
  const queued: unknown[] = [];
  hooks.on("agent/queued", ({ message, steering }) => void queued.push([textOf(message.content), steering]));
  agent.on("turn/end", ({ data }) => {
    if (data.turn > 1) return;
    agent.send("b");
    agent.steer("c");
    agent.send("d");
  });
  await talk(agent, "a");
  expect(dataOf(session, "user/message").map(({ content }) => textOf(content))).toEqual(["a", "b", "c", "d"]);
  expect(dataOf(session, "turn/start").map(({ messages }) => messages?.length)).toEqual([1, 3]);
  expect(dataOf(session, "inbox/queued").map((one) => one.as)).toEqual(["send", "send", "steer", "send"]);
  expect(queued).toEqual([
    ["a", false],
    ["b", false],
    ["c", true],
    ["d", false],
  ]);
  expect(dataOf(session, "steering/message")).toEqual([]);
});

local("#213 the queue shows leftover steering as a message from the next turn's start on", async () => {
  const { agent, session } = await staged({ model: scriptedModel(["one", "two"]) });
  agent.on("turn/end", ({ data }) => void (data.turn === 1 && agent.steer("left over")));
  await talk(agent);
  const start = session.events.filter(({ type }) => type === "turn/start")[1]!;
  expect(start.data).toMatchObject({
    trigger: { kind: "message" },
    messages: [dataOf(session, "inbox/queued")[1]!.id],
  });
});

anywhere("#213 #77 steering that a failed step has not read becomes an ordinary message", async (open) => {
  const agent = await open({ model: scriptedModel([{ text: "hm", error: { message: "down" } }, "two"]) });
  let steered = false;
  agent.on("assistant/chunk", () => {
    if (!steered) agent.steer("wait");
    steered = true;
  });
  const session = await talk(agent);
  expect(dataOf(session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["error", "completed"]);
  expect(dataOf(session, "user/message").map(({ content }) => textOf(content))).toEqual(["go", "wait"]);
});

local("#213 a terminal stop drops leftover steering", async () => {
  const { agent, hooks, session } = await staged({ model: scriptedModel(["one"]) });
  hooks.on("agent/turn-stop", () => ({ stop: { by: "limit", reason: "enough" } }));
  let id = "";
  agent.on("turn/end", () => void (id ||= agent.steer("left over")));
  await talk(agent);
  expect(dataOf(session, "inbox/dropped")).toEqual([{ ids: [id], reason: "stopped" }]);
  expect(dataOf(session, "turn/start")).toHaveLength(1);
  expect(agent.queue).toEqual([]);
});

// #214: of the newer checkpoints the decisions take up the one before each body (D22, decisions-tools-marks).
anywhere("#214 D22 what a turn has done so far is stored before each of its bodies runs", async (open) => {
  const storage = memoryStorage();
  const deaf = deafBody();
  const agent = await open({
    storage,
    model: scriptedModel([calls("a"), calls("b")]),
    tools: [tool("a"), tool("b", deaf.body)],
  });
  agent.send("go");
  await deaf.running;
  await eventOf(agent.session, "tool/start", ({ data }) => data.step === 2);
  expect(await storedEvents(storage)).toEqual(agent.session.events);
});
