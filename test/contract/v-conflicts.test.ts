/** V: two writers of one session, and storages that refuse for good (D25). */
import {
  createHarness,
  defineTool,
  memoryStorage,
  run,
  type Agent,
  type AgentHandle,
  type Harness,
  type HarnessOptions,
} from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import { faultyStage, losesAnswer, refuses, turnOfTheEventLoop } from "../support/failing-storage.ts";
import { local } from "../support/fixture.ts";
import { endOf, eventOf, snapshotWhere, typesOf } from "../support/wait.ts";

const code = (is: string): unknown => expect.objectContaining({ code: is });
const readOnly = code("READ_ONLY");
const isLost = (agent: Agent): Promise<void> => snapshotWhere(agent, ({ durable }) => durable === "lost");

interface Rival extends AgentHandle {
  readonly harness: Harness;
}

/** Two processes that have one session open, as `options` say; what the first has stored the second has seen. */
async function rivals(options: HarnessOptions = {}): Promise<[Rival, Rival]> {
  const storage = memoryStorage();
  const open = async (name: string): Promise<Rival> => {
    const model = scriptedModel([`${name} says one`, `${name} says two`]);
    const harness = createHarness({ storage, model, onDiagnostic() {}, ...options });
    return { harness, ...(await harness.agents.open({ id: "s" })) };
  };
  const winner = await open("winner");
  winner.agent.inject("known to both");
  await winner.agent.flush();
  return [winner, await open("loser")];
}

describe("another writer", () => {
  local(
    "D25 D30 whose events are stored first has won: the other one's session is lost, and its run tells so",
    async () => {
      const [winner, loser] = await rivals();
      winner.agent.inject("mine");
      await winner.agent.flush();
      await expect(run(loser.agent, "hello").result).rejects.toEqual(code("SESSION_CONFLICT"));
      expect(loser.agent.getSnapshot()).toMatchObject({ durable: "lost", status: "idle" });
      const stored = await loser.harness.sessions.list();
      expect(stored.sessions).toMatchObject([{ id: "s", seq: winner.agent.session.seq }]);
    },
  );

  local("D25 every verb of a lost session throws READ_ONLY, and its log takes nothing", async () => {
    const [winner, loser] = await rivals();
    winner.agent.inject("mine");
    await winner.agent.flush();
    loser.agent.configure({ temperature: 0 });
    await isLost(loser.agent);
    const { agent, harness } = loser;
    const before = agent.session.events;
    expect(() => agent.send("a")).toThrow(readOnly);
    expect(() => agent.steer("a")).toThrow(readOnly);
    expect(() => agent.inject("a")).toThrow(readOnly);
    expect(() => agent.continue()).toThrow(readOnly);
    expect(() => agent.configure({})).toThrow(readOnly);
    expect(() => run(agent, "a")).toThrow(readOnly);
    await expect(agent.withdraw("a")).rejects.toEqual(readOnly);
    await expect(agent.respond("a", 1)).rejects.toEqual(readOnly);
    await expect(agent.claim("a")).rejects.toEqual(readOnly);
    expect(() => harness.sessions.get("s")!.append("session/titled", { title: "t" })).toThrow(readOnly);
    await expect(harness.sessions.rename("s", "t")).rejects.toEqual(readOnly);
    agent.cancel();
    expect(agent.session.events).toBe(before);
  });

  local("D25 a flush of a lost session rejects with what has made it lost", async () => {
    const [winner, loser] = await rivals();
    winner.agent.inject("mine");
    await winner.agent.flush();
    loser.agent.configure({ temperature: 0 });
    await expect(loser.agent.flush()).rejects.toEqual(code("SESSION_CONFLICT"));
    await expect(loser.agent.flush()).rejects.toEqual(code("SESSION_CONFLICT"));
    await expect(loser.harness.sessions.get("s")!.flush()).rejects.toEqual(code("SESSION_CONFLICT"));
  });

  local("D25 the winner is not disturbed", async () => {
    const [winner, loser] = await rivals();
    winner.agent.send("hello");
    await winner.agent.whenIdle();
    loser.agent.send("hello");
    await isLost(loser.agent);
    winner.agent.send("and?");
    await winner.agent.whenIdle();
    await winner.agent.flush();
    expect(winner.agent.session.durable).toBe("stored");
    expect((await createHarness({ storage: memoryStorage() }).sessions.list()).sessions).toEqual([]);
    expect((await loser.harness.sessions.list()).sessions).toMatchObject([{ seq: winner.agent.session.seq }]);
  });

  local("D25 opening the session again shows the log of the winner, and goes on with it", async () => {
    const [winner, loser] = await rivals();
    winner.agent.send("hello");
    await winner.agent.whenIdle();
    await winner.agent.flush();
    loser.agent.send("me too");
    await isLost(loser.agent);
    await loser.dispose();
    await winner.dispose();
    const { agent } = await loser.harness.agents.open({ id: "s" });
    expect(agent.session.events).toEqual(winner.agent.session.events);
    agent.send("go on");
    await agent.whenIdle();
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
  });

  local("D25 opening it again shows the log of the winner even while somebody still holds the lost one", async () => {
    const [winner, loser] = await rivals();
    winner.agent.inject("mine");
    await winner.agent.flush();
    loser.agent.configure({ temperature: 0 });
    await isLost(loser.agent);
    const { agent } = await loser.harness.agents.open({ id: "s" });
    expect(agent.session.events).toEqual(winner.agent.session.events);
    expect(agent.session.durable).toBe("stored");
  });

  local("D25 two that create one id: the second to store it has lost", async () => {
    const storage = memoryStorage();
    const [first, second] = [createHarness({ storage }), createHarness({ storage, onDiagnostic() {} })];
    const [{ agent: winner }, { agent: loser }] = [
      await first.agents.create({ id: "s" }),
      await second.agents.create({ id: "s" }),
    ];
    winner.inject("mine");
    await winner.flush();
    loser.inject("no, mine");
    await expect(loser.flush()).rejects.toEqual(code("SESSION_CONFLICT"));
    expect(loser.session.durable).toBe("lost");
    expect((await first.sessions.list()).sessions).toMatchObject([{ seq: winner.session.seq }]);
  });

  local("D25 a disposal of a lost session waits for nothing and writes nothing", async () => {
    const stage = faultyStage();
    const { agent, dispose } = await stage.harness.agents.open({ id: "s" });
    stage.storage.next(refuses("SESSION_CONFLICT"));
    agent.configure({ temperature: 0 });
    await isLost(agent);
    await dispose();
    await stage.clock.advance(60_000);
    expect(stage.storage.tried).toHaveLength(1);
  });

  local("#245 D25 a stored tail that equals the batch and then goes on is another writer's", async () => {
    const stage = faultyStage();
    const agent = await stage.open();
    stage.storage.next(losesAnswer);
    agent.configure({ temperature: 0 });
    await stage.clock.sleeping(100);
    const rival = createHarness({ storage: stage.storage });
    const { agent: other } = await rival.agents.open({ id: "s" });
    other.configure({ temperature: 1 });
    await other.flush();
    await stage.clock.advance(100);
    await isLost(agent);
    expect(() => agent.send("a")).toThrow(readOnly);
  });

  local("#245 D25 a stored session with another header is another session", async () => {
    const stage = faultyStage();
    const agent = await stage.open();
    const rival = createHarness({ storage: stage.storage, clock: stage.clock });
    const { agent: other } = await rival.agents.create({ id: "s", meta: { title: "other" } });
    other.configure({ temperature: 0 });
    await other.flush();
    agent.configure({ temperature: 0 });
    await isLost(agent);
    // Only the headers tell them apart.
    expect(agent.session.events).toEqual(other.session.events);
  });
});

