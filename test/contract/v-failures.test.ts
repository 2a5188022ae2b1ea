/** V: storages that fail for a while (D25): nothing is lost, nothing is stored twice, and nobody waits for ever. */
import { run, type Clock } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import {
  codesOf,
  failingStorage,
  fails,
  faultyStage,
  hangs,
  holds,
  losesAnswer,
  turnOfTheEventLoop,
} from "../support/failing-storage.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { endOf, eventOf, snapshotWhere } from "../support/wait.ts";

const code = (is: string): unknown => expect.objectContaining({ code: is });

describe("a write that fails", () => {
  local("#243 D25 is tried again with the same events, until it is confirmed", async () => {
    const { harness, open, storage, clock } = faultyStage();
    const agent = await open();
    storage.next(fails, fails);
    agent.configure({ temperature: 0 });
    const flushed = agent.flush();
    await storage.tries(1);
    expect(agent.session.durable).toBe("pending");
    await clock.sleeping(100);
    await clock.advance(100);
    await clock.sleeping(200);
    await clock.advance(200);
    await flushed;
    expect(storage.tried.map(({ from, events }) => [from, events.length])).toEqual([
      [0, 1],
      [0, 1],
      [0, 1],
    ]);
    expect(await storage.stored("s")).toEqual(agent.session.events);
    expect(agent.session.durable).toBe("stored");
    expect(codesOf(harness.diagnostics)).toEqual(["STORAGE_FAILED", "STORAGE_FAILED"]);
  });

  local("D25 is tried again after 100 ms, doubling to 5 s", async () => {
    const { open, storage, clock } = faultyStage();
    const agent = await open();
    const start = clock.now();
    storage.always(fails);
    agent.configure({ temperature: 0 });
    const at: number[] = [];
    const waits = [100, 200, 400, 800, 1600, 3200, 5000, 5000];
    for (const [i, wait] of waits.entries()) {
      await storage.tries(i + 1);
      at.push(clock.now() - start);
      await clock.sleeping(wait);
      await clock.advance(wait - 1);
      expect(storage.tried, `before ${wait} ms are over`).toHaveLength(i + 1);
      await clock.advance(1);
    }
    expect(at).toEqual([0, 100, 300, 700, 1500, 3100, 6300, 11_300]);
  });

  local("#243 what is appended meanwhile is kept, in order, and no seq is stored twice", async () => {
    const model = scriptedModel(["one answer", "another"]);
    const stage = faultyStage({ model });
    const agent = await stage.open();
    stage.storage.next(fails, losesAnswer, fails, losesAnswer, losesAnswer);
    agent.send("hello");
    await eventOf(agent.session, "turn/end");
    agent.inject("in between");
    agent.send("go on");
    await stage.recover(agent);
    await agent.whenIdle();
    await stage.recover(agent);
    expect(await stage.storage.stored("s")).toEqual(agent.session.events);
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
  });

  local("#244 does not poison what comes after it, and other sessions do not wait for it", async () => {
    const stage = faultyStage();
    const [one, other] = [await stage.open("one"), await stage.open("other")];
    stage.storage.next(hangs);
    one.configure({ temperature: 0 });
    await stage.storage.tries(1);
    other.configure({ temperature: 0 });
    await other.flush();
    expect(await stage.storage.stored("other")).toHaveLength(1);
    expect(one.session.durable).toBe("pending");
    await stage.recover(one);
    one.configure({ temperature: 1 });
    await one.flush();
    expect(await stage.storage.stored("one")).toEqual(one.session.events);
  });

  local("#244 writes of one session are never under way together", async () => {
    const stage = faultyStage({ model: scriptedModel(["some words to store", "more of them"]) });
    const agent = await stage.open();
    let open = 0;
    let most = 0;
    stage.storage.always(async (store) => {
      most = Math.max(most, (open += 1));
      await turnOfTheEventLoop();
      await store();
      open -= 1;
    });
    agent.send("hello");
    agent.inject("context");
    void agent.flush();
    await agent.whenIdle();
    agent.send("more");
    await agent.whenIdle();
    await agent.flush();
    expect(most).toBe(1);
  });

  local("#247 a write that fails half-way has stored nothing: all of it is tried again", async () => {
    const stage = faultyStage();
    const agent = await stage.open();
    stage.storage.next(fails);
    for (const temperature of [0, 0.5, 1]) agent.configure({ temperature });
    await stage.recover(agent);
    expect(stage.storage.tried.map(({ events }) => events.length)).toEqual([3, 3]);
    expect(await stage.storage.stored("s")).toHaveLength(3);
  });
});

