/** D2: `open` joins what is live or opening, and counts handles. */
import { memoryStorage, type Agent, type AgentHandle, type LifecycleOptions, type OpenAgentOptions } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { calm, codeOf, isPending, promptly, reasonOf, store, toldBy } from "../support/lifecycle.ts";
import { deferred, endOf } from "../support/wait.ts";

/** A setup that waits, and what lets it go. */
function heldSetup(): {
  setup: NonNullable<LifecycleOptions["setup"]>;
  entered: Promise<void>;
  release(): void;
  fail(error: unknown): void;
} {
  const entered = deferred();
  const gate = deferred();
  return {
    async setup() {
      entered.resolve();
      await gate.promise;
    },
    entered: entered.promise,
    release: () => gate.resolve(),
    fail: gate.reject,
  };
}

local("D2 open joins what is live, and the last handle to be disposed tears it down", async () => {
  const harness = harnessWith();
  const told = toldBy(harness.hooks);
  const handles = [];
  for (let n = 0; n < 3; n += 1) handles.push(await harness.agents.open({ id: "s" }));
  expect(new Set(handles.map((handle) => handle.agent)).size).toBe(1);
  expect(told).toEqual(["session/created s", "agent/created s", "agent/session-start s startup"]);
  await handles[1]!.dispose();
  await handles[0]!.dispose();
  expect(harness.agents.get("s")).toBe(handles[2]!.agent);
  expect(handles[2]!.agent.status).toBe("idle");
  await handles[2]!.dispose();
  expect(harness.agents.get("s")).toBeUndefined();
});

local("D2 a handle that is disposed twice counts once", async () => {
  const { agents } = harnessWith();
  const first = await agents.open({ id: "s" });
  const second = await agents.open({ id: "s" });
  await first.dispose();
  await first.dispose();
  await first.dispose();
  expect(second.agent.status).toBe("idle");
});

for (const verb of ["create", "resume"] as const) {
  local(`D2 open joins what ${verb} has made, and both handles count`, async () => {
    const storage = memoryStorage();
    if (verb === "resume") await store(storage, "s");
    const { agents } = harnessWith({ storage });
    const made = await agents[verb]({ id: "s" });
    const joined = await agents.open({ id: "s" });
    expect(joined.agent).toBe(made.agent);
    await made.dispose();
    expect(joined.agent.status).toBe("idle");
    await joined.dispose();
    expect(joined.agent.status).toBe("disposed");
  });
}

local("D2 who joins an opening waits for it, and its own setup does not run", async () => {
  const { agents } = harnessWith();
  const held = heldSetup();
  let composed = 0;
  const first = agents.open({ id: "s", setup: held.setup });
  await held.entered;
  const second = agents.open({ id: "s", setup: () => void (composed += 1) });
  expect(await isPending(second)).toBe(true);
  held.release();
  const [one, two] = await Promise.all([first, second]);
  expect(two.agent).toBe(one.agent);
  expect(composed).toBe(0);
});

local("D2 opens of one frame are one agent", async () => {
  const harness = harnessWith();
  const told = toldBy(harness.hooks);
  const handles = await Promise.all([1, 2, 3, 4].map(() => harness.agents.open({ id: "s" })));
  expect(new Set(handles.map((handle) => handle.agent)).size).toBe(1);
  expect(told).toHaveLength(3);
});

const owner = {} as { agent: Agent };
const opener = { model: "small", call: { temperature: 1 }, meta: { cwd: "/home" }, context: owner };
const differing: Record<string, () => Partial<OpenAgentOptions>> = {
  "another model": () => ({ ...opener, model: "large" }),
  "another call": () => ({ ...opener, call: { temperature: 2 } }),
  "another context": () => ({ ...opener, context: {} }),
  "other metadata": () => ({ ...opener, meta: { cwd: "/elsewhere" } }),
  "a setup": () => ({ ...opener, setup() {} }),
  "an owner": () => ({ ...opener, owner: owner.agent }),
};
for (const [what, options] of Object.entries(differing)) {
  local(`D2 who joins with ${what} is told OPEN_JOINED, and nothing changes`, async () => {
    const harness = harnessWith({ models: { small: scriptedModel([]), large: scriptedModel([]) } });
    owner.agent = (await harness.agents.create({ id: "parent" })).agent;
    const { agent } = await harness.agents.open({ id: "s", ...opener });
    const before = [agent.options, agent.session.header];
    expect(harness.diagnostics).toEqual([]);
    expect((await harness.agents.open({ id: "s", ...options() })).agent).toBe(agent);
    expect(harness.diagnostics.map(({ code }) => code)).toEqual(["OPEN_JOINED"]);
    expect([agent.options, agent.session.header]).toEqual(before);
    expect(harness.agents.isOwnedBy("s", owner.agent)).toBe(false);
  });
}

