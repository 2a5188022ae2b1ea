/** Structured results: `run` with `output`, natively or by a tool. */
import { outputTool, run, standard, type HarnessOptions, type JsonSchema, type RunOptions } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { calls, staged, talk, tool } from "../support/calls.ts";
import { anywhere } from "../support/fixture.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { eventOf } from "../support/wait.ts";

const City = z.object({ city: z.string(), people: z.number().int() });
const plain: JsonSchema = {
  type: "object",
  properties: { city: { type: "string" }, people: { type: "integer", minimum: 0 } },
  required: ["city", "people"],
  additionalProperties: false,
};
const paris = { city: "Paris", people: 2_000_000 };
const json = JSON.stringify(paris);

const talking = (answers: readonly ScriptedAnswer[], more: Omit<HarnessOptions, "model"> = {}) =>
  staged({ model: scriptedModel(answers), ...more });
const failing = (result: Promise<unknown>): Promise<{ code: string; message: string }> =>
  result.then(
    () => expect.unreachable(),
    (error: { code: string; message: string }) => error,
  );

anywhere("the answer is validated and typed by the schema, which the request asks for", async (open) => {
  const model = scriptedModel([{ text: json, usage: { input: 5 } }]);
  const agent = await open({ model });
  const following = run(agent, "Where?", { output: City.transform(({ city }) => city.toUpperCase()) });
  const { output, reason, usage, text } = await following.result;
  expectTypeOf(output).toEqualTypeOf<string>();
  expect({ output, reason, usage, text }).toEqual({
    output: "PARIS",
    reason: { kind: "completed" },
    usage: { input: 5 },
    text: json,
  });
  expect(model.requests[0]!.config.responseFormat).toMatchObject({
    type: "json",
    schema: { type: "object", required: ["city", "people"] },
  });
});

test("plain JSON Schema is validated too", async () => {
  const { agent } = await talking([json, '{"city":7}', json]);
  expect((await run(agent, "Where?", { output: plain }).result).output).toEqual(paris);
  expect((await run(agent, "Where?", { output: plain }).result).output).toEqual(paris);
});

test("JSON in a fence is JSON", async () => {
  const { agent, model } = await talking([`\`\`\`json\n${json}\n\`\`\`\n`]);
  expect((await run(agent, "Where?", { output: City }).result).output).toEqual(paris);
  expect(model.requests).toHaveLength(1);
});

test("an answer that does not fit goes back with what is wrong, and counts as part of the run", async () => {
  const { agent, model, session } = await talking([
    { text: '{"city":"Paris","people":"many"}', usage: { input: 5 } },
    { text: "Sorry! Two million.", usage: { input: 7 } },
    { text: json, usage: { input: 9 } },
    "you are welcome",
  ]);
  const { output, usage, messages } = await run(agent, "Where?", { output: City }).result;
  expect(output).toEqual(paris);
  expect(usage).toEqual({ input: 21 });
  expect(messages).toHaveLength(6);
  const asked = linesOf(model.requests[2]!.messages).filter((line) => line.startsWith("user"));
  expect(asked[1]).toMatch(/people: .*number/u);
  expect(asked[2]).toContain("it is not JSON");
  for (const { config } of model.requests) expect(config.responseFormat).toBeDefined();
  expect(dataOf(session, "user/message").map(({ source }) => source.kind)).toEqual([
    "user",
    "output-repair",
    "output-repair",
  ]);
  await talk(agent, "thanks");
  expect(model.requests[3]!.config.responseFormat).toBeUndefined();
});

test("after two repairs it rejects OUTPUT_INVALID, and says what is wrong", async () => {
  const { agent, model } = await talking(["no", "no", '{"city":"Paris"}', "never"]);
  const error = await failing(run(agent, "Where?", { output: City }).result);
  expect(error.code).toBe("OUTPUT_INVALID");
  expect(error.message).toContain("people");
  expect(model.requests).toHaveLength(3);
});

test("the iteration follows the repairs to the last turn", async () => {
  const { agent } = await talking(["no", json]);
  const following = run(agent, "Where?", { output: City });
  const types: string[] = [];
  for await (const event of following) if (event.type.startsWith("turn/")) types.push(event.type);
  expect(types).toEqual(["turn/start", "turn/end", "turn/start", "turn/end"]);
  const failed = run((await talking(["no", "no", "no"])).agent, "Where?", { output: City });
  const last = async (): Promise<void> => {
    for await (const event of failed) void event;
  };
  await expect(last()).rejects.toMatchObject({ code: "OUTPUT_INVALID" });
});

