/** Section D: what sessions, turns, steps, events and calls are named by. */
import { defineTool, memoryStorage, type HarnessOptions, type SessionEvent } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect } from "vitest";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { codeOf, store } from "../support/lifecycle.ts";
import { storedEvents } from "../support/mortal.ts";
import { typesOf } from "../support/wait.ts";

anywhere("#51 agent, session and header share the id that the caller chose", async (open) => {
  const agent = await open({ id: "chosen" });
  expect([agent.id, agent.session.id, agent.session.header.id]).toEqual(["chosen", "chosen", "chosen"]);
});

local("#51 agent and session are found under the same id", async () => {
  const { agents, sessions } = harnessWith();
  const { agent } = await agents.create({ id: "chosen" });
  expect([agents.get("chosen"), sessions.get("chosen")]).toEqual([agent, agent.session]);
});

local("#51 an id that is not chosen is minted, by the host's own maker of ids", async () => {
  const own = harnessWith({ newId: () => "minted" });
  expect((await own.agents.create()).agent.id).toBe("minted");
  const { agents } = harnessWith();
  const [one, two] = [await agents.create(), await agents.create()];
  for (const { agent } of [one, two]) expect(agent.id).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  expect(one.agent.id).not.toBe(two.agent.id);
});

for (const id of [
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  " ",
  "a/b",
  "../a",
  "ünïcödé 🐢",
  "\u0000",
]) {
  local(`#51 any text is an id, and only an id: ${JSON.stringify(id)}`, async () => {
    const storage = memoryStorage();
    const harness = harnessWith({ storage, model: scriptedModel(["hi"]) });
    expect(harness.agents.get(id)).toBeUndefined();
    expect(harness.sessions.get(id)).toBeUndefined();
    const { agent, dispose } = await harness.agents.create({ id });
    expect(harness.agents.get(id)).toBe(agent);
    agent.send("hello");
    await agent.whenIdle();
    await dispose();
    expect(harness.agents.get(id)).toBeUndefined();
    expect(await storedEvents(storage, id)).toEqual(agent.session.events);
    expect((await harness.agents.resume({ id })).agent.session.seq).toBe(agent.session.seq);
  });
}

local("#51 what is no text, or empty, is no id", async () => {
  const { agents } = harnessWith();
  for (const id of ["", 7, null, {}, ["s"]]) {
    for (const verb of ["open", "create", "resume"] as const) {
      expect(await codeOf(agents[verb]({ id: id as string }))).toBe("INVALID_ID");
    }
  }
});

local("#52 a session without an agent that is given no id is numbered, past the ones that live", async () => {
  const { agents, sessions } = harnessWith();
  expect((await sessions.create()).id).toBe("session-1");
  await agents.create({ id: "session-2" });
  expect((await sessions.create()).id).toBe("session-3");
});

local("#52 two that are made at once have two numbers", async () => {
  const { sessions } = harnessWith();
  const made = await Promise.all([sessions.create(), sessions.create(), sessions.create()]);
  expect(made.map((session) => session.id).toSorted()).toEqual(["session-1", "session-2", "session-3"]);
});

local("#52 a number that is stored is taken too", async () => {
  const storage = memoryStorage();
  await store(storage, "session-1");
  const { sessions } = harnessWith({ storage });
  expect((await sessions.create()).id).toBe("session-2");
});

function numbers<T extends "turn/start" | "turn/end" | "step/start">(
  events: readonly SessionEvent[],
  type: T,
): (readonly number[])[] {
  return events.flatMap((event) => {
    if (event.type !== type) return [];
    const { turn, step } = event.data as { turn: number; step?: number };
    return [step === undefined ? [turn] : [turn, step]];
  });
}

const look = defineTool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: () => "nothing",
});
const looks: ScriptedAnswer = { toolCalls: [{ name: "look", args: {} }] };

