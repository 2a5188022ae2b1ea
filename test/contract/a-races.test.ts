/** Sections A and C, and D2: beginnings and ends that cross each other. */
import { defineTool, memoryStorage, type Agent, type AgentHandle } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { calm, codeOf, held, isPending, promptly, reasonOf, stage, store, toldBy } from "../support/lifecycle.ts";
import { mortal, storedEvents } from "../support/mortal.ts";
import { deferred, endOf, eventOf } from "../support/wait.ts";

/** A storage whose first load of "s" waits behind what it has read. */
function overtaken(inner = memoryStorage()): {
  storage: ReturnType<typeof memoryStorage>;
  reached: Promise<void>;
  release(): void;
} {
  const reached = deferred();
  const gate = deferred();
  let first = true;
  return {
    storage: {
      ...inner,
      async load(...[id, options]: Parameters<typeof inner.load>) {
        const found = await inner.load(id, options);
        if (id !== "s" || !first) return found;
        first = false;
        reached.resolve();
        await gate.promise;
        return found;
      },
    },
    reached: reached.promise,
    release: () => gate.resolve(),
  };
}

local("#18 #23 a resume that a whole life of its session has overtaken does not go on with an old log", async () => {
  const inner = memoryStorage();
  await store(inner, "s");
  const { storage, reached, release } = overtaken(inner);
  const harness = harnessWith({ storage, model: scriptedModel(["in between", "after"]) });
  const resuming = harness.agents.resume({ id: "s" }).catch((error: unknown) => error as Error);
  await reached;
  const between = await harness.agents.open({ id: "s" });
  between.agent.send("quickly");
  await between.agent.whenIdle();
  await between.dispose();
  release();
  const outcome = await resuming;
  if (outcome instanceof Error) expect(outcome).toMatchObject({ code: expect.stringMatching(/^SESSION_/) as string });
  else expect(outcome.agent.session.seq).toBe(between.agent.session.seq);
});

local("#18 #23 a create that a whole life of its id has overtaken does not begin it a second time", async () => {
  const { storage, reached, release } = overtaken();
  const harness = harnessWith({ storage, model: scriptedModel(["in between", "after"]) });
  const creating = codeOf(harness.agents.create({ id: "s" }));
  await reached;
  const between = await harness.agents.open({ id: "s" });
  between.agent.send("quickly");
  await between.agent.whenIdle();
  await between.dispose();
  release();
  expect(await creating).toBe("SESSION_EXISTS");
});

local("#12 a resume that is taken back stores nothing, not even the repair that it has made", async () => {
  const { disk, storage, kill } = mortal();
  const first = harnessWith({ storage, model: scriptedModel([{ text: "let me think", hang: "polite" }]) });
  const { agent } = await first.agents.create({ id: "s" });
  agent.send("hello");
  await eventOf(agent.session, "assistant/chunk", ({ data }) => data.chunk.type === "block-end");
  await agent.flush();
  kill();
  const before = await storedEvents(disk, "s");
  const second = harnessWith({ storage: disk });
  const controller = new AbortController();
  const off = second.hooks.on("agent/session-start", () => controller.abort(new Error("enough")));
  await reasonOf(second.agents.resume({ id: "s", signal: controller.signal }));
  await calm();
  expect(await storedEvents(disk, "s")).toEqual(before);
  off();
  const resumed = await second.agents.resume({ id: "s" });
  expect(endOf(resumed.agent.session)).toEqual({ kind: "interrupted" });
  expect(resumed.agent.session.events.slice(0, before.length)).toEqual(before);
});

local("D2 an open in the frame before the last dispose keeps the agent alive", async () => {
  const { agents } = harnessWith();
  const first = await agents.open({ id: "s" });
  const opening = agents.open({ id: "s" });
  await first.dispose();
  const second = await opening;
  expect(second.agent).toBe(first.agent);
  expect(second.agent.status).toBe("idle");
});

