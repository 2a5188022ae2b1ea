/** D26: what can be done to a session while it is live here. */
import { memoryStorage, type SessionEvent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { harnessWith, local } from "../support/fixture.ts";
import { codeOf, held, isPending, store } from "../support/lifecycle.ts";
import { storedEvents } from "../support/mortal.ts";
import { eventOf, typesOf } from "../support/wait.ts";

const thinking = { text: "let me think", hang: "polite" } as const;

async function lines(exported: AsyncIterable<string>): Promise<unknown[]> {
  let text = "";
  for await (const piece of exported) text += piece;
  expect(text.endsWith("\n")).toBe(true);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
}

local("D26 rename of a live session goes through its agent: it is in its log, told, and stored", async () => {
  const storage = memoryStorage();
  const harness = harnessWith({ storage, model: scriptedModel(["hi"]) });
  const { agent } = await harness.agents.create({ id: "s" });
  const heard: string[] = [];
  agent.on("session/titled", ({ data }) => void heard.push(data.title));
  agent.send("hello");
  await agent.whenIdle();
  await harness.sessions.rename("s", "Weather");
  expect(heard).toEqual(["Weather"]);
  expect(agent.session.events.at(-1)).toMatchObject({ type: "session/titled", data: { title: "Weather" } });
  expect(await storedEvents(storage, "s")).toEqual(agent.session.events);
  expect((await harness.sessions.list()).sessions).toMatchObject([{ id: "s", title: "Weather" }]);
});

local("D26 rename in the middle of a turn disturbs nothing", async () => {
  const storage = memoryStorage();
  const harness = harnessWith({ storage, model: scriptedModel([thinking]) });
  const { agent } = await harness.agents.create({ id: "s" });
  agent.send("hello");
  await eventOf(agent.session, "assistant/chunk");
  await harness.sessions.rename("s", "Weather");
  agent.cancel("enough");
  await agent.whenIdle();
  expect(typesOf(agent.session)).toEqual([
    "inbox/queued",
    "turn/start",
    "user/message",
    "step/start",
    "request/header",
    "session/titled",
    "agent/cancelled",
    "assistant/message",
    "step/end",
    "turn/end",
  ]);
});

local("D26 rename is done when the title is stored", async () => {
  const inner = memoryStorage();
  const storage = held(inner, "append");
  const harness = harnessWith({ storage });
  await harness.agents.create({ id: "s" });
  const renamed = harness.sessions.rename("s", "Weather");
  const pending = await isPending(renamed);
  storage.release();
  await renamed;
  expect(pending).toBe(true);
  expect(await storedEvents(inner, "s")).toMatchObject([{ type: "session/titled", data: { title: "Weather" } }]);
});

local("D26 a title must be text, and a session must be there", async () => {
  const harness = harnessWith();
  const { agent } = await harness.agents.create({ id: "s" });
  expect(await codeOf(harness.sessions.rename("s", 7 as never))).toBe("INVALID_CONTENT");
  expect(await codeOf(harness.sessions.rename("t", "Weather"))).toBe("SESSION_NOT_FOUND");
  expect(agent.session.events).toEqual([]);
});

local("D26 delete of a live session is refused, and it goes on", async () => {
  const storage = memoryStorage();
  const harness = harnessWith({ storage, model: scriptedModel(["hi", "again"]) });
  const { agent, dispose } = await harness.agents.create({ id: "s" });
  agent.send("hello");
  await agent.whenIdle();
  expect(await codeOf(harness.sessions.delete("s"))).toBe("SESSION_LIVE");
  agent.send("on");
  await agent.whenIdle();
  expect(await storedEvents(storage, "s")).toEqual(agent.session.events);
  await dispose();
  await harness.sessions.delete("s");
  expect(await harness.sessions.load("s")).toBeUndefined();
  expect(await codeOf(harness.agents.resume({ id: "s" }))).toBe("SESSION_NOT_FOUND");
});

local("D26 delete is refused while the agent of the session is still ending", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const { agent, dispose } = await harness.agents.create({ id: "s" });
  agent.send("hello");
  await agent.whenIdle();
  const codes: Promise<string>[] = [];
  agent.scope!.hooks.on("session/flush", () => void codes.push(codeOf(harness.sessions.delete("s"))));
  agent.inject("it is raining");
  await dispose();
  expect(new Set(await Promise.all(codes))).toEqual(new Set(["SESSION_LIVE"]));
});

