/** V: `onSummary` (D25): what is stored of a session is told at least once, in order, whatever the listener does. */
import { memoryStorage, type SessionSummary } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { testClock } from "../support/clock.ts";
import { faultyStage, holds } from "../support/failing-storage.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { calm, promptly, store } from "../support/lifecycle.ts";
import { mortal } from "../support/mortal.ts";
import { deferred } from "../support/wait.ts";

local("D25 what is told is never behind what was told, and ends with all that is stored", async () => {
  const told: SessionSummary[] = [];
  const harness = harnessWith({ model: scriptedModel(["hi", "ho"]), onSummary: (summary) => void told.push(summary) });
  const { agent } = await harness.agents.open({ id: "s" });
  agent.send("hello");
  await agent.whenIdle();
  agent.send("again");
  await agent.whenIdle();
  await agent.flush();
  const seqs = told.map(({ seq }) => seq);
  expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
  expect(told.at(-1)).toEqual((await harness.sessions.list()).sessions[0]);
});

local("D25 what was stored and could not be told before its process died is told at the next opening", async () => {
  const { storage, disk, kill } = mortal();
  const first = await harnessWith({ storage, onSummary: () => new Promise(() => {}) }).agents.open({ id: "s" });
  first.agent.inject("hello");
  await first.agent.flush();
  kill();
  const told: number[] = [];
  const harness = harnessWith({ storage: disk, onSummary: ({ seq }) => void told.push(seq) });
  await harness.agents.open({ id: "s" });
  expect(told).toEqual([3]);
});

local("D25 a session that is opened and repaired is told once, as it is then", async () => {
  const { storage, disk, killAfter, dead } = mortal();
  killAfter("user/message");
  const first = await harnessWith({ storage, model: scriptedModel(["hi"]) }).agents.open({ id: "s" });
  first.agent.send("hello");
  await dead;
  const told: SessionSummary[] = [];
  const { agent } = await harnessWith({ storage: disk, onSummary: (summary) => void told.push(summary) }).agents.open({
    id: "s",
  });
  await agent.flush();
  expect(told.map(({ seq, status }) => `${seq} ${status}`)).toEqual([`${agent.session.seq} idle`]);
});

local("D25 a listener that fails is asked again after 100 ms, doubling to 5 s, until it has heard", async () => {
  const clock = testClock();
  const told: number[] = [];
  let failures = 8;
  const harness = harnessWith({
    clock,
    onSummary({ seq }) {
      told.push(seq);
      if ((failures -= 1) >= 0) throw new Error("no index");
    },
  });
  const { agent } = await harness.agents.open({ id: "s" });
  agent.inject("hello");
  await agent.flush();
  for (const ms of [100, 200, 400, 800, 1600, 3200, 5000, 5000]) {
    await clock.sleeping(ms);
    const before = told.length;
    await clock.advance(ms - 1);
    expect(told).toHaveLength(before);
    await clock.advance(1);
    expect(told).toHaveLength(before + 1);
  }
  await clock.advance(60_000);
  expect(told).toEqual(Array(9).fill(3));
  expect(harness.diagnostics.map(({ code }) => code)).toEqual(Array(8).fill("LISTENER_FAILED"));
});

local(
  "D25 calls of one session never overlap: while one lasts, the newest waits and those between are passed over",
  async () => {
    const told: number[] = [];
    const gate = deferred();
    const harness = harnessWith({
      async onSummary({ seq }) {
        told.push(seq);
        await gate.promise;
      },
    });
    const { agent } = await harness.agents.open({ id: "s" });
    for (const text of ["one", "two", "three"]) {
      agent.inject(text);
      await agent.flush();
    }
    await calm();
    expect(told).toEqual([3]);
    gate.resolve();
    await calm();
    expect(told).toEqual([3, 9]);
  },
);

local("D25 a listener that never answers holds up neither the session nor its end", async () => {
  const harness = harnessWith({ onSummary: () => new Promise(() => {}) });
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  agent.inject("hello");
  await promptly(agent.flush());
  await promptly(dispose());
});

local("D25 nor does one that fails: it is not asked again behind the end", async () => {
  const clock = testClock();
  let told = 0;
  const harness = harnessWith({
    clock,
    onSummary() {
      told += 1;
      throw new Error("no index");
    },
  });
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  agent.inject("hello");
  await agent.flush();
  await promptly(dispose());
  await clock.advance(60_000);
  expect(told).toBe(1);
});

local("D25 D26 a change of a session without an agent is told too", async () => {
  const storage = memoryStorage();
  await store(storage, "s");
  const told: string[] = [];
  const { sessions } = harnessWith({ storage, onSummary: ({ id, title }) => void told.push(`${id} ${title}`) });
  await sessions.rename("s", "new");
  await sessions.import(sessions.export("s"), { id: "copy" });
  expect(told).toEqual(["s new", "copy new"]);
});

local(
  "D25 `pending` is told when something gathers behind a write that lasts, and not once for each write",
  async () => {
    const { open, storage } = faultyStage();
    const agent = await open();
    const seen: string[] = [];
    agent.subscribe(() => void seen.push(agent.getSnapshot().durable));
    for (let i = 0; i < 5; i += 1) {
      agent.configure({ temperature: i });
      await agent.flush();
    }
    expect(seen).toEqual([]);

    storage.next(holds);
    agent.configure({ temperature: 6 });
    await storage.tries(6);
    await calm();
    expect(seen).toEqual([]);
    expect(agent.session.durable).toBe("pending");
    agent.configure({ temperature: 7 });
    agent.configure({ temperature: 8 });
    expect(seen).toEqual(["pending"]);
    storage.heal();
    await agent.flush();
    expect(seen).toEqual(["pending", "stored"]);
  },
);
