/** Section C: who ends an agent, and that everybody awaits the same end. */
import { memoryStorage, type AgentHandle, type Harness } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { calm, codeOf, codeThrownBy, isPending, promptly, stage, toldBy, ways } from "../support/lifecycle.ts";
import { deferred, endOf, eventOf } from "../support/wait.ts";

interface Family {
  readonly harness: Harness;
  readonly parent: AgentHandle;
  readonly child: AgentHandle;
}

async function family(): Promise<Family> {
  const harness = harnessWith({ model: scriptedModel([{ text: "let me think", hang: "polite" }]) });
  const parent = await harness.agents.create({ id: "parent" });
  const child = await harness.agents.create({ id: "child", owner: parent.agent });
  return { harness, parent, child };
}

/** The three who can end the child. */
const ends = {
  "its handle": ({ child }: Family) => child.dispose(),
  "its owner": ({ parent }: Family) => parent.dispose(),
  "the harness": ({ harness }: Family) => harness.dispose(),
};

for (const [who, end] of Object.entries(ends)) {
  local(`#38 ${who} ends the agent, in the middle of its turn`, async () => {
    const all = await family();
    const { agent } = all.child;
    const told = toldBy(all.harness.hooks);
    agent.send("hello");
    await eventOf(agent.session, "assistant/chunk");
    expect(agent.status).toBe("running");
    await end(all);
    expect(agent.status).toBe("disposed");
    expect(endOf(agent.session)).toEqual({ kind: "disposed" });
    expect(told.filter((line) => line === "agent/disposed child")).toHaveLength(1);
    expect(all.harness.agents.get("child")).toBeUndefined();
  });
}

local("#38 an owner that ends, ends first who it owns, however deep", async () => {
  const { agents, hooks } = harnessWith();
  const parent = await agents.create({ id: "parent" });
  const child = await agents.create({ id: "child", owner: parent.agent });
  await agents.create({ id: "grandchild", owner: child.agent });
  await agents.create({ id: "other" });
  const told = toldBy(hooks);
  await parent.dispose();
  expect(told.filter((line) => line.startsWith("agent/disposed"))).toEqual([
    "agent/disposed grandchild",
    "agent/disposed child",
    "agent/disposed parent",
  ]);
  expect(agents.list().map((agent) => agent.id)).toEqual(["other"]);
});

local("#38 the end of a child leaves its owner alone", async () => {
  const { parent, child } = await family();
  await child.dispose();
  expect(parent.agent.status).toBe("idle");
});

local("#39 handle, owner and harness converge on one end, and all of them wait for it", async () => {
  const all = await family();
  const told = toldBy(all.harness.hooks);
  const gate = deferred();
  const flushing = deferred();
  all.child.agent.scope!.hooks.on("session/flush", async () => {
    flushing.resolve();
    await gate.promise;
  });
  all.child.agent.inject("it is raining");
  await flushing.promise;
  const racing = [all.child.dispose(), all.parent.dispose(), all.harness.dispose(), all.child.dispose()];
  const pending = await Promise.all(racing.map(isPending));
  gate.resolve();
  expect(pending).toEqual([true, true, true, true]);
  await Promise.all(racing);
  expect(told.filter((line) => line === "agent/disposed child")).toHaveLength(1);
  expect(told.filter((line) => line === "session/disposed child")).toHaveLength(1);
  expect(told.filter((line) => line === "agent/status child disposed")).toHaveLength(1);
});

local("#39 #45 a handle that is disposed again gives the same promise", async () => {
  const { child } = await family();
  const first = child.dispose();
  expect(child.dispose()).toBe(first);
  await first;
  expect(child.dispose()).toBe(first);
});

local("#39 a handle among several waits for an end that somebody else has begun", async () => {
  const harness = harnessWith();
  const first = await harness.agents.open({ id: "s" });
  const second = await harness.agents.open({ id: "s" });
  const gate = deferred();
  first.agent.scope!.hooks.on("session/flush", () => gate.promise);
  first.agent.inject("it is raining");
  const ended = harness.dispose();
  const disposals = [first.dispose(), second.dispose()];
  const pending = await Promise.all(disposals.map(isPending));
  gate.resolve();
  expect(pending).toEqual([true, true]);
  await Promise.all([ended, ...disposals]);
});

local("#39 the end of a harness can be asked for again, and is one", async () => {
  const { harness } = await family();
  const told = toldBy(harness.hooks);
  await Promise.all([harness.dispose(), harness.dispose()]);
  await harness.dispose();
  expect(told.filter((line) => line.startsWith("agent/disposed"))).toEqual([
    "agent/disposed child",
    "agent/disposed parent",
  ]);
});