describe("an answer that is lost", () => {
  local("#245 D25 a first batch that is there already is a confirmation", async () => {
    const stage = faultyStage();
    const agent = await stage.open();
    stage.storage.next(losesAnswer);
    agent.configure({ temperature: 0 });
    await stage.recover(agent);
    expect(agent.session.durable).toBe("stored");
    agent.configure({ temperature: 1 });
    await agent.flush();
    expect(await stage.storage.stored("s")).toEqual(agent.session.events);
    expect(codesOf(stage.harness.diagnostics)).toEqual(["STORAGE_FAILED"]);
  });

  local("#245 D25 and so is any later batch", async () => {
    const stage = faultyStage();
    const agent = await stage.open();
    agent.configure({ temperature: 0 });
    await agent.flush();
    stage.storage.next(losesAnswer);
    agent.configure({ temperature: 1 });
    await stage.recover(agent);
    expect(agent.session.durable).toBe("stored");
    expect(await stage.storage.stored("s")).toEqual(agent.session.events);
  });

  local("#245 D25 a look at what is stored that fails for a moment is no proof of another writer", async () => {
    const stage = faultyStage();
    const agent = await stage.open();
    stage.storage.next(losesAnswer);
    agent.configure({ temperature: 0 });
    await stage.clock.sleeping(100);
    stage.storage.breakNext("load", new Error("the disk is busy"));
    await stage.clock.advance(100);
    await stage.recover(agent);
    expect(agent.session.durable).toBe("stored");
    agent.configure({ temperature: 1 });
    await agent.flush();
    expect(await stage.storage.stored("s")).toEqual(agent.session.events);
  });
});

