/** U: the durable marks of a tool call (D22), on a storage that fails. */
import { defineTool } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import { faultyStage, hangs, holds } from "../support/failing-storage.ts";
import { local } from "../support/fixture.ts";
import { deferred, endOf, eventOf, typesOf } from "../support/wait.ts";

/** An agent that calls the tool `work` as often as it says in its first answer; `ran` names the calls that did. */
function working(calls = 1, body: (callId: string) => unknown = () => "done", traits: { parallel?: boolean } = {}) {
  const ran: string[] = [];
  const toolCalls = Array.from({ length: calls }, () => ({ name: "work", args: {} }));
  const work = defineTool({
    name: "work",
    description: "works",
    inputSchema: { type: "object" },
    ...traits,
    execute(_: unknown, { callId }) {
      ran.push(callId);
      return body(callId);
    },
  });
  return { ran, stage: faultyStage({ model: scriptedModel([{ toolCalls }, "fine"]), tools: [work] }) };
}

describe("the three marks", () => {
  local("D22 #237 tool/call, tool/start and tool/result stand in the log in this order", async () => {
    const { stage } = working();
    const agent = await stage.open();
    agent.send("work");
    await agent.whenIdle();
    expect(typesOf(agent.session).filter((type) => type.startsWith("tool/"))).toEqual([
      "tool/call",
      "tool/start",
      "tool/result",
    ]);
  });

  local("D22 tool/start is stored before the body runs", async () => {
    const { stage } = working(1, async () => {
      const stored = await stage.storage.stored("s");
      seen.resolve(stored.at(-1)!.type);
    });
    const seen = deferred<string>();
    const agent = await stage.open();
    agent.send("work");
    expect(await seen.promise).toBe("tool/start");
    await agent.whenIdle();
  });

  local("D22 the body waits for as long as the storage takes, within its bound", async () => {
    const { ran, stage } = working();
    const agent = await stage.open();
    agent.on("assistant/message", ({ data }) => void (data.step === 1 && stage.storage.always(holds)));
    agent.send("work");
    await eventOf(agent.session, "tool/start");
    await stage.clock.sleeping(5000);
    await stage.clock.advance(4999);
    expect(ran).toEqual([]);
    stage.storage.heal();
    await agent.whenIdle();
    expect(ran).toHaveLength(1);
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
  });
});

describe("a storage that does not take the mark", () => {
  /** Hangs from the first answer on, until the turn has ended. */
  async function starved(calls: number) {
    const { ran, stage } = working(calls);
    const agent = await stage.open();
    agent.on("assistant/message", ({ data }) => void (data.turn === 1 && stage.storage.always(hangs)));
    agent.send("work");
    await eventOf(agent.session, "tool/start");
    await stage.clock.sleeping(5000);
    await stage.clock.advance(5000);
    const ended = await eventOf(agent.session, "turn/end");
    return { agent, ran, stage, ended };
  }

  local(
    "D22 no body runs: STORAGE_UNAVAILABLE, the calls behind it ABORTED_BEFORE_DISPATCH, and the turn ends so",
    async () => {
      const { agent, ran, ended } = await starved(3);
      expect(ran).toEqual([]);
      expect(ended.data.reason).toMatchObject({ kind: "error", step: 1, code: "STORAGE_UNAVAILABLE" });
      const results = agent.session.events.filter((event) => event.type === "tool/result");
      expect(results.map(({ data }) => data.error?.code)).toEqual([
        "STORAGE_UNAVAILABLE",
        "ABORTED_BEFORE_DISPATCH",
        "ABORTED_BEFORE_DISPATCH",
      ]);
      expect(agent.session.events.filter(({ type }) => type === "tool/start")).toHaveLength(1);
    },
  );

  local("D22 D25 the session is degraded meanwhile, and once the storage is back the next turn works", async () => {
    const { agent, ran, stage } = await starved(1);
    expect(agent.session.durable).toBe("degraded");
    await stage.recover(agent);
    agent.send("well?");
    await agent.whenIdle();
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
    expect(agent.session.durable).toBe("stored");
    expect(ran).toEqual([]);
    expect(await stage.storage.stored("s")).toEqual(agent.session.events);
  });

  local("D22 D25 in a session that is degraded already no tool starts, and no time is lost with it", async () => {
    const { ran, stage } = working(2);
    const agent = await stage.open();
    stage.storage.always(hangs);
    agent.configure({ temperature: 0 });
    await stage.clock.sleeping(5000);
    await stage.clock.advance(5000);
    expect(agent.session.durable).toBe("degraded");
    agent.send("work");
    const ended = await eventOf(agent.session, "turn/end");
    expect(ended.data.reason).toMatchObject({ kind: "error", code: "STORAGE_UNAVAILABLE" });
    expect(ran).toEqual([]);
  });

  local("D22 D28 of calls that run side by side none runs either", async () => {
    const { ran, stage } = working(3, () => "done", { parallel: true });
    const agent = await stage.open();
    agent.on("assistant/message", () => stage.storage.always(hangs));
    agent.send("work");
    await eventOf(agent.session, "tool/start");
    await stage.clock.sleeping(5000);
    await stage.clock.advance(5000);
    const ended = await eventOf(agent.session, "turn/end");
    expect(ended.data.reason).toMatchObject({ kind: "error", code: "STORAGE_UNAVAILABLE" });
    expect(ran).toEqual([]);
    const codes = agent.session.events.flatMap((event) =>
      event.type === "tool/result" ? [event.data.error?.code] : [],
    );
    expect(codes).toEqual(["STORAGE_UNAVAILABLE", "STORAGE_UNAVAILABLE", "STORAGE_UNAVAILABLE"]);
  });
});
