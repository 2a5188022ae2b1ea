/** D30: how a run is given up, and what it says when the log will not tell how the turn ended. */
import { run, type SessionEvent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { failingStorage, faultyStage, hangs, holds, refuses } from "../support/failing-storage.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { all, heldAnswer, textsOf } from "../support/held.ts";
import { codeOf, isPending, promptly } from "../support/lifecycle.ts";
import { dataOf } from "../support/scene.ts";
import { deferred, eventOf } from "../support/wait.ts";

const HANGING = { text: "on and on", hang: "deaf" } as const;

anywhere("D30 aborting the signal withdraws a message that waits", async (open) => {
  const held = heldAnswer("hi");
  const agent = await open({ model: scriptedModel([held.answer]) });
  const first = run(agent, "go");
  await held.asked;
  const controller = new AbortController();
  const second = run(agent, "never", { signal: controller.signal });
  controller.abort();
  expect((await second.result).reason).toEqual({ kind: "dropped" });
  held.give();
  expect((await first.result).reason).toEqual({ kind: "completed" });
  expect(dataOf(agent.session, "inbox/dropped")).toEqual([{ ids: [second.id], reason: "withdrawn" }]);
});

anywhere("D30 aborting the signal cancels the turn that has taken the message, and no other", async (open) => {
  const agent = await open({ model: scriptedModel([HANGING, "hi"]) });
  const controller = new AbortController();
  const running = run(agent, "go", { signal: controller.signal });
  await eventOf(agent.session, "assistant/chunk");
  controller.abort();
  expect((await running.result).reason).toEqual({ kind: "aborted", reason: "the run was aborted" });
  const later = new AbortController();
  const next = run(agent, "next", { signal: later.signal });
  await next.result;
  later.abort();
  expect((await next.result).reason).toEqual({ kind: "completed" });
  expect(dataOf(agent.session, "agent/cancelled")).toHaveLength(1);
});

anywhere("D30 aborting one run leaves what others have queued", async (open) => {
  const agent = await open({ model: scriptedModel([HANGING, "hi"]) });
  const controller = new AbortController();
  const mine = run(agent, "mine", { signal: controller.signal });
  await eventOf(agent.session, "assistant/chunk");
  const theirs = run(agent, "theirs");
  controller.abort();
  expect((await mine.result).reason.kind).toBe("aborted");
  expect((await theirs.result).reason.kind).toBe("completed");
});

local(
  "D30 aborting the signal between the start of the turn and the message ends that turn, and drops the message",
  async () => {
    const harness = harnessWith({ model: scriptedModel(["never"]) });
    const { agent } = await harness.agents.open({ id: "s" });
    const controller = new AbortController();
    agent.on("turn/start", () => controller.abort());
    const running = run(agent, "go", { signal: controller.signal });
    expect((await running.result).reason).toEqual({ kind: "dropped" });
    await agent.whenIdle();
    expect(dataOf(agent.session, "turn/end").map(({ reason }) => reason)).toEqual([
      { kind: "aborted", reason: "the run was aborted" },
    ]);
    expect([textsOf(agent.session), agent.queue]).toEqual([[], []]);
  },
);

anywhere("D30 a signal that is aborted already sends nothing", async (open) => {
  const agent = await open({ model: scriptedModel([]) });
  expect(await codeOf(() => run(agent, "go", { signal: AbortSignal.abort() }))).toBe("ABORTED");
  expect(agent.session.seq).toBe(0);
});

local("D30 D15 a message whose turn failed before it was in it follows the turn that takes it then", async () => {
  const model = scriptedModel(["hi"]);
  const harness = harnessWith({ model });
  const { agent } = await harness.agents.open({ id: "s" });
  const off = harness.hooks.on("agent/prompt-submit", () => {
    off();
    throw new Error("no");
  });
  const [first, second] = [run(agent, "one"), run(agent, "two")];
  expect(await first.result).toMatchObject({ reason: { kind: "error", step: 0, message: "no" }, turn: 1 });
  expect(await second.result).toMatchObject({ reason: { kind: "completed" }, turn: 2, text: "hi" });
  expect((await all<SessionEvent>(second)).filter(({ type }) => type === "turn/start")).toHaveLength(1);
});

local("D30 an iteration that begins inside a listener gives each event once", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  const reading = deferred<Promise<SessionEvent[]>>();
  const running = run(agent, "go");
  const off = agent.on("step/start", () => {
    off();
    agent.inject("committed, and not told yet");
    const found = all<SessionEvent>(running);
    reading.resolve(found);
  });
  const seqs = (await reading.promise.then((found) => found)).map(({ seq }) => seq);
  expect(seqs).toEqual([...new Set(seqs)]);
  expect(seqs).toHaveLength(agent.session.seq - seqs[0]!);
});

