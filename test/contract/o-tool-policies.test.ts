/** O: the policies around a call: the decision before it, the guards, and what becomes of its outcome. */
import type { PostToolDecision, PreToolDecision, ToolOutcome } from "turnloop";
import { toolResult, TurnloopError } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, resultsOf, staged, talk, tool } from "../support/calls.ts";
import { local } from "../support/fixture.ts";
import { dataOf } from "../support/scene.ts";
import { endOf, eventOf, typesOf } from "../support/wait.ts";

/** An agent whose model calls `act` once. */
function acting(options: Parameters<typeof tool>[2] = {}, body: Parameters<typeof tool>[1] = () => "acted") {
  return staged({
    model: scriptedModel([calls({ name: "act", args: { n: 1 } }), "done"]),
    tools: [tool("act", body, options)],
  });
}

local("#177 D29 the default decision is to allow, and to ask where the tool needs an approval", async () => {
  for (const [needsApproval, kind] of [
    [undefined, "allow"],
    [false, "allow"],
    [true, "ask"],
    [() => true, "ask"],
    [async () => false, "allow"],
  ] as const) {
    const decisions: PreToolDecision[] = [];
    const { agent, hooks } = await acting(needsApproval === undefined ? {} : { needsApproval });
    hooks.on("tools/pre-execute", async (_, next) => {
      decisions.push(await next());
      return { kind: "allow" };
    });
    await talk(agent);
    expect(decisions).toEqual([{ kind }]);
  }
});

local("#177 a decision cannot rewrite the arguments", async () => {
  const got: unknown[] = [];
  const { agent, hooks, session } = await acting({}, (args) => void got.push(args));
  hooks.on("tools/pre-execute", () => ({ kind: "allow", arguments: { n: 2 } }) as never);
  await talk(agent);
  expect(got).toEqual([{ n: 1 }]);
  expect(dataOf(session, "tool/call")[0]!.arguments).toBe('{"n":1}');
});

local("#177 the outer listener has the last word on the decision", async () => {
  const { agent, hooks, session } = await acting();
  hooks.on("tools/pre-execute", async (_, next) => {
    const decision = await next();
    return decision.kind === "deny" ? { kind: "allow" } : decision;
  });
  hooks.on("tools/pre-execute", () => ({ kind: "deny", reason: "no" }));
  await talk(agent);
  expect(resultsOf(session)).toEqual([{ tool: "act", says: "acted" }]);
});

for (const [what, decision] of [
  ["nothing", undefined],
  ["null", null],
  ["true", true],
  ["another kind", { kind: "maybe" }],
  ["a kind from the prototype", { kind: "constructor" }],
] as const) {
  local(`D29 a decision that is ${what} fails closed`, async () => {
    const { agent, hooks, session } = await acting({}, () => expect.unreachable());
    hooks.on("tools/pre-execute", () => decision as never);
    await talk(agent);
    expect(resultsOf(session)).toEqual([{ tool: "act", fails: "Error: no policy has said that the call may run" }]);
    expect(typesOf(session)).not.toContain("tool/start");
  });
}

local("#180 a denial skips the body, and still goes through post-execute and the notification", async () => {
  const stages: unknown[] = [];
  const { agent, hooks, session } = await acting({}, () => expect.unreachable());
  hooks.on("tools/pre-execute", () => ({ kind: "deny", reason: "not on Sundays" }));
  hooks.on("tools/execute", () => expect.unreachable());
  hooks.on("tools/post-execute", ({ outcome }, next) => (stages.push(outcome), next()));
  hooks.on("tools/result", ({ outcome }) => void stages.push(outcome));
  await talk(agent);
  const denied: ToolOutcome = { content: [{ type: "text", text: "Error: not on Sundays" }], isError: true };
  expect(stages).toEqual([denied, denied]);
  expect(dataOf(session, "tool/result")).toEqual([{ turn: 1, step: 1, callId: "call_1_1_1_0", ...denied }]);
  expect(typesOf(session)).not.toContain("tool/start");
});

local("#179 guards run after every pre-execute, the harness's before the agent's, until one denies", async () => {
  const heard: string[] = [];
  const { agent, hooks, harness, session } = await acting({}, () => expect.unreachable());
  agent.scope!.tools.guard(() => (heard.push("agent's"), "not for you"));
  agent.scope!.tools.guard(() => (heard.push("agent's second"), undefined));
  harness.tools.guard(() => (heard.push("harness's"), undefined));
  hooks.on("tools/pre-execute", async (_, next) => {
    const decision = await next();
    heard.push("pre-execute");
    return decision;
  });
  await talk(agent);
  expect(heard).toEqual(["pre-execute", "harness's", "agent's"]);
  expect(resultsOf(session)).toEqual([{ tool: "act", fails: "Error: not for you" }]);
});

local("#179 no listener can allow again what a guard denies, wherever it stands", async () => {
  const { agent, hooks, harness, session } = await acting({}, () => expect.unreachable());
  harness.tools.guard(({ name }) => (name === "act" ? "never" : undefined));
  hooks.on("tools/pre-execute", () => ({ kind: "allow" }), { prepend: true });
  agent.scope!.hooks.on("tools/pre-execute", () => ({ kind: "allow" }), { prepend: true });
  hooks.on("tools/execute", () => ({ content: [], isError: false }), { prepend: true });
  await talk(agent);
  expect(resultsOf(session)).toEqual([{ tool: "act", fails: "Error: never" }]);
});

