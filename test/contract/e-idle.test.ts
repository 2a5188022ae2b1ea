/** E, 79 to 83: the status, and waiting for it. */
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { heldAnswer, statusesOf, textsOf } from "../support/held.ts";
import { isPending, promptly } from "../support/lifecycle.ts";
import { endOf, eventOf } from "../support/wait.ts";

anywhere("#79 whenIdle resolves at once when nothing runs and nothing is queued", async (open) => {
  const agent = await open({ model: scriptedModel([]) });
  expect(await isPending(agent.whenIdle())).toBe(false);
  agent.inject("context does not count");
  expect(await isPending(agent.whenIdle())).toBe(false);
});

anywhere("#79 whenIdle of a running agent resolves when it leaves running", async (open) => {
  const held = heldAnswer("hi");
  const agent = await open({ model: scriptedModel([held.answer]) });
  agent.send("go");
  await held.asked;
  const idle = agent.whenIdle();
  expect(await isPending(idle)).toBe(true);
  held.give();
  await idle;
  expect(agent.status).toBe("idle");
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

anywhere("#79 whenIdle waits while a turn waits for a person", async (open) => {
  const asking = tool("ask", (_, call) => call.ask("which?"));
  const agent = await open({ model: scriptedModel([calls("ask"), "done"]), tools: [asking] });
  agent.send("go");
  const { data } = await eventOf(agent.session, "interaction/requested");
  const idle = agent.whenIdle();
  expect(await isPending(idle)).toBe(true);
  await agent.respond(data.id, "left");
  await idle;
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

local("#79 whenIdle of a disposed agent resolves when its loop has ended", async () => {
  const harness = harnessWith({ model: scriptedModel([{ text: "on", hang: "deaf" }]) });
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  agent.send("go");
  await eventOf(agent.session, "assistant/chunk");
  const disposed = dispose();
  expect(agent.status).toBe("disposed");
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "disposed" });
  await disposed;
  expect(await isPending(agent.whenIdle())).toBe(false);
});

anywhere("#80 whenIdle right behind send waits for that turn", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  agent.send("go");
  expect(agent.getSnapshot().queue).toHaveLength(1);
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

local("#80 a disposal never strands who waits for idle, whenever they began", async () => {
  const harness = harnessWith({ model: scriptedModel([{ text: "on", hang: "deaf" }]) });
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  agent.send("go");
  const early = agent.whenIdle();
  await eventOf(agent.session, "assistant/chunk");
  const late = agent.whenIdle();
  const disposed = dispose();
  const last = agent.whenIdle();
  await promptly(Promise.all([early, late, last, disposed]));
  expect(agent.status).toBe("disposed");
});

local("#80 a disposal before the loop has woken does not strand them either", async () => {
  const harness = harnessWith({ model: scriptedModel([]) });
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  agent.send("go");
  const idle = agent.whenIdle();
  await promptly(Promise.all([dispose(), idle]));
  expect(agent.session.events.map(({ type }) => type)).toEqual(["inbox/queued"]);
});

local("#80 a listener of the status that throws starves nobody who waits for idle", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on(
    "agent/status",
    () => {
      throw new Error("no");
    },
    { prepend: true },
  );
  const statuses = statusesOf(harness);
  agent.send("go");
  await agent.whenIdle();
  expect(statuses).toEqual(["running", "idle"]);
  expect(harness.diagnostics.map(({ code }) => code)).toEqual(["LISTENER_FAILED", "LISTENER_FAILED"]);
});

local(
  "#80 whoever waits is released before `idle` is told: work that its listener sends is not waited for",
  async () => {
    const held = heldAnswer("later");
    const harness = harnessWith({ model: scriptedModel(["hi", held.answer]) });
    const { agent } = await harness.agents.open({ id: "s" });
    const off = harness.hooks.on("agent/status", ({ status }) => {
      if (status !== "idle") return;
      off();
      agent.send("more");
    });
    agent.send("go");
    expect(await isPending(agent.whenIdle())).toBe(false);
    await held.asked;
    expect(agent.status).toBe("running");
    held.give();
    await agent.whenIdle();
    expect(textsOf(agent.session)).toEqual(["go", "more"]);
  },
);

anywhere("#80 everybody who waits is told, as often as they ask", async (open) => {
  const agent = await open({ model: scriptedModel(["one", "two"]) });
  for (const message of ["go", "again"]) {
    agent.send(message);
    await Promise.all([agent.whenIdle(), agent.whenIdle(), agent.whenIdle()]);
    expect(agent.status).toBe("idle");
  }
});

local("#82 the status is idle, running or disposed; each is told once, when it changes", async () => {
  const harness = harnessWith({ model: scriptedModel(["one", "two"]) });
  const statuses = statusesOf(harness);
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  expect(agent.status).toBe("idle");
  agent.send("go");
  await agent.whenIdle();
  agent.inject("context");
  agent.cancel();
  agent.send("again");
  await agent.whenIdle();
  await Promise.all([dispose(), dispose()]);
  expect(statuses).toEqual(["running", "idle", "running", "idle", "disposed"]);
});

local("#82 turns that follow one another share one stretch of running", async () => {
  const held = heldAnswer("one");
  const harness = harnessWith({ model: scriptedModel([held.answer, "two", "three"]) });
  const statuses = statusesOf(harness);
  const { agent } = await harness.agents.open({ id: "s" });
  const off = agent.on("turn/end", ({ data }) => {
    if (data.turn !== 2) return;
    off();
    agent.send("three");
  });
  agent.send("one");
  await held.asked;
  agent.send("two");
  held.give();
  await agent.whenIdle();
  expect(textsOf(agent.session)).toEqual(["one", "two", "three"]);
  expect(statuses).toEqual(["running", "idle"]);
});

local("#83 a status is told after the field and the snapshot have it", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const seen: unknown[] = [];
  harness.hooks.on("agent/status", ({ agent, status }) => {
    seen.push([status, agent.status, agent.getSnapshot().status]);
  });
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  agent.send("go");
  await agent.whenIdle();
  await dispose();
  expect(seen).toEqual(["running", "idle", "disposed"].map((status) => [status, status, status]));
});

anywhere("#83 the watchers of the snapshot hear of each status", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  const seen: string[] = [];
  agent.subscribe(() => {
    const { status } = agent.getSnapshot();
    if (seen.at(-1) !== status) seen.push(status);
  });
  agent.send("go");
  await agent.whenIdle();
  await agent.flush();
  expect(seen).toEqual(["idle", "running", "idle"]);
});