anywhere("#53 turns count from 1 without a gap, whatever opens them; steps from 1 in each turn", async (open) => {
  const agent = await open({ model: scriptedModel([looks, looks, "done", looks, "done", "done"]), tools: [look] });
  agent.send("one");
  await agent.whenIdle();
  agent.inject("it is raining");
  agent.send("two");
  await agent.whenIdle();
  agent.continue();
  await agent.whenIdle();
  const { events } = agent.session;
  expect(numbers(events, "turn/start")).toEqual([[1], [2], [3], [4]]);
  expect(numbers(events, "turn/end")).toEqual([[1], [2], [3], [4]]);
  expect(numbers(events, "step/start")).toEqual([
    [1, 1],
    [1, 2],
    [1, 3],
    [3, 1],
    [3, 2],
    [4, 1],
  ]);
});

anywhere("#53 seqs count from 0, and the next one is the length of the log", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  expect([agent.session.seq, agent.session.start, agent.session.events.length]).toEqual([0, 0, 0]);
  agent.configure({ temperature: 0 });
  await agent.flush();
  expect(agent.session.seq).toBe(1);
  agent.send("hello");
  await agent.whenIdle();
  const { events, seq } = agent.session;
  expect(events.map((event) => event.seq)).toEqual([...events.keys()]);
  expect(seq).toBe(events.length);
  expect(agent.session.at(0)).toBe(events[0]);
  expect(agent.session.at(seq)).toBeUndefined();
});

local(
  "#53 the number of a turn is read from the log: after a resume, in a fork, in a seed, behind a turn of another hand",
  async () => {
    const storage = memoryStorage();
    await store(storage, "source", { messages: ["one", "two"] });
    const seed = await storedEvents(storage, "source");
    const harness = harnessWith({ storage, model: scriptedModel(["a", "b", "c", "d"]) });
    const { agent: resumed } = await harness.agents.resume({ id: "source" });
    const { agent: forked } = await harness.agents.fork({ from: "source" });
    const { agent: seeded } = await harness.agents.create({ seed });
    for (const agent of [resumed, forked, seeded]) {
      agent.send("three");
      await agent.whenIdle();
      expect(numbers(agent.session.events, "turn/start")).toEqual([[1], [2], [3]]);
    }
    const { session } = resumed.scope!;
    const source = { kind: "by hand" };
    session.append("turn/start", { turn: 4, trigger: { kind: "continue", source } });
    session.append("turn/end", { turn: 4, reason: { kind: "completed" } });
    resumed.send("five");
    await resumed.whenIdle();
    expect(numbers(session.events, "turn/start")).toEqual([[1], [2], [3], [4], [5]]);
  },
);

/** Runs one turn, and gives what the log says of its calls. */
async function callsOf(
  answers: readonly ScriptedAnswer[],
  options: HarnessOptions = {},
): Promise<{ events: readonly SessionEvent[]; calls: string[]; results: string[]; requests: readonly unknown[] }> {
  const model = scriptedModel(answers);
  const { agents } = harnessWith({ model, tools: [look], ...options });
  const { agent } = await agents.create();
  agent.send("hello");
  await agent.whenIdle();
  const { events } = agent.session;
  const idsOf = (type: "tool/call" | "tool/result"): string[] =>
    events.flatMap((event) => (event.type === type ? [event.data.callId] : []));
  return { events, calls: idsOf("tool/call"), results: idsOf("tool/result"), requests: model.requests };
}

local("#54 D8 a call is named by the place of its block: turn, step, attempt, index", async () => {
  const { calls, results } = await callsOf([
    {
      text: "let me see",
      toolCalls: [
        { name: "look", args: {} },
        { name: "look", args: {} },
      ],
    },
    looks,
    "done",
  ]);
  expect(calls).toEqual(["call_1_1_1_1", "call_1_1_1_2", "call_1_2_1_0"]);
  expect(results).toEqual(calls);
});

