/** D2: a fork takes a history up to a boundary between turns, from a live session or a stored one. */
import { memoryStorage, type Agent, type ForkAgentOptions, type Harness, type SessionStorage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { codeOf, store, toldBy } from "../support/lifecycle.ts";
import { mortal, storedEvents } from "../support/mortal.ts";
import { eventOf, textOf, typesOf } from "../support/wait.ts";

/** Two turns have ended, the third is open. */
async function threeTurns(storage: SessionStorage = memoryStorage()): Promise<{ harness: Harness; source: Agent }> {
  const model = scriptedModel(["a", "b", { text: "let me think", hang: "polite" }, "d"]);
  const harness = harnessWith({ storage, model });
  const { agent: source } = await harness.agents.create({ id: "source", meta: { cwd: "/home", title: "The source" } });
  for (const id of ["one", "two"]) {
    source.send(id, { id });
    await source.whenIdle();
  }
  source.send("three", { id: "three" });
  source.steer("three and a half", { id: "steered" });
  await eventOf(source.session, "assistant/chunk", ({ data }) => data.turn === 3 && data.chunk.type === "block-end");
  await source.flush();
  return { harness, source };
}

function ends(source: Agent): number[] {
  return source.session.events.filter((event) => event.type === "turn/end").map((event) => event.seq);
}

function texts({ session }: Agent): string[] {
  return session.deriveMessages().map((message) => textOf(message.content));
}

local("D2 a fork of a live session leaves the open turn out, and leaves the source alone", async () => {
  const { harness, source } = await threeTurns();
  const before = source.session.events;
  const { agent } = await harness.agents.fork({ from: "source", id: "s" });
  const [, last] = ends(source);
  expect(agent.session.events).toEqual(before.slice(0, last! + 1));
  expect(texts(agent)).toEqual(["one", "a", "two", "b"]);
  expect(source.session.events).toEqual(before);
  expect(source.status).toBe("running");
  source.cancel();
  await source.whenIdle();
});

local("D2 a fork has its own header: the parent, the length of its seed, the directory, and no title", async () => {
  const { harness, source } = await threeTurns();
  const { agent } = await harness.agents.fork({ from: "source", id: "s" });
  const length = ends(source)[1]! + 1;
  expect(agent.session.header).toEqual({
    version: 1,
    id: "s",
    createdAt: expect.any(Number) as number,
    meta: { cwd: "/home" },
    parent: { id: "source", seq: length },
    seedLength: length,
  });
  expect(agent.session.seq).toBe(length);
  source.cancel();
});

for (const from of ["live", "stored"] as const) {
  for (const [what, options, expected] of [
    ["at the end of a turn", (source: Agent) => ({ at: ends(source)[0]! }), ["one", "a"]],
    ["before the first turn", () => ({ before: "one" }), []],
    ["before a turn in the middle", () => ({ before: "two" }), ["one", "a"]],
    ["before the last turn", () => ({ before: "three" }), ["one", "a", "two", "b"]],
  ] as const) {
    local(`D2 a fork of a ${from} session ${what}`, async () => {
      const { disk, storage, kill } = mortal();
      const { harness: host, source } = await threeTurns(storage);
      const cut: Partial<ForkAgentOptions> = options(source);
      if (from === "stored") kill();
      const harness = from === "live" ? host : harnessWith({ storage: disk });
      const { agent } = await harness.agents.fork({ from: "source", id: "s", ...cut });
      expect(texts(agent)).toEqual(expected);
      expect(agent.session.header.seedLength).toBe(agent.session.seq);
      const last = agent.session.events.at(-1);
      expect(last?.type ?? "turn/end").toBe("turn/end");
      source.cancel();
    });
  }
}

local("D2 a fork of a stored session with an open turn leaves that out, and does not repair the source", async () => {
  const { disk, storage, kill } = mortal();
  const { source } = await threeTurns(storage);
  const last = ends(source)[1]!;
  kill();
  const before = await storedEvents(disk, "source");
  const harness = harnessWith({ storage: disk });
  const { agent } = await harness.agents.fork({ from: "source", id: "s" });
  expect(agent.session.events).toEqual(before.slice(0, last + 1));
  expect(await storedEvents(disk, "source")).toEqual(before);
  expect(harness.agents.get("source")).toBeUndefined();
});

const refused: Record<string, (source: Agent) => Partial<ForkAgentOptions>> = {
  "inside a turn": (source) => ({ at: ends(source)[0]! - 1 }),
  "at the first event": () => ({ at: 0 }),
  "past the end": (source) => ({ at: source.session.seq }),
  "at a negative seq": () => ({ at: -1 }),
  "at what is no whole number": () => ({ at: 1.5 }),
  "before an unknown message": () => ({ before: "four" }),
  "before a steering message": () => ({ before: "steered" }),
  "before a message that is queued": () => ({ before: "waiting" }),
  "at one place and before another": (source) => ({ at: ends(source)[0]!, before: "two" }),
  "before a name that every object has": () => ({ before: "constructor" }),
};
for (const [what, options] of Object.entries(refused)) {
  local(`D2 a fork ${what} is refused as INVALID_BOUNDARY`, async () => {
    const { harness, source } = await threeTurns();
    source.send("four", { id: "waiting" });
    const told = toldBy(harness.hooks);
    expect(await codeOf(harness.agents.fork({ from: "source", id: "s", ...options(source) }))).toBe("INVALID_BOUNDARY");
    expect(told).toEqual([]);
    source.cancel();
    await source.whenIdle();
  });
}

local("D2 only the first of the messages that one turn took names it", async () => {
  const harness = harnessWith({ model: scriptedModel(["a", "b"]) });
  const { agent: source } = await harness.agents.create({ id: "source" });
  source.send("one", { id: "one" });
  source.send("and", { id: "and" });
  await source.whenIdle();
  expect(source.session.events.filter((event) => event.type === "turn/start")).toHaveLength(1);
  expect(await codeOf(harness.agents.fork({ from: "source", before: "and" }))).toBe("INVALID_BOUNDARY");
  const { agent } = await harness.agents.fork({ from: "source", before: "one" });
  expect(agent.session.events).toEqual([]);
});

local("D2 where the first message of a turn was blocked, the first that was heard names it", async () => {
  const harness = harnessWith({ model: scriptedModel(["a", "b"]) });
  harness.hooks.on("agent/prompt-submit", async ({ id }, next) =>
    id === "bad" ? { kind: "block", reason: "no" } : next(),
  );
  const { agent: source } = await harness.agents.create({ id: "source" });
  source.send("zero", { id: "zero" });
  await source.whenIdle();
  source.send("bad", { id: "bad" });
  source.send("good", { id: "good" });
  await source.whenIdle();
  const { agent } = await harness.agents.fork({ from: "source", before: "good" });
  expect(texts(agent)).toEqual(["zero", "a"]);
});

local("D2 what stands between turns behind the boundary is not part of the fork", async () => {
  const harness = harnessWith({ model: scriptedModel(["a"]) });
  const { agent: source } = await harness.agents.create({ id: "source" });
  source.send("one");
  await source.whenIdle();
  source.configure({ temperature: 1 });
  await harness.sessions.rename("source", "New title");
  const { agent } = await harness.agents.fork({ from: "source" });
  expect(typesOf(agent.session).slice(-1)).toEqual(["turn/end"]);
});

local("D2 a fork of what has no turn yet is empty", async () => {
  const harness = harnessWith({ model: scriptedModel(["a"]) });
  await harness.agents.create({ id: "source" });
  const { agent } = await harness.agents.fork({ from: "source" });
  expect(agent.session.events).toEqual([]);
  expect(agent.session.header).toMatchObject({ parent: { id: "source", seq: 0 }, seedLength: 0 });
  agent.send("hello");
  await agent.whenIdle();
  expect(texts(agent)).toEqual(["hello", "a"]);
});

local("D2 a fork goes its own way: turns go on, and neither hears of the other", async () => {
  const storage = memoryStorage();
  await store(storage, "source");
  const harness = harnessWith({ storage, model: scriptedModel(["on the branch"]) });
  const { agent: source } = await harness.agents.open({ id: "source" });
  const { agent, dispose } = await harness.agents.fork({ from: "source", id: "s" });
  const before = source.session.events;
  agent.send("on");
  await agent.whenIdle();
  expect(texts(agent)).toEqual(["hello", "answer to hello", "on", "on the branch"]);
  expect(agent.session.events.findLast((event) => event.type === "turn/start")?.data.turn).toBe(2);
  expect(source.session.events).toEqual(before);
  await dispose();
  expect(await storedEvents(storage, "s")).toEqual(agent.session.events);
});

local("D2 a fork of a fork names its own parent, and its seed is all that it took", async () => {
  const { harness, source } = await threeTurns();
  await harness.agents.fork({ from: "source", id: "child" });
  const { agent } = await harness.agents.fork({ from: "child", before: "two" });
  const length = ends(source)[0]! + 1;
  expect(agent.session.header).toMatchObject({ parent: { id: "child", seq: length }, seedLength: length });
  source.cancel();
});

local("D2 a fork needs a source, and an id that is free", async () => {
  const storage = memoryStorage();
  await store(storage, "stored");
  const { agents } = harnessWith({ storage });
  await agents.create({ id: "live" });
  expect(await codeOf(agents.fork({ from: "nowhere" }))).toBe("SESSION_NOT_FOUND");
  expect(await codeOf(agents.fork({ from: "" }))).toBe("INVALID_ID");
  expect(await codeOf(agents.fork({ from: "live", id: "" }))).toBe("INVALID_ID");
  for (const id of ["live", "stored"]) {
    expect(await codeOf(agents.fork({ from: "live", id }))).toBe("SESSION_EXISTS");
    // #230: that is seen before the boundary is looked at.
    expect(await codeOf(agents.fork({ from: "live", id, at: 99 }))).toBe("SESSION_EXISTS");
  }
});