local("D2 who joins with the same options, or with none, is told nothing", async () => {
  const harness = harnessWith({ models: { small: scriptedModel([]) } });
  await harness.agents.open({ id: "s", ...opener });
  await harness.agents.open({ id: "s", ...opener, call: { temperature: 1 }, meta: { cwd: "/home" } });
  await harness.agents.open({ id: "s" });
  expect(harness.diagnostics).toEqual([]);
});

local("D2 who joins an opening with other options is told so as well", async () => {
  const harness = harnessWith({ models: { small: scriptedModel([]) } });
  const held = heldSetup();
  const first = harness.agents.open({ id: "s", setup: held.setup });
  await held.entered;
  const second = harness.agents.open({ id: "s", model: "small" });
  held.release();
  await Promise.all([first, second]);
  expect(harness.diagnostics.map(({ code }) => code)).toEqual(["OPEN_JOINED"]);
});

local("D2 the signal of a joiner ends only its own waiting", async () => {
  const { agents } = harnessWith();
  const held = heldSetup();
  const first = agents.open({ id: "s", setup: held.setup });
  await held.entered;
  const controller = new AbortController();
  const reason = new Error("enough");
  const second = reasonOf(agents.open({ id: "s", signal: controller.signal }));
  await calm();
  controller.abort(reason);
  expect(await promptly(second)).toBe(reason);
  held.release();
  const { agent, dispose } = await first;
  expect(agent.status).toBe("idle");
  // And it does not count any more.
  await dispose();
  expect(agent.status).toBe("disposed");
});

local("D2 #5 the signal of who began the opening ends it for nobody else that waits", async () => {
  const { agents } = harnessWith();
  const held = heldSetup();
  const controller = new AbortController();
  const reason = new Error("enough");
  const first = reasonOf(agents.open({ id: "s", setup: held.setup, signal: controller.signal }));
  await held.entered;
  const second = agents.open({ id: "s" });
  await calm();
  controller.abort(reason);
  expect(await promptly(first)).toBe(reason);
  held.release();
  const { agent, dispose } = await second;
  expect(agent.status).toBe("idle");
  await dispose();
  expect(agent.status).toBe("disposed");
});

local("D2 an opening that everybody has left is not published", async () => {
  const harness = harnessWith();
  const told = toldBy(harness.hooks);
  const held = heldSetup();
  const controllers = [new AbortController(), new AbortController()];
  const openings = controllers.map(({ signal }) =>
    reasonOf(harness.agents.open({ id: "s", setup: held.setup, signal })),
  );
  await held.entered;
  for (const controller of controllers) controller.abort(new Error("enough"));
  await promptly(Promise.all(openings));
  held.release();
  await calm();
  expect(told).toEqual([]);
});

local("D2 an open behind an aborted one begins anew: it is not told of somebody else's abort", async () => {
  const harness = harnessWith();
  const held = heldSetup();
  const controller = new AbortController();
  const first = reasonOf(harness.agents.open({ id: "s", setup: held.setup, signal: controller.signal }));
  await held.entered;
  controller.abort(new Error("enough"));
  // In the same frame, as a component that is mounted twice does.
  const second = harness.agents.open({ id: "s" });
  expect((await promptly(second)).agent.status).toBe("idle");
  expect(await first).toEqual(new Error("enough"));
  expect(harness.diagnostics).toEqual([]);
});

