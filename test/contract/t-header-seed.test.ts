/** T: the header of a session, and logs that come from outside: seeds and stored ones. */
import { createHarness, eventsFromMessages, memoryStorage, TurnloopError, type SessionEvent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import {
  assistant,
  context,
  headerOf,
  line,
  logOf,
  plainTurn,
  queued,
  said,
  stepEnd,
  stepStart,
  storageOf,
  turnEnd,
  turnStart,
  user,
} from "../support/made-log.ts";
import { unwatchedHarness } from "../support/unwatched.ts";

const code = (is: string): unknown => expect.objectContaining({ code: is });

describe("the header", () => {
  local("#228 says the format, the id, when it began and what the creator said of it, and is frozen", async () => {
    const { agents } = createHarness({ clock: { now: () => 1234.5, sleep: () => new Promise(() => {}) } });
    const meta = { title: "Trip", cwd: "/home/ada", tags: ["a"], left: undefined };
    const { agent } = await agents.create({ id: "s", meta });
    meta.tags.push("b");
    const { header } = agent.session;
    expect(header).toEqual({
      version: 1,
      id: "s",
      createdAt: 1234,
      meta: { title: "Trip", cwd: "/home/ada", tags: ["a"] },
    });
    expect(header).not.toHaveProperty("parent");
    expect(header).not.toHaveProperty("seedLength");
    expect([header, header.meta, header.meta["tags"]].every(Object.isFrozen)).toBe(true);
  });

  local("#228 cwd is absolute, as any platform says it", async () => {
    const { sessions } = createHarness();
    for (const cwd of ["/", "/a/b", "C:\\a", "c:/a", "\\\\host\\share", "file:///a"]) {
      expect((await sessions.create({ meta: { cwd } })).header.meta.cwd).toBe(cwd);
    }
    for (const cwd of ["", "a", "./a", "../a", "~/a", "C:a"]) {
      await expect(sessions.create({ meta: { cwd } }), cwd).rejects.toEqual(code("INVALID_HEADER"));
    }
  });

  local(
    "#228 metadata that is no JSON object, or means something else, is refused before anything begins",
    async () => {
      const { agents } = createHarness();
      for (const meta of ["text", { title: 1 }, { cwd: 1 }]) {
        await expect(agents.create({ id: "s", meta: meta as never }), JSON.stringify(meta)).rejects.toEqual(
          code("INVALID_HEADER"),
        );
      }
      await expect(agents.create({ id: "s", meta: { at: new Date(0) as never } })).rejects.toEqual(
        code("INVALID_CONTENT"),
      );
      for (const meta of [[], new Map([["title", "t"]]), new Date(0)]) {
        await expect(agents.create({ id: "s", meta: meta as never }), meta.constructor.name).rejects.toThrow(
          TurnloopError,
        );
      }
      expect(agents.get("s")).toBeUndefined();
      await agents.create({ id: "s" });
    },
  );

  const bad: readonly (readonly [string, object])[] = [
    ["no id", { id: undefined }],
    ["an empty id", { id: "" }],
    ["another id", { id: "other" }],
    ["no time", { createdAt: undefined }],
    ["a time that is no whole number", { createdAt: 1.5 }],
    ["no metadata", { meta: undefined }],
    ["a relative cwd", { meta: { cwd: "a" } }],
    ["a parent without an id", { parent: { seq: 0 } }],
    ["a parent with a negative seq", { parent: { id: "p", seq: -1 } }],
    ["a negative seed", { seedLength: -1 }],
    ["a seed that is no whole number", { seedLength: 0.5 }],
    ["a seed that is longer than the log", { seedLength: 7 }],
  ];
  for (const [what, fields] of bad) {
    local(`#228 a stored header with ${what} is refused`, async () => {
      const header = JSON.parse(JSON.stringify({ ...headerOf("s"), ...fields })) as never;
      const { agents, sessions } = createHarness({ storage: await storageOf(logOf(plainTurn(1)), "s", header) });
      await expect(sessions.load("s")).rejects.toEqual(code("INVALID_HEADER"));
      await expect(agents.open({ id: "s" })).rejects.toEqual(code("INVALID_HEADER"));
      expect(agents.get("s")).toBeUndefined();
    });
  }

  local("#228 fields of the header that this version does not know are kept", async () => {
    const header = { ...headerOf("s"), later: { a: 1 } };
    const { sessions } = createHarness({ storage: await storageOf(logOf(plainTurn(1)), "s", header) });
    expect((await sessions.load("s"))!.header).toEqual(header);
  });
});

describe("a seed", () => {
  local("#229 is the beginning of the log, checked, detached and frozen", async () => {
    const { agents } = createHarness();
    const seed = logOf(plainTurn(1));
    const { agent } = await agents.create({ id: "s", seed });
    const copy = structuredClone(seed);
    Object.assign(seed[1]!.data, { id: "changed" });
    expect(agent.session.events).toEqual(copy);
    expect(agent.session.header.seedLength).toBe(6);
    expect(said(agent.session.deriveMessages())).toEqual(["user: question 1", "assistant: answer 1"]);
  });

  local("#229 is never told again: hooks are silent, and only who asks for it has it replayed", async () => {
    const model = scriptedModel(["answer 2"]);
    const { agents, hooks } = createHarness({ model });
    const told: number[] = [];
    hooks.on("session/event", ({ event }) => void told.push(event.seq));
    const followed: number[] = [];
    const { agent } = await agents.create({
      id: "s",
      seed: logOf(plainTurn(1)),
      setup: ({ session }) => void session.subscribe(({ seq }) => void followed.push(seq)),
    });
    const replayed: number[] = [];
    agent.session.subscribe(({ seq }) => void replayed.push(seq), { from: 0 });
    expect([told, followed, replayed]).toEqual([[], [], [0, 1, 2, 3, 4, 5]]);
    agent.send("question 2");
    await agent.whenIdle();
    const own = Array.from({ length: agent.session.seq - 6 }, (_, i) => i + 6);
    expect(told).toEqual(own);
    expect(followed).toEqual(own);
  });

  const event = { seq: 0, time: 1, type: "session/titled", data: { title: "t" } };
  const message = { seq: 0, time: 1, type: "user/message", data: { id: "m", content: [], source: { kind: "user" } } };
  const bad: readonly (readonly [string, readonly unknown[]])[] = [
    ["does not begin with 0", [{ ...event, seq: 1 }]],
    ["has a gap", [event, { ...event, seq: 2 }]],
    ["has a seq twice", [event, event]],
    ["has an unknown field in an envelope", [{ ...event, ignorable: true }]],
    ["has an event without a time", [{ ...event, time: undefined }]],
    ["has a time that is no whole number", [{ ...event, time: 1.5 }]],
    ["has an event without a type", [{ ...event, type: undefined }]],
    ["has an event without data", [{ seq: 0, time: 1, type: "session/titled" }]],
    ["has data that its type does not take", [{ ...event, data: { title: 1 } }]],
    ["has a message without its marker", [message]],
    ["has a marker on what is no message", [{ ...event, surface: "append" }]],
    ["has a marker that is none", [{ ...message, surface: "somewhere" }]],
    ["replaces what comes later", [{ ...message, surface: { replace: [0, 0] } }]],
    ["cites itself", [{ ...event, cites: [0] }]],
    ["cites what is no list", [{ ...event, cites: 0 }]],
    ["holds something that is no event", ["text"]],
    ["holds null", [null]],
    ["holds what JSON would change", [{ ...event, data: { title: "t", at: new Date(0) } }]],
  ];
  for (const [what, seed] of bad) {
    local(`#229 that ${what} is refused, by create and by load`, async () => {
      const { agents, sessions } = createHarness({ storage: await storageOf(seed as SessionEvent[], "stored") });
      await expect(agents.create({ id: "s", seed: seed as SessionEvent[] })).rejects.toEqual(code("INVALID_LOG"));
      await expect(sessions.create({ id: "s", seed: seed as SessionEvent[] })).rejects.toEqual(code("INVALID_LOG"));
      expect(agents.get("s") ?? sessions.get("s")).toBeUndefined();
      await expect(sessions.load("stored")).rejects.toEqual(code("INVALID_LOG"));
    });
  }

  local(
    "#229 D7 a replacement that cannot take its place is refused when a log is read, as when it is written",
    async () => {
      const seed = logOf(plainTurn(1), turnStart(2), {
        ...context("sum"),
        surface: { replace: [2, 3] },
        cites: [[2, 3]],
      });
      const { agents } = createHarness({ storage: await storageOf(seed, "stored") });
      await expect(agents.create({ id: "s", seed })).rejects.toEqual(code("INVALID_LOG"));
      await expect(agents.open({ id: "stored" })).rejects.toEqual(code("INVALID_LOG"));
    },
  );

  // The ancestor's deltas of a header are no type of ours: as D12 says, they are passed over.
  local("#229 D9 D12 an older delta of a header is no header, and is passed over", async () => {
    const delta = { type: "request/header-delta", data: { config: { model: "old" } } } as never;
    const model = scriptedModel(["answer"]);
    const { agents } = createHarness({ model, storage: await storageOf(logOf(turnStart(1), delta, turnEnd(1))) });
    const { agent } = await agents.open({ id: "s" });
    agent.send("hello");
    await agent.whenIdle();
    expect(model.requests[0]!.config).toEqual({ model: "scripted/model" });
  });

  local("#229 D13 what was queued in a seed is history: it is neither run nor shown as waiting", async () => {
    const model = scriptedModel([]);
    const { agents } = createHarness({ model });
    const seed = logOf(queued("old"), plainTurn(1), queued("older", "inject"));
    const { agent } = await agents.create({ id: "s", seed });
    await agent.whenIdle();
    expect(agent.queue).toEqual([]);
    expect(agent.session.events).toEqual(seed);
    expect(model.requests).toEqual([]);
  });

  local("#229 a seed made of messages is a seed like any other", async () => {
    const { agents } = createHarness();
    const seed = eventsFromMessages([
      { role: "user", content: [{ type: "text", text: "hello" }] },
      { role: "assistant", content: [{ type: "text", text: "hi" }] },
    ]);
    const { agent } = await agents.create({ id: "s", seed });
    expect(said(agent.session.deriveMessages())).toEqual(["user: hello", "assistant: hi"]);
  });
});

describe("events of types that are not known", () => {
  const unknown = line("later/note" as never, { note: "n" } as never);

  local("#232 D12 without surface they are kept, passed over, and stored on", async () => {
    const storage = await storageOf(logOf(unknown, plainTurn(1), turnStart(2), unknown, user("hello"), turnEnd(2)));
    const model = scriptedModel(["answer"]);
    const { agents, sessions, dispose } = unwatchedHarness({ model, storage });
    const { agent } = await agents.open({ id: "s" });
    expect(agent.session.at(0)).toMatchObject(unknown);
    expect(said(agent.session.deriveMessages())).toEqual(["user: question 1", "assistant: answer 1", "user: hello"]);
    agent.send("go on");
    await agent.whenIdle();
    let exported = "";
    for await (const piece of sessions.export("s")) exported += piece;
    expect(exported.match(/later\/note/g)).toHaveLength(2);
    await dispose();
  });

  local("#232 D12 one with surface makes the load refuse, and it says that a newer version wrote it", async () => {
    const message = { ...unknown, surface: "append" } as never;
    const log = logOf(turnStart(1), message, turnEnd(1));
    const { agents, sessions } = createHarness({ storage: await storageOf(log) });
    for (const refused of [agents.open({ id: "s" }), agents.resume({ id: "s" }), sessions.load("s")]) {
      const error: unknown = await refused.catch((thrown: unknown) => thrown);
      expect(TurnloopError.is(error, "UNKNOWN_EVENT")).toBe(true);
      expect((error as Error).message).toMatch(/later\/note.*newer version/);
    }
    await expect(agents.create({ id: "t", seed: log })).rejects.toEqual(code("UNKNOWN_EVENT"));
  });

  // `ignorable` is the ancestor's newest flag. Here the absence of `surface` says it, and the envelope is closed.
  local("#232 D12 there is no flag that makes a message ignorable", async () => {
    const log = [{ seq: 0, time: 1, ...unknown, ignorable: true }] as never;
    const { sessions } = createHarness({ storage: await storageOf(log) });
    await expect(sessions.load("s")).rejects.toEqual(code("INVALID_LOG"));
  });

  local("#232 D12 the loop itself appends nothing that it would refuse to read", async () => {
    const storage = memoryStorage();
    const first = harnessWith({ storage, model: scriptedModel(["answer"]) });
    const { agent, dispose } = await first.agents.open({ id: "s" });
    agent.inject("context");
    agent.configure({ temperature: 0 });
    agent.send("hello");
    await agent.whenIdle();
    await dispose();
    const { agent: again } = await harnessWith({ storage }).agents.resume({ id: "s" });
    expect(again.session.events).toEqual(agent.session.events);
  });
});

describe("balance", () => {
  // The marker session/end-seed of the ancestor's newest code is the header's seedLength here.
  local("#231 seedLength tells what was inherited from what is the session's own", async () => {
    const { agents } = createHarness({ model: scriptedModel(["answer 2"]) });
    const seed = logOf(plainTurn(1));
    const { agent } = await agents.create({ id: "s", seed });
    agent.send("question 2");
    await agent.whenIdle();
    const { seedLength } = agent.session.header;
    expect(agent.session.events.slice(0, seedLength)).toEqual(seed);
    expect(agent.session.events.slice(seedLength)[0]!.type).toBe("inbox/queued");
  });

  local("#229 an open turn of a seed is closed like any other", async () => {
    const { agents } = createHarness();
    const seed = logOf(turnStart(1), user("hello"), stepStart(1, 1), assistant(1, 1, "hi"));
    const { agent } = await agents.create({ id: "s", seed });
    expect(agent.session.events.slice(4)).toMatchObject([stepEnd(1, 1), turnEnd(1, { kind: "interrupted" })]);
  });
});
