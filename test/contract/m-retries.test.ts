/** M, D10 and D20: what may be done about a request that has failed. */
import { createTranscript, type ModelChunk, type RequestErrorDecision } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { testClock } from "../support/clock.ts";
import { local } from "../support/fixture.ts";
import { chunksIn, dataOf, linesOf, scene, tool, type Scene } from "../support/scene.ts";
import { endOf, typesOf } from "../support/wait.ts";

const finish = (kind: string, more = {}): ModelChunk => ({ type: "finish", reason: { kind, ...more } as never });
const delta = (text: string): ModelChunk => ({ type: "delta", index: 0, text });
const busy = { text: "half an", error: { message: "overloaded", code: "BUSY" } };

function decide({ hooks }: Scene, ...decisions: readonly RequestErrorDecision[]): object[] {
  const asked: object[] = [];
  hooks.on("agent/request-error", ({ turn, step, attempt, error, committed }, next) => {
    asked.push({ turn, step, attempt, error, committed });
    return decisions[asked.length - 1] ?? next();
  });
  return asked;
}

local(
  "D10 D20 #166 a retry asks again within the step; each failed attempt is closed after the decision about it",
  async () => {
    const one = await scene([busy, busy, { text: "whole", usage: { output: 1 } }]);
    let requests = 0;
    one.hooks.on("agent/request", (_, next) => ((requests += 1), next()));
    const seen: string[] = [];
    one.hooks.on("agent/request-error", async (_, next) => {
      seen.push(typesOf(one.session).at(-1)!);
      return next();
    });
    const asked = decide(one, { kind: "retry" }, { kind: "retry", afterMs: 1 });
    expect(await one.say("hi")).toEqual({ kind: "completed" });
    expect(typesOf(one.session)).toEqual([
      "inbox/queued",
      "turn/start",
      "user/message",
      "step/start",
      "request/header",
      "request/failed",
      "request/failed",
      "assistant/message",
      "step/end",
      "turn/end",
    ]);
    expect(seen).toEqual(["request/header", "request/failed"]);
    const error = { message: "overloaded", code: "BUSY" };
    expect(asked).toEqual([1, 2].map((attempt) => ({ turn: 1, step: 1, attempt, error, committed: true })));
    expect(dataOf(one.session, "request/failed")).toEqual([
      { turn: 1, step: 1, attempt: 1, error, next: "retry" },
      { turn: 1, step: 1, attempt: 2, error, next: "retry", afterMs: 1 },
    ]);
    expect(requests).toBe(1);
    expect(new Set(one.model.requests.map((request) => JSON.stringify(request))).size).toBe(1);
  },
);

local(
  "D19 #166 the message that stands in the end cites the chunks of its own attempt alone, and keeps no other text",
  async () => {
    const one = await scene([busy, "whole"]);
    decide(one, { kind: "retry" });
    await one.say("hi");
    const { seq, cites } = one.session.events.find((event) => event.type === "assistant/message")!;
    const failed = one.session.events.find((event) => event.type === "request/failed")!.seq;
    expect(cites).toEqual([[failed + 1, seq - 1]]);
    expect(linesOf(one.session.deriveMessages())).toEqual(["user: hi", "assistant: whole"]);
  },
);

local("D20 #166 a retry may go to another model, with other settings; the header says so", async () => {
  const spare = scriptedModel(["from the spare"], { id: "spare/model" });
  const one = await scene([busy], { models: { spare } });
  decide(one, { kind: "retry", config: { model: "spare", temperature: 0 } });
  expect(await one.say("hi")).toEqual({ kind: "completed" });
  expect(spare.requests[0]!.config).toEqual({ model: "spare", temperature: 0 });
  expect(dataOf(one.session, "request/header").map(({ reason, header }) => [reason, header.modelId])).toEqual([
    ["initial", "scripted/model"],
    ["change", "spare/model"],
  ]);
  expect(dataOf(one.session, "assistant/message")[0]!.model).toBe("spare/model");
});

local("D20 #166 a retry waits by the clock of the harness, and a cancel ends the waiting", async () => {
  const clock = testClock();
  const one = await scene([busy, "whole", busy], { clock });
  decide(one, { kind: "retry", afterMs: 30_000 }, { kind: "retry", afterMs: 60_000 });
  one.agent.send("hi");
  await clock.sleeping(30_000);
  expect(one.model.requests).toHaveLength(1);
  await clock.advance(29_999);
  expect(one.model.requests).toHaveLength(1);
  await clock.advance(1);
  await one.agent.whenIdle();
  expect(endOf(one.session)).toEqual({ kind: "completed" });
  one.agent.send("again");
  await clock.sleeping(60_000);
  one.agent.cancel("too long");
  await one.agent.whenIdle();
  expect(endOf(one.session)).toEqual({ kind: "aborted", reason: "too long" });
  expect(one.model.requests).toHaveLength(3);
});

local("D20 #166 a disposal ends the waiting too", async () => {
  const clock = testClock();
  const one = await scene([busy], { clock });
  decide(one, { kind: "retry", afterMs: 30_000 });
  one.agent.send("hi");
  await clock.sleeping(30_000);
  await one.dispose();
  expect(endOf(one.session)).toEqual({ kind: "disposed" });
  expect(one.model.requests).toHaveLength(1);
});

local("D20 #166 a cancel beats a retry: while it is decided, and when it is", async () => {
  for (const forever of [true, false]) {
    const one = await scene([busy]);
    one.hooks.on("agent/request-error", () => {
      one.agent.cancel("enough");
      return forever ? new Promise(() => {}) : { kind: "retry" };
    });
    expect(await one.say("hi")).toEqual({ kind: "aborted", reason: "enough" });
    expect(one.model.requests).toHaveLength(1);
    expect(one.errors).toEqual([]);
  }
});

