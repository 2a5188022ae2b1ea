/** Section B: which agents there are, who owns whom, and what of the package can be reached. */
import { defineTool, memoryStorage, type Agent, type Harness } from "turnloop";
import * as turnloop from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { codeThrownBy, codeOf, store, toldBy } from "../support/lifecycle.ts";
import { readManifest } from "../support/package.ts";

/** An agent that was built elsewhere. */
async function foreign(id: string): Promise<Agent> {
  return (await harnessWith({ model: scriptedModel(["hi"]) }).agents.create({ id })).agent;
}

function ids(agents: readonly Agent[]): string[] {
  return agents.map((agent) => agent.id);
}

local(
  "#30 #33 register enters an agent that was built elsewhere and tells it once; the undo takes it out",
  async () => {
    const harness = harnessWith();
    const told = toldBy(harness.hooks);
    const agent = await foreign("s");
    const off = harness.agents.register(agent);
    expect(harness.agents.get("s")).toBe(agent);
    expect(told).toEqual(["agent/created s"]);
    off();
    expect(harness.agents.get("s")).toBeUndefined();
    expect(told).toEqual(["agent/created s", "agent/disposed s"]);
    expect(agent.status).toBe("idle");
  },
);

local("#30 #33 a duplicate is refused, without a word, and the first one stays", async () => {
  const harness = harnessWith();
  const first = await foreign("s");
  harness.agents.register(first);
  await harness.agents.create({ id: "own" });
  const told = toldBy(harness.hooks);
  expect(codeThrownBy(() => harness.agents.register(first))).toBe("SESSION_LIVE");
  const second = await foreign("s");
  const third = await foreign("own");
  expect(codeThrownBy(() => harness.agents.register(second))).toBe("SESSION_LIVE");
  expect(codeThrownBy(() => harness.agents.register(third))).toBe("SESSION_LIVE");
  expect(told).toEqual([]);
  expect(harness.agents.get("s")).toBe(first);
});

local("#30 an id that a registered agent has is taken for create, resume and fork", async () => {
  const storage = memoryStorage();
  await store(storage, "source");
  const { agents } = harnessWith({ storage });
  agents.register(await foreign("s"));
  let composed = false;
  const setup = (): void => void (composed = true);
  expect(await codeOf(agents.create({ id: "s", setup }))).toBe("SESSION_EXISTS");
  expect(await codeOf(agents.resume({ id: "s", setup }))).toBe("SESSION_LIVE");
  expect(await codeOf(agents.fork({ from: "source", id: "s", setup }))).toBe("SESSION_EXISTS");
  expect(composed).toBe(false);
});

local("#30 list gives the agents in the order in which they came, in a list of its own", async () => {
  const { agents } = harnessWith();
  const handles = [];
  for (const id of ["b", "a", "c"]) handles.push(await agents.create({ id }));
  agents.register(await foreign("0"));
  const before = agents.list();
  expect(ids(before)).toEqual(["b", "a", "c", "0"]);
  expect(agents.list()).not.toBe(before);
  before.length = 0;
  await handles[0]!.dispose();
  await agents.create({ id: "b" });
  expect(ids(agents.list())).toEqual(["a", "c", "0", "b"]);
});

local("#32 what get gives cannot end the agent: only the handle can", async () => {
  const { agents } = harnessWith();
  const { agent, dispose } = await agents.create({ id: "s" });
  const found = agents.get("s")!;
  expect(found).toBe(agent);
  for (const name of ["dispose", "close", "end", "stop", "abort", Symbol.asyncDispose])
    expect(name in found).toBe(false);
  await dispose();
  expect(agents.get("s")).toBeUndefined();
});

local("D1 the one way to stop is cancel: there is no abort", async () => {
  const { agent } = await harnessWith().agents.create();
  expect(typeof agent.cancel).toBe("function");
  expect("abort" in agent).toBe(false);
});

