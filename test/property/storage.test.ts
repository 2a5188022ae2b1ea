/** The recorder, for any row of failures: what is stored is always the beginning of the log, and in the end all of it. */
import * as fc from "fast-check";
import { createHarness, jsonEqual, memoryStorage, TurnloopError, type Agent, type SessionEvent } from "turnloop";
import { expect, test } from "vitest";
import {
  fails,
  failingStorage,
  faultyStage,
  hangs,
  holds,
  losesAnswer,
  turnOfTheEventLoop,
  type Fault,
} from "../support/failing-storage.ts";
import { storageOf, logOf, plainTurn } from "../support/made-log.ts";

const faults: Readonly<Record<string, Fault>> = { fails, losesAnswer, hangs, holds };

type Step =
  | { readonly do: "append"; readonly count: number }
  | { readonly do: "faults"; readonly names: readonly string[] }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "release" | "flush" | "look" };

const program: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("append" as const), count: fc.integer({ min: 1, max: 4 }) }) },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("faults" as const),
        names: fc.array(fc.constantFrom(...Object.keys(faults)), { minLength: 1, maxLength: 3 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(1, 100, 250, 5000, 20_000) }),
    },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("release" as const, "flush" as const, "look" as const) }) },
  ),
  { minLength: 2, maxLength: 20 },
);

test("whatever a storage does, it holds the beginning of the log, and all of it once it works again", async () => {
  await fc.assert(
    fc.asyncProperty(program, fc.boolean(), async (steps, isOld) => {
      const inner = isOld ? await storageOf(logOf(plainTurn(1))) : memoryStorage();
      const stage = faultyStage({ inner });
      const agent = await stage.open();
      const flushes: Promise<unknown>[] = [];
      for (const step of steps) {
        switch (step.do) {
          case "append":
            for (let i = 0; i < step.count; i += 1) agent.configure({ seed: i });
            break;
          case "faults":
            stage.storage.next(...step.names.map((name) => faults[name]!));
            break;
          case "wait":
            await turnOfTheEventLoop();
            await stage.clock.advance(step.ms);
            break;
          case "release":
            stage.storage.release();
            break;
          case "flush":
            flushes.push(agent.flush().catch((error: unknown) => error));
            break;
          case "look":
            await turnOfTheEventLoop();
        }
        const stored = await stage.storage.stored("s");
        expect(stored).toEqual(agent.session.events.slice(0, stored.length));
        expect(agent.session.durable).not.toBe("lost");
      }
      await stage.recover(agent);
      expect(await stage.storage.stored("s")).toEqual(agent.session.events);
      const told = await Promise.all(flushes);
      expect(told.every((one) => one === undefined || TurnloopError.is(one, "SESSION_DEGRADED"))).toBe(true);
      await stage.harness.dispose();
    }),
    { numRuns: 60 },
  );
}, 60_000);

const race = fc.array(
  fc.record({
    who: fc.nat({ max: 1 }),
    do: fc.constantFrom("append", "append", "flush", "look", "losesAnswer", "fails"),
  }),
  { minLength: 2, maxLength: 20 },
);

test("of two writers of one session at most one writes on: their events never mix, and the other one knows", async () => {
  await fc.assert(
    fc.asyncProperty(race, async (steps) => {
      const inner = await storageOf(logOf(plainTurn(1)));
      const stages = [faultyStage({ inner }), faultyStage({ inner })] as const;
      const agents = [await stages[0].open(), await stages[1].open()] as const;
      for (const { who, do: what } of steps) {
        const agent = agents[who]!;
        const { storage } = stages[who]!;
        if (what === "flush") void agent.flush().catch(() => {});
        else if (what === "look") await turnOfTheEventLoop();
        else if (what === "append") tryAppend(agent, who);
        else storage.next(faults[what]!);
      }
      await Promise.all(stages.map((stage, i) => stage.recover(agents[i]!)));
      const stored = await stages[0].storage.stored("s");
      for (const { session } of agents) {
        const isWinner = jsonEqual(session.events, stored);
        // Who is not lost has exactly what is stored, or nothing of its own to store.
        const isBehind = jsonEqual(session.events, stored.slice(0, session.seq)) && session.durable === "stored";
        expect(session.durable === "lost" || isWinner || isBehind).toBe(true);
        expect(writers(session.events).size).toBeLessThanOrEqual(1);
      }
      expect(writers(stored).size).toBeLessThanOrEqual(1);
      await Promise.all(stages.map((stage) => stage.harness.dispose()));
      const { agents: later } = createHarness({ storage: failingStorage(inner) });
      const { agent, dispose } = await later.open({ id: "s" });
      expect(agent.session.events).toEqual(stored);
      await dispose();
    }),
    { numRuns: 60 },
  );
}, 60_000);

function tryAppend(agent: Agent, who: number): void {
  try {
    agent.configure({ seed: who });
  } catch (error) {
    if (!TurnloopError.is(error, "READ_ONLY")) throw error;
  }
}

function writers(events: readonly SessionEvent[]): Set<unknown> {
  return new Set(events.flatMap((event) => (event.type === "agent/configured" ? [event.data.patch.seed] : [])));
}