test.each<[string, readonly ScriptedAnswer[], HarnessOptions, string]>([
  ["fails", [{ error: { code: "RATE_LIMITED", message: "slow" } }], {}, "RATE_LIMITED"],
  ["is cut short", [{ text: '{"city":', finish: "max-tokens" }, "never"], {}, "OUTPUT_INVALID"],
  [
    "is blocked",
    ["never"],
    { plugins: [({ hooks }) => void hooks.on("agent/prompt-submit", () => ({ kind: "block", reason: "no" }))] },
    "MESSAGE_BLOCKED",
  ],
])("a turn that %s has no output, and nothing is repaired", async (_, answers, { model: _model, ...more }, code) => {
  const { agent, model } = await talking(answers, more);
  expect((await failing(run(agent, "Where?", { output: City }).result)).code).toBe(code);
  expect(model.requests.length).toBeLessThan(2);
});

test("an answer that is whole when its turn is cut by a policy is taken", async () => {
  const stop: HarnessOptions["plugins"] = [
    ({ hooks }) => void hooks.on("agent/turn-stop", () => ({ stop: { by: "me", reason: "enough" } })),
  ];
  const { agent } = await talking([json], { plugins: stop });
  const { output, reason } = await run(agent, "Where?", { output: City }).result;
  expect(output).toEqual(paris);
  expect(reason.kind).toBe("stopped");
});

test("a cancel, an abort and a disposal end it, in whichever round", async () => {
  for (const [how, code] of [
    ["cancel", "ABORTED"],
    ["abort", "ABORTED"],
    ["dispose", "AGENT_DISPOSED"],
  ] as const) {
    for (const before of [0, 1]) {
      const { agent, handle, session, model } = await talking([
        ...Array.from({ length: before }, () => "no"),
        { text: "{", hang: "deaf" },
      ]);
      const controller = new AbortController();
      const { result } = run(agent, "Where?", { output: City, signal: controller.signal });
      await eventOf(session, "assistant/chunk", ({ data }) => data.turn === before + 1);
      if (how === "cancel") agent.cancel();
      else if (how === "abort") controller.abort();
      else void handle.dispose();
      expect((await failing(result)).code).toBe(code);
      expect(model.requests).toHaveLength(before + 1);
    }
  }
});

test("an abort while the answer is looked at asks for no other one", async () => {
  const { agent, model } = await talking(["1", "never"]);
  const controller = new AbortController();
  const output = z.number().refine(async () => (controller.abort(), false));
  const error = await failing(run(agent, "Go", { output, signal: controller.signal }).result);
  expect(error.code).toBe("ABORTED");
  expect(model.requests).toHaveLength(1);
});

test("tools are called on the way to the answer", async () => {
  const { agent, model } = await talking([calls("look"), json], { tools: [tool("look")] });
  expect((await run(agent, "Where?", { output: City }).result).output).toEqual(paris);
  expect(model.requests).toHaveLength(2);
});

test.each([["text"], [null], [7], [{ "~standard": { version: 1, vendor: "old", validate: () => ({ value: 1 }) } }]])(
  "%j is no schema, and nothing is sent",
  async (output) => {
    const { agent, session } = await talking([]);
    expect(() => run(agent, "Where?", { output } as unknown as RunOptions)).toThrow(
      expect.objectContaining({ code: "INVALID_SCHEMA" }),
    );
    expect(session.seq).toBe(0);
  },
);

const bool = { type: "boolean" };
test.each<[JsonSchema, string, boolean]>([
  [{ type: ["string", "null"] }, "null", true],
  [{ enum: ["a", { b: 1 }] }, '{"b":1}', true],
  [{ enum: ["a"] }, '"b"', false],
  [{ const: 3 }, "4", false],
  [{ type: "array", items: bool, minItems: 1 }, "[true]", true],
  [{ type: "array", items: bool }, "[1]", false],
  [{ type: "array", items: bool, minItems: 1 }, "[]", false],
  [{ prefixItems: [bool], items: { type: "number" } }, "[true, 1, true]", false],
  [{ anyOf: [bool, { type: "null" }] }, "1", false],
  [{ oneOf: [bool, { const: true }] }, "true", false],
  [{ allOf: [{ minimum: 1 }, { maximum: 3 }] }, "4", false],
  [{ not: bool }, "true", false],
  [{ type: "string", minLength: 2, maxLength: 2, pattern: "^.{2}$" }, '"😀😀"', true],
  [{ pattern: "(" }, '"x"', true],
  [{ type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 2 }, "1", true],
  [{ type: "integer", exclusiveMinimum: 0 }, "0", false],
  [{ type: "object", additionalProperties: bool }, '{"constructor":1}', false],
  [{ type: "object", required: ["toString"] }, "{}", false],
  [
    {
      $defs: { tree: { type: "object", properties: { next: { $ref: "#/$defs/tree" } }, additionalProperties: false } },
      $ref: "#/$defs/tree",
    },
    '{"next":{"next":{"nxt":1}}}',
    false,
  ],
  [{ allOf: [{ $ref: "#" }, { $ref: "#" }] }, "1", true],
  [{ $ref: "https://example.com/other" }, "1", true],
])("%j takes %s: %s", async (output, text, fits) => {
  const { agent } = await talking([text, text, text]);
  const settled = await run(agent, "Go", { output }).result.then(
    (result) => result.output,
    (error: { code: string }) => error.code,
  );
  expect(settled).toEqual(fits ? JSON.parse(text) : "OUTPUT_INVALID");
});

