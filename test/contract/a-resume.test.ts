/** Section A: going on with what is stored. */
import { memoryStorage, type SessionEvent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { testClock } from "../support/clock.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { codeOf, held, reasonOf, stage, store, toldBy, ways } from "../support/lifecycle.ts";
import { storedEvents } from "../support/mortal.ts";
import { deferred, eventOf, textOf, typesOf } from "../support/wait.ts";

local("#21 resume loads, rebuilds the session, composes the layer, and publishes under the same id", async () => {
  const inner = memoryStorage();
  await store(inner, "s");
  const told: string[] = [];
  const storage = {
    ...inner,
    load: (...args: Parameters<typeof inner.load>) => {
      told.push(`load ${args[0]}`);
      return inner.load(...args);
    },
  };
  const harness = harnessWith({ storage });
  toldBy(harness.hooks, told);
  const { agent } = await harness.agents.resume({
    id: "s",
    setup: ({ session }) => void told.push(`setup with ${session.events.length} events`),
  });
  const length = (await storedEvents(inner, "s")).length;
  expect(told).toEqual([
    "load s",
    `setup with ${length} events`,
    "session/created s",
    "agent/created s",
    "agent/session-start s resume",
  ]);
  expect(agent.id).toBe("s");
  expect(agent.session.events).toEqual(await storedEvents(inner, "s"));
});

local("#21 the header of a fork is what it was, after any time", async () => {
  const storage = memoryStorage();
  const clock = testClock(1000);
  const first = harnessWith({ storage, clock, model: scriptedModel(["hi", "again"]) });
  const { agent } = await first.agents.create({ id: "root", meta: { cwd: "/home", title: "The root" } });
  agent.send("hello");
  await agent.whenIdle();
  const fork = await first.agents.fork({ from: "root", id: "s" });
  const { header } = fork.agent.session;
  fork.agent.send("on");
  await fork.agent.whenIdle();
  await first.dispose();
  await clock.advance(5000);
  const resumed = await harnessWith({ storage, clock }).agents.resume({ id: "s" });
  expect(resumed.agent.session.header).toEqual(header);
  expect(header).toEqual({
    version: 1,
    id: "s",
    createdAt: 1000,
    meta: { cwd: "/home" },
    parent: { id: "root", seq: agent.session.seq },
    seedLength: agent.session.seq,
  });
});

local(
  "#22 there is always a storage: without one of one's own everything works, and what was never kept is not found",
  async () => {
    const harness = harnessWith({ model: scriptedModel(["hi"]) });
    const error = await reasonOf(harness.agents.resume({ id: "s" }));
    expect(error).toMatchObject({ code: "SESSION_NOT_FOUND" });
    expect((error as Error).message).toMatch(/\bs\b.*`open` or `create`/);
    const { agent, dispose } = await harness.agents.create({ id: "s" });
    agent.send("hello");
    await agent.whenIdle();
    await dispose();
    expect((await harness.agents.resume({ id: "s" })).agent.session.events.length).toBe(agent.session.events.length);
  },
);

local("#23 turns, history and seqs go on from what was loaded", async () => {
  const storage = memoryStorage();
  await store(storage, "s", { messages: ["one", "two"] });
  const before = await storedEvents(storage, "s");
  const model = scriptedModel(["answer to three"]);
  const { agent, dispose } = await harnessWith({ storage, model }).agents.resume({ id: "s" });
  agent.send("three");
  await agent.whenIdle();
  const turns = agent.session.events.filter((event) => event.type === "turn/start");
  expect(turns.map((event) => event.data.turn)).toEqual([1, 2, 3]);
  expect(model.requests[0]?.messages.map((message) => textOf(message.content))).toEqual([
    "one",
    "answer to one",
    "two",
    "answer to two",
    "three",
  ]);
  await dispose();
  const after = await storedEvents(storage, "s");
  expect(after.slice(0, before.length)).toEqual(before);
  expect(after.map((event) => event.seq)).toEqual(after.map((_, n) => n));
});

local("#23 a session that was resumed and left alone has nothing new in its log", async () => {
  const storage = memoryStorage();
  await store(storage, "s");
  const before = await storedEvents(storage, "s");
  const { dispose } = await harnessWith({ storage }).agents.resume({ id: "s" });
  await dispose();
  expect(await storedEvents(storage, "s")).toEqual(before);
});

for (const [verb, code] of [
  ["resume", "SESSION_LIVE"],
  ["create", "SESSION_EXISTS"],
] as const) {
  local(`#25 D2 ${verb} of an id that is live rejects, and leaves its open turn alone`, async () => {
    const model = scriptedModel([{ text: "let me think", hang: "polite" }]);
    const harness = harnessWith({ model });
    const { agent } = await harness.agents.create({ id: "s" });
    agent.send("hello");
    await eventOf(agent.session, "assistant/chunk", ({ data }) => data.chunk.type === "block-end");
    await agent.flush();
    const before = agent.session.events;
    const told = toldBy(harness.hooks);
    let composed = false;
    expect(await codeOf(harness.agents[verb]({ id: "s", setup: () => void (composed = true) }))).toBe(code);
    expect(agent.session.events).toEqual(before);
    expect(agent.status).toBe("running");
    expect(told).toEqual([]);
    expect(composed).toBe(false);
    agent.cancel();
    await agent.whenIdle();
  });
}

local("#25 D2 a resume whose session comes alive while it loads rejects, and repairs nothing", async () => {
  const inner = memoryStorage();
  await store(inner, "s");
  let loads = 0;
  const slow = held(inner, "load");
  const storage = {
    ...inner,
    // The first load waits.
    load: (...args: Parameters<typeof inner.load>) => ((loads += 1) === 1 ? slow.load(...args) : inner.load(...args)),
  };
  const harness = harnessWith({ storage, model: scriptedModel([{ text: "let me think", hang: "polite" }]) });
  const resuming = codeOf(harness.agents.resume({ id: "s" }));
  await slow.reached;
  const { agent } = await harness.agents.open({ id: "s" });
  agent.send("hello");
  await eventOf(agent.session, "step/start", ({ data }) => data.turn === 2);
  slow.release();
  expect(await resuming).toBe("SESSION_LIVE");
  expect(typesOf(agent.session).slice(-1)).not.toContain("turn/end");
  expect(harness.agents.get("s")).toBe(agent);
  agent.cancel();
  await agent.whenIdle();
});

local(
  "D2 create of an id that is stored rejects SESSION_EXISTS, and resume of one that is not SESSION_NOT_FOUND",
  async () => {
    const storage = memoryStorage();
    await store(storage, "s");
    const { agents } = harnessWith({ storage });
    expect(await codeOf(agents.create({ id: "s" }))).toBe("SESSION_EXISTS");
    expect(await codeOf(agents.resume({ id: "t" }))).toBe("SESSION_NOT_FOUND");
  },
);

local("#29 the working directory is given to a session that is new, and a stored one keeps its own", async () => {
  const storage = memoryStorage();
  await store(storage, "s", { meta: { cwd: "/home", title: "Old" } });
  const harness = harnessWith({ storage });
  const stored = await harness.agents.open({ id: "s", meta: { cwd: "/elsewhere", title: "New" } });
  const fresh = await harness.agents.open({ id: "t", meta: { cwd: "/elsewhere", title: "New" } });
  expect(stored.agent.session.header.meta).toEqual({ cwd: "/home", title: "Old" });
  expect(fresh.agent.session.header.meta).toEqual({ cwd: "/elsewhere", title: "New" });
});

local("#4 a seed and the metadata are copied: what their owner does to them later changes nothing", async () => {
  const storage = memoryStorage();
  await store(storage, "source");
  const seed = structuredClone(await storedEvents(storage, "source"));
  const original = structuredClone(seed);
  const meta = { cwd: "/home", labels: ["a"] };
  const { agent } = await harnessWith({ storage }).agents.create({ id: "s", seed, meta });
  Object.assign((seed.find((event) => event.type === "user/message") as SessionEvent<"user/message">).data, {
    content: "changed",
  });
  seed.length = 1;
  meta.labels.push("b");
  meta.cwd = "/elsewhere";
  expect(agent.session.events).toEqual(original);
  expect(agent.session.header.meta).toEqual({ cwd: "/home", labels: ["a"] });
  expect(agent.session.header.seedLength).toBe(original.length);
  expect(agent.session.events.every((event) => Object.isFrozen(event) && Object.isFrozen(event.data))).toBe(true);
});

local("#4 the context is borrowed: hooks and tools get the very object", async () => {
  const context = { user: "ada", socket: () => {} };
  const { agent } = await harnessWith().agents.create({ context });
  expect(agent.options.context).toBe(context);
});

const good: SessionEvent = {
  seq: 0,
  time: 1,
  type: "inbox/queued",
  data: { id: "m", content: [], source: { kind: "user" }, as: "send" },
};
const badSeeds: Record<string, readonly unknown[]> = {
  "a gap": [good, { ...good, seq: 2 }],
  "a field of its own": [{ ...good, extra: 1 }],
  "no data": [{ seq: 0, time: 1, type: "turn/start" }],
  "a message without a surface": [{ ...good, type: "user/message", data: { id: "m", content: [], source: {} } }],
  "what is not JSON": [{ ...good, data: { ...good.data, when: new Date() } }],
  "no event": [null],
};
for (const [what, seed] of Object.entries(badSeeds)) {
  local(`#4 a seed with ${what} is refused before anybody is told`, async () => {
    const harness = harnessWith();
    const told = toldBy(harness.hooks);
    expect(await codeOf(harness.agents.create({ id: "s", seed: seed as SessionEvent[] }))).toBe("INVALID_LOG");
    expect(told).toEqual([]);
    expect((await harness.agents.create({ id: "s" })).agent.session.events).toEqual([]);
  });
}

for (const [what, meta, code] of [
  ["a relative cwd", { cwd: "home" }, "INVALID_HEADER"],
  ["a title that is no text", { title: 1 }, "INVALID_HEADER"],
  ["a function", { run: () => {} }, "INVALID_CONTENT"],
  ["a cycle", cyclic(), "INVALID_CONTENT"],
] as const) {
  local(`#4 metadata with ${what} is refused before anybody is told`, async () => {
    const harness = harnessWith();
    const told = toldBy(harness.hooks);
    expect(await codeOf(harness.agents.create({ id: "s", meta: meta as never }))).toBe(code);
    expect(told).toEqual([]);
  });
}

local("#4 a call configuration that is no JSON is refused before anybody is told, and the id is free", async () => {
  for (const way of ways) {
    const { harness, begin } = await stage(way);
    const told = toldBy(harness.hooks);
    expect([way, await codeOf(begin({ call: { temperature: Number.NaN } }))]).toEqual([way, "INVALID_CONTENT"]);
    expect(told).toEqual([]);
    expect((await begin()).agent.id).toBe("s");
  }
});

local("#24 a load that hangs blocks nobody else: other ids are opened meanwhile", async () => {
  const inner = memoryStorage();
  const gate = deferred();
  const storage = {
    ...inner,
    async load(...[id, options]: Parameters<typeof inner.load>) {
      if (id === "slow") await gate.promise;
      return inner.load(id, options);
    },
  };
  const { agents } = harnessWith({ storage });
  const slow = agents.open({ id: "slow" });
  expect((await agents.open({ id: "s" })).agent.id).toBe("s");
  gate.resolve();
  expect((await slow).agent.id).toBe("slow");
});

function cyclic(): object {
  const meta: Record<string, unknown> = {};
  meta["self"] = meta;
  return meta;
}
