/** Section C: how an agent ends. */
import { defineTool, memoryStorage, type Agent, type AgentHandle } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { codeOf, codeThrownBy, isPending, promptly, toldBy } from "../support/lifecycle.ts";
import { storedEvents } from "../support/mortal.ts";
import { deferred, endOf, eventOf, typesOf } from "../support/wait.ts";

const thinking = { text: "let me think", hang: "polite" } as const;

/** An agent in the middle of its first turn. */
async function running(options: Parameters<typeof harnessWith>[0] = {}): Promise<{
  harness: ReturnType<typeof harnessWith>;
  handle: AgentHandle;
  agent: Agent;
}> {
  const harness = harnessWith({ model: scriptedModel([thinking]), ...options });
  const handle = await harness.agents.create({ id: "s" });
  const { agent } = handle;
  agent.send("hello");
  await eventOf(agent.session, "assistant/chunk", ({ data }) => data.chunk.type === "block-end");
  return { harness, handle, agent };
}

local("#41 the turn, its flush, the agent, the session, and the layer at last", async () => {
  const { harness, handle, agent } = await running();
  const told = toldBy(harness.hooks);
  harness.hooks.on("session/flush", () => void told.push("session/flush"));
  agent.on("turn/end", ({ data }) => void told.push(`turn/end ${data.reason.kind}`));
  agent.scope!.use(() => () => void told.push("first plugin unwound"));
  agent.scope!.use(() => () => void told.push("second plugin unwound"));
  await handle.dispose();
  expect(told.filter((line, n) => line !== told[n - 1])).toEqual([
    "agent/status s disposed",
    "turn/end disposed",
    "session/flush",
    "agent/disposed s",
    "session/disposed s",
    "second plugin unwound",
    "first plugin unwound",
  ]);
});

local("#41 #47 the flush of an injection is awaited, though nobody runs", async () => {
  const harness = harnessWith();
  const { agent, dispose } = await harness.agents.create({ id: "s" });
  const gate = deferred();
  agent.scope!.hooks.on("session/flush", () => gate.promise);
  agent.inject("it is raining");
  const told = toldBy(harness.hooks);
  const disposed = dispose();
  const pending = await isPending(disposed);
  expect(told).toEqual(["agent/status s disposed"]);
  gate.resolve();
  await disposed;
  expect(pending).toBe(true);
  expect(told).toEqual(["agent/status s disposed", "agent/disposed s", "session/disposed s"]);
});

local("#42 the id is free at the detach, before the layer is unwound", async () => {
  const { harness, handle, agent } = await running();
  const order: string[] = [];
  let next: Promise<AgentHandle> | undefined;
  harness.hooks.on("session/disposed", () => {
    order.push("detached");
    expect([harness.agents.get("s"), harness.sessions.get("s")]).toEqual([undefined, undefined]);
    next ??= harness.agents.resume({ id: "s", setup: () => void order.push("next one composed") });
  });
  agent.scope!.use(() => () => void order.push("plugin unwound"));
  await handle.dispose();
  const { agent: second } = await next!;
  expect(order[0]).toBe("detached");
  expect(order.toSorted()).toEqual(["detached", "next one composed", "plugin unwound"]);
  expect(harness.agents.get("s")).toBe(second);
  expect(second.session.events).toEqual(agent.session.events);
});

local("#42 a layer that fails to unwind is reported; it blocks no id and brings nobody back", async () => {
  const { harness, handle, agent } = await running();
  const order: string[] = [];
  agent.scope!.use(() => () => void order.push("first plugin"));
  agent.scope!.use(() => () => {
    throw new Error("no");
  });
  await handle.dispose();
  expect(harness.agents.get("s")).toBeUndefined();
  expect(harness.diagnostics.map(({ code }) => code)).toEqual(["PLUGIN_FAILED"]);
  expect(order).toEqual(["first plugin"]);
  expect((await harness.agents.resume({ id: "s" })).agent.status).toBe("idle");
});

local("#43 dispose waits for the loop's own end and its last flush, not for the status", async () => {
  const storage = memoryStorage();
  const { harness, handle, agent } = await running({ storage });
  const gate = deferred();
  const flushing = deferred();
  agent.scope!.hooks.on("session/flush", async () => {
    flushing.resolve();
    await gate.promise;
  });
  const disposed = handle.dispose();
  expect(agent.status).toBe("disposed");
  await flushing.promise;
  const pending = await isPending(disposed);
  expect(harness.sessions.get("s")).toBe(agent.session);
  expect(harness.agents.get("s")).toBe(agent);
  gate.resolve();
  await disposed;
  expect(pending).toBe(true);
  expect(await storedEvents(storage, "s")).toEqual(agent.session.events);
  expect(typesOf(agent.session).slice(-3)).toEqual(["assistant/message", "step/end", "turn/end"]);
});