local("D2 an open that is aborted already does not count", async () => {
  const { agents } = harnessWith();
  const first = await agents.open({ id: "s" });
  await reasonOf(agents.open({ id: "s", signal: AbortSignal.abort(new Error("enough")) }));
  await first.dispose();
  expect(first.agent.status).toBe("disposed");
});

local("D2 a joiner that is aborted in the moment of the birth does not count", async () => {
  const { agents, hooks } = harnessWith();
  const controller = new AbortController();
  const reason = new Error("enough");
  const gate = deferred();
  const first = agents.open({ id: "s", setup: () => gate.promise });
  const second = reasonOf(agents.open({ id: "s", signal: controller.signal }));
  hooks.on("agent/created", () => controller.abort(reason));
  gate.resolve();
  const { agent, dispose } = await first;
  expect(await second).toBe(reason);
  await dispose();
  expect(agent.status).toBe("disposed");
});

local("#1 a listener of the announcement may begin another agent, which is announced in its turn", async () => {
  const harness = harnessWith();
  const told = toldBy(harness.hooks);
  const nested: Promise<AgentHandle>[] = [];
  const same: Promise<string>[] = [];
  harness.hooks.on("agent/created", ({ agent }) => {
    if (agent.id !== "s") return;
    nested.push(harness.agents.create({ id: "nested" }));
    same.push(codeOf(harness.agents.create({ id: "s" })));
  });
  await harness.agents.create({ id: "s" });
  await Promise.all(nested);
  expect(await Promise.all(same)).toEqual(["SESSION_EXISTS"]);
  expect(told).toEqual([
    "session/created s",
    "agent/created s",
    "agent/session-start s startup",
    "session/created nested",
    "agent/created nested",
    "agent/session-start nested startup",
  ]);
});

local("#13 a start inside a listener of an announcement tells of both without losing a word", () => {
  let n = 0;
  const harness = harnessWith({ newId: () => `id-${(n += 1)}` });
  const early = toldBy(harness.hooks);
  harness.hooks.on("session/created", ({ session }) => {
    if (session.id === "id-1") harness.agents.start();
  });
  const late = toldBy(harness.hooks);
  harness.agents.start();
  const words = (id: string): string[] => [
    `session/created ${id}`,
    `agent/created ${id}`,
    `agent/session-start ${id} startup`,
  ];
  for (const told of [early, late]) {
    for (const id of ["id-1", "id-2"]) expect(told.filter((line) => line.includes(id))).toEqual(words(id));
  }
});

local("D4 #10 a listener that throws does not veto a start", () => {
  const harness = harnessWith();
  for (const name of ["session/created", "agent/created", "agent/session-start"] as const) {
    harness.hooks.on(name, () => {
      throw new Error("no");
    });
  }
  expect(harness.agents.start().status).toBe("idle");
});

local("#14 an owner of another harness that ends while setup runs takes the birth with it", async () => {
  const { agent: owner, dispose } = await harnessWith().agents.create({ id: "owner" });
  const harness = harnessWith();
  const told = toldBy(harness.hooks);
  expect(await codeOf(harness.agents.create({ id: "s", owner, setup: () => dispose() }))).toBe("AGENT_DISPOSED");
  expect(told).toEqual([]);
});

local("#28 #40 a harness that ends before its declared agents are there: ready settles, and none comes", async () => {
  const storage = held(memoryStorage(), "load");
  const harness = harnessWith({ storage, agents: [{ id: "helper", sessionId: "s" }] });
  const told = toldBy(harness.hooks);
  await storage.reached;
  await promptly(harness.dispose());
  await promptly(harness.ready);
  storage.release();
  await calm();
  expect(told).toEqual([]);
  expect(harness.diagnostics.map(({ code }) => code)).toEqual(["AGENT_NOT_STARTED"]);
});

