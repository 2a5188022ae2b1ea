/** Section B and D2: another factory in the place of the built-in loop. */
import {
  TurnloopError,
  type AgentFactory,
  type CreateAgentOptions,
  type Harness,
  type ResumeAgentOptions,
} from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { codeOf, codeThrownBy, isPending, promptly, reasonOf } from "../support/lifecycle.ts";
import { deferred, endOf } from "../support/wait.ts";

/** A factory that lends the agents of another harness, and says what it was asked. */
function lender(
  to: Harness,
  { registers = true } = {},
): AgentFactory & { readonly asked: string[]; readonly from: Harness } {
  const from = harnessWith({ model: scriptedModel(["one", "two", "three"]) });
  const asked: string[] = [];
  const lend = async (verb: "create" | "resume", options: CreateAgentOptions & ResumeAgentOptions) => {
    asked.push(`${verb} ${options.id}`);
    const { agent, dispose } = await from.agents[verb](options);
    const off = registers ? to.agents.register(agent) : undefined;
    return {
      agent,
      async dispose() {
        asked.push(`dispose ${agent.id}`);
        off?.();
        await dispose();
      },
    };
  };
  return {
    asked,
    from,
    create: (options) => lend("create", options as CreateAgentOptions & { id: string }),
    resume: (options) => lend("resume", options),
  };
}

local("#31 D2 without a set factory the built-in loop makes the agents, and the place is free", async () => {
  const harness = harnessWith();
  expect((await harness.agents.create({ id: "s" })).agent.id).toBe("s");
  harness.agents.setFactory(lender(harness));
});

local("#31 D2 a set factory makes the agents: create and resume ask it", async () => {
  const harness = harnessWith();
  const factory = lender(harness);
  harness.agents.setFactory(factory);
  const { agent, dispose } = await harness.agents.create({ id: "s" });
  expect(factory.from.agents.get("s")).toBe(agent);
  expect(harness.agents.get("s")).toBe(agent);
  agent.send("hello");
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  await dispose();
  expect((await harness.agents.resume({ id: "s" })).agent.session.seq).toBe(agent.session.seq);
  expect(factory.asked).toEqual(["create s", "dispose s", "resume s"]);
});

local("#31 a second factory is refused; undoing the first frees the place, and works once", async () => {
  const harness = harnessWith();
  const first = lender(harness);
  const second = lender(harness);
  const off = harness.agents.setFactory(first);
  expect(codeThrownBy(() => harness.agents.setFactory(second))).toBe("FACTORY_SET");
  off();
  const other = harness.agents.setFactory(second);
  off();
  await harness.agents.create({ id: "s" });
  expect([first.asked, second.asked]).toEqual([[], ["create s"]]);
  other();
  await harness.agents.create({ id: "t" });
  expect(second.asked).toEqual(["create s"]);
});

local("D2 under a set factory open tries its resume, and creates what is not found", async () => {
  const harness = harnessWith();
  const factory = lender(harness);
  harness.agents.setFactory(factory);
  const { agent, dispose } = await harness.agents.open({ id: "s", meta: { cwd: "/home" } });
  expect(agent.session.header.meta).toEqual({ cwd: "/home" });
  agent.send("hello");
  await agent.whenIdle();
  await dispose();
  await harness.agents.open({ id: "s" });
  expect(factory.asked).toEqual(["resume s", "create s", "dispose s", "resume s"]);
});

local("D2 under a set factory another failure of its resume is open's own: nothing is created", async () => {
  const harness = harnessWith();
  const failure = new TurnloopError("SESSION_CLAIMED", "somebody has it");
  let created = 0;
  harness.agents.setFactory({
    resume: () => Promise.reject(failure),
    async create() {
      created += 1;
      throw failure;
    },
  });
  expect(await reasonOf(harness.agents.open({ id: "s" }))).toBe(failure);
  expect(created).toBe(0);
});

for (const registers of [true, false]) {
  const which = registers ? "that registers its agents" : "that registers nothing";
  local(`D2 under a factory ${which} open counts handles: the last one ends the agent`, async () => {
    const harness = harnessWith();
    const factory = lender(harness, { registers });
    harness.agents.setFactory(factory);
    const first = await harness.agents.open({ id: "s" });
    const second = await harness.agents.open({ id: "s" });
    expect(second.agent).toBe(first.agent);
    await first.dispose();
    expect(second.agent.status).toBe("idle");
    await second.dispose();
    expect(second.agent.status).toBe("disposed");
    expect(factory.asked.filter((line) => line === "dispose s")).toHaveLength(1);
  });

  local(`D2 under a factory ${which} open begins anew once the agent has ended`, async () => {
    const harness = harnessWith();
    harness.agents.setFactory(lender(harness, { registers }));
    const first = await harness.agents.open({ id: "s" });
    await first.dispose();
    const second = await promptly(harness.agents.open({ id: "s" }));
    expect(second.agent).not.toBe(first.agent);
    expect(second.agent.status).toBe("idle");
  });
}

local("D2 under a factory that registers its agents, resume and create of what is live are refused", async () => {
  const harness = harnessWith();
  const factory = lender(harness);
  harness.agents.setFactory(factory);
  await harness.agents.open({ id: "s" });
  factory.asked.length = 0;
  expect(await codeOf(harness.agents.resume({ id: "s" }))).toBe("SESSION_LIVE");
  expect(await codeOf(harness.agents.create({ id: "s" }))).toBe("SESSION_EXISTS");
});

local("D2 during the teardown of a factory's agent open waits, and then opens anew", async () => {
  const harness = harnessWith();
  const factory = lender(harness);
  const gate = deferred();
  harness.agents.setFactory({
    ...factory,
    async create(options) {
      const { agent, dispose } = await factory.create(options);
      return { agent, dispose: () => gate.promise.then(dispose) };
    },
  });
  const first = await harness.agents.open({ id: "s" });
  const disposed = first.dispose();
  const opening = harness.agents.open({ id: "s" });
  expect(await isPending(opening)).toBe(true);
  gate.resolve();
  const second = await opening;
  await disposed;
  expect(second.agent).not.toBe(first.agent);
  expect(second.agent.status).toBe("idle");
});

local("D2 start asks the factory as well, if that can", () => {
  const harness = harnessWith();
  const factory = lender(harness);
  const off = harness.agents.setFactory(factory);
  expect(codeThrownBy(() => harness.agents.start())).toBe("UNSUPPORTED");
  off();
  const agent = factory.from.agents.start();
  harness.agents.setFactory({ ...factory, start: () => agent });
  expect(harness.agents.start()).toBe(agent);
});

local("#40 when the harness ends it waits for a birth at the factory, and begins no other", async () => {
  const harness = harnessWith();
  const factory = lender(harness);
  const gate = deferred();
  harness.agents.setFactory({ ...factory, create: (options) => gate.promise.then(() => factory.create(options)) });
  const creating = harness.agents.create({ id: "s" }).then(
    (handle) => handle.dispose(),
    () => {},
  );
  const disposed = harness.dispose();
  expect(await isPending(disposed)).toBe(true);
  gate.resolve();
  await creating;
  await promptly(disposed);
  factory.asked.length = 0;
  expect(await codeOf(harness.agents.create({ id: "t" }))).toBe("HARNESS_DISPOSED");
  expect(await codeOf(harness.agents.resume({ id: "t" }))).toBe("HARNESS_DISPOSED");
  expect(await codeOf(harness.agents.open({ id: "t" }))).toBe("HARNESS_DISPOSED");
  expect(codeThrownBy(() => harness.agents.start())).toBe("HARNESS_DISPOSED");
  expect(factory.asked).toEqual([]);
});