local("D30 a result settles once the end of its turn is stored", async () => {
  const storage = failingStorage();
  const { agents } = harnessWith({ model: scriptedModel(["hi"]), storage });
  const { agent } = await agents.open({ id: "s" });
  const running = run(agent, "go");
  storage.always(holds);
  await eventOf(agent.session, "turn/end");
  expect(await isPending(running.result)).toBe(true);
  storage.heal();
  expect((await running.result).reason).toEqual({ kind: "completed" });
  expect(agent.session.durable).toBe("stored");
});

local("D30 the wait for the storage is bounded: past it the result tells what the log knows", async () => {
  const { clock, storage, open } = faultyStage({ model: scriptedModel(["hi"]) });
  const agent = await open();
  storage.always(hangs);
  const running = run(agent, "go");
  await clock.sleeping(5000);
  expect(await isPending(running.result)).toBe(true);
  await clock.advance(5000);
  expect((await promptly(running.result)).reason).toEqual({ kind: "completed" });
  expect(agent.session.durable).toBe("degraded");
});

local("D30 a disposal ends a turn as disposed, which resolves; a message that no turn took rejects", async () => {
  const harness = harnessWith({ model: scriptedModel([HANGING]) });
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  const running = run(agent, "go");
  await eventOf(agent.session, "assistant/chunk");
  const waiting = run(agent, "never");
  await dispose();
  expect(await running.result).toMatchObject({ reason: { kind: "disposed" }, turn: 1 });
  expect(await codeOf(waiting.result)).toBe("AGENT_DISPOSED");
  expect(await codeOf(all(waiting))).toBe("AGENT_DISPOSED");
  expect(await codeOf(() => run(agent, "go"))).toBe("AGENT_DISPOSED");
});

local(
  "D30 D23 a turn that stays parked at a disposal will not be told of here: it rejects AGENT_DISPOSED",
  async () => {
    const asking = tool("ask", (_, call) => call.ask("which?"), { idempotent: true });
    const harness = harnessWith({ model: scriptedModel([calls("ask")]), tools: [asking] });
    const { agent, dispose } = await harness.agents.open({ id: "s" });
    const running = run(agent, "go");
    await eventOf(agent.session, "interaction/requested");
    const early = codeOf(all(running));
    await dispose();
    expect(await early).toBe("AGENT_DISPOSED");
    expect(await codeOf(running.result)).toBe("AGENT_DISPOSED");
    expect(await codeOf(all(running))).toBe("AGENT_DISPOSED");
    expect(dataOf(agent.session, "turn/end")).toEqual([]);
  },
);

// D30, `interrupted`: repair alone ends a turn so, before anybody has a handle to follow it with.

for (const code of ["SESSION_CONFLICT", "SESSION_EXISTS"] as const) {
  local(
    `D30 D25 when another writer's log won (${code}), the results reject SESSION_CONFLICT, and run throws READ_ONLY`,
    async () => {
      const storage = failingStorage();
      const { agents } = harnessWith({ model: scriptedModel([HANGING]), storage });
      const { agent } = await agents.open({ id: "s" });
      storage.always(refuses(code));
      const running = run(agent, "go");
      expect(await codeOf(running.result)).toBe("SESSION_CONFLICT");
      expect(await codeOf(() => agent.flush())).toBe("SESSION_CONFLICT");
      expect(await codeOf(() => run(agent, "again"))).toBe("READ_ONLY");
    },
  );
}

local("D30 D25 a message that no turn took before the session was lost rejects too", async () => {
  const storage = failingStorage();
  const held = heldAnswer("hi");
  const { agents } = harnessWith({ model: scriptedModel([held.answer]), storage });
  const { agent } = await agents.open({ id: "s" });
  agent.send("go");
  await held.asked;
  await agent.flush();
  storage.always(refuses("SESSION_CONFLICT"));
  const waiting = run(agent, "never");
  expect(["SESSION_LOST", "SESSION_CONFLICT"]).toContain(await codeOf(waiting.result));
  held.give();
});

anywhere("D30 run throws what send throws, and nothing is sent", async (open) => {
  const agent = await open({ model: scriptedModel([]) });
  expect(await codeOf(() => run(agent, [{ type: "text" }] as never))).toBe("INVALID_CONTENT");
  expect(agent.session.seq).toBe(0);
});