for (const who of ["its owner", "the harness"] as const) {
  local(`#43 a tool that awaits the end of ${who} does not hold it up`, async () => {
    const ends: { dispose(): Promise<void> } = { dispose: async () => {} };
    const leave = defineTool({ name: "leave", description: "Leaves", inputSchema: {}, execute: () => ends.dispose() });
    const model = scriptedModel([{ toolCalls: [{ name: "leave", args: {} }] }]);
    const harness = harnessWith({ model, tools: [leave] });
    const parent = await harness.agents.create();
    const { agent } = await harness.agents.create({ owner: parent.agent });
    ends.dispose = who === "the harness" ? harness.dispose : parent.dispose;
    agent.send("hello");
    await promptly(agent.whenIdle());
    await promptly(ends.dispose());
    expect(endOf(agent.session)).toEqual({ kind: "disposed" });
  });
}

local("#48 a dispose from inside the word that it is idle: idle, disposed, and no more", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const told = toldBy(harness.hooks);
  const { agent, dispose } = await harness.agents.create({ id: "s" });
  agent.scope!.hooks.on("agent/status", ({ status }) => {
    if (status === "idle") void dispose();
  });
  agent.send("hello");
  await agent.whenIdle();
  await dispose();
  expect(told.filter((line) => line.startsWith("agent/status"))).toEqual([
    "agent/status s running",
    "agent/status s idle",
    "agent/status s disposed",
  ]);
});

local("#46 #50 a dispose from inside the word that it runs: no turn is begun", async () => {
  const model = scriptedModel(["never asked"]);
  const harness = harnessWith({ model });
  const { agent, dispose } = await harness.agents.create({ id: "s" });
  agent.scope!.hooks.on("agent/status", ({ status }) => {
    if (status === "running") void dispose();
  });
  agent.send("hello");
  await agent.whenIdle();
  await dispose();
  expect(agent.session.events.map((event) => event.type)).toEqual(["inbox/queued"]);
  expect(model.requests).toEqual([]);
});

local("#42 #23 the next agent of an id finds all that the last one accepted, however they cross", async () => {
  const storage = memoryStorage();
  const harness = harnessWith({ storage, model: scriptedModel(["one", "two", "three"]) });
  let last: Agent | undefined;
  for (const turn of [1, 2, 3]) {
    const opening = harness.agents.open({ id: "s" });
    const { agent, dispose }: AgentHandle = await opening;
    expect(agent.session.events).toEqual(last?.session.events ?? []);
    agent.send("hello");
    await eventOf(agent.session, "turn/end", ({ data }) => data.turn === turn);
    // Not awaited: the next open comes into the middle of it.
    void dispose();
    last = agent;
  }
  const { agent } = await harness.agents.open({ id: "s" });
  expect(agent.session.events).toEqual(last!.session.events);
  expect(await storedEvents(storage, "s")).toEqual(last!.session.events);
});

local("#5 a signal is let go of as well when the beginning fails", async () => {
  const { begin } = await stage("create");
  const controller = new AbortController();
  const { signal } = controller;
  let listening = 0;
  const { addEventListener, removeEventListener } = signal;
  Object.assign(signal, {
    addEventListener: (...args: Parameters<typeof addEventListener>) => {
      listening += 1;
      addEventListener.apply(signal, args);
    },
    removeEventListener: (...args: Parameters<typeof removeEventListener>) => {
      listening -= 1;
      removeEventListener.apply(signal, args);
    },
  });
  await reasonOf(begin({ signal, setup: () => Promise.reject(new Error("no")) }));
  expect(listening).toBe(0);
});

local("#40 a harness that ends waits for the ends that are under way already", async () => {
  const harness = harnessWith();
  const { agent, dispose } = await harness.agents.create({ id: "s" });
  const gate = deferred();
  agent.scope!.hooks.on("session/flush", () => gate.promise);
  agent.inject("it is raining");
  const own = dispose();
  const ended = harness.dispose();
  const pending = await isPending(ended);
  gate.resolve();
  await Promise.all([own, ended]);
  expect(pending).toBe(true);
});