describe("in the middle of a turn", () => {
  local(
    "D25 a stream is broken off: the signal aborts, what came is kept here, and the turn ends with the code",
    async () => {
      let aborted = false;
      const model = scriptedModel([
        (_request, { signal }) => {
          signal.addEventListener("abort", () => (aborted = true));
          return { text: "half", hang: "deaf" };
        },
      ]);
      const stage = faultyStage({ model });
      const agent = await stage.open();
      agent.on("assistant/chunk", () => stage.storage.always(refuses("SESSION_CONFLICT")));
      const running = run(agent, "hello");
      await expect(running.result).rejects.toEqual(code("SESSION_CONFLICT"));
      expect(aborted).toBe(true);
      expect(endOf(agent.session)).toMatchObject({ kind: "error", step: 1, code: "SESSION_CONFLICT" });
      expect(typesOf(agent.session).slice(-3)).toEqual(["assistant/message", "step/end", "turn/end"]);
      await agent.whenIdle();
    },
  );

  local("D25 D22 a tool whose mark is refused does not run, and its call has a result", async () => {
    let ran = false;
    const work = defineTool({
      name: "work",
      description: "works",
      inputSchema: { type: "object" },
      execute: () => (ran = true),
    });
    const model = scriptedModel([{ toolCalls: [{ name: "work", args: {} }] }, "never asked"]);
    const stage = faultyStage({ model, tools: [work] });
    const agent = await stage.open();
    agent.on("tool/start", () => stage.storage.always(refuses("SESSION_CONFLICT")));
    agent.send("work");
    await isLost(agent);
    await agent.whenIdle();
    expect(ran).toBe(false);
    expect(model.requests).toHaveLength(1);
    expect(endOf(agent.session)).toMatchObject({ kind: "error", code: "SESSION_CONFLICT" });
  });

  local("D25 what is queued in a lost session is not run, and who waits for idle is released", async () => {
    const model = scriptedModel([{ text: "half", hang: "deaf" }, "never asked"]);
    const stage = faultyStage({ model });
    const agent = await stage.open();
    agent.send("first");
    await eventOf(agent.session, "assistant/chunk");
    await agent.flush();
    stage.storage.always(refuses("SESSION_CONFLICT"));
    agent.send("second");
    await agent.whenIdle();
    await turnOfTheEventLoop();
    expect(model.requests).toHaveLength(1);
    expect(agent.session.durable).toBe("lost");
  });

  local(
    "D25 D30 a run that no turn has taken when the session is lost rejects SESSION_LOST or SESSION_CONFLICT",
    async () => {
      const stage = faultyStage({ model: scriptedModel([{ text: "half", hang: "deaf" }]) });
      const agent = await stage.open();
      agent.send("first");
      await eventOf(agent.session, "assistant/chunk");
      stage.storage.always(refuses("SESSION_CONFLICT"));
      const error: unknown = await run(agent, "second").result.catch((thrown: unknown) => thrown);
      expect(["SESSION_LOST", "SESSION_CONFLICT"]).toContain((error as { code: string }).code);
    },
  );
});
