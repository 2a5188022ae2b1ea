/** O: a call's way from the model's words to its result, when every policy lets it pass. */
import { toolResult, TurnloopError, type ToolExecution, type ToolOutcome } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, resultsOf, staged, talk, tool } from "../support/calls.ts";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf } from "../support/scene.ts";
import { typesOf } from "../support/wait.ts";

anywhere("#173 calls run one after another in message order, each logged before it runs", async (open) => {
  const bodies: string[] = [];
  const slowly = (name: string) =>
    tool(name, async () => {
      bodies.push(`${name} begins`);
      await Promise.resolve();
      bodies.push(`${name} ends`);
    });
  const agent = await open({
    model: scriptedModel([calls("second", "first"), "done"]),
    tools: [slowly("first"), slowly("second")],
  });
  const session = await talk(agent);
  expect(bodies).toEqual(["second begins", "second ends", "first begins", "first ends"]);
  expect(typesOf(session)).toEqual([
    "inbox/queued",
    "turn/start",
    "user/message",
    "step/start",
    "request/header",
    "assistant/message",
    "tool/call",
    "tool/start",
    "tool/result",
    "tool/call",
    "tool/start",
    "tool/result",
    "step/end",
    "step/start",
    "assistant/message",
    "step/end",
    "turn/end",
  ]);
});

anywhere("#173 #187 the log has the raw arguments of a call, and its result cites the call", async (open) => {
  const raw = ' { "n" : 1.0 } ';
  const agent = await open({
    model: scriptedModel([calls({ name: "count", args: raw }), "done"]),
    tools: [tool("count", () => toolResult("one", { n: 1 }))],
  });
  const session = await talk(agent);
  const call = session.events.find((event) => event.type === "tool/call")!;
  expect(call.data).toEqual({ turn: 1, step: 1, callId: "call_1_1_1_0", name: "count", arguments: raw });
  const result = session.events.find((event) => event.type === "tool/result")!;
  expect(result).toMatchObject({ surface: "append", cites: [call.seq] });
  expect(result.data).toEqual({
    turn: 1,
    step: 1,
    callId: "call_1_1_1_0",
    content: [{ type: "text", text: "one" }],
    isError: false,
    meta: { n: 1 },
  });
});

for (const [raw, args] of [
  ["", {}],
  [" \n", {}],
  ['{"a":[1,{"b":null}]}', { a: [1, { b: null }] }],
  ["[1,2]", [1, 2]],
  ["null", null],
  ['"text"', "text"],
  ['{"constructor":1,"toString":2}', { constructor: 1, toString: 2 }],
  ['{"n":-0.0,"m":0}', { n: 0, m: 0 }],
] as const) {
  anywhere(`#174 D27 the arguments ${JSON.stringify(raw)} reach the body parsed`, async (open) => {
    const got: unknown[] = [];
    const agent = await open({
      model: scriptedModel([calls({ name: "take", args: raw }), "done"]),
      tools: [tool("take", (given) => void got.push(given))],
    });
    expect(resultsOf(await talk(agent))).toEqual([{ tool: "take", says: "done" }]);
    expect(got).toHaveLength(1);
    // As JSON: it knows no negative zero.
    expect(JSON.stringify(got[0])).toBe(JSON.stringify(args));
  });
}

anywhere("#174 a key named __proto__ is a key", async (open) => {
  const got: object[] = [];
  const agent = await open({
    model: scriptedModel([calls({ name: "take", args: '{"__proto__":{"admin":true}}' }), "done"]),
    tools: [tool("take", (given) => void got.push(given))],
  });
  await talk(agent);
  expect(Object.keys(got[0]!)).toEqual(["__proto__"]);
  expect((got[0] as { admin?: boolean }).admin).toBeUndefined();
});