local("#43 whoever awaits the end from inside the turn does not hold it up: a tool, a hook, the model", async () => {
  for (const where of ["tool", "hook", "model"] as const) {
    const own: { dispose(): Promise<void> } = { dispose: async () => {} };
    const model = scriptedModel([
      async () => {
        if (where === "model") await own.dispose();
        return { toolCalls: [{ name: "leave", args: {} }] };
      },
    ]);
    const leave = defineTool({ name: "leave", description: "Leaves", inputSchema: {}, execute: () => own.dispose() });
    const { agents } = harnessWith({ model, tools: [leave] });
    const { agent, dispose } = await agents.create();
    own.dispose = dispose;
    if (where === "hook") agent.scope!.hooks.on("agent/pre-step", () => own.dispose());
    agent.send("hello");
    await agent.whenIdle();
    await promptly(dispose());
    expect([where, endOf(agent.session)]).toEqual([where, { kind: "disposed" }]);
  }
});

local("#44 the agent's own listeners hear all of it, to the last word", async () => {
  const { handle, agent } = await running();
  const heard: string[] = [];
  const { hooks } = agent.scope!;
  hooks.on("session/event", ({ event }) => void heard.push(event.type));
  hooks.on("session/flush", () => void heard.push("session/flush"));
  hooks.on("agent/status", ({ status }) => void heard.push(status));
  hooks.on("agent/disposed", () => void heard.push("agent/disposed"));
  hooks.on("session/disposed", () => void heard.push("session/disposed"));
  await handle.dispose();
  expect(heard.filter((line, n) => line !== heard[n - 1])).toEqual([
    "disposed",
    "assistant/message",
    "step/end",
    "turn/end",
    "session/flush",
    "agent/disposed",
    "session/disposed",
  ]);
});

for (const when of ["in setup", "between the words"] as const) {
  local(`#45 an agent that is disposed ${when} never starts: no status, no turn`, async () => {
    const model = scriptedModel(["never asked"]);
    const harness = harnessWith({ model });
    const parent = await harness.agents.create({ id: "parent" });
    const told = toldBy(harness.hooks);
    let agent: Agent | undefined;
    if (when === "between the words") harness.hooks.on("agent/created", () => void parent.dispose());
    const creating = harness.agents.create({
      id: "s",
      owner: parent.agent,
      setup(scope) {
        ({ agent } = scope);
        if (when === "in setup") void parent.dispose();
      },
    });
    expect(await codeOf(creating)).toBe("AGENT_DISPOSED");
    expect(agent!.status).toBe("disposed");
    await promptly(agent!.whenIdle());
    expect(told.filter((line) => line.startsWith("agent/status s"))).toEqual([]);
    expect(agent!.session.events).toEqual([]);
    expect(model.requests).toEqual([]);
  });
}

local("#46 from the call of dispose on, in the same frame, no verb takes effect", async () => {
  const { handle, agent } = await running();
  const before = agent.session.seq;
  const disposed = handle.dispose();
  expect(agent.status).toBe("disposed");
  const verbs: Record<string, () => unknown> = {
    send: () => agent.send("hello"),
    steer: () => agent.steer("hello"),
    inject: () => agent.inject("hello"),
    continue: () => agent.continue(),
    configure: () => agent.configure({ temperature: 1 }),
  };
  for (const [name, verb] of Object.entries(verbs))
    expect([name, codeThrownBy(verb)]).toEqual([name, "AGENT_DISPOSED"]);
  expect(await codeOf(() => agent.withdraw("m"))).toBe("AGENT_DISPOSED");
  expect(await codeOf(() => agent.respond("i", true))).toBe("AGENT_DISPOSED");
  expect(await codeOf(() => agent.claim("i"))).toBe("AGENT_DISPOSED");
  agent.cancel("too late");
  await disposed;
  expect(agent.session.events.slice(before).map((event) => event.type)).toEqual([
    "assistant/message",
    "step/end",
    "turn/end",
  ]);
  expect(endOf(agent.session)).toEqual({ kind: "disposed" });
});

local("#46 the same verbs stay refused when all is over", async () => {
  const harness = harnessWith();
  const { agent, dispose } = await harness.agents.create();
  await dispose();
  expect(codeThrownBy(() => agent.send("hello"))).toBe("AGENT_DISPOSED");
  agent.cancel();
  await promptly(agent.whenIdle());
  expect(agent.session.events).toEqual([]);
});