local("D2 #33 enter and announce are steps inside: the registry has no such verbs", () => {
  const { agents } = harnessWith();
  for (const name of ["enter", "announce", "attach", "claim"]) expect(name in agents).toBe(false);
});

local("#33 #34 an undo works once, and never takes out who came after", async () => {
  const harness = harnessWith();
  const off = harness.agents.register(await foreign("s"));
  off();
  const second = await foreign("s");
  harness.agents.register(second);
  const told = toldBy(harness.hooks);
  off();
  off();
  expect(harness.agents.get("s")).toBe(second);
  expect(told).toEqual([]);
});

local("#34 the handle of an agent that is gone does not end the next one of its id", async () => {
  const { agents } = harnessWith();
  const first = await agents.create({ id: "s" });
  await first.dispose();
  const second = await agents.create({ id: "s" });
  await first.dispose();
  expect(agents.get("s")).toBe(second.agent);
  expect(second.agent.status).toBe("idle");
});

local("#35 an agent that was made for another is owned by it, and by who owns that", async () => {
  const { agents } = harnessWith();
  const { agent: root } = await agents.create({ id: "root" });
  const { agent: child } = await agents.create({ id: "child", owner: root });
  const { agent: grandchild } = await agents.open({ id: "grandchild", owner: child });
  const { agent: other } = await agents.create({ id: "other" });
  expect(agents.isOwnedBy("child", root)).toBe(true);
  expect(agents.isOwnedBy("grandchild", child)).toBe(true);
  expect(agents.isOwnedBy("grandchild", root)).toBe(true);
  expect(agents.isOwnedBy("child", other)).toBe(false);
  expect(agents.isOwnedBy("root", root)).toBe(false);
  expect(agents.isOwnedBy("root", child)).toBe(false);
  expect(agents.isOwnedBy("nobody", root)).toBe(false);
  expect(ids(agents.roots())).toEqual(["root", "other"]);
  expect(grandchild.status).toBe("idle");
});

local(
  "#35 what a session descends from is no ownership: a fork can be a root, and so can a fork that is resumed",
  async () => {
    const storage = memoryStorage();
    await store(storage, "source");
    const first = harnessWith({ storage, model: scriptedModel(["a", "b"]) });
    const { agent: source } = await first.agents.open({ id: "source" });
    await first.agents.fork({ from: "source", id: "free" });
    const { agent: owned } = await first.agents.fork({ from: "source", id: "owned", owner: source });
    expect(ids(first.agents.roots())).toEqual(["source", "free"]);
    expect(first.agents.isOwnedBy("free", source)).toBe(false);
    expect(first.agents.isOwnedBy("owned", source)).toBe(true);
    owned.send("hello");
    await owned.whenIdle();
    await first.dispose();
    const second = harnessWith({ storage });
    const { agent } = await second.agents.resume({ id: "owned" });
    expect(agent.session.header.parent).toMatchObject({ id: "source" });
    expect(second.agents.roots()).toEqual([agent]);
  },
);

local("#36 D4 the layer of an agent that is gone takes no more", async () => {
  const { agents } = harnessWith();
  const { agent, dispose } = await agents.create({ id: "s" });
  const { hooks, tools, prompt, use } = agent.scope!;
  await dispose();
  let used = false;
  const look = defineTool({ name: "look", description: "Looks", inputSchema: {}, execute: () => "nothing" });
  const attempts = {
    hook: () => hooks.on("agent/status", () => {}),
    tool: () => tools.register(look),
    guard: () => tools.guard(() => undefined),
    restriction: () => tools.restrict({ deny: ["look"] }),
    section: () => prompt.section({ name: "house", text: "Be kind." }),
    variable: () => prompt.variable("name", "Ada"),
    plugin: () => use(() => void (used = true)),
  };
  const codes = Object.entries(attempts).map(([what, attempt]) => `${what}: ${codeOrNone(attempt)}`);
  expect(codes).toEqual(Object.keys(attempts).map((what) => `${what}: SCOPE_CLOSED`));
  expect(used).toBe(false);
});