for (const way of ways) {
  local(
    `#40 ${way}: the harness has not ended before the birth that it ends is settled, and nothing comes after`,
    async () => {
      const { harness, begin } = await stage(way);
      const told = toldBy(harness.hooks);
      const order: string[] = [];
      const entered = deferred();
      const gate = deferred();
      const beginning = codeOf(
        begin({
          async setup(scope) {
            scope.use(() => () => void order.push("layer unwound"));
            entered.resolve();
            await gate.promise;
          },
        }),
      ).then(() => order.push("birth rejected"));
      await entered.promise;
      const disposed = harness.dispose().then(() => order.push("harness disposed"));
      await promptly(Promise.all([beginning, disposed]));
      gate.resolve();
      await calm();
      expect(order).toEqual(["layer unwound", "birth rejected", "harness disposed"]);
      expect(told).toEqual([]);
    },
  );

  local(`#40 ${way}: a harness that has ended begins nothing`, async () => {
    const { harness, begin } = await stage(way);
    await harness.dispose();
    expect(await codeOf(begin())).toBe("HARNESS_DISPOSED");
    expect(harness.agents.list()).toEqual([]);
  });

  local(`#40 ${way}: a harness that is ending begins nothing, from inside the last flush either`, async () => {
    const { harness, begin } = await stage(way);
    const { agent } = await harness.agents.create({ id: "last" });
    const codes: Promise<string>[] = [];
    agent.scope!.hooks.on("session/flush", () => void codes.push(codeOf(begin())));
    agent.scope!.hooks.on("session/disposed", () => void codes.push(codeOf(begin())));
    agent.inject("it is raining");
    await harness.dispose();
    expect((await Promise.all(codes)).at(-1)).toBe("HARNESS_DISPOSED");
    expect(harness.agents.list()).toEqual([]);
  });
}

local("#40 an open that waits for a teardown is refused when the harness ends meanwhile", async () => {
  const harness = harnessWith();
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  const gate = deferred();
  agent.scope!.hooks.on("session/flush", () => gate.promise);
  agent.inject("it is raining");
  const disposed = dispose();
  const opening = codeOf(harness.agents.open({ id: "s" }));
  await calm();
  const ended = harness.dispose();
  gate.resolve();
  expect(await promptly(opening)).toBe("HARNESS_DISPOSED");
  await promptly(Promise.all([disposed, ended]));
});

local("#40 a harness that has ended starts nothing, and makes no session", async () => {
  const harness = harnessWith();
  await harness.dispose();
  expect(codeThrownBy(() => harness.agents.start())).toBe("HARNESS_DISPOSED");
  expect(await codeOf(harness.sessions.create({ id: "s" }))).toBe("HARNESS_DISPOSED");
  expect(harness.sessions.get("s")).toBeUndefined();
});

local(
  "#40 the harness takes down its agents while all that they use is there, then the plugins, the storage last",
  async () => {
    const order: string[] = [];
    const inner = memoryStorage();
    const harness = harnessWith({
      model: scriptedModel([{ text: "let me think", hang: "polite" }]),
      storage: {
        ...inner,
        async append(batch) {
          order.push(`stored ${batch.events.at(-1)!.type}`);
          await inner.append(batch);
        },
        close: async () => void order.push("storage closed"),
      },
      plugins: [() => () => void order.push("first plugin"), () => () => void order.push("second plugin")],
    });
    const { agent } = await harness.agents.create({ id: "s" });
    harness.hooks.on("agent/disposed", () => void order.push("agent/disposed"));
    agent.send("hello");
    await calm();
    order.length = 0;
    await harness.dispose();
    expect(order).toEqual(["stored turn/end", "agent/disposed", "second plugin", "first plugin", "storage closed"]);
  },
);

local("#47 an agent that has ended is not ended again with its owner or its harness", async () => {
  const { harness, parent, child } = await family();
  const told = toldBy(harness.hooks);
  await child.dispose();
  expect(told).toEqual(["agent/status child disposed", "agent/disposed child", "session/disposed child"]);
  told.length = 0;
  await parent.dispose();
  await harness.dispose();
  expect(told.filter((line) => line.includes("child"))).toEqual([]);
});

local("#47 an owner that has outlived many is as quick to end as one that had none", async () => {
  // That nothing of them is kept cannot be seen; that nothing of them is told any more can.
  const { agents, hooks } = harnessWith();
  const parent = await agents.create({ id: "parent" });
  for (let n = 0; n < 100; n += 1) {
    const { dispose } = await agents.create({ owner: parent.agent });
    await dispose();
  }
  const told = toldBy(hooks);
  await parent.dispose();
  expect(told).toEqual(["agent/status parent disposed", "agent/disposed parent", "session/disposed parent"]);
});

local(
  "#9 #38 an owner that ends while its child is composed takes it along, and a child of a failed setup too",
  async () => {
    const { agents, hooks } = harnessWith();
    const told = toldBy(hooks);
    const failing = agents.create({
      id: "parent",
      async setup(scope) {
        await agents.create({ id: "child", owner: scope.agent });
        throw new Error("no");
      },
    });
    await expect(failing).rejects.toThrow("no");
    await calm();
    expect(agents.list()).toEqual([]);
    expect(told.at(-1)).toBe("session/disposed child");
    expect(told.filter((line) => line.endsWith("parent"))).toEqual([]);
  },
);
