/** Section A: agents that are there at once, and agents that the harness starts by itself. */
import { createHarness, memoryStorage, type Agent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { codeOf, codeThrownBy, store, toldBy } from "../support/lifecycle.ts";
import { endOf, textOf } from "../support/wait.ts";

local("#27 D2 start is done when it returns: a minted id, a working directory, no handle", async () => {
  const model = scriptedModel(["hi"]);
  const harness = harnessWith({ model, newId: numbered() });
  const told = toldBy(harness.hooks);
  const agent = harness.agents.start({ cwd: "/home", context: 7 });
  expect(agent.id).toBe("id-1");
  expect(told).toEqual(["session/created id-1", "agent/created id-1", "agent/session-start id-1 startup"]);
  expect(harness.agents.get(agent.id)).toBe(agent);
  expect(harness.sessions.get(agent.id)).toBe(agent.session);
  expect(agent.session.header.meta).toEqual({ cwd: "/home" });
  expect(agent.options.context).toBe(7);
  expect("dispose" in agent).toBe(false);
  agent.send("hello");
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

local("D2 start takes no id of the caller's, and no setup", () => {
  const { agents } = harnessWith({ newId: numbered() });
  let composed = false;
  const options = { id: "mine", setup: () => void (composed = true) };
  expect(agents.start(options as object).id).toBe("id-1");
  expect(composed).toBe(false);
});

local("#27 what start made is the harness's: whoever joins it and leaves does not end it", async () => {
  const harness = harnessWith();
  const agent = harness.agents.start();
  const joined = await harness.agents.open({ id: agent.id });
  expect(joined.agent).toBe(agent);
  await joined.dispose();
  expect(agent.status).toBe("idle");
  await harness.dispose();
  expect(agent.status).toBe("disposed");
});

local("#27 a start that fails leaves nothing: options that cannot work", async () => {
  const harness = harnessWith();
  const told = toldBy(harness.hooks);
  expect(await codeOf(() => harness.agents.start({ model: "nobody" }))).toBe("NO_ADAPTER");
  expect(await codeOf(() => harness.agents.start({ cwd: "relative" }))).toBe("INVALID_HEADER");
  expect(await codeOf(() => harness.agents.start({ call: { temperature: Number.NaN } }))).toBe("INVALID_CONTENT");
  expect(told).toEqual([]);
  expect(harness.agents.list()).toEqual([]);
});

local("#27 a start whose id is taken throws, and the one that has it stays", async () => {
  const harness = harnessWith({ newId: () => "same" });
  const told = toldBy(harness.hooks);
  const agent = harness.agents.start();
  told.length = 0;
  expect(["SESSION_LIVE", "SESSION_EXISTS"]).toContain(await codeOf(() => harness.agents.start()));
  expect(told).toEqual([]);
  expect(harness.agents.list()).toEqual([agent]);
  expect(harness.sessions.get("same")).toBe(agent.session);
});

for (const during of ["session/created", "agent/created", "agent/session-start"] as const) {
  local(`#27 #45 a start that fails during ${during} is taken back when it throws, not later`, () => {
    const harness = harnessWith({ newId: () => "s" });
    const told = toldBy(harness.hooks);
    harness.hooks.on(during, () => void harness.dispose());
    const code = codeThrownBy(() => harness.agents.start());
    expect([harness.agents.get("s"), harness.sessions.get("s")]).toEqual([undefined, undefined]);
    expect(told.at(-1)).toBe("session/disposed s");
    expect(told.filter((line) => line.startsWith("agent/status"))).toEqual([]);
    expect(code).toBe("HARNESS_DISPOSED");
  });
}

local("#28 a declared agent is a fresh session under its label each time", async () => {
  const storage = memoryStorage();
  const ids: string[] = [];
  for (let run = 0; run < 2; run += 1) {
    const harness = harnessWith({ storage, agents: [{ id: "helper" }] });
    await harness.ready;
    ids.push(...harness.agents.list().map((agent) => agent.id));
    await harness.dispose();
  }
  expect(ids).toHaveLength(2);
  for (const id of ids)
    expect(id).toMatch(/^helper-session-[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  expect(ids[0]).not.toBe(ids[1]);
});

local("#28 #29 a sessionId begins what is new and goes on with what is stored", async () => {
  const storage = memoryStorage();
  const declared = [{ id: "helper", sessionId: "kept", cwd: "/home" }];
  const first = harnessWith({ storage, model: scriptedModel(["hi"]), agents: declared });
  await first.ready;
  const agent = first.agents.get("kept")!;
  expect(agent.session.header.meta).toEqual({ cwd: "/home" });
  agent.send("hello");
  await agent.whenIdle();
  await first.dispose();
  const second = harnessWith({ storage, agents: [{ ...declared[0]!, cwd: "/elsewhere" }] });
  await second.ready;
  const again = second.agents.get("kept")!;
  expect(again.session.header.meta).toEqual({ cwd: "/home" });
  expect(again.session.deriveMessages().map((message) => textOf(message.content))).toEqual(["hello", "hi"]);
  expect(second.diagnostics).toEqual([]);
});

local("#28 a resumeSessionId must be stored: if not, a warning, no agent, and the others start", async () => {
  const storage = memoryStorage();
  await store(storage, "kept");
  const harness = harnessWith({
    storage,
    agents: [
      { id: "lost", resumeSessionId: "gone" },
      { id: "found", resumeSessionId: "kept" },
      { id: "exact", sessionId: "new" },
    ],
  });
  await harness.ready;
  expect(
    harness.agents
      .list()
      .map((agent) => agent.id)
      .toSorted(),
  ).toEqual(["kept", "new"]);
  expect(harness.diagnostics.map(({ code }) => code)).toEqual(["SESSION_NOT_FOUND"]);
  expect(harness.diagnostics[0]!.message).toMatch(/lost.*gone/);
});

local("#28 sessionId and resumeSessionId exclude each other: createHarness throws", () => {
  const agents = [{ id: "helper", sessionId: "a", resumeSessionId: "b" }];
  expect(() => createHarness({ agents })).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }) as Error);
});

local("#28 a declared agent that cannot start for another reason is reported, and crashes nothing", async () => {
  const harness = harnessWith({
    agents: [
      { id: "helper", sessionId: "s", model: "nobody" },
      { id: "b", sessionId: "b" },
    ],
  });
  await harness.ready;
  expect(harness.diagnostics.map(({ code }) => code)).toEqual(["AGENT_NOT_STARTED"]);
  expect(harness.agents.list().map((agent) => agent.id)).toEqual(["b"]);
});

local("#28 a declared agent has its model, and the context that the host rebuilds for it", async () => {
  const harness = harnessWith({
    models: { small: scriptedModel(["hi"]) },
    context: async (sessionId) => ({ of: sessionId }),
    agents: [{ id: "helper", sessionId: "s", model: "small" }],
  });
  await harness.ready;
  expect(harness.agents.get("s")!.options).toEqual({ model: "small", context: { of: "s" } });
});

local("#28 a context that cannot be rebuilt fails that one agent", async () => {
  const harness = harnessWith({
    context: () => Promise.reject(new Error("no such user")),
    agents: [{ id: "helper", sessionId: "s" }],
  });
  await harness.ready;
  expect(harness.diagnostics.map(({ code }) => code)).toEqual(["AGENT_NOT_STARTED"]);
  expect(harness.agents.list()).toEqual([]);
});

local("#19 the id of an agent is that of its session: another is refused when it is registered", async () => {
  const harness = harnessWith();
  const { agent } = await harnessWith().agents.create({ id: "s" });
  const told = toldBy(harness.hooks);
  const impostor: Agent = { ...agent, id: "t", session: agent.session };
  expect(await codeOf(() => harness.agents.register(impostor))).toBe("INVALID_AGENT");
  expect(told).toEqual([]);
  expect(harness.agents.list()).toEqual([]);
});

// #20: which driver holds a session cannot be seen. What can be: a session that somebody has is given to no other.
local("#19 #20 a session that lives without an agent is not driven by one of ours as well", async () => {
  const harness = harnessWith();
  const session = await harness.sessions.create({ id: "s" });
  const told = toldBy(harness.hooks);
  expect(await codeOf(harness.agents.create({ id: "s" }))).toBe("SESSION_EXISTS");
  expect(await codeOf(harness.agents.open({ id: "s" }))).toBe("SESSION_LIVE");
  expect(told).toEqual([]);
  expect(harness.sessions.get("s")).toBe(session);
});

local("#19 #20 the session of an agent is not handed out a second time", async () => {
  const harness = harnessWith();
  const { agent } = await harness.agents.create({ id: "s" });
  expect(await codeOf(harness.sessions.create({ id: "s" }))).toBe("SESSION_EXISTS");
  expect(harness.sessions.get("s")).toBe(agent.session);
});

function numbered(): () => string {
  let n = 0;
  return () => `id-${(n += 1)}`;
}