local("D2 an opening that fails fails for all that joined it, and the id is free", async () => {
  const { agents } = harnessWith();
  const held = heldSetup();
  const first = reasonOf(agents.open({ id: "s", setup: held.setup }));
  await held.entered;
  const second = reasonOf(agents.open({ id: "s" }));
  const reason = new Error("no");
  held.fail(reason);
  expect(await Promise.all([first, second])).toEqual([reason, reason]);
  expect((await agents.open({ id: "s" })).agent.status).toBe("idle");
});

local("D2 during a teardown open waits, and then opens anew what was stored", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi", "again"]) });
  const first = await harness.agents.open({ id: "s" });
  first.agent.send("hello");
  await first.agent.whenIdle();
  const gate = deferred();
  const flushing = deferred();
  first.agent.scope!.hooks.on("session/flush", async () => {
    flushing.resolve();
    await gate.promise;
  });
  first.agent.send("again");
  await flushing.promise;
  const disposed = first.dispose();
  const told = toldBy(harness.hooks);
  const opening = harness.agents.open({ id: "s" });
  expect(await isPending(opening)).toBe(true);
  expect(told).toEqual([]);
  gate.resolve();
  const second = await opening;
  await disposed;
  expect(second.agent).not.toBe(first.agent);
  expect(second.agent.status).toBe("idle");
  expect(second.agent.session.events).toEqual(first.agent.session.events);
  expect(told).toEqual([
    "agent/disposed s",
    "session/disposed s",
    "session/created s",
    "agent/created s",
    "agent/session-start s resume",
  ]);
});

local("D2 an open in the frame of the last dispose is not given the agent that ends", async () => {
  const { agents } = harnessWith();
  const first = await agents.open({ id: "s" });
  const [, second] = await Promise.all([first.dispose(), agents.open({ id: "s" })]);
  expect(second.agent).not.toBe(first.agent);
  expect(second.agent.status).toBe("idle");
  await first.dispose();
  expect(second.agent.status).toBe("idle");
});

local("D2 a signal ends the waiting for a teardown", async () => {
  const { agents } = harnessWith();
  const first = await agents.open({ id: "s" });
  const gate = deferred();
  first.agent.scope!.hooks.on("session/flush", () => gate.promise);
  first.agent.inject("it is raining");
  const disposed = first.dispose();
  const controller = new AbortController();
  const reason = new Error("enough");
  const opening = reasonOf(agents.open({ id: "s", signal: controller.signal }));
  await calm();
  controller.abort(reason);
  expect(await promptly(opening)).toBe(reason);
  gate.resolve();
  await disposed;
});

local("D2 open of an agent that was registered gives a handle that does not end it", async () => {
  const harness = harnessWith();
  const { agent } = await harnessWith().agents.create({ id: "s" });
  harness.agents.register(agent);
  const handle: AgentHandle = await harness.agents.open({ id: "s" });
  expect(handle.agent).toBe(agent);
  await handle.dispose();
  expect(harness.agents.get("s")).toBe(agent);
  expect(agent.status).toBe("idle");
});

local("D2 #39 when the harness ends, the handles that are left end with it", async () => {
  const harness = harnessWith();
  const told = toldBy(harness.hooks);
  const handles = [await harness.agents.open({ id: "s" }), await harness.agents.open({ id: "s" })];
  await harness.dispose();
  for (const handle of handles) await handle.dispose();
  expect(told.filter((line) => line === "agent/disposed s")).toHaveLength(1);
});

local("D2 open refuses what can never be: no id, an unknown model", async () => {
  const harness = harnessWith();
  const told = toldBy(harness.hooks);
  for (const id of ["", undefined, 7, null]) {
    expect(await codeOf(harness.agents.open({ id: id as string }))).toBe("INVALID_ID");
  }
  expect(await codeOf(harness.agents.open(undefined as never))).toBe("INVALID_ID");
  expect(await codeOf(harness.agents.open({ id: "s", model: "nobody" }))).toBe("NO_ADAPTER");
  expect(told).toEqual([]);
});

local("D2 the log of a session goes on from one opening to the next", async () => {
  const { agents } = harnessWith({ model: scriptedModel(["one", "two"]) });
  for (const turn of [1, 2]) {
    const { agent, dispose } = await agents.open({ id: "s" });
    agent.send("hello");
    await agent.whenIdle();
    expect(endOf(agent.session, turn)).toEqual({ kind: "completed" });
    await dispose();
  }
});
