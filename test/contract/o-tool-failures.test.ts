/** O: calls that cannot be made, and stages that fail: the model is told, the loop goes on. */
import { defineTool, type ToolOutcome } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { z } from "zod";
import { calls, resultsOf, staged, talk, tool } from "../support/calls.ts";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { dataOf } from "../support/scene.ts";
import { endOf } from "../support/wait.ts";

anywhere("#182 an unknown tool is told to the model", async (open) => {
  const agent = await open({ model: scriptedModel([calls("nope"), "I see"]) });
  const session = await talk(agent);
  expect(dataOf(session, "tool/result")[0]).toMatchObject({
    isError: true,
    error: { name: "TurnloopError", code: "UNKNOWN_TOOL" },
  });
  expect(endOf(session)).toEqual({ kind: "completed" });
});

for (const name of ["constructor", "__proto__", "toString"]) {
  anywhere(`#182 a tool named ${name} does not exist unless it is registered`, async (open) => {
    const agent = await open({ model: scriptedModel([calls(name), "I see"]) });
    expect(resultsOf(await talk(agent))).toMatchObject([{ tool: name, code: "UNKNOWN_TOOL" }]);
  });
}

local("#182 a hidden tool is answered as one that does not exist", async () => {
  const answer = async (hide: boolean): Promise<unknown> => {
    const harness = harnessWith({
      model: scriptedModel([calls("secret"), "I see"]),
      tools: hide ? [tool("secret"), tool("other")] : [tool("other")],
    });
    const { agent } = await harness.agents.open({
      id: "session",
      setup: ({ tools }) => void (hide && tools.restrict({ deny: ["secret"] })),
    });
    return dataOf(await talk(agent), "tool/result");
  };
  expect(await answer(true)).toEqual(await answer(false));
});

const hostile: [string, unknown][] = [
  ["an Error", new Error("boom")],
  ["an Error with a code of its own", Object.assign(new Error("boom"), { code: "ENOENT" })],
  ["text", "boom"],
  ["nothing", undefined],
  ["null", null],
  ["a symbol", Symbol("boom")],
  ["an object without a prototype", Object.create(null)],
  [
    "an object whose message throws",
    {
      get message() {
        throw new Error("ha");
      },
    },
  ],
  [
    "a proxy that answers nothing",
    new Proxy(
      {},
      {
        get() {
          throw new Error("ha");
        },
        has() {
          throw new Error("ha");
        },
        getPrototypeOf() {
          throw new Error("ha");
        },
        ownKeys() {
          throw new Error("ha");
        },
      },
    ),
  ],
];
for (const [what, thrown] of hostile) {
  anywhere(`#183 a body that throws ${what} is told as text alone`, async (open) => {
    const agent = await open({
      model: scriptedModel([calls("act"), "I see"]),
      tools: [
        tool("act", () => {
          throw thrown;
        }),
      ],
    });
    const session = await talk(agent);
    const [result] = dataOf(session, "tool/result");
    expect(result).toEqual({
      turn: 1,
      step: 1,
      callId: "call_1_1_1_0",
      content: [{ type: "text", text: expect.stringMatching(/^Error: ./) }],
      isError: true,
    });
    expect(endOf(session)).toEqual({ kind: "completed" });
  });
}

const city = defineTool({
  name: "city",
  description: "d",
  inputSchema: z.object({ name: z.string().default("Paris"), size: z.coerce.number() }),
  execute: (args) => args,
});

anywhere("#183 arguments that the schema refuses are INVALID_ARGS, and say where", async (open) => {
  const agent = await open({
    model: scriptedModel([calls({ name: "city", args: { name: 3, size: 1 } }), "I see"]),
    tools: [city],
  });
  const [result] = resultsOf(await talk(agent));
  expect(result).toMatchObject({ tool: "city", code: "INVALID_ARGS" });
  expect((result as { fails: string }).fails).toMatch(/^Error: the arguments of city do not fit: name: /);
});

local("D27 the execution has the parsed JSON, the body and needsApproval the schema's output", async () => {
  const seen: unknown[] = [];
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls({ name: "city", args: { size: "7" } }), "done"]),
    tools: [
      defineTool({
        name: "city",
        description: "d",
        inputSchema: z.object({ name: z.string().default("Paris"), size: z.coerce.number() }),
        needsApproval: (args) => (seen.push(args), false),
        execute: (args) => args,
      }),
    ],
  });
  hooks.on("tools/pre-execute", ({ execution }, next) => (seen.push(execution.arguments), next()));
  await talk(agent);
  expect(seen).toEqual([{ size: "7" }, { name: "Paris", size: 7 }]);
  expect(resultsOf(session)).toEqual([{ tool: "city", says: '{"name":"Paris","size":7}' }]);
});