local("#54 D8 the attempt is part of it: a call of a failed attempt and its second try differ", async () => {
  const { calls } = await callsOf(
    [{ toolCalls: [{ name: "look", args: {} }], error: { message: "overloaded" } }, looks, "done"],
    { plugins: [({ hooks }) => void hooks.on("agent/request-error", () => ({ kind: "retry" }))] },
  );
  expect(calls).toEqual(["call_1_1_2_0"]);
});

local("#54 D8 the provider's own id is kept beside it, with the call and in the block's meta", async () => {
  const answer: ScriptedAnswer = {
    toolCalls: [
      { name: "look", args: {}, id: "toolu_7" },
      { name: "look", args: {} },
    ],
  };
  const { events, requests } = await callsOf([answer, "done"]);
  const calls = events.flatMap((event) => (event.type === "tool/call" ? [event.data] : []));
  expect(calls.map((call) => [call.callId, call.providerCallId])).toEqual([
    ["call_1_1_1_0", "toolu_7"],
    ["call_1_1_1_1", undefined],
  ]);
  const [, message, ...rest] = (requests[1] as { messages: { content: { callId?: string; meta?: unknown }[] }[] })
    .messages;
  expect(message!.content.map((block) => [block.callId, block.meta])).toEqual([
    ["call_1_1_1_0", { providerCallId: "toolu_7" }],
    ["call_1_1_1_1", undefined],
  ]);
  expect(rest.map(({ content }) => content[0]!.callId)).toEqual(["call_1_1_1_0", "call_1_1_1_1"]);
});

local("#54 D8 calls whose provider gives them all the same id stay apart", async () => {
  const same = { name: "look", args: {}, id: "0" };
  const { calls, results } = await callsOf([{ toolCalls: [same, same] }, { toolCalls: [same] }, "done"]);
  expect(calls).toEqual(["call_1_1_1_0", "call_1_1_1_1", "call_1_2_1_0"]);
  expect(results).toEqual(calls);
});

local("#54 D8 calls that step-result adds take the next free indexes, whatever they call themselves", async () => {
  const { calls, results } = await callsOf([{ text: "hm", toolCalls: [{ name: "look", args: {} }] }, "done"], {
    plugins: [
      ({ hooks }) =>
        void hooks.on("agent/step-result", async ({ step }, next) => {
          const message = await next();
          if (step > 1) return message;
          const added = (callId: string) => ({ type: "tool-call", callId, name: "look", arguments: "{}" }) as const;
          return { ...message, content: [added("mine"), ...message.content, added("call_1_1_1_1"), added("mine")] };
        }),
    ],
  });
  expect(calls).toEqual(["call_1_1_1_2", "call_1_1_1_1", "call_1_1_1_3", "call_1_1_1_4"]);
  expect(results.toSorted()).toEqual(calls.toSorted());
});

local("#54 D8 the id is the loop's own in the result too, whatever a hook around the call answers", async () => {
  const { calls, results } = await callsOf([looks, "done"], {
    plugins: [
      ({ hooks }) => {
        hooks.on("tools/execute", async (_, next) => ({ ...(await next()), callId: "another" }));
        hooks.on("tools/post-execute", async (_, next) => ({ ...(await next()), callId: "another" }));
      },
    ],
  });
  expect(calls).toEqual(["call_1_1_1_0"]);
  expect(results).toEqual(calls);
});

local("#54 D8 the id of a call is known while the call is being written", async () => {
  const { events } = await callsOf([looks, "done"]);
  const types = typesOf({ events } as never);
  expect(types.indexOf("tool/call")).toBeGreaterThan(types.indexOf("assistant/message"));
  const start = events.find((event) => event.type === "assistant/chunk" && event.data.chunk.type === "block-start");
  const { turn, step, chunk } = (start as SessionEvent<"assistant/chunk">).data;
  const message = events.find((event) => event.type === "assistant/message");
  expect(message?.data.content[0]).toMatchObject({
    type: "tool-call",
    callId: `call_${turn}_${step}_1_${(chunk as { index: number }).index}`,
  });
});