local("#48 disposed is the last word about a status, whatever state it meets", async () => {
  const idle = harnessWith();
  const heard = toldBy(idle.hooks);
  await (await idle.agents.create({ id: "s" })).dispose();
  expect(heard.filter((line) => line.startsWith("agent/status"))).toEqual(["agent/status s disposed"]);

  const harness = harnessWith({ model: scriptedModel([thinking, "never"]) });
  const told = toldBy(harness.hooks);
  const { agent, dispose } = await harness.agents.create({ id: "s" });
  agent.send("hello");
  await eventOf(agent.session, "assistant/chunk");
  agent.send("one more");
  await dispose();
  expect(told.filter((line) => line.startsWith("agent/status"))).toEqual([
    "agent/status s running",
    "agent/status s disposed",
  ]);
  expect(agent.getSnapshot().status).toBe("disposed");
});

local(
  "#48 a dispose behind a cancel in the same frame: the status goes from running to disposed and no further",
  async () => {
    const { harness, handle, agent } = await running();
    const told = toldBy(harness.hooks);
    agent.cancel("enough");
    await handle.dispose();
    expect(told.filter((line) => line.startsWith("agent/status"))).toEqual(["agent/status s disposed"]);
    expect(endOf(agent.session)).toEqual({ kind: "disposed" });
  },
);

local("#49 listeners that fail during the end are reported, and every stage is run", async () => {
  const { harness, handle, agent } = await running();
  const no = (): never => {
    throw new Error("no");
  };
  const { hooks } = agent.scope!;
  hooks.on("agent/status", no);
  hooks.on("session/flush", no);
  hooks.on("agent/error", no);
  hooks.on("agent/disposed", no);
  hooks.on("session/disposed", no);
  agent.session.subscribe(no);
  const told = toldBy(harness.hooks);
  let unwound = false;
  agent.scope!.use(() => () => void (unwound = true));
  await promptly(handle.dispose());
  expect(told).toEqual(["agent/status s disposed", "agent/disposed s", "session/disposed s"]);
  expect(unwound).toBe(true);
  expect(endOf(agent.session)).toEqual({ kind: "disposed" });
  const codes = new Set(harness.diagnostics.map(({ code }) => code));
  expect([...codes].toSorted()).toEqual(["FLUSH_FAILED", "LISTENER_FAILED"]);
});

local("#49 #215 a listener of the snapshot that throws is reported: it ends no loop, and no end", async () => {
  const harness = harnessWith({ model: scriptedModel(["one", "two"]) });
  const { agent, dispose } = await harness.agents.create({ id: "s" });
  const off = agent.subscribe(() => {
    throw new Error("no");
  });
  const heard: string[] = [];
  agent.subscribe(() => void heard.push(agent.status));
  try {
    for (const turn of [1, 2]) {
      agent.send("hello");
      await promptly(agent.whenIdle());
      expect(endOf(agent.session, turn)).toEqual({ kind: "completed" });
    }
    await promptly(dispose());
  } finally {
    off();
  }
  expect(heard.at(-1)).toBe("disposed");
  expect(new Set(harness.diagnostics.map(({ code }) => code))).toEqual(new Set(["LISTENER_FAILED"]));
});

local(
  "#49 a storage that fails to close, and plugins that fail to unwind, stop nothing of the harness's end",
  async () => {
    const harness = harnessWith({
      storage: { ...memoryStorage(), close: () => Promise.reject(new Error("no")) },
      plugins: [
        () => () => {
          throw new Error("no");
        },
      ],
    });
    const { agent } = await harness.agents.create({ id: "s" });
    await harness.dispose();
    expect(agent.status).toBe("disposed");
    expect(harness.diagnostics.map(({ code }) => code)).toEqual(["PLUGIN_FAILED", "STORAGE_FAILED"]);
  },
);

local("#50 a listener that hears of the end can set nothing going, and its cancel is none", async () => {
  const { handle, agent } = await running();
  const codes: string[] = [];
  agent.scope!.hooks.on("agent/status", () => {
    codes.push(codeThrownBy(() => agent.send("one more")));
    agent.cancel("too late");
  });
  await handle.dispose();
  expect(codes).toEqual(["AGENT_DISPOSED"]);
  expect(agent.session.events.some((event) => event.type === "agent/cancelled")).toBe(false);
  expect(endOf(agent.session)).toEqual({ kind: "disposed" });
});

local("#43 #45 whoever waits for idle is released when the loop has ended, not before", async () => {
  const { handle, agent } = await running();
  const gate = deferred();
  const flushing = deferred();
  agent.scope!.hooks.on("session/flush", async () => {
    flushing.resolve();
    await gate.promise;
  });
  const early = agent.whenIdle();
  const disposed = handle.dispose();
  await flushing.promise;
  const late = agent.whenIdle();
  const pending = await Promise.all([early, late].map(isPending));
  gate.resolve();
  await Promise.all([early, late, disposed]);
  expect(pending).toEqual([true, true]);
});