for (const raw of ['{"a":', "not json", "{'a':1}", '{"n":1e999}', "[".repeat(100_000)]) {
  anywhere(`#174 #183 arguments that JSON cannot hold are told to the model: ${raw.slice(0, 12)}`, async (open) => {
    const got: unknown[] = [];
    const agent = await open({
      model: scriptedModel([calls({ name: "take", args: raw }), "I see"]),
      tools: [tool("take", (given) => void got.push(given))],
    });
    const session = await talk(agent);
    expect(got).toEqual([]);
    expect(resultsOf(session)).toMatchObject([{ tool: "take", code: "INVALID_ARGS" }]);
    expect(dataOf(session, "tool/call")[0]!.arguments).toBe(raw);
    expect(dataOf(session, "turn/end")[0]!.reason).toEqual({ kind: "completed" });
  });
}

local("#175 every stage sees one execution, frozen, whose arguments nobody can change", async () => {
  const seen: ToolExecution[] = [];
  const { agent, hooks, harness, session } = await staged({
    model: scriptedModel([calls({ name: "take", args: { list: [1] } }), "done"]),
    tools: [tool("take", ({ list }) => list)],
  });
  const note = ({ execution }: { execution: ToolExecution }): void => void seen.push(execution);
  hooks.on("tools/pre-execute", (payload, next) => (note(payload), next()));
  harness.tools.guard((execution) => void seen.push(execution));
  hooks.on("tools/execute", (payload, next) => (note(payload), next()));
  hooks.on("tools/post-execute", (payload, next) => (note(payload), next()));
  hooks.on("tools/result", note);
  await talk(agent);
  const [first] = seen;
  expect(seen).toHaveLength(5);
  expect(new Set(seen).size).toBe(1);
  expect(first).toMatchObject({ callId: "call_1_1_1_0", name: "take", arguments: { list: [1] }, agent });
  for (const key of ["callId", "name", "arguments", "agent", "signal"]) {
    expect(() => Object.assign(first!, { [key]: "other" })).toThrow(TypeError);
  }
  expect(() => (first!.arguments as { list: number[] }).list.push(2)).toThrow(TypeError);
  expect(resultsOf(session)).toEqual([{ tool: "take", says: "[1]" }]);
});

local("#175 arguments that are not JSON still end in one notification", async () => {
  const told: ToolOutcome[] = [];
  const { agent, hooks } = await staged({
    model: scriptedModel([calls({ name: "take", args: "{" }), "done"]),
    tools: [tool("take")],
  });
  hooks.on("tools/result", ({ outcome }) => void told.push(outcome));
  await talk(agent);
  expect(told).toMatchObject([{ isError: true, error: { code: "INVALID_ARGS" } }]);
});

local("#176 the stages come in their order, and tool/start stands right before the outermost of execute", async () => {
  const stages: string[] = [];
  const { agent, hooks, harness } = await staged({
    model: scriptedModel([calls("act"), "done"]),
    tools: [tool("act", () => void stages.push("body"))],
  });
  hooks.on("session/event", ({ event }) => void (event.type.startsWith("tool/") && stages.push(event.type)));
  hooks.on("tools/result", () => void stages.push("result"));
  hooks.on("tools/post-execute", (_, next) => (stages.push("post-execute"), next()));
  hooks.on("tools/execute", async (_, next) => {
    stages.push("execute, before");
    const outcome = await next();
    stages.push("execute, after");
    return outcome;
  });
  harness.tools.guard(() => void stages.push("guard"));
  hooks.on("tools/pre-execute", (_, next) => (stages.push("pre-execute"), next()));
  await talk(agent);
  expect(stages).toEqual([
    "tool/call",
    "pre-execute",
    "guard",
    "tool/start",
    "execute, before",
    "body",
    "execute, after",
    "post-execute",
    "tool/result",
    "result",
  ]);
});

for (const [what, answer, outcome] of [
  ["text", () => "hi", { content: [{ type: "text", text: "hi" }], isError: false }],
  ["data", () => ({ a: 1 }), { content: [{ type: "text", text: '{"a":1}' }], isError: false }],
  ["nothing", () => undefined, { content: [{ type: "text", text: "done" }], isError: false }],
  [
    "a throw",
    () => {
      throw new Error("broken");
    },
    { content: [{ type: "text", text: "Error: broken" }], isError: true },
  ],
] as const) {
  local(`#181 around-execute gets ${what} as a normalised outcome from next()`, async () => {
    const got: ToolOutcome[] = [];
    const { agent, hooks } = await staged({
      model: scriptedModel([calls("act"), "done"]),
      tools: [tool("act", answer)],
    });
    hooks.on("tools/execute", async (_, next) => {
      got.push(await next());
      return got[0]!;
    });
    await talk(agent);
    expect(got).toEqual([outcome]);
  });
}

