/** V: the end of a harness over a storage, and the errors of a storage as callers see them. */
import { memoryStorage, type SessionStorage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import { codesOf, faultyStage, hangs, holds, losesAnswer, turnOfTheEventLoop } from "../support/failing-storage.ts";
import { local } from "../support/fixture.ts";
import { eventOf } from "../support/wait.ts";

describe("disposal", () => {
  local("#243 #248 stores everything first, then closes the storage, and writes nothing after that", async () => {
    const stage = faultyStage({ model: scriptedModel(["one", "two"]) });
    const [a, b] = [await stage.open("a"), await stage.open("b")];
    a.send("hello");
    await a.whenIdle();
    stage.storage.next(holds, holds);
    a.inject("late");
    b.inject("later");
    await stage.storage.tries(3);
    const disposed = stage.harness.dispose();
    a.session.subscribe(() => expect.unreachable("nothing is appended any more"));
    stage.storage.heal();
    await disposed;
    expect(await stage.storage.stored("a")).toEqual(a.session.events);
    expect(await stage.storage.stored("b")).toEqual(b.session.events);
    expect(stage.storage.calls.filter((call) => call === "close")).toHaveLength(1);
    expect(stage.storage.calls.at(-1)).toBe("close");
  });

  local("#248 a turn that is cut off by a disposal is stored with its end", async () => {
    const stage = faultyStage({ model: scriptedModel([{ text: "half", hang: "deaf" }]) });
    const agent = await stage.open();
    agent.send("hello");
    await eventOf(agent.session, "assistant/chunk");
    await stage.harness.dispose();
    expect((await stage.storage.stored("s")).at(-1)).toMatchObject({ data: { reason: { kind: "disposed" } } });
  });

  local("#248 D17 D25 a storage that hangs holds up a disposal for 5 s and no longer", async () => {
    const stage = faultyStage();
    const agent = await stage.open();
    stage.storage.always(hangs);
    agent.configure({ temperature: 0 });
    await stage.storage.tries(1);
    const disposed = stage.harness.dispose();
    await stage.clock.sleeping(5000);
    await stage.clock.advance(5000);
    await disposed;
    expect(stage.storage.calls.at(-1)).toBe("close");
    expect(codesOf(stage.harness.diagnostics)).toContain("SESSION_DEGRADED");
  });

  local("#248 one that hangs does not keep the others from being stored, and a failing close is reported", async () => {
    const stage = faultyStage();
    const [good, bad] = [await stage.open("good"), await stage.open("bad")];
    stage.storage.next(hangs);
    bad.configure({ temperature: 0 });
    await stage.storage.tries(1);
    good.configure({ temperature: 0 });
    stage.storage.breakNext("close", new Error("it is stuck"));
    const disposed = stage.harness.dispose();
    await stage.clock.sleeping(5000);
    await stage.clock.advance(5000);
    await disposed;
    expect(await stage.storage.stored("good")).toHaveLength(1);
    expect(codesOf(stage.harness.diagnostics)).toContain("STORAGE_FAILED");
  });

  local("#248 a write that comes through after the disposal has ended is not followed by another", async () => {
    const stage = faultyStage();
    const { agent, dispose } = await stage.harness.agents.open({ id: "s" });
    stage.storage.next(holds);
    agent.configure({ temperature: 0 });
    await stage.storage.tries(1);
    agent.configure({ temperature: 1 });
    const disposed = dispose();
    await stage.clock.sleeping(5000);
    await stage.clock.advance(5000);
    await disposed;
    stage.storage.heal();
    for (let i = 0; i < 4; i += 1) await turnOfTheEventLoop();
    await stage.clock.advance(60_000);
    expect(stage.storage.tried).toHaveLength(1);
  });

  local(
    "#248 D17 D25 a storage that hangs while it is asked what it holds does not hold up a disposal either",
    async () => {
      const inner = memoryStorage();
      let asked = false;
      const deaf: SessionStorage = {
        ...inner,
        load: (id, options) => ((asked = stored), stored ? new Promise(() => {}) : inner.load(id, options)),
      };
      let stored = false;
      const stage = faultyStage({ inner: deaf });
      const agent = await stage.open();
      stage.storage.next(losesAnswer);
      agent.configure({ temperature: 0 });
      await stage.storage.tries(1);
      stored = true;
      await stage.clock.sleeping(100);
      await stage.clock.advance(100);
      expect(asked).toBe(true);
      const disposed = stage.harness.dispose();
      await stage.clock.sleeping(5000);
      await stage.clock.advance(5000);
      await disposed;
    },
  );
});

describe("errors", () => {
  local(
    "#242 the failure of a storage is never taken for absence, and leaves the package as an error of its own",
    async () => {
      const stage = faultyStage();
      const busy = new Error("the disk is busy");
      const { agents, sessions } = stage.harness;
      const calls: readonly (readonly ["load" | "list" | "delete", () => Promise<unknown>])[] = [
        ["load", () => sessions.load("s")],
        ["load", () => agents.open({ id: "s" })],
        ["load", () => agents.resume({ id: "s" })],
        ["load", () => agents.create({ id: "s" })],
        ["load", () => agents.fork({ from: "s" })],
        ["load", () => sessions.rename("s", "title")],
        ["load", () => sessions.export("s")[Symbol.asyncIterator]().next()],
        ["list", () => sessions.list()],
        ["delete", () => sessions.delete("s")],
      ];
      for (const [method, attempt] of calls) {
        stage.storage.breakNext(method, busy);
        const error = await attempt().catch((thrown: unknown) => thrown);
        expect(error, attempt.toString()).toMatchObject({ name: "TurnloopError", cause: busy });
      }
      expect(agents.get("s")).toBeUndefined();
      const { agent } = await agents.open({ id: "s" });
      expect(agent.status).toBe("idle");
    },
  );
});
