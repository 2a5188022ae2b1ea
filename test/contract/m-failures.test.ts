/** M and D10: requests that fail. */
import { type ModelChunk, type RequestErrorDecision } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf, scene, type Scene } from "../support/scene.ts";
import { endOf, eventOf, textOf, typesOf } from "../support/wait.ts";

const finish = (kind: string, more = {}): ModelChunk => ({ type: "finish", reason: { kind, ...more } as never });
const delta = (text: string): ModelChunk => ({ type: "delta", index: 0, text });
const busy = { text: "half an", error: { message: "overloaded", code: "BUSY" } };
const nothing = { chunks: [finish("stop")] };
const empty = { kind: "error", step: 1, code: "EMPTY_RESPONSE" };

function decide({ hooks }: Scene, ...decisions: readonly RequestErrorDecision[]): object[] {
  const asked: object[] = [];
  hooks.on("agent/request-error", ({ turn, step, attempt, error, committed }, next) => {
    asked.push({ turn, step, attempt, error, committed });
    return decisions[asked.length - 1] ?? next();
  });
  return asked;
}

anywhere(
  "#160 a finish of kind error ends the step with its message and code, one of kind aborted with ABORTED",
  async (open) => {
    const agent = await open({
      model: scriptedModel([
        { chunks: [finish("error", { message: "no credit", code: "BILLING", status: 402, retryAfterMs: 50 })] },
        { chunks: [finish("error", { message: "no code" })] },
        { chunks: [finish("aborted")] },
      ]),
    });
    for (const turn of [1, 2, 3]) {
      agent.send("hi");
      await eventOf(agent.session, "turn/end", ({ data }) => data.turn === turn);
    }
    expect(endOf(agent.session, 1)).toEqual({ kind: "error", step: 1, message: "no credit", code: "BILLING" });
    expect(endOf(agent.session, 2)).toMatchObject({ kind: "error", step: 1, message: "no code" });
    expect(endOf(agent.session, 3)).toMatchObject({ kind: "error", step: 1, code: "ABORTED" });
    expect(typesOf(agent.session)).not.toContain("assistant/message");
    expect(dataOf(agent.session, "request/failed")[0]!.error).toEqual({
      message: "no credit",
      code: "BILLING",
      status: 402,
      retryAfterMs: 50,
    });
  },
);

anywhere("#160 a finish of an unknown kind counts as a success", async (open) => {
  const agent = await open({
    model: scriptedModel([
      { chunks: [delta("fine"), finish("other", { raw: "eos" })] },
      { chunks: [delta("fine"), finish("tired")] },
      { chunks: [delta("fine"), finish("tool-calls")] },
    ]),
  });
  for (const turn of [1, 2, 3]) {
    agent.send("hi");
    expect((await eventOf(agent.session, "turn/end", ({ data }) => data.turn === turn)).data.reason).toEqual({
      kind: "completed",
    });
  }
  expect(dataOf(agent.session, "assistant/message").map(({ content }) => textOf(content))).toEqual(
    Array(3).fill("fine"),
  );
});

local("#160 #167 a failure is a structure with a readable message, whatever the model said or threw", async () => {
  const { session, say } = await scene([
    { chunks: [finish("error")] },
    { chunks: [finish("error", { message: { deep: 1 }, code: 7, status: "x" })] },
    () => Promise.reject("a string"),
    () => Promise.reject(undefined),
    () => Promise.reject({ status: 503, message: "down", code: "DOWN", retryAfterMs: 20, secret: () => {} }),
  ]);
  for (let i = 0; i < 5; i += 1) await say("hi");
  const errors = dataOf(session, "request/failed").map(({ error }) => error);
  for (const { message, code = "", status = 0 } of errors) {
    expect([typeof message, typeof code, typeof status]).toEqual(["string", "string", "number"]);
    expect(message).not.toBe("");
  }
  expect(errors.slice(2)).toEqual([
    { message: "a string", code: "UNKNOWN" },
    { message: "undefined was thrown", code: "UNKNOWN" },
    { message: "down", code: "DOWN", status: 503, retryAfterMs: 20 },
  ]);
  expect(JSON.parse(JSON.stringify(session.events))).toEqual(session.events);
});

// #167 also asks that diagnostics render the whole chain of causes: they carry `cause`, and rendering it is the
// application's.
local("#167 what was thrown is kept as the cause of what agent/error tells", async () => {
  const thrown = new Error("socket closed", { cause: new Error("ECONNRESET") });
  const { say, errors } = await scene([() => Promise.reject(thrown)]);
  expect(await say("hi")).toEqual({ kind: "error", step: 1, message: "socket closed" });
  expect(errors).toMatchObject([{ turn: 1, step: 1 }]);
  expect(errors[0]!.error).toBe(thrown);
});

anywhere(
  "D10 #165 an answer that stops without any block is an error, one with an empty block is not",
  async (open) => {
    const model = scriptedModel([
      nothing,
      { chunks: [{ type: "usage", usage: { input: 3 } }, finish("stop")] },
      { chunks: [delta(""), finish("stop")] },
    ]);
    const agent = await open({ model });
    for (const turn of [1, 2, 3]) {
      agent.send("hi");
      await eventOf(agent.session, "turn/end", ({ data }) => data.turn === turn);
    }
    expect([1, 2, 3].map((turn) => endOf(agent.session, turn))).toMatchObject([empty, empty, { kind: "completed" }]);
    expect(dataOf(agent.session, "assistant/message")).toHaveLength(1);
  },
);

local("D10 #165 it is offered for a retry, as attempt 1", async () => {
  const one = await scene([nothing, "hello"]);
  const asked = decide(one, { kind: "retry" });
  expect(await one.say("hi")).toEqual({ kind: "completed" });
  expect(asked).toMatchObject([{ turn: 1, step: 1, attempt: 1, error: { code: "EMPTY_RESPONSE" }, committed: false }]);
});

local("D20 #166 without anybody to decide, a failed request fails the turn", async () => {
  const one = await scene([busy, "fine"]);
  expect(await one.say("hi")).toEqual({ kind: "error", step: 1, message: "overloaded", code: "BUSY" });
  expect(dataOf(one.session, "request/failed")).toMatchObject([{ attempt: 1, next: "fail" }]);
  expect(one.errors).toHaveLength(1);
  expect(await one.say("hi")).toEqual({ kind: "completed" });
});

local(
  "#166 what the policies around a request throw is no failed request, and is not offered for a retry",
  async () => {
    for (const name of ["agent/request", "model/stream", "agent/step-result"] as const) {
      const one = await scene(["fine"]);
      const asked = decide(one, { kind: "retry" });
      one.hooks.on(name, () => Promise.reject(new Error("boom")));
      expect(await one.say("hi")).toEqual({ kind: "error", step: 1, message: "boom" });
      expect(asked).toEqual([]);
      expect(typesOf(one.session)).not.toContain("request/failed");
    }
  },
);