local("D20 #166 a request that fails as it is cancelled is not offered for a retry", async () => {
  const one = await scene([], {
    model: {
      id: "own/model",
      stream() {
        one.agent.cancel("enough");
        throw new Error("no");
      },
    },
  });
  const asked = decide(one, { kind: "retry" });
  expect(await one.say("hi")).toEqual({ kind: "aborted", reason: "enough" });
  expect(asked).toEqual([]);
});

local("D20 #166 new-step closes the step, and the next one begins with pre-step", async () => {
  const one = await scene([busy, "whole"]);
  const steps: number[] = [];
  one.hooks.on("agent/pre-step", ({ step }) => {
    steps.push(step);
    if (step === 2) one.agent.inject("made smaller", { source: { kind: "compaction" } });
  });
  decide(one, { kind: "new-step" });
  expect(await one.say("hi")).toEqual({ kind: "completed" });
  expect(steps).toEqual([1, 2]);
  expect(typesOf(one.session).slice(3)).toEqual([
    "step/start",
    "request/header",
    "request/failed",
    "step/end",
    "context/message",
    "step/start",
    "assistant/message",
    "step/end",
    "turn/end",
  ]);
  expect(dataOf(one.session, "request/failed")).toMatchObject([{ step: 1, attempt: 1, next: "new-step" }]);
  expect(linesOf(one.model.requests[1]!.messages)).toEqual([
    "user: hi",
    "user: <compaction>\nmade smaller\n</compaction>",
  ]);
});

local("D20 the third new-step in a row without a message fails the turn instead", async () => {
  const one = await scene([busy, busy, busy, "fine"]);
  const again = { kind: "new-step" } as const;
  decide(one, again, again, again);
  expect(await one.say("hi")).toEqual({ kind: "error", step: 3, message: "overloaded", code: "BUSY" });
  expect(dataOf(one.session, "request/failed").map(({ step, attempt, next }) => [step, attempt, next])).toEqual([
    [1, 1, "new-step"],
    [2, 1, "new-step"],
    [3, 1, "fail"],
  ]);
  expect(await one.say("hi")).toEqual({ kind: "completed" });
});

local("D20 a message in between begins the count anew", async () => {
  const calling = { toolCalls: [{ name: "look", args: {} }] };
  const one = await scene([busy, busy, calling, busy, busy, "done"], { tools: [tool("look")] });
  one.hooks.on("agent/request-error", () => ({ kind: "new-step" }));
  expect(await one.say("hi")).toEqual({ kind: "completed" });
  expect(dataOf(one.session, "step/start")).toHaveLength(6);
});

local("D20 #166 a decision that is none, or that throws, ends the turn", async () => {
  const wrong: unknown[] = [undefined, null, { kind: "again" }, "retry", {}];
  const one = await scene([...wrong.map(() => busy), busy, "fine"]);
  for (const answer of wrong) {
    const off = one.hooks.on("agent/request-error", () => answer as never);
    expect(await one.say("hi"), JSON.stringify(answer)).toMatchObject({
      kind: "error",
      step: 1,
      code: "INVALID_DECISION",
    });
    off();
  }
  const off = one.hooks.on("agent/request-error", () => Promise.reject(new Error("boom")));
  expect(await one.say("hi")).toMatchObject({ kind: "error", message: "boom" });
  off();
  expect(await one.say("hi")).toEqual({ kind: "completed" });
});

local("D20 a delay that is no time puts nothing into the log that JSON cannot say", async () => {
  for (const afterMs of [Number.NaN, Infinity, -5, "soon" as never, "5" as never]) {
    const one = await scene([busy, "fine"], {
      clock: { now: () => 1, sleep: () => Promise.resolve() },
    });
    decide(one, { kind: "retry", afterMs });
    await one.say("hi");
    expect(JSON.parse(JSON.stringify(one.session.events)), String(afterMs)).toEqual(one.session.events);
    for (const { afterMs: logged = 0 } of dataOf(one.session, "request/failed"))
      expect(typeof logged === "number" && logged >= 0, String(logged)).toBe(true);
  }
});

local("D10 a failed attempt keeps its usage, and its chunks can be told from those of the next", async () => {
  const one = await scene([
    { chunks: [delta("half"), { type: "usage", usage: { input: 5, output: 1 } }, finish("error", { message: "no" })] },
    "ok",
  ]);
  decide(one, { kind: "retry" });
  await one.say("hi");
  expect(dataOf(one.session, "request/failed")[0]!.usage).toEqual({ input: 5, output: 1 });
  const types = one.session.events.map(({ type }) => type);
  const failed = types.indexOf("request/failed");
  expect(chunksIn(one.session)).toHaveLength(3 + 4);
  expect(types.slice(failed - 3, failed)).toEqual(Array(3).fill("assistant/chunk"));
  expect(types.slice(failed + 1, failed + 5)).toEqual(Array(4).fill("assistant/chunk"));
});

local("D10 a transcript replaces what a failed attempt had said when the next one streams", async () => {
  const one = await scene([busy, "whole"]);
  decide(one, { kind: "retry" });
  const transcript = createTranscript(one.agent);
  const said: string[] = [];
  const note = (): void => {
    const { parts } = transcript.getSnapshot().messages.find(({ role }) => role === "assistant") ?? { parts: [] };
    const text = parts.map((part) => ("text" in part ? part.text : "")).join("");
    if (said.at(-1) !== text) said.push(text);
  };
  transcript.subscribe(note);
  await one.say("hi");
  note();
  expect(said.filter((text) => text.includes("half") && text.includes("whole"))).toEqual([]);
  expect(said.some((text) => text.startsWith("half"))).toBe(true);
  expect(said.at(-1)).toBe("whole");
});