local("#36 an agent that is gone can own nobody", async () => {
  const harness = harnessWith();
  const { agent, dispose } = await harness.agents.create({ id: "parent" });
  await dispose();
  const told = toldBy(harness.hooks);
  expect(await codeOf(harness.agents.create({ id: "s", owner: agent }))).toBe("AGENT_DISPOSED");
  expect(await codeOf(harness.agents.open({ id: "s", owner: agent }))).toBe("AGENT_DISPOSED");
  expect(told).toEqual([]);
});

local("#37 of the code there is reached what the contract names: no loop, no inbox, no class but the error", () => {
  const named = new Set([
    // the core
    ..."TurnloopError addUsage clientTools createHarness defineTool jsonCopy jsonEqual".split(" "),
    ..."memoryStorage rebuildRequest run toolResult".split(" "),
    // views
    ..."createTimeline createTranscript eventsFromMessages fileBlock requestChanges usageOf".split(" "),
    // plugins
    ..."approvals budget compaction fallback retry stallLimits standard subagents title toolTimeout".split(" "),
    ..."askUser outputTool repeatedCalls".split(" "),
  ]);
  const reached = Object.keys(turnloop).filter((name) => name !== "settleTest");
  expect(reached.filter((name) => !named.has(name))).toEqual([]);
  const isClass = (value: unknown): boolean => typeof value === "function" && /^class\b/.test(String(value));
  expect(Object.entries(turnloop).flatMap(([name, value]) => (isClass(value) ? [name] : []))).toEqual([
    "TurnloopError",
  ]);
});

local("#37 the package has no entry to what is inside it", () => {
  const { exports } = readManifest();
  for (const [entry, target] of Object.entries(exports)) {
    expect(entry).not.toContain("*");
    expect(entry.split("/").length).toBeLessThanOrEqual(2);
    if (typeof target === "object") expect(target.default).toMatch(/^\.\/dist\/[a-z-]+\.js$/);
  }
});

local("#37 an agent shows what the contract names, and nothing of its loop", async () => {
  const { agent } = await harnessWith().agents.create();
  const verbs =
    "cancel claim configure continue flush getSnapshot inject on respond send steer subscribe whenIdle withdraw";
  const inherited = Object.getOwnPropertyNames(Object.getPrototypeOf(agent)).filter((name) => name !== "constructor");
  expect([...Object.keys(agent), ...inherited].toSorted()).toEqual(
    [...verbs.split(" "), "id", "interactions", "options", "queue", "scope", "session", "status"].toSorted(),
  );
});

local("D3 models, agents and sessions are reached from every layer", async () => {
  const seen: Harness[] = [];
  const harness = harnessWith({
    plugins: [(scope) => void seen.push(scope.harness)],
  });
  const { agent } = await harness.agents.create({
    setup: (scope) => void scope.use((inner) => void seen.push(inner.harness)),
  });
  seen.push(agent.scope!.harness, harness.harness);
  expect(seen).toHaveLength(4);
  // The tests' own harness is what createHarness gave, with its diagnostics put on it.
  for (const one of seen) {
    expect(one.agents).toBe(harness.agents);
    expect(one.sessions).toBe(harness.sessions);
    expect(one.models).toBe(harness.models);
  }
});

local("D3 an agent registers at its own layer what only it has: another does not see it", async () => {
  const { agents, tools } = harnessWith();
  const look = defineTool({ name: "look", description: "Looks", inputSchema: {}, execute: () => "nothing" });
  const { agent: one } = await agents.create({ setup: (scope) => void scope.tools.register(look) });
  const { agent: two } = await agents.create();
  expect(one.scope!.tools.schemas().map((tool) => tool.name)).toEqual(["look"]);
  expect(two.scope!.tools.schemas()).toEqual([]);
  expect(tools.schemas()).toEqual([]);
});

function codeOrNone(attempt: () => unknown): string {
  try {
    attempt();
  } catch (thrown) {
    return (thrown as { code: string }).code;
  }
  return "taken";
}