for (const [what, call, code] of [
  ["an unknown tool", calls("nope"), "UNKNOWN_TOOL"],
  ["arguments that are no JSON", calls({ name: "city", args: "{" }), "INVALID_ARGS"],
  ["arguments that do not fit", calls({ name: "city", args: {} }), "INVALID_ARGS"],
] as const) {
  local(`D27 #176 with ${what} a call skips to post-execute`, async () => {
    const stages: string[] = [];
    const { agent, hooks, harness, session } = await staged({ model: scriptedModel([call, "I see"]), tools: [city] });
    hooks.on("tools/pre-execute", (_, next) => (stages.push("pre-execute"), next()));
    harness.tools.guard(() => void stages.push("guard"));
    hooks.on("tools/execute", (_, next) => (stages.push("execute"), next()));
    hooks.on("tools/post-execute", ({ outcome }, next) => (stages.push(`post-execute ${outcome.error?.code}`), next()));
    hooks.on("tools/result", ({ outcome }) => void stages.push(`result ${outcome.error?.code}`));
    await talk(agent);
    expect(stages).toEqual([`post-execute ${code}`, `result ${code}`]);
    expect(dataOf(session, "tool/call")).toHaveLength(1);
    expect(dataOf(session, "tool/start")).toEqual([]);
  });
}

const throwing = (): never => {
  throw new Error("broken");
};
for (const stage of ["tools/pre-execute", "tools/execute", "tools/post-execute"] as const) {
  local(`#185 a listener of ${stage} that throws fails the call, not the turn`, async () => {
    const { agent, hooks, session } = await staged({
      model: scriptedModel([calls("act", "act"), "I see"]),
      tools: [tool("act")],
    });
    let times = 0;
    // One listener for three kinds of answer: it gives none of its own.
    hooks.on(stage, ((_: unknown, next: () => unknown) => ((times += 1) === 1 ? throwing() : next())) as never);
    await talk(agent);
    expect(resultsOf(session)).toEqual([
      { tool: "act", fails: "Error: broken" },
      { tool: "act", says: "done" },
    ]);
    expect(endOf(session)).toEqual({ kind: "completed" });
  });
}

local("#185 a needsApproval that throws fails the call closed", async () => {
  let runs = 0;
  const { agent, session } = await staged({
    model: scriptedModel([calls("act"), "I see"]),
    tools: [tool("act", () => void (runs += 1), { needsApproval: throwing })],
  });
  await talk(agent);
  expect(resultsOf(session)).toEqual([{ tool: "act", fails: "Error: broken" }]);
  expect(runs).toBe(0);
});

local("#186 the notification comes once, in the frame of the result, with frozen inputs", async () => {
  const told: { outcome: ToolOutcome; last: string }[] = [];
  const { agent, hooks, session, diagnostics } = await staged({
    model: scriptedModel([calls("act"), "done"]),
    tools: [tool("act", () => ({ deep: [1] }))],
  });
  hooks.on("tools/result", throwing);
  hooks.on("tools/result", async () => throwing());
  hooks.on("tools/result", ({ outcome }) => void told.push({ outcome, last: session.events.at(-1)!.type }));
  await talk(agent);
  expect(told.map(({ last }) => last)).toEqual(["tool/result"]);
  const { outcome } = told[0]!;
  expect(() => Object.assign(outcome, { isError: true })).toThrow(TypeError);
  expect(() => (outcome.content as unknown[]).push("x")).toThrow(TypeError);
  expect(diagnostics.map(({ code }) => code)).toEqual(["LISTENER_FAILED", "LISTENER_FAILED"]);
  expect(endOf(session)).toEqual({ kind: "completed" });
});

const cycle: unknown[] = [];
cycle.push(cycle);
for (const [what, content] of [
  ["is no array", "text"],
  ["holds a function", [{ type: "text", text: "x", meta: { f: throwing } }]],
  ["holds a cycle", [{ type: "text", text: "x", meta: { cycle } }]],
  ["holds a block of an unknown type", [{ type: "hologram" }]],
] as const) {
  local(`#186 a final content that ${what} fails the call`, async () => {
    const { agent, hooks, session } = await staged({
      model: scriptedModel([calls("act"), "I see"]),
      tools: [tool("act")],
    });
    hooks.on("tools/post-execute", () => ({ kind: "accept", content: content as never }));
    await talk(agent);
    expect(resultsOf(session)).toMatchObject([{ tool: "act", code: "INVALID_OUTCOME" }]);
    expect(endOf(session)).toEqual({ kind: "completed" });
  });
}

local("#186 the content that a hook keeps is not the one in the log", async () => {
  const mine = [{ type: "text" as const, text: "as it was" }];
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("act"), "done"]),
    tools: [tool("act")],
  });
  hooks.on("tools/post-execute", () => ({ kind: "accept", content: mine }));
  await talk(agent);
  mine[0]!.text = "changed";
  expect(resultsOf(session)).toEqual([{ tool: "act", says: "as it was" }]);
});