local("#179 a guard runs after an approval too", async () => {
  const { agent, harness, session } = await acting({ needsApproval: true }, () => expect.unreachable());
  harness.tools.guard(() => "never");
  agent.send("go");
  await eventOf(session, "interaction/requested");
  await agent.respond("call_1_1_1_0/approval", { decision: "allow" });
  await agent.whenIdle();
  expect(resultsOf(session)).toEqual([{ tool: "act", fails: "Error: never" }]);
});

local("#179 guards are not asked about what is denied already", async () => {
  const { agent, hooks, harness, session } = await acting();
  harness.tools.guard(() => expect.unreachable());
  hooks.on("tools/pre-execute", () => ({ kind: "deny", reason: "no" }));
  await talk(agent);
  expect(resultsOf(session)).toEqual([{ tool: "act", fails: "Error: no" }]);
});

for (const [what, guard] of [
  ["throws", () => expect.unreachable()],
  ["answers later", async () => undefined],
  ["answers no text", () => false],
] as const) {
  local(`#179 a guard that ${what} denies`, async () => {
    const { agent, harness, session } = await acting();
    harness.tools.guard(guard as never);
    await talk(agent);
    expect(resultsOf(session)).toMatchObject([{ tool: "act", fails: expect.stringMatching(/^Error: a guard /) }]);
    expect(typesOf(session)).not.toContain("tool/start");
  });
}

local("#179 a guard can be taken back", async () => {
  const { agent, harness, session } = await acting();
  const off = harness.tools.guard(() => "never");
  off();
  off();
  await talk(agent);
  expect(resultsOf(session)).toEqual([{ tool: "act", says: "acted" }]);
});

/** The result and the contexts of one call after `decision`. */
async function decided(body: () => unknown, decision: PostToolDecision) {
  const { agent, hooks, session } = await acting({}, body);
  hooks.on("tools/post-execute", () => decision);
  await talk(agent);
  const { turn: _, step: __, callId: ___, ...result } = dataOf(session, "tool/result")[0]!;
  return { result, contexts: dataOf(session, "context/message").map(({ content, source }) => ({ content, source })) };
}

const hint = { content: "look closer", source: { kind: "linter" } };
const hinted = [{ content: [{ type: "text", text: "look closer" }], source: { kind: "linter" } }];

local("#184 accept leaves the outcome as it is", async () => {
  expect(await decided(() => toolResult("fine", { n: 1 }), { kind: "accept" })).toEqual({
    result: { content: [{ type: "text", text: "fine" }], isError: false, meta: { n: 1 } },
    contexts: [],
  });
});

local("#184 accept may replace the content and add context, and keeps the rest of a success", async () => {
  const content = [{ type: "text", text: "redacted" }] as const;
  expect(
    await decided(() => toolResult("secret", { n: 1 }), { kind: "accept", content, additionalContext: hint }),
  ).toEqual({ result: { content, isError: false, meta: { n: 1 } }, contexts: hinted });
});

local("#184 accept may replace the content of a failure, which stays one", async () => {
  const content = [{ type: "text", text: "redacted" }] as const;
  const fail = (): never => {
    throw new TurnloopError("QUOTA", "the key abc is used up");
  };
  expect(await decided(fail, { kind: "accept", content })).toEqual({
    result: { content, isError: true, error: { name: "TurnloopError", code: "QUOTA" } },
    contexts: [],
  });
});

local("#184 block tells its feedback as an error, without meta or code", async () => {
  expect(
    await decided(() => toolResult("fine", { n: 1 }), { kind: "block", feedback: "too long", additionalContext: hint }),
  ).toEqual({ result: { content: [{ type: "text", text: "too long" }], isError: true }, contexts: hinted });
  const fail = (): never => {
    throw new TurnloopError("QUOTA", "used up");
  };
  expect(await decided(fail, { kind: "block", feedback: "stop it" })).toEqual({
    result: { content: [{ type: "text", text: "stop it" }], isError: true },
    contexts: [],
  });
});

for (const [what, decision] of [
  ["nothing", undefined],
  ["another kind", { kind: "rewrite" }],
  ["context without a source", { kind: "accept", additionalContext: { content: "x" } }],
] as const) {
  local(`#184 #185 post-execute that answers ${what} fails the call`, async () => {
    const { result } = await decided(() => "fine", decision as never);
    expect(result.isError).toBe(true);
  });
}

local("#184 an outcome of around-execute may bring context, which post-execute can add to", async () => {
  const { agent, hooks, session } = await acting();
  hooks.on("tools/execute", async (_, next) => ({ ...(await next()), additionalContext: hint }));
  hooks.on("tools/post-execute", () => ({
    kind: "accept",
    additionalContext: { content: "and closer", source: { kind: "other" } },
  }));
  await talk(agent);
  expect(resultsOf(session)).toEqual([{ tool: "act", says: "acted" }]);
  expect(dataOf(session, "context/message").map(({ source }) => source.kind)).toEqual(["linter", "other"]);
  expect(endOf(session)).toEqual({ kind: "completed" });
});