describe("a storage that does not answer", () => {
  local("D25 after 5 s the session is degraded, which is told once; it goes on trying, and recovers", async () => {
    const stage = faultyStage();
    const agent = await stage.open();
    const seen: string[] = [];
    agent.subscribe(() => void seen.push(agent.getSnapshot().durable));
    stage.storage.always(fails);
    agent.configure({ temperature: 0 });
    await stage.clock.sleeping(5000);
    await stage.clock.advance(4999);
    expect(agent.session.durable).toBe("pending");
    await stage.clock.advance(1);
    expect(agent.session.durable).toBe("degraded");
    await stage.clock.advance(60_000);
    agent.configure({ temperature: 1 });
    await stage.recover(agent);
    expect(await stage.storage.stored("s")).toEqual(agent.session.events);
    expect(seen).toEqual(["pending", "degraded", "pending", "stored"]);
    expect(codesOf(stage.harness.diagnostics).filter((one) => one !== "STORAGE_FAILED")).toEqual(["SESSION_DEGRADED"]);
  });

  local("D25 a write that is only slow is awaited: it degrades the session, and then it is stored", async () => {
    const stage = faultyStage();
    const agent = await stage.open();
    stage.storage.next(holds);
    agent.configure({ temperature: 0 });
    await stage.clock.sleeping(5000);
    await stage.clock.advance(5000);
    expect(agent.session.durable).toBe("degraded");
    stage.storage.heal();
    await snapshotWhere(agent, ({ durable }) => durable === "stored");
    expect(stage.storage.tried).toHaveLength(1);
  });

  local("D25 D17 the end of a turn waits 5 s for the storage and no longer; the driver goes on", async () => {
    const stage = faultyStage({ model: scriptedModel(["one", "two"]) });
    const agent = await stage.open();
    agent.on("turn/end", ({ data }) => void (data.turn === 1 && stage.storage.always(hangs)));
    agent.send("first");
    await eventOf(agent.session, "turn/end");
    let idle = false;
    const waiting = agent.whenIdle().then(() => (idle = true));
    await stage.clock.sleeping(5000);
    await stage.clock.advance(4999);
    expect(idle).toBe(false);
    await stage.clock.advance(1);
    await waiting;
    expect(agent.session.durable).toBe("degraded");
    agent.send("second");
    await agent.whenIdle();
    expect(endOf(agent.session, 2)).toEqual({ kind: "completed" });
    await stage.recover(agent);
    expect(await stage.storage.stored("s")).toEqual(agent.session.events);
  });

  local("D25 who waits for a flush of a degraded session is told so, and nothing is lost with it", async () => {
    const stage = faultyStage();
    const agent = await stage.open();
    stage.storage.always(hangs);
    agent.configure({ temperature: 0 });
    const flushed = agent.flush().catch((error: unknown) => error);
    await stage.clock.sleeping(5000);
    await stage.clock.advance(5000);
    expect(await flushed).toEqual(code("SESSION_DEGRADED"));
    await expect(agent.flush()).rejects.toEqual(code("SESSION_DEGRADED"));
    await stage.recover(agent);
    await agent.flush();
    expect(await stage.storage.stored("s")).toEqual(agent.session.events);
  });

  local("D25 a session that works again can be degraded again", async () => {
    const stage = faultyStage();
    const agent = await stage.open();
    for (const temperature of [0, 1]) {
      stage.storage.always(hangs);
      agent.configure({ temperature });
      await stage.clock.sleeping(5000);
      await stage.clock.advance(5000);
      expect(agent.session.durable).toBe("degraded");
      await stage.recover(agent);
    }
    const told = codesOf(stage.harness.diagnostics).filter((one) => one === "SESSION_DEGRADED");
    expect(told).toHaveLength(2);
  });

  local("D25 a run whose turn cannot be stored in time still tells how the turn ended", async () => {
    const stage = faultyStage({ model: scriptedModel(["fine"]) });
    const agent = await stage.open();
    stage.storage.always(hangs);
    const running = run(agent, "hello");
    await eventOf(agent.session, "turn/end");
    await stage.clock.sleeping(5000);
    await stage.clock.advance(5000);
    expect((await running.result).text).toBe("fine");
  });

  local("D25 a storage that cannot keep up slows the model down, rather than that memory grows", async () => {
    let made = 0;
    async function* words() {
      for (; made < 20_000; made += 1) yield { type: "delta", index: 0, text: "a" } as const;
      yield { type: "finish", reason: { kind: "stop" } } as const;
    }
    const stage = faultyStage({ model: { id: "many/words", stream: words } });
    const agent = await stage.open();
    stage.storage.always(holds);
    agent.send("go on and on");
    await stage.storage.tries(1);
    for (let before = -1; before !== made;) {
      before = made;
      for (let i = 0; i < 5; i += 1) await turnOfTheEventLoop();
    }
    expect(made).toBeGreaterThan(1000);
    expect(made).toBeLessThan(6000);
    stage.storage.heal();
    await agent.whenIdle();
    expect(made).toBe(20_000);
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
    expect(Math.max(...stage.storage.tried.map(({ events }) => events.length))).toBeLessThanOrEqual(1000);
  });

  local("D25 a storage that answers leaves no timer behind", async () => {
    const sleepers = new Set<object>();
    const clock: Clock = {
      now: Date.now,
      async sleep(_, signal) {
        const sleeper = {};
        sleepers.add(sleeper);
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
        sleepers.delete(sleeper);
        throw signal.reason;
      },
    };
    const storage = failingStorage();
    const { agents } = harnessWith({ clock, storage, model: scriptedModel(["one", "two"]) });
    const { agent } = await agents.open({ id: "s" });
    storage.next(holds);
    agent.send("hello");
    await storage.tries(1);
    await turnOfTheEventLoop();
    storage.heal();
    await agent.whenIdle();
    agent.send("again");
    await agent.whenIdle();
    await agent.flush();
    await turnOfTheEventLoop();
    expect(sleepers.size).toBe(0);
  });
});
