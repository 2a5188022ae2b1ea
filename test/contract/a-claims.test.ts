/** A: the right to write, where the storage gives one (D25, D26): how it is come by, held, lost and let go. */
import { memoryStorage, run, type HarnessOptions, type SessionStorage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import { claimingStorage } from "../support/claims.ts";
import { testClock } from "../support/clock.ts";
import { harnessWith, local } from "../support/fixture.ts";
import {
  calm,
  codeOf,
  codeThrownBy,
  isPending,
  promptly,
  reasonOf,
  store,
  ways,
  type Way,
} from "../support/lifecycle.ts";
import { dataOf } from "../support/scene.ts";
import { deferred, endOf, eventOf } from "../support/wait.ts";

/** A harness like another process: it shares the storage, and nothing else. */
function process(storage: SessionStorage, options: HarnessOptions = {}) {
  return harnessWith({ storage, model: scriptedModel(["one", "two", "three"]), ...options });
}

describe("by default", () => {
  for (const way of ways) {
    local(`D25 ${way}: the agent holds the claim of its session for as long as it lives`, async () => {
      const storage = claimingStorage();
      const { agents } = process(storage);
      if (way === "resume" || way === "open (stored)") await store(storage, "s");
      if (way === "fork") await store(storage, "source");
      const { agent, dispose } = await begin(agents, way);
      expect(storage.held("s")).toBe(true);
      agent.send("hello");
      await agent.whenIdle();
      await dispose();
      expect(storage.held("s")).toBe(false);
      expect(agent.session.durable).toBe("stored");
    });

    local(
      `D25 ${way}: a session that another holds is SESSION_CLAIMED at once, and nothing of it is left`,
      async () => {
        const storage = claimingStorage();
        if (way === "resume" || way === "open (stored)") await store(storage, "s");
        if (way === "fork") await store(storage, "source");
        const other = await storage.claim("s", { mode: "fail" });
        const harness = process(storage);
        expect(await codeOf(begin(harness.agents, way))).toBe("SESSION_CLAIMED");
        expect(harness.agents.list()).toEqual([]);
        expect(harness.sessions.get("s")).toBeUndefined();
        await other.release();
        expect((await begin(harness.agents, way)).agent.id).toBe("s");
      },
    );
  }

  local("D25 the session is read once its claim is held: nobody writes behind what was read", async () => {
    const storage = claimingStorage();
    await store(storage, "s");
    const order: string[] = [];
    const { agents } = process({
      ...storage,
      load(id, options) {
        order.push(storage.held(id) ? "read, held" : "read");
        return storage.load(id, options);
      },
    });
    await agents.open({ id: "s" });
    expect(order).toEqual(["read, held"]);
  });

  local("D2 D25 who joins a live or opening agent joins its claim", async () => {
    const storage = claimingStorage();
    const { agents } = process(storage);
    const [one, two] = await Promise.all([agents.open({ id: "s" }), agents.open({ id: "s", claim: "steal" })]);
    const three = await agents.open({ id: "s", claim: "wait" });
    expect(storage.told).toEqual(["fail s", "granted s"]);
    await one.dispose();
    await two.dispose();
    expect(storage.held("s")).toBe(true);
    await three.dispose();
    expect(storage.held("s")).toBe(false);
  });

  local(
    "#18 D25 two that begin one id here at once both prepare, and the loser leaves the winner its claim",
    async () => {
      const storage = claimingStorage();
      const { agents } = process(storage);
      const both = await Promise.allSettled([agents.create({ id: "s" }), agents.create({ id: "s" })]);
      expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
      const loser = both.find((one) => one.status === "rejected")!;
      expect(loser.reason).toMatchObject({ code: "SESSION_EXISTS" });
      expect(storage.held("s")).toBe(true);
      await agents.get("s")!.flush();
    },
  );

  local("D2 an agent that is disposed lets go before the next opening claims", async () => {
    const storage = claimingStorage();
    const { agents } = process(storage);
    const { agent, dispose } = await agents.open({ id: "s" });
    agent.inject("hello");
    const ending = dispose();
    const { agent: next } = await agents.open({ id: "s" });
    await ending;
    expect(next.session.events).toEqual(agent.session.events);
  });

  local("#27 D25 `start` claims its new id, and lets go of it", async () => {
    const storage = claimingStorage();
    const harness = process(storage);
    const { id } = harness.agents.start();
    await calm();
    expect(storage.held(id)).toBe(true);
    await harness.dispose();
    expect(storage.held(id)).toBe(false);
  });

  local("D26 a session without an agent holds its claim until its harness ends", async () => {
    const storage = claimingStorage();
    const harness = process(storage);
    await harness.sessions.create({ id: "s" });
    expect(await codeOf(process(storage).sessions.create({ id: "s" }))).toBe("SESSION_CLAIMED");
    await harness.dispose();
    expect(storage.held("s")).toBe(false);
  });

  local("D25 a storage without claims takes all three words for what they are worth", async () => {
    for (const claim of ["fail", "wait", "steal"] as const) {
      const { agents } = process(memoryStorage());
      expect((await agents.open({ id: "s", claim, claimTimeoutMs: 1 })).agent.id).toBe("s");
    }
  });

  local("D25 any other word, or a time that is none, is INVALID_OPTIONS", async () => {
    const { agents } = process(claimingStorage());
    expect(await codeOf(agents.open({ id: "s", claim: "ask" as "fail" }))).toBe("INVALID_OPTIONS");
    expect(await codeOf(agents.create({ id: "s", claim: "wait", claimTimeoutMs: Number.NaN }))).toBe("INVALID_OPTIONS");
    expect(await codeOf(agents.resume({ id: "s", claimTimeoutMs: -1 }))).toBe("INVALID_OPTIONS");
  });

  local("D25 a storage that fails to claim is STORAGE_FAILED", async () => {
    const storage = { ...memoryStorage(), claim: () => Promise.reject(new Error("no locks here")) };
    const { agents } = process(storage);
    expect(await codeOf(agents.open({ id: "s" }))).toBe("STORAGE_FAILED");
  });
});

describe("wait", () => {
  local("D25 the opening goes on when the other lets go, with what the other has written", async () => {
    const storage = claimingStorage();
    const first = await process(storage).agents.open({ id: "s" });
    const second = process(storage).agents.open({ id: "s", claim: "wait" });
    expect(await isPending(second)).toBe(true);
    first.agent.send("hello");
    await first.agent.whenIdle();
    await first.dispose();
    const { agent } = await second;
    expect(agent.session.events).toEqual(first.agent.session.events);
    expect(storage.held("s")).toBe(true);
  });

  local("D25 past claimTimeoutMs it is SESSION_CLAIMED, and nobody waits any more", async () => {
    const clock = testClock();
    const storage = claimingStorage();
    const other = await storage.claim("s", { mode: "fail" });
    const opening = process(storage, { clock }).agents.open({ id: "s", claim: "wait", claimTimeoutMs: 3000 });
    await clock.sleeping(3000);
    await clock.advance(2999);
    expect(await isPending(opening)).toBe(true);
    await clock.advance(1);
    expect(await codeOf(opening)).toBe("SESSION_CLAIMED");
    expect(storage.told.at(-1)).toBe("left s");
    await other.release();
    expect(storage.held("s")).toBe(false);
  });

  local("#5 #6 D25 the signal ends the waiting with its reason, and nobody waits any more", async () => {
    const storage = claimingStorage();
    const other = await storage.claim("s", { mode: "fail" });
    const controller = new AbortController();
    const opening = process(storage).agents.resume({ id: "s", claim: "wait", signal: controller.signal });
    expect(await isPending(opening)).toBe(true);
    const reason = new Error("never mind");
    controller.abort(reason);
    expect(await promptly(reasonOf(opening))).toBe(reason);
    expect(storage.told.at(-1)).toBe("left s");
    await other.release();
    expect(storage.held("s")).toBe(false);
  });

  local("#40 D25 a disposal of the harness ends the waiting", async () => {
    const storage = claimingStorage();
    await storage.claim("s", { mode: "fail" });
    const harness = process(storage);
    const opening = codeOf(harness.agents.open({ id: "s", claim: "wait" }));
    await calm();
    await promptly(harness.dispose());
    expect(await opening).toBe("HARNESS_DISPOSED");
  });
});

describe("a creation that ends in the middle", () => {
  for (const claim of ["fail", "wait", "steal"] as const) {
    local(
      `#9 D25 ${claim}: aborted while the storage thinks about the claim, what is granted later is let go`,
      async () => {
        const storage = claimingStorage();
        const grant = storage.delay();
        const controller = new AbortController();
        const harness = process(storage);
        const opening = harness.agents.create({ id: "s", claim, signal: controller.signal });
        await calm();
        controller.abort(new Error("never mind"));
        await promptly(reasonOf(opening));
        // Nobody else has to wait for what nobody wants.
        grant();
        await calm();
        expect(storage.told.slice(-2)).toEqual(["granted s", "released s"]);
        expect((await harness.agents.create({ id: "s" })).agent.id).toBe("s");
      },
    );
  }

  local("#9 D25 aborted in a setup that never ends, the claim is let go", async () => {
    const storage = claimingStorage();
    const controller = new AbortController();
    const inSetup = deferred();
    const opening = process(storage).agents.open({
      id: "s",
      signal: controller.signal,
      setup() {
        inSetup.resolve();
        return new Promise(() => {});
      },
    });
    await inSetup.promise;
    expect(storage.held("s")).toBe(true);
    controller.abort(new Error("never mind"));
    await reasonOf(opening);
    await calm();
    expect(storage.held("s")).toBe(false);
  });

  local("#8 D25 a setup that throws, a session that is not stored: the claim is let go", async () => {
    const storage = claimingStorage();
    const { agents } = process(storage);
    const setup = (): never => {
      throw new Error("no");
    };
    await reasonOf(agents.create({ id: "s", setup }));
    expect(storage.held("s")).toBe(false);
    expect(await codeOf(agents.resume({ id: "s" }))).toBe("SESSION_NOT_FOUND");
    expect(storage.held("s")).toBe(false);
  });

  local("D25 stolen in the middle of its setup, an opening ends with SESSION_LOST", async () => {
    const storage = claimingStorage();
    const inSetup = deferred();
    const opening = process(storage).agents.open({
      id: "s",
      setup() {
        inSetup.resolve();
        return new Promise(() => {});
      },
    });
    await inSetup.promise;
    const { agent } = await process(storage).agents.open({ id: "s", claim: "steal" });
    expect(await codeOf(opening)).toBe("SESSION_LOST");
    agent.inject("mine");
    await agent.flush();
    expect(storage.held("s")).toBe(true);
  });
});

describe("steal", () => {
  local("D25 the other's agent is lost: it stops driving, says so, and its verbs throw READ_ONLY", async () => {
    const storage = claimingStorage();
    const model = scriptedModel([{ text: "half an answer", hang: "deaf" }, "never asked"]);
    const harness = process(storage, { model });
    const errors: string[] = [];
    harness.hooks.on("agent/error", ({ error }) => void errors.push((error as { code?: string }).code!));
    const first = await harness.agents.open({ id: "s" });
    const running = run(first.agent, "hello");
    await eventOf(first.agent.session, "assistant/chunk");
    await first.agent.flush();

    const second = await process(storage).agents.open({ id: "s", claim: "steal" });
    await first.agent.whenIdle();
    expect(first.agent.getSnapshot()).toMatchObject({
      durable: "lost",
      status: "idle",
      error: { code: "SESSION_LOST" },
    });
    expect(endOf(first.agent.session)).toMatchObject({ kind: "error", step: 1, code: "SESSION_LOST" });
    expect(errors).toEqual(["SESSION_LOST"]);
    expect(harness.diagnostics.map(({ code }) => code)).toContain("SESSION_LOST");
    expect(codeThrownBy(() => first.agent.send("more"))).toBe("READ_ONLY");
    expect(await codeOf(first.agent.flush())).toBe("SESSION_LOST");
    expect(await codeOf(running.result)).toBe("SESSION_LOST");

    // The thief has the session as it was stored, and closes what was cut short.
    expect(endOf(second.agent.session)).toEqual({ kind: "interrupted" });
    second.agent.send("go on");
    await second.agent.whenIdle();
    await second.agent.flush();
    expect(second.agent.session.durable).toBe("stored");
  });

  local("D24 D25 a turn that was stolen goes on with the thief", async () => {
    const storage = claimingStorage();
    const model = scriptedModel([{ text: "half an answer", hang: "polite" }]);
    const first = await process(storage, { model }).agents.open({ id: "s" });
    first.agent.send("hello");
    await eventOf(first.agent.session, "assistant/chunk");
    await first.agent.flush();
    const { agent } = await process(storage).agents.open({ id: "s", claim: "steal", interrupted: "continue" });
    await agent.whenIdle();
    expect(dataOf(agent.session, "turn/resumed")).toEqual([{ turn: 1, attempt: 2 }]);
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
  });

  local("D25 a lost agent that is disposed leaves the thief its claim, and opening again takes it back", async () => {
    const storage = claimingStorage();
    const robbed = process(storage);
    const first = await robbed.agents.open({ id: "s" });
    const second = await process(storage).agents.open({ id: "s", claim: "steal" });
    await calm();
    expect(first.agent.session.durable).toBe("lost");
    expect(await codeOf(robbed.agents.open({ id: "s" }))).toBe("SESSION_CLAIMED");
    expect(storage.held("s")).toBe(true);
    second.agent.inject("mine");
    await second.agent.flush();
    const again = await robbed.agents.open({ id: "s", claim: "steal" });
    expect(again.agent.session.events).toEqual(second.agent.session.events);
    await calm();
    expect(second.agent.session.durable).toBe("lost");
  });

  local("D25 what was under way when it was stolen is fenced off by the conflict", async () => {
    const inner = memoryStorage();
    const storage = claimingStorage(inner);
    const gate = deferred();
    const slow: SessionStorage = {
      ...storage,
      async append(batch) {
        await gate.promise;
        await storage.append(batch);
      },
    };
    const first = await process(slow).agents.open({ id: "s" });
    first.agent.inject("never stored");
    await calm();
    const second = await process(storage).agents.open({ id: "s", claim: "steal" });
    second.agent.inject("mine");
    await second.agent.flush();
    gate.resolve();
    await first.dispose();
    await calm();
    expect((await inner.load("s"))!.length).toBe(second.agent.session.seq);
    expect(second.agent.session.durable).toBe("stored");
  });

  local("D25 a disposal of a lost agent does not wait for a write that never ends", async () => {
    const clock = testClock();
    const storage = claimingStorage();
    const deaf: SessionStorage = { ...storage, append: () => new Promise(() => {}) };
    const first = await process(deaf, { clock }).agents.open({ id: "s" });
    first.agent.inject("never stored");
    await clock.sleeping(5000);
    await process(storage).agents.open({ id: "s", claim: "steal" });
    await calm();
    const ending = first.dispose();
    await calm();
    await clock.advance(5000);
    await promptly(ending);
  });

  local("D25 a claim that is not let go holds nobody up", async () => {
    const clock = testClock();
    const storage = claimingStorage();
    const deaf: SessionStorage = {
      ...storage,
      claim: async (id, options) => ({ ...(await storage.claim(id, options)), release: () => new Promise(() => {}) }),
    };
    const { dispose } = await process(deaf, { clock }).agents.open({ id: "s" });
    const ending = dispose();
    await clock.sleeping(5000);
    await clock.advance(5000);
    await promptly(ending);
  });
});

/** Begins the agent "s". */
function begin(agents: ReturnType<typeof process>["agents"], way: Way) {
  switch (way) {
    case "create":
      return agents.create({ id: "s" });
    case "resume":
      return agents.resume({ id: "s" });
    case "fork":
      return agents.fork({ from: "source", id: "s" });
    default:
      return agents.open({ id: "s" });
  }
}
