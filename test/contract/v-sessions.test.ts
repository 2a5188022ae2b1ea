/** V: sessions that are stored: listed, loaded, renamed, deleted (D26). */
import { createHarness, defineTool, memoryStorage, TurnloopError, type Claim, type SessionStorage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import { failingStorage, faultyStage } from "../support/failing-storage.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { headerOf, logOf, plainTurn, said, store, storageOf, turnStart, user } from "../support/made-log.ts";
import { eventOf, typesOf } from "../support/wait.ts";

const code = (is: string): unknown => expect.objectContaining({ code: is });
const two = logOf(plainTurn(1), plainTurn(2));

/** A storage with leases, one of which somebody else has. */
function leased(inner: SessionStorage, taken: string): SessionStorage & { readonly claims: string[] } {
  const claims: string[] = [];
  return {
    ...inner,
    claims,
    async claim(id): Promise<Claim> {
      if (id === taken) throw new TurnloopError("SESSION_CLAIMED", "another writer has it");
      claims.push(`claim ${id}`);
      return { lost: new Promise(() => {}), release: async () => void claims.push(`release ${id}`) };
    },
  };
}

describe("list", () => {
  local(
    "#242 D26 shows what is stored, newest first, with what each is called, where it came from, how it stands",
    async () => {
      let now = 1000;
      const storage = memoryStorage();
      const ask = defineTool({
        name: "ask",
        description: "asks",
        inputSchema: { type: "object" },
        idempotent: true,
        execute: (_: unknown, call) => call.ask("really?"),
      });
      const model = scriptedModel(["hi", { toolCalls: [{ name: "ask", args: {} }] }, { text: "half", hang: "polite" }]);
      const clock = { now: () => (now += 1000), sleep: () => new Promise<void>(() => {}) };
      const { agents, sessions } = harnessWith({ storage, model, clock, tools: [ask] });
      const { agent: idle } = await agents.create({ id: "idle", meta: { title: "Idle" } });
      idle.send("hello");
      await idle.whenIdle();
      const { agent: waiting } = await agents.create({ id: "waiting" });
      waiting.send("ask me");
      await eventOf(waiting.session, "interaction/requested");
      const { agent: open } = await agents.fork({ from: "idle", id: "open" });
      open.send("more");
      await eventOf(open.session, "assistant/chunk", ({ data }) => data.turn === 2 && data.chunk.type === "block-end");
      await Promise.all([idle, waiting, open].map((agent) => agent.flush()));
      const summary = ({ session }: typeof idle): object => ({
        id: session.id,
        createdAt: session.header.createdAt,
        updatedAt: session.events.at(-1)!.time,
        seq: session.seq,
      });
      expect(await sessions.list()).toEqual({
        sessions: [
          { ...summary(open), parent: "idle", status: "open" },
          { ...summary(waiting), status: "waiting" },
          { ...summary(idle), title: "Idle", status: "idle" },
        ],
      });
    },
  );

  local("#242 reads no events, and takes its pages from the storage", async () => {
    const storage = failingStorage();
    for (const id of ["a", "b", "c"]) await store(storage, id, two);
    const { sessions } = createHarness({ storage });
    const first = await sessions.list({ limit: 2 });
    const second = await sessions.list({ limit: 2, cursor: first.cursor! });
    expect([...first.sessions, ...second.sessions].map(({ id }) => id)).toEqual(["a", "b", "c"]);
    expect(second.cursor).toBeUndefined();
    expect(storage.calls.filter((call) => call.startsWith("load"))).toEqual([]);
  });

  local("D26 a title that was given since is the one that is shown", async () => {
    const { agents, sessions } = createHarness();
    const { agent } = await agents.create({ id: "s", meta: { title: "First" } });
    sessions.get("s")!.append("session/titled", { title: "Second" });
    await agent.flush();
    expect((await sessions.list()).sessions).toMatchObject([{ title: "Second" }]);
  });
});

describe("load", () => {
  local("#241 D26 gives a stored session to read: whole, frozen, and read-only", async () => {
    const { sessions, agents } = createHarness({ storage: await storageOf(two) });
    const session = (await sessions.load("s"))!;
    expect(session.events).toEqual(two);
    expect(session).toMatchObject({ id: "s", seq: 12, start: 0, durable: "stored", header: headerOf("s") });
    expect(said(session.deriveMessages())).toHaveLength(4);
    const heard: number[] = [];
    session.subscribe(({ seq }) => void heard.push(seq), { from: 10 });
    expect(heard).toEqual([10, 11]);
    expect(() =>
      (session as never as { append(type: string, data: object): void }).append("session/titled", { title: "t" }),
    ).toThrow(code("READ_ONLY"));
    expect(agents.list()).toEqual([]);
  });

  local("D26 neither repairs nor claims nor writes", async () => {
    const storage = failingStorage(leased(await storageOf(logOf(turnStart(1), user("hello"))), "s"));
    const { sessions } = createHarness({ storage });
    expect(typesOf((await sessions.load("s"))!)).toEqual(["turn/start", "user/message"]);
    expect(storage.tried).toEqual([]);
  });

  local("D26 a session that is live here is that one", async () => {
    const { agents, sessions } = createHarness();
    const { agent } = await agents.open({ id: "s" });
    expect(await sessions.load("s")).toBe(agent.session);
    expect(sessions.get("s")).toBe(agent.session);
  });

  local("#241 a session that is not stored is undefined, and resuming it rejects SESSION_NOT_FOUND", async () => {
    const { agents, sessions } = createHarness();
    expect(await sessions.load("s")).toBeUndefined();
    expect(sessions.get("s")).toBeUndefined();
    await expect(agents.resume({ id: "s" })).rejects.toEqual(code("SESSION_NOT_FOUND"));
  });

  local("#241 a format of another version is refused, and the message says what to do", async () => {
    for (const [version, words] of [
      [2, /update/],
      [0, /export/],
    ] as const) {
      const { agents, sessions } = createHarness({ storage: await storageOf(two, "s", headerOf("s", { version })) });
      for (const attempt of [
        () => sessions.load("s"),
        () => agents.open({ id: "s" }),
        () => agents.resume({ id: "s" }),
      ]) {
        const error: unknown = await attempt().catch((thrown: unknown) => thrown);
        expect(error).toEqual(code("UNKNOWN_VERSION"));
        expect((error as Error).message).toMatch(words);
      }
    }
  });

  local("#241 D25 a log with fewer events than it should have is refused, not shortened", async () => {
    const inner = await storageOf(two);
    const storage: SessionStorage = { ...inner, load: async (id) => ({ ...(await inner.load(id))!, length: 13 }) };
    const { agents, sessions } = createHarness({ storage });
    await expect(sessions.load("s")).rejects.toEqual(code("INVALID_LOG"));
    await expect(agents.open({ id: "s" })).rejects.toEqual(code("INVALID_LOG"));
  });

  local("#241 a stream of events that breaks off is an error, not a shorter log", async () => {
    const inner = await storageOf(two);
    const storage: SessionStorage = {
      ...inner,
      load: async (id) => ({
        ...(await inner.load(id))!,
        batches: (async function* () {
          yield two.slice(0, 6);
          throw new Error("the disk is gone");
        })(),
      }),
    };
    const { agents, sessions } = createHarness({ storage });
    await expect(sessions.load("s")).rejects.toThrow(TurnloopError);
    await expect(agents.open({ id: "s" })).rejects.toThrow(TurnloopError);
    expect(agents.get("s")).toBeUndefined();
  });

  local("#241 #249 what is loaded is detached from the storage, and of the id that was asked for", async () => {
    const header = { ...headerOf("s"), meta: { title: "t" } };
    const events = structuredClone(two);
    const { sessions } = createHarness({ storage: await storageOf(events, "s", header) });
    const session = (await sessions.load("s"))!;
    header.meta.title = "changed";
    (events[1]!.data as { id: string }).id = "changed";
    expect(session.header.meta.title).toBe("t");
    expect(session.events).toEqual(two);

    const mixed: SessionStorage = { ...memoryStorage(), load: async () => (await storageOf(two, "t")).load("t") };
    await expect(createHarness({ storage: mixed }).sessions.load("s")).rejects.toEqual(code("INVALID_HEADER"));
  });

  local("#249 an id that a storage could not keep as it is is refused", async () => {
    const { agents, sessions } = createHarness();
    await expect(agents.create({ id: "\ud800" })).rejects.toThrow(TurnloopError);
    await expect(sessions.create({ id: "\ud800" })).rejects.toThrow(TurnloopError);
    await expect(agents.open({ id: "a\udc00" })).rejects.toThrow(TurnloopError);
    expect(agents.list()).toEqual([]);
  });
});

describe("a session without an agent", () => {
  local(
    "#240 #246 is stored from its first event on, its seed with it, and by the end of the harness at the latest",
    async () => {
      const { harness, storage } = faultyStage();
      const session = await harness.sessions.create({ id: "s", seed: two, meta: { title: "Trip" } });
      expect(session.header).toMatchObject({ meta: { title: "Trip" }, seedLength: 12 });
      expect(harness.sessions.get("s")).toBe(session);
      session.append("session/titled", { title: "Other" });
      await session.flush();
      expect(await storage.stored("s")).toEqual(session.events);
      session.append("session/titled", { title: "Last" });
      await harness.dispose();
      expect(await storage.stored("s")).toEqual(session.events);
      expect(() => session.append("session/titled", { title: "late" })).toThrow(code("READ_ONLY"));
    },
  );

  local(
    "#239 SESSION_EXISTS for an id that is stored, SESSION_LIVE or SESSION_EXISTS for one that is live",
    async () => {
      const { agents, sessions } = createHarness({ storage: await storageOf(two, "stored") });
      await agents.open({ id: "agent" });
      await sessions.create({ id: "bare" });
      await expect(sessions.create({ id: "stored" })).rejects.toEqual(code("SESSION_EXISTS"));
      for (const id of ["agent", "bare"]) {
        const error: unknown = await sessions.create({ id }).catch((thrown: unknown) => thrown);
        expect(["SESSION_LIVE", "SESSION_EXISTS"]).toContain((error as TurnloopError).code);
      }
    },
  );

  local("#52 D26 gets the next free number for an id when it is given none, the stored ones left out", async () => {
    const { sessions } = createHarness({ storage: await storageOf(two, "session-1") });
    const [first, second] = [await sessions.create(), await sessions.create()];
    expect([first.id, second.id]).toEqual(["session-2", "session-3"]);
  });

  local("D26 is told of when it is there and when it is gone, once each", async () => {
    const harness = createHarness();
    const told: string[] = [];
    harness.hooks.on("session/created", ({ session }) => void told.push(`created ${session.id}`));
    harness.hooks.on("session/disposed", ({ session }) => void told.push(`disposed ${session.id}`));
    await harness.sessions.create({ id: "s" });
    await harness.dispose();
    await harness.dispose();
    expect(told).toEqual(["created s", "disposed s"]);
  });
});
