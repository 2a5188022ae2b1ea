/** I: what is stored, read again, and forked. */
import {
  createHarness,
  createTranscript,
  memoryStorage,
  run,
  type SessionBatch,
  type SessionEvent,
  type SessionStorage,
} from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, clientTool, resultsOf, tool } from "../support/calls.ts";
import { liveOn } from "../support/lives.ts";
import {
  headerOf,
  line,
  logOf,
  plainTurn,
  queued,
  said,
  stepStart,
  storageOf,
  turnStart,
  user,
} from "../support/made-log.ts";
import { storedEvents } from "../support/mortal.ts";
import { dataOf, linesOf, scene } from "../support/scene.ts";
import { eventOf, snapshotWhere, typesOf } from "../support/wait.ts";

/** A session of two turns as lines of JSON, without their line ends. */
async function exported(): Promise<{ one: Awaited<ReturnType<typeof scene>>; lines: string[] }> {
  const one = await scene(["a", "b"]);
  await one.say("1");
  await one.say("2");
  const lines: string[] = [];
  for await (const text of one.harness.sessions.export("session")) lines.push(text.trimEnd());
  return { one, lines };
}

test.each<[string, (lines: string[]) => string]>([
  ["B139 two records on one line", (lines) => [lines[0], `${lines[1]}${lines[2]}`, ...lines.slice(3)].join("\n")],
  ["B140 zero bytes in the middle", (lines) => [...lines.slice(0, 5), "\0\0\0", ...lines.slice(5)].join("\n")],
  [
    "B140 a bad line in the middle",
    (lines) => [...lines.slice(0, 5), lines[5]!.slice(0, 20), ...lines.slice(6)].join("\n"),
  ],
  ["B140 a line that is missing", (lines) => lines.filter((_, n) => n !== 5).join("\n")],
])("%s: the import says which line it is, and stores nothing", async (_, damage) => {
  const { one, lines } = await exported();
  const importing = one.harness.sessions.import([damage(lines)], { id: "copy" });
  await expect(importing).rejects.toMatchObject({
    code: "INVALID_IMPORT",
    message: expect.stringMatching(/^line \d+ /),
  });
  expect(await one.harness.sessions.load("copy")).toBeUndefined();
});

test.each<[string, (events: SessionEvent[]) => unknown[]]>([
  ["a record in the middle that is none", (events) => events.with(7, "\0\0\0" as never)],
  ["a record that is missing", (events) => events.toSpliced(7, 1)],
  ["fewer records than it says", (events) => events.slice(0, 5)],
])("B140 a stored session with %s is not shortened in silence: opening it says so", async (_, damage) => {
  const events = logOf(plainTurn(1), plainTurn(2));
  const batches = (async function* () {
    yield damage(events) as SessionEvent[];
  })();
  const storage: SessionStorage = {
    ...memoryStorage(),
    load: async () => ({ header: headerOf("s"), length: events.length, batches }),
  };
  const { agents } = createHarness({ storage, model: scriptedModel([]) });
  await expect(agents.open({ id: "s" })).rejects.toMatchObject({ code: "INVALID_LOG" });
});