const answer = (args: unknown): ScriptedAnswer => ({ ...calls({ name: "final_answer", args }), text: "Here it is:" });

test("by a tool: the call is the answer, and other tools come before it", async () => {
  const { agent, model, session } = await talking([calls("look"), answer(paris), "fine"], {
    tools: [tool("look")],
    plugins: [outputTool({ models: ["scripted/model"] })],
  });
  expect((await run(agent, "Where?", { output: City }).result).output).toEqual(paris);
  expect(model.requests[1]!.tools!.map(({ name }) => name)).toEqual(["look", "final_answer"]);
  expect(model.requests[1]!.tools![1]!.parameters).toMatchObject({ required: ["city", "people"] });
  expect(model.requests[1]!.config).toEqual({ model: "scripted/model", toolChoice: "required" });
  expect(dataOf(session, "tool/call").map(({ name }) => name)).toEqual(["look"]);
  await talk(agent);
  expect(model.requests[2]!.tools!.map(({ name }) => name)).toEqual(["look"]);
  expect(model.requests[2]!.config).toEqual({ model: "scripted/model" });
  expect(linesOf(model.requests[2]!.messages)).toContain(`assistant: ${json}`);
});

test("by a tool: what is no object has a field of its own, and a wrong answer is repaired", async () => {
  const { agent, model } = await talking([answer({ value: "many" }), answer({ value: [1, 2] })], {
    plugins: [outputTool({ models: ["scripted/model"] })],
  });
  expect((await run(agent, "Which?", { output: z.array(z.number()) }).result).output).toEqual([1, 2]);
  expect(model.requests[1]!.tools![0]!.parameters).toMatchObject({ properties: { value: { type: "array" } } });
});

test("by a tool: a call beside others is too early", async () => {
  const early = calls({ name: "final_answer", args: { city: "?", people: 0 } }, "look");
  const { agent, session } = await talking([early, answer(paris)], {
    tools: [tool("look")],
    plugins: [outputTool({ models: ["scripted/model"] })],
  });
  expect((await run(agent, "Where?", { output: City }).result).output).toEqual(paris);
  expect(dataOf(session, "tool/call").map(({ name }) => name)).toEqual(["look"]);
  expect(linesOf(session.deriveMessages()).filter((line) => line.includes("?"))).toEqual(["user: Where?"]);
});

test("by a tool only where a model needs it; taken away, all is as before", async () => {
  const { agent, model, harness } = await talking([json, json], { plugins: [outputTool({ models: ["weak"] })] });
  await run(agent, "Where?", { output: City }).result;
  const off = harness.use(outputTool({ models: ["scripted/model"] }));
  off();
  await run(agent, "Where?", { output: City }).result;
  for (const { config, tools } of model.requests) {
    expect(config.responseFormat).toBeDefined();
    expect(tools).toBeUndefined();
  }
});

test("by a tool as `standard` does it: for the models that say so, and for no others", async () => {
  const [weak, able] = [scriptedModel([answer(paris), answer(paris)]), scriptedModel([json])];
  const plugins = [standard()];
  const { agent } = await staged({ model: { ...weak, structuredOutput: false }, models: { able }, plugins });
  expect((await run(agent, "Where?", { output: City }).result).output).toEqual(paris);
  agent.configure({ model: "able" });
  expect((await run(agent, "Where?", { output: City }).result).output).toEqual(paris);
  expect(weak.requests[0]!.tools!.map(({ name }) => name)).toEqual(["final_answer"]);
  expect(able.requests[0]!.tools).toBeUndefined();
  expect(able.requests[0]!.config.responseFormat).toBeDefined();
});
