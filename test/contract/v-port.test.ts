/** V: what the loop asks of a storage, and what the one in memory gives. */
import { createHarness, memoryStorage, type SessionBatch, type SessionEvent, type SessionStorage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import { codesOf, faultyStage, holds } from "../support/failing-storage.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { headerOf, line, logOf, plainTurn, store } from "../support/made-log.ts";
import { eventOf } from "../support/wait.ts";

const code = (is: string): unknown => expect.objectContaining({ code: is });
const two = logOf(plainTurn(1), plainTurn(2));

function batchOf(id: string, from: number, to: number, more: Partial<SessionBatch> = {}): SessionBatch {
  const summary = { id, createdAt: 1000, updatedAt: 1000 + to, seq: to, status: "idle" } as const;
  return { id, from, events: two.slice(from, to), summary, ...(from === 0 && { header: headerOf(id) }), ...more };
}

async function eventsOf(storage: SessionStorage, id: string, from?: number): Promise<SessionEvent[] | undefined> {
  const stored = await storage.load(id, from === undefined ? {} : { from });
  if (!stored) return undefined;
  const events: SessionEvent[] = [];
  for await (const batch of stored.batches) events.push(...batch);
  return events;
}

describe("memoryStorage", () => {
  local(
    "#239 D25 a batch goes to the end of what is stored: anything else is a conflict, and changes nothing",
    async () => {
      const storage = memoryStorage();
      await storage.append(batchOf("s", 0, 4));
      await storage.append(batchOf("s", 4, 6));
      for (const from of [1, 3, 5, 7, 11]) {
        await expect(storage.append(batchOf("s", from, from + 1))).rejects.toEqual(code("SESSION_CONFLICT"));
      }
      await expect(storage.append(batchOf("other", 1, 2))).rejects.toEqual(code("SESSION_CONFLICT"));
      expect(await eventsOf(storage, "s")).toEqual(two.slice(0, 6));
      expect((await storage.list()).sessions).toMatchObject([{ id: "s", seq: 6 }]);
    },
  );

  local("#239 #240 D25 the first batch brings the header and begins the session, once", async () => {
    const storage = memoryStorage();
    const { header: _, ...headless } = batchOf("s", 0, 2);
    await expect(storage.append(headless)).rejects.toThrow("header");
    expect(await storage.load("s")).toBeUndefined();
    await storage.append(batchOf("s", 0, 2));
    await expect(storage.append(batchOf("s", 0, 6))).rejects.toEqual(code("SESSION_EXISTS"));
    expect(await storage.load("s")).toMatchObject({ header: headerOf("s"), length: 2 });
  });

  local("#239 an empty batch changes nothing", async () => {
    const storage = memoryStorage();
    await storage.append({ ...batchOf("s", 0, 0) });
    expect(await storage.load("s")).toBeUndefined();
    expect((await storage.list()).sessions).toEqual([]);
    await storage.append(batchOf("s", 0, 6));
    await storage.append(batchOf("s", 6, 6));
    expect(await eventsOf(storage, "s")).toEqual(two.slice(0, 6));
  });

  local("#239 a batch counts as it was when it was given", async () => {
    const storage = memoryStorage();
    const events = two.slice(0, 4);
    const appended = storage.append(batchOf("s", 0, 4, { events }));
    events.pop();
    await appended;
    events.length = 0;
    expect(await eventsOf(storage, "s")).toEqual(two.slice(0, 4));
  });

  local("#241 D25 loads from any seq on, and what is loaded does not grow", async () => {
    const storage = memoryStorage();
    await storage.append(batchOf("s", 0, 6));
    const loaded = await storage.load("s");
    await storage.append(batchOf("s", 6, 12));
    let count = 0;
    for await (const batch of loaded!.batches) count += batch.length;
    expect([loaded!.length, count]).toEqual([6, 6]);
    expect(await eventsOf(storage, "s", 8)).toEqual(two.slice(8));
    expect(await eventsOf(storage, "s", 12)).toEqual([]);
  });

  local("#242 D26 lists the newest first, page by page, and reads no events", async () => {
    const storage = memoryStorage();
    const updated = { a: 5, b: 1, c: 9, d: 5, e: 7 };
    for (const [id, updatedAt] of Object.entries(updated)) {
      await storage.append(batchOf(id, 0, 1, { summary: { id, createdAt: 0, updatedAt, seq: 1, status: "idle" } }));
    }
    expect((await storage.list()).sessions.map(({ id }) => id)).toEqual(["c", "e", "a", "d", "b"]);
    const pages: string[][] = [];
    let cursor: string | undefined;
    do {
      const page = await storage.list({ limit: 2, ...(cursor !== undefined && { cursor }) });
      pages.push(page.sessions.map(({ id }) => id));
      ({ cursor } = page);
    } while (cursor !== undefined);
    expect(pages).toEqual([["c", "e"], ["a", "d"], ["b"]]);
  });

  local("#242 D26 a page goes on where the last one ended, whatever happened in between", async () => {
    const storage = memoryStorage();
    const add = (id: string, updatedAt: number): Promise<void> =>
      storage.append(batchOf(id, 0, 1, { summary: { id, createdAt: 0, updatedAt, seq: 1, status: "idle" } }));
    await add("a", 3);
    await add("b", 2);
    await add("c", 1);
    const { cursor } = await storage.list({ limit: 1 });
    await add("newest", 9);
    await storage.delete("a");
    expect((await storage.list({ limit: 2, cursor: cursor! })).sessions.map(({ id }) => id)).toEqual(["b", "c"]);
  });

  local("#249 any text is an id of its own", async () => {
    const storage = memoryStorage();
    const ids = [
      "a/b",
      "a\\b",
      "../a",
      ".",
      "a b",
      "A",
      "a",
      "a\0",
      "__proto__",
      "constructor",
      "ä",
      "a\u0308",
      "🦉",
      "%2F",
    ];
    for (const id of ids) await store(storage, id, logOf(line("session/titled", { title: id })));
    for (const id of ids) {
      expect(await eventsOf(storage, id)).toMatchObject([{ data: { title: id } }]);
      expect((await storage.load(id))!.header.id).toBe(id);
    }
    expect(await storage.load("toString")).toBeUndefined();
    expect((await storage.list()).sessions).toHaveLength(ids.length);
  });

  local(
    "#240 a session that was deleted is gone, and its id is free; deleting what is not there is no error",
    async () => {
      const storage = memoryStorage();
      await storage.append(batchOf("s", 0, 6));
      await storage.delete("s");
      await storage.delete("s");
      expect(await storage.load("s")).toBeUndefined();
      await storage.append(batchOf("s", 0, 2));
      expect(await eventsOf(storage, "s")).toHaveLength(2);
    },
  );
});

describe("what the port sees", () => {
  local("#239 #243 D25 plain events in order, each once, chunks included, as they stand in the log", async () => {
    const { harness, open, storage } = faultyStage({ model: scriptedModel(["a few words of text"]) });
    const agent = await open();
    agent.send("hello");
    await agent.whenIdle();
    await agent.flush();
    const seen = storage.tried.flatMap(({ events }) => events);
    expect(seen).toEqual(agent.session.events);
    expect(seen.filter(({ type }) => type === "assistant/chunk").length).toBeGreaterThan(5);
    expect(JSON.parse(JSON.stringify(seen))).toEqual(seen);
    const ends = storage.tried.map(({ from, events }) => [from, from + events.length]);
    expect(ends.slice(1).map(([from]) => from)).toEqual(ends.slice(0, -1).map(([, to]) => to));
    expect(codesOf(harness.diagnostics)).toEqual([]);
  });

  local("#240 D25 the header comes with the first batch, and with no other", async () => {
    const { open, storage } = faultyStage();
    const agent = await open();
    agent.inject("one");
    await agent.flush();
    agent.inject("two");
    await agent.flush();
    expect(storage.tried.map(({ header }) => header)).toEqual([agent.session.header, undefined]);
  });

  local("#239 D25 what one turn of the event loop appends is one batch", async () => {
    const { open, storage } = faultyStage();
    const agent = await open();
    for (const temperature of [0, 0.5, 1]) agent.configure({ temperature });
    await agent.flush();
    expect(storage.tried.map(({ from, events }) => [from, events.length])).toEqual([[0, 3]]);
  });

  local("#243 D25 while a write is under way the next batch gathers: one write at a time", async () => {
    const { open, storage } = faultyStage();
    const agent = await open();
    storage.next(holds);
    agent.inject("one");
    await storage.tries(1);
    agent.inject("two");
    agent.inject("three");
    const flushed = agent.flush();
    expect(storage.tried).toHaveLength(1);
    storage.heal();
    await flushed;
    expect(storage.tried.map(({ from, events }) => [from, events.length])).toEqual([
      [0, 3],
      [3, 6],
    ]);
  });

  local(
    "D25 a session that was just opened is stored; what it appends is pending until the storage has it",
    async () => {
      const { open, storage } = faultyStage();
      const agent = await open();
      expect(agent.session.durable).toBe("stored");
      storage.next(holds);
      agent.configure({ temperature: 0 });
      expect(agent.getSnapshot().durable).toBe("pending");
      await storage.tries(1);
      storage.heal();
      await agent.flush();
      expect(agent.getSnapshot().durable).toBe("stored");
    },
  );

  local("D25 each batch brings the summary of the session as of its last event", async () => {
    const { open, storage } = faultyStage({ model: scriptedModel(["hi"]) });
    const agent = await open();
    agent.send("hello");
    await eventOf(agent.session, "turn/end");
    await agent.flush();
    const last = storage.tried.at(-1)!;
    expect(last.summary).toEqual({
      id: "s",
      createdAt: agent.session.header.createdAt,
      updatedAt: agent.session.events.at(-1)!.time,
      seq: agent.session.seq,
      status: "idle",
    });
  });

  local(
    "D25 onSummary is told of every stored change, in order, after it is stored; what it throws disturbs nobody",
    async () => {
      const told: number[] = [];
      const { harness, open, storage } = faultyStage({
        onSummary({ seq }) {
          told.push(seq);
          if (told.length === 1) throw new Error("no index");
          return Promise.reject(new Error("no index either"));
        },
      });
      const agent = await open();
      storage.next(holds);
      agent.inject("one");
      await storage.tries(1);
      expect(told).toEqual([]);
      storage.heal();
      await agent.flush();
      agent.inject("two");
      await agent.flush();
      expect(told).toEqual([3, 6]);
      await harness.dispose();
      expect(codesOf(harness.diagnostics)).toEqual(["LISTENER_FAILED", "LISTENER_FAILED"]);
    },
  );

  local("#240 a session in which nothing has happened is neither stored nor listed, and its id is free", async () => {
    const { harness, storage } = faultyStage();
    const { dispose } = await harness.agents.create({ id: "s" });
    expect(await harness.sessions.list()).toEqual({ sessions: [] });
    await expect(harness.agents.create({ id: "s" })).rejects.toEqual(code("SESSION_EXISTS"));
    await dispose();
    expect(storage.tried).toEqual([]);
    const { agent } = await harness.agents.create({ id: "s" });
    agent.inject("now there is something");
    await agent.flush();
    expect((await harness.sessions.list()).sessions).toMatchObject([{ id: "s", seq: 3 }]);
  });

  local("#239 D2 an id that is stored cannot be created again", async () => {
    const storage = memoryStorage();
    await store(storage, "s", two);
    const { agents, sessions } = createHarness({ storage });
    await expect(agents.create({ id: "s" })).rejects.toEqual(code("SESSION_EXISTS"));
    await expect(sessions.create({ id: "s" })).rejects.toEqual(code("SESSION_EXISTS"));
    expect(await eventsOf(storage, "s")).toEqual(two);
  });

  local("#246 a seed is stored once, with the session; what was loaded is not stored again", async () => {
    const { harness, storage, open } = faultyStage({ inner: memoryStorage() });
    const { agent, dispose } = await harness.agents.create({ id: "s", seed: two });
    await agent.flush();
    await dispose();
    expect(storage.tried.map(({ from, events }) => [from, events.length])).toEqual([[0, 12]]);
    const again = await open();
    await again.flush();
    expect(storage.tried).toHaveLength(1);
    again.inject("more");
    await again.flush();
    expect(storage.tried.slice(1).map(({ from, events }) => [from, events.length])).toEqual([[12, 3]]);
  });

  local("#244 sessions never cross: each event is stored in the session that it belongs to", async () => {
    const model = scriptedModel(Array.from({ length: 4 }, (_, i) => `answer ${i}`));
    const { harness, open, storage } = faultyStage({ model });
    const agents = await Promise.all(["a", "b", "c", "d"].map(open));
    for (const agent of agents) agent.send(`to ${agent.id}`);
    await Promise.all(agents.map((agent) => agent.whenIdle()));
    await Promise.all(agents.map((agent) => agent.flush()));
    for (const agent of agents) expect(await storage.stored(agent.id)).toEqual(agent.session.events);
    expect((await harness.sessions.list()).sessions).toHaveLength(4);
  });
});

local(
  "#242 a storage that says null of what it does not hold, as many drivers do, is one that does not hold it",
  async () => {
    const memory = memoryStorage();
    // What its type forbids, and JavaScript does not.
    const load: SessionStorage["load"] = async (...asked) =>
      (await memory.load(...asked)) ?? (null as unknown as undefined);
    const { agents, sessions } = harnessWith({ storage: { ...memory, load } });
    expect((await agents.create({ id: "created" })).agent.session.seq).toBe(0);
    // Had one answer said that it is stored and the other that it is not, this would try again for ever.
    const { agent } = await agents.open({ id: "opened" });
    agent.inject("hello");
    await agent.flush();
    expect(await memory.load("opened")).toBeDefined();
    expect(await sessions.load("absent")).toBeFalsy();
    await expect(agents.resume({ id: "absent" })).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(sessions.rename("absent", "x")).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  },
);