local("#181 around-execute may answer without the body", async () => {
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("act"), "done"]),
    tools: [tool("act", () => expect.unreachable())],
  });
  hooks.on("tools/execute", () => ({ content: [{ type: "text", text: "from the cache" }], isError: false }));
  await talk(agent);
  expect(resultsOf(session)).toEqual([{ tool: "act", says: "from the cache" }]);
});

local("#181 around-execute may run the body again, within one call and one start", async () => {
  let runs = 0;
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("act"), "done"]),
    tools: [
      tool("act", () => {
        runs += 1;
        if (runs < 3) throw new Error("not yet");
        return runs;
      }),
    ],
  });
  hooks.on("tools/execute", async (_, next) => {
    let outcome = await next();
    while (outcome.isError) outcome = await next();
    return outcome;
  });
  await talk(agent);
  expect(resultsOf(session)).toEqual([{ tool: "act", says: "3" }]);
  expect(dataOf(session, "tool/start")).toEqual([{ turn: 1, step: 1, callId: "call_1_1_1_0", attempt: 1 }]);
});

local("#181 a narrower signal reaches the body, and leaves the turn alone", async () => {
  const narrow = new AbortController();
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("act"), "done"]),
    tools: [
      tool("act", (_, { signal }) => {
        narrow.abort(new Error("too long"));
        return signal.aborted ? `told: ${(signal.reason as Error).message}` : "not told";
      }),
    ],
  });
  hooks.on("tools/execute", (_, next) => next({ signal: narrow.signal }));
  await talk(agent);
  expect(resultsOf(session)).toEqual([{ tool: "act", says: "told: too long" }]);
  expect(dataOf(session, "turn/end")[0]!.reason).toEqual({ kind: "completed" });
});

// An outcome here has no call id, so that none can be wrong: what a hook adds to it is not looked at.
local("#181 #54 an outcome cannot name another call", async () => {
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("act"), "done"]),
    tools: [tool("act")],
  });
  hooks.on("tools/execute", async (_, next) => ({ ...(await next()), callId: "other" }));
  await talk(agent);
  expect(dataOf(session, "tool/result")[0]).toEqual({
    turn: 1,
    step: 1,
    callId: "call_1_1_1_0",
    content: [{ type: "text", text: "done" }],
    isError: false,
  });
});

for (const [what, answer] of [
  ["nothing", undefined],
  ["text", "fine"],
  ["content that is no array", { content: "fine", isError: false }],
  ["no isError", { content: [] }],
  ["a block of no type", { content: [{ text: "x" }], isError: false }],
  ["what is not JSON", { content: [], isError: false, meta: { when: new Date(0) } }],
] as const) {
  local(`#181 #186 around-execute that answers ${what} fails the call`, async () => {
    const { agent, hooks, session } = await staged({
      model: scriptedModel([calls("act"), "done"]),
      tools: [tool("act")],
    });
    hooks.on("tools/execute", () => answer as never);
    await talk(agent);
    expect(resultsOf(session)).toMatchObject([{ tool: "act", code: "INVALID_OUTCOME" }]);
    expect(dataOf(session, "turn/end")[0]!.reason).toEqual({ kind: "completed" });
  });
}

anywhere("#183 a thrown TurnloopError keeps its name and code", async (open) => {
  const agent = await open({
    model: scriptedModel([calls("act"), "done"]),
    tools: [
      tool("act", () => {
        throw new TurnloopError("QUOTA", "come back tomorrow");
      }),
    ],
  });
  const session = await talk(agent);
  expect(dataOf(session, "tool/result")[0]).toMatchObject({
    content: [{ type: "text", text: "Error: come back tomorrow" }],
    isError: true,
    error: { name: "TurnloopError", code: "QUOTA" },
  });
});