local("D26 export of a live session stores what there is, and gives the header and every event", async () => {
  const storage = memoryStorage();
  const harness = harnessWith({ storage, model: scriptedModel(["hi"]) });
  const { agent } = await harness.agents.create({ id: "s", meta: { title: "Weather" } });
  agent.send("hello");
  await agent.whenIdle();
  agent.configure({ temperature: 1 });
  expect(await lines(harness.sessions.export("s"))).toEqual([agent.session.header, ...agent.session.events]);
  expect(await storedEvents(storage, "s")).toEqual(agent.session.events);
});

local("D26 export waits until what it gives is stored", async () => {
  const inner = memoryStorage();
  const storage = held(inner, "append");
  const harness = harnessWith({ storage });
  const { agent } = await harness.agents.create({ id: "s" });
  agent.configure({ temperature: 1 });
  const exported = lines(harness.sessions.export("s"));
  const pending = await isPending(exported);
  storage.release();
  expect(await exported).toEqual([agent.session.header, ...agent.session.events]);
  expect(pending).toBe(true);
});

local("D26 export ends at the seq of the call: what comes behind it is left out", async () => {
  const harness = harnessWith({ model: scriptedModel([thinking]) });
  const { agent } = await harness.agents.create({ id: "s" });
  agent.send("hello");
  await eventOf(agent.session, "assistant/chunk", ({ data }) => data.chunk.type === "block-end");
  const before = agent.session.events;
  const exported = harness.sessions.export("s");
  agent.send("one more");
  agent.cancel();
  await agent.whenIdle();
  expect(await lines(exported)).toEqual([agent.session.header, ...before]);
});

local("D26 what is appended between two lines of an export is left out", async () => {
  const harness = harnessWith();
  const { agent } = await harness.agents.create({ id: "s" });
  for (const temperature of [0, 1, 2]) agent.configure({ temperature });
  const before = agent.session.events;
  const got: SessionEvent[] = [];
  for await (const line of harness.sessions.export("s")) {
    got.push(JSON.parse(line) as SessionEvent);
    agent.configure({ temperature: 3 });
  }
  expect(got.slice(1)).toEqual(before);
});

local("D26 an export survives the end of its agent, and is that of the log of the call", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const { agent, dispose } = await harness.agents.create({ id: "s" });
  agent.send("hello");
  await agent.whenIdle();
  const exported = harness.sessions.export("s");
  await dispose();
  expect(await lines(exported)).toEqual([agent.session.header, ...agent.session.events]);
});

local("D26 export of what is stored and not live reads the store, and of what is nowhere is refused", async () => {
  const storage = memoryStorage();
  await store(storage, "s");
  const harness = harnessWith({ storage });
  const [header, ...events] = await lines(harness.sessions.export("s"));
  expect(header).toMatchObject({ id: "s" });
  expect(events).toEqual(await storedEvents(storage, "s"));
  expect(await codeOf(lines(harness.sessions.export("nowhere")))).toBe("SESSION_NOT_FOUND");
});

local("D26 load of a live session gives that very session", async () => {
  const harness = harnessWith();
  const { agent } = await harness.agents.create({ id: "s" });
  expect(await harness.sessions.load("s")).toBe(agent.session);
});

local("D26 rename and export work for a session that lives without an agent", async () => {
  const harness = harnessWith();
  const session = await harness.sessions.create({ id: "s" });
  await harness.sessions.rename("s", "Weather");
  expect(typesOf(session)).toEqual(["session/titled"]);
  expect(await lines(harness.sessions.export("s"))).toEqual([session.header, ...session.events]);
  expect(await codeOf(harness.sessions.delete("s"))).toBe("SESSION_LIVE");
});