test("B142 a message that is sent twice under one id is there once, now and after a reload", async () => {
  const storage = memoryStorage();
  const first = await liveOn(storage, { model: scriptedModel(["a"]) });
  for (const _ of [1, 2]) expect(first.agent.send("hello", { id: "m1" })).toBe("m1");
  await first.agent.whenIdle();
  await first.handle.dispose();
  const { agent } = await liveOn(storage, { model: scriptedModel([]) });
  agent.send("hello", { id: "m1" });
  await agent.whenIdle();
  expect(linesOf(agent.session.deriveMessages())).toEqual(["user: hello", "assistant: a"]);
  const ids = createTranscript(agent.session)
    .getSnapshot()
    .messages.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

test("B143 an answer that a crash cut short belongs to its own turn, not to the answer before", async () => {
  const chunk = line("assistant/chunk", { turn: 2, step: 1, chunk: { type: "delta", index: 0, text: "Hel" } });
  const events = logOf(plainTurn(1), turnStart(2), user("question 2"), stepStart(2, 1), chunk);
  const harness = createHarness({ storage: await storageOf(events), model: scriptedModel(["fine"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  expect(said(agent.session.deriveMessages())).toEqual([
    "user: question 1",
    "assistant: answer 1",
    "user: question 2",
    "assistant: Hel",
  ]);
  expect(
    createTranscript(agent.session)
      .getSnapshot()
      .messages.map(({ turn, role }) => `${turn} ${role}`)
      .slice(0, 4),
  ).toEqual(["1 user", "1 assistant", "2 user", "2 assistant"]);
});

/** A storage that notes what it is given to write, and how often it is read. */
function noting(): { storage: SessionStorage; batches: SessionBatch[]; loads: string[] } {
  const inner = memoryStorage();
  const [batches, loads]: [SessionBatch[], string[]] = [[], []];
  return {
    batches,
    loads,
    storage: {
      ...inner,
      append: (batch) => (batches.push(batch), inner.append(batch)),
      load: (id, options) => (loads.push(id), inner.load(id, options)),
    },
  };
}

test("B145 each event is handed to the storage once: what a write costs does not grow with the session", async () => {
  const { storage, batches } = noting();
  const answers = Array.from({ length: 50 }, () => calls("big"));
  const one = await scene([...answers, "fine"], { storage, tools: [tool("big", () => "x".repeat(1000))] });
  await one.say("go");
  await one.agent.flush();
  expect(batches.flatMap(({ events }) => events.map(({ seq }) => seq))).toEqual(
    one.session.events.map(({ seq }) => seq),
  );
});

test("B145 a result of three megabytes is one event, and comes back whole", async () => {
  const big = "x".repeat(3_000_000);
  const storage = memoryStorage();
  const one = await scene([calls("big"), "fine"], { storage, tools: [tool("big", () => big)] });
  await one.say("go");
  await one.agent.flush();
  const events = await storedEvents(storage);
  expect(events.filter(({ type }) => type === "tool/result")).toHaveLength(1);
  expect(events).toEqual(one.session.events);
});

test("B146 a list of sessions reads none of them", async () => {
  const { storage, loads } = noting();
  const first = await scene(["a"], { storage });
  await first.say("go");
  await first.dispose();
  const before = loads.length;
  const { sessions } = await createHarness({ storage }).sessions.list();
  expect([sessions.map(({ id }) => id), loads.length]).toEqual([["session"], before]);
});

test("B148 of two writers of one session the second is told, and what is stored is the work of one", async () => {
  const storage = memoryStorage();
  await (await liveOn(storage, { model: scriptedModel([]) })).handle.dispose();
  const [a, b] = await Promise.all(
    ["from a", "from b"].map((text) => liveOn(storage, { model: scriptedModel([text]) })),
  );
  const ends = await Promise.allSettled([a!, b!].map(({ agent }) => run(agent, "go").result));
  const lost = ends.filter(({ status }) => status === "rejected");
  expect(lost).toMatchObject([{ reason: { code: "SESSION_CONFLICT" } }]);
  const stored = await storedEvents(storage);
  const winner = [a!, b!].find(({ agent }) => agent.session.durable === "stored")!;
  expect(stored).toEqual(winner.agent.session.events);
});

test("B149 a run that is iterated, one that is awaited and a plain send leave the same log", async () => {
  const ways: ((agent: Parameters<typeof run>[0]) => unknown)[] = [
    async (agent) => {
      for await (const event of run(agent, "go")) void event;
    },
    (agent) => run(agent, "go").result,
    (agent) => (agent.send("go"), agent.whenIdle()),
  ];
  const logs: unknown[] = [];
  for (const [n, way] of ways.entries()) {
    let ids = 0;
    const one = await scene([calls("add"), "fine"], {
      id: `s${n}`,
      tools: [tool("add")],
      newId: () => `id-${(ids += 1)}`,
    });
    await way(one.agent);
    await one.agent.whenIdle();
    logs.push(one.session.events.map(({ type, data }) => [type, data]));
  }
  expect(logs[1]).toEqual(logs[0]);
  expect(logs[2]).toEqual(logs[0]);
});

test("B151 a client cannot answer a call that is still being written; once it is, its message is done", async () => {
  const chunks = [
    { type: "block-start", index: 0, block: { type: "tool-call", name: "look" } },
    { type: "delta", index: 0, text: "{" },
  ] as const;
  const one = await scene([{ chunks, hang: "polite" }, calls("look"), "fine"], { tools: [clientTool("look")] });
  const cut = one.say("go");
  await eventOf(one.session, "assistant/chunk", ({ data }) => data.chunk.type === "delta");
  await expect(one.agent.respond("call_1_1_1_0/client", { value: "early" })).rejects.toMatchObject({
    code: "INTERACTION_NOT_FOUND",
  });
  one.agent.cancel();
  await cut;
  const whole = one.say("again");
  await snapshotWhere(one.agent, ({ interactions }) => interactions.length === 1);
  const { id } = one.agent.interactions[0]!;
  await one.agent.claim(id);
  await one.agent.respond(id, { value: "saw it" });
  expect(await whole).toEqual({ kind: "completed" });
  const { messages } = createTranscript(one.session).getSnapshot();
  expect(messages.filter(({ state }) => state === "streaming")).toEqual([]);
});

test("B152 results of calls that are allowed one after another are all in the next request", async () => {
  const one = await scene([calls("a", "b", "c"), "fine"], {
    tools: ["a", "b", "c"].map((name) => tool(name, () => name)),
  });
  one.hooks.on("tools/pre-execute", async () => ({ kind: "allow" }));
  await one.say("go");
  expect(linesOf(one.model.requests[1]!.messages).slice(-3)).toEqual(["tool: a", "tool: b", "tool: c"]);
});

test("B154 a fork is a session of its own that says where it came from; each is listed once, its history is there once", async () => {
  const { one } = await exported();
  const { agent } = await one.harness.agents.fork({ from: "session", id: "fork" });
  await agent.flush();
  const { sessions } = await one.harness.sessions.list();
  expect(sessions).toHaveLength(2);
  expect(Object.fromEntries(sessions.map(({ id, parent }) => [id, parent]))).toEqual({
    fork: "session",
    session: undefined,
  });
  expect(linesOf(agent.session.deriveMessages())).toEqual(linesOf(one.session.deriveMessages()));
  expect(agent.session.header).toMatchObject({
    id: "fork",
    parent: { id: "session", seq: one.session.seq },
    seedLength: one.session.seq,
  });
});

test("B154 what was queued in the original does not run in the fork", async () => {
  const events = logOf(plainTurn(1), queued("m9"), plainTurn(2));
  const harness = createHarness({ storage: await storageOf(events), model: scriptedModel([]) });
  const { agent } = await harness.agents.fork({ from: "s", id: "fork" });
  await agent.whenIdle();
  expect([agent.queue, typesOf(agent.session).filter((type) => type === "turn/start")]).toEqual([
    [],
    ["turn/start", "turn/start"],
  ]);
});

test("B155 a result without its call, or before it, is in no history", async () => {
  const data = { turn: 1, step: 1, callId: "c", content: [{ type: "text", text: "early" }], isError: false } as const;
  const early = line("tool/result", data, { surface: "append" });
  const events = logOf(
    turnStart(1),
    user("u"),
    stepStart(1, 1),
    early,
    line("step/end", { turn: 1, step: 1 }),
    line("turn/end", { turn: 1, reason: { kind: "completed" } }),
  );
  const view = await createHarness({ storage: await storageOf(events) }).sessions.load("s");
  expect(said(view!.deriveMessages())).toEqual(["user: u"]);
  expect(resultsOf(view!)).toHaveLength(1);
});

test("B157 a hundred steps leave no listener behind on any signal", async () => {
  const { addEventListener, removeEventListener } = AbortSignal.prototype;
  const live = new Map<AbortSignal, Set<unknown>>();
  const most = new Map<AbortSignal, number>();
  AbortSignal.prototype.addEventListener = function (this: AbortSignal, ...args: [string, never, never]) {
    const listeners = live.get(this) ?? new Set();
    live.set(this, listeners.add(args[1]));
    most.set(this, Math.max(most.get(this) ?? 0, listeners.size));
    return addEventListener.apply(this, args);
  } as never;
  AbortSignal.prototype.removeEventListener = function (this: AbortSignal, ...args: [string, never, never]) {
    live.get(this)?.delete(args[1]);
    return removeEventListener.apply(this, args);
  } as never;
  try {
    const answers = Array.from({ length: 100 }, () => calls("add"));
    const one = await scene([...answers, "fine"], { tools: [tool("add", () => "done", { timeoutMs: 60_000 })] });
    const { signal } = new AbortController();
    await run(one.agent, "go", { signal }).result;
    expect(dataOf(one.session, "step/end")).toHaveLength(101);
    expect(Math.max(...most.values())).toBeLessThan(20);
    expect(live.get(signal)?.size ?? 0).toBe(0);
  } finally {
    Object.assign(AbortSignal.prototype, { addEventListener, removeEventListener });
  }
});
