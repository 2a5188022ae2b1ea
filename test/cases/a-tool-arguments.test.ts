/** A: what happens to the arguments of tool calls while they stream. */
import type { ContentBlock, ModelChunk } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { aiSdkModel } from "turnloop/ai-sdk";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "turnloop";
import { calls, resultsOf, tool } from "../support/calls.ts";
import { languageModel, stop as providerStop } from "../support/language-model.ts";
import { sse } from "../support/provider-answers.ts";
import { dataOf, scene } from "../support/scene.ts";
import { callsOf, chatDialects, delta, cleanFailure, finish, replayed, says, useWire } from "../support/wire.ts";

const open = useWire();

const piece = (index: number, text: string, more = {}): ModelChunk => ({ type: "delta", index, text, ...more });
const end = (index: number, block?: object): ModelChunk =>
  ({ type: "block-end", index, ...(block && { block }) }) as ModelChunk;
const called: ModelChunk = { type: "finish", reason: { kind: "tool-calls" } };

/** Streams these chunks as the first answer, to the tools `look` and `add`, and says what became of it. */
async function streamed(...chunks: readonly ModelChunk[]) {
  const ran: unknown[] = [];
  const body = (args: unknown): string => (ran.push(args), "done");
  const one = await scene([{ chunks: [...chunks, called] }, "fine"], {
    tools: [tool("look", body), tool("add", body)],
  });
  const reason = await one.say("go");
  return { ...one, ran, reason, results: resultsOf(one.session) };
}

const ok = [{ tool: "add", says: "done" }];
const invalid = [{ tool: "add", fails: expect.stringContaining("not valid JSON"), code: "INVALID_ARGS" }];

test("B001 calls without an index stay two calls, in order", async () => {
  const body = callsOf(
    { id: "a", function: { name: "add", arguments: '{"x":1}' } },
    { id: "b", function: { name: "add", arguments: '{"x":2}' } },
  );
  const lenient = await open([body, says("fine")], { dialect: "compatible", named: ["add"] });
  await lenient.ask();
  expect(lenient.ran.map(({ args }) => args)).toEqual([{ x: 1 }, { x: 2 }]);
  expect(replayed(lenient).results).toEqual(["a", "b"]);
  // The other client takes it for a broken answer: an error that says so, and no call.
  const strict = await open([body, says("fine")], { dialect: "chat", named: ["add"], id: "strict" });
  expect(await cleanFailure(strict)).toBe("MODEL_BAD_RESPONSE");
});

test("B001 a chunk without an index fails the step; nothing runs", async () => {
  const { ran, reason, session } = await streamed({ type: "delta", text: "{}", id: "a", name: "add" } as never);
  expect(reason).toMatchObject({ kind: "error", code: "MALFORMED_CHUNK" });
  expect([ran, dataOf(session, "tool/call")]).toEqual([[], []]);
});

test.each(chatDialects)("B002 calls that share an index and not an id are two calls (%s)", async (dialect) => {
  const body = callsOf(
    { index: 0, id: "a", function: { name: "add", arguments: '{"p":"1"}' } },
    { index: 0, id: "b", function: { name: "add", arguments: '{"p":"2"}' } },
  );
  const wired = await open([body, says("fine")], { dialect, named: ["add"] });
  await wired.ask();
  expect(wired.ran.map(({ args }) => args)).toEqual([{ p: "1" }, { p: "2" }]);
  expect(replayed(wired)).toEqual({
    calls: [
      ["a", "add", '{"p":"1"}'],
      ["b", "add", '{"p":"2"}'],
    ],
    results: ["a", "b"],
  });
});

test("B002 chunks of two calls under one index never run as one", async () => {
  const { ran, results } = await streamed(
    piece(0, '{"p":1}', { id: "a", name: "add" }),
    piece(0, '{"p":2}', { id: "b", name: "add" }),
  );
  expect([ran, results]).toEqual([[], invalid]);
});

test.each(chatDialects)(
  "B004 a call without an id gets one, the same at its result and later (%s)",
  async (dialect) => {
    const body = callsOf(
      { index: 0, function: { name: "add", arguments: '{"f":' } },
      { index: 0, function: { arguments: '"a"}' } },
    );
    const wired = await open([body, says("fine"), says("fine")], { dialect, named: ["add"] });
    await wired.ask();
    const first = replayed(wired);
    expect(first.calls).toEqual([[expect.stringMatching(/^[\w-]{1,64}$/), "add", '{"f":"a"}']]);
    expect(first.results).toEqual([first.calls[0]![0]]);
    await wired.ask("again");
    expect(replayed(wired)).toEqual(first);
    expect(wired.ran).toEqual([{ name: "add", args: { f: "a" } }]);
  },
);

test("B004 chunks of a call without an id: the log names it by its place", async () => {
  const { model, results } = await streamed(piece(0, '{"f":', { name: "add" }), piece(0, '"a"}'));
  expect(results).toEqual(ok);
  const [call, result] = model.requests[1]!.messages.slice(1).map(({ content }) => content[0]);
  expect(call).toMatchObject({ type: "tool-call", callId: "call_1_1_1_0" });
  expect(result).toMatchObject({ type: "tool-result", callId: "call_1_1_1_0" });
});

test("B005 a call that came in pieces is in the log as one that came whole", async () => {
  const pieces = await streamed(piece(0, '{"f"', { name: "add" }), piece(0, ":1}"), end(0));
  const block = { type: "tool-call", callId: "", name: "add", arguments: '{"f":1}' };
  const whole = await streamed(end(0, block));
  const answer = ({ session }: typeof whole): readonly ContentBlock[] =>
    dataOf(session, "assistant/message")[0]!.content;
  expect(answer(pieces)).toEqual(answer(whole));
  expect(pieces.results).toEqual(whole.results);
});

test.each(chatDialects)("B007 a late empty name does not overwrite the good one (%s)", async (dialect) => {
  const body = callsOf(
    { index: 0, id: "c", function: { name: "add", arguments: '{"f":' } },
    { index: 0, function: { name: "", arguments: "1" } },
    { index: 0, function: { name: "", arguments: "}" } },
  );
  const wired = await open([body, says("fine")], { dialect, named: ["add"] });
  await wired.ask();
  expect(wired.ran).toEqual([{ name: "add", args: { f: 1 } }]);
  expect(replayed(wired).calls).toEqual([["c", "add", '{"f":1}']]);
});

test.each<[string, string, string]>([
  ["an empty one changes nothing", "", "add"],
  ["the same one changes nothing", "add", "add"],
  // The contract's #158: it replaces the first.
  ["another one replaces it, and is not put behind it", "look", "look"],
])("B007 a second name of an open call: %s", async (_, second, name) => {
  const { ran, results } = await streamed(piece(0, "{", { name: "add" }), piece(0, "}", { name: second }));
  expect([ran, results]).toEqual([[{}], [{ tool: name, says: "done" }]]);
});

test("B008 arguments that come before the name are kept", async () => {
  const body = callsOf(
    { index: 0, id: "c", function: { arguments: '{"q":' } },
    { index: 0, function: { name: "add", arguments: "1}" } },
  );
  const wired = await open([body, says("fine")], { dialect: "compatible", named: ["add"] });
  await wired.ask();
  expect(wired.ran).toEqual([{ name: "add", args: { q: 1 } }]);
  // The other client wants the name first, and says so.
  expect(await cleanFailure(await open([body, says("fine")], { dialect: "chat", named: ["add"], id: "b" }))).toBe(
    "MODEL_BAD_RESPONSE",
  );
  const { ran, results } = await streamed(piece(0, '{"q":', { id: "c" }), piece(0, "1}", { name: "add" }));
  expect([ran, results]).toEqual([[{ q: 1 }], ok]);
});

test.each(chatDialects)(
  "B010 a call whose name is null is a broken answer; nothing of it is kept (%s)",
  async (dialect) => {
    const body = callsOf({ index: 0, id: "c", function: { name: null, arguments: "{}" } });
    expect(await cleanFailure(await open([body, says("fine")], { dialect, named: ["add"] }))).toBe(
      "MODEL_BAD_RESPONSE",
    );
  },
);

test.each(chatDialects)(
  "B010 B008 a call that never got a name is answered, and replayed under a legal one (%s)",
  async (dialect) => {
    const nameless = scriptedModel([{ chunks: [piece(0, "{}", { id: "c" }), called] }, "never mind"]);
    const wired = await open([says("fine")], { dialect, models: { nameless }, named: ["add"] });
    wired.agent.configure({ model: "nameless" });
    await wired.ask();
    expect(resultsOf(wired.session)).toMatchObject([{ tool: "", code: "UNKNOWN_TOOL" }]);
    wired.agent.configure({ model: wired.route });
    expect((await wired.ask("again")).text).toBe("fine");
    expect(replayed(wired).calls).toEqual([[expect.stringMatching(/^[\w-]{1,64}$/), "unknown_tool", "{}"]]);
    expect(wired.ran).toEqual([]);
  },
);

test.each<[string, object]>([
  ["empty", { arguments: "" }],
  ["blank", { arguments: "  " }],
  ["null", { arguments: null }],
  ["missing", {}],
])("B011 arguments that are %s are none", async (_, args) => {
  for (const dialect of chatDialects) {
    const body = callsOf({ index: 0, id: "c", function: { name: "now", ...args } });
    const wired = await open([body, says("fine")], { dialect, named: ["now"], id: dialect });
    await wired.ask();
    expect(wired.ran).toEqual([{ name: "now", args: {} }]);
    expect(replayed(wired).calls).toEqual([["c", "now", "{}"]]);
  }
});

test("B011 whether no arguments are enough, the schema decides", async () => {
  const ran: unknown[] = [];
  const strict = defineTool({
    name: "strict",
    description: "Needs a city",
    inputSchema: z.object({ city: z.string() }),
    execute: (args) => void ran.push(args),
  });
  const { session, say } = await scene([calls({ name: "strict", args: "" }), "fine"], { tools: [strict] });
  expect(await say("go")).toEqual({ kind: "completed" });
  expect(resultsOf(session)).toMatchObject([{ tool: "strict", code: "INVALID_ARGS" }]);
  expect(ran).toEqual([]);
});

test.each<[string, string[], unknown[]]>([
  ["more JSON makes it invalid", ["{}", "", '{"a":1}'], []],
  ["white space changes nothing", ['{"a":1}', " \n"], [{ a: 1 }]],
  ["the text goes on to its end", ['{"a":1', "2", "}"], [{ a: 12 }]],
])("B013 arguments that could be complete early: %s; and there is one call", async (_, pieces, expected) => {
  for (const dialect of chatDialects) {
    const deltas = pieces.map((text, at) => ({
      index: 0,
      ...(at === 0 && { id: "c" }),
      function: { ...(at === 0 && { name: "add" }), arguments: text },
    }));
    const wired = await open([callsOf(...deltas), says("fine")], { dialect, named: ["add"], id: dialect });
    await wired.ask();
    expect(wired.ran.map(({ args }) => args)).toEqual(expected);
    expect(resultsOf(wired.session)).toEqual(expected.length === 0 ? invalid : ok);
    expect(replayed(wired).results).toEqual(["c"]);
  }
  const { ran, session } = await streamed(...pieces.map((text) => piece(0, text, { id: "c", name: "add" })));
  expect(ran).toEqual(expected);
  expect(dataOf(session, "tool/call")).toHaveLength(1);
});

test("B014 arguments that are an object are taken where the client hands them on, and sent as it wants them", async () => {
  const object = { type: "tool-call", toolCallId: "c", toolName: "add", input: { city: "Oslo" } };
  const answers = [
    [object, providerStop],
    [{ type: "text-delta", id: "0", delta: "fine" }, providerStop],
  ];
  const fake = languageModel();
  const model = aiSdkModel({
    ...fake,
    doStream: async (options: never) => await languageModel(answers[fake.calls.push(options) - 1]).doStream(options),
  });
  const ran: unknown[] = [];
  const { session, say } = await scene([], { model, tools: [tool("add", (args) => (ran.push(args), "done"))] });
  expect(await say("go")).toEqual({ kind: "completed" });
  expect(ran).toEqual([{ city: "Oslo" }]);
  expect(dataOf(session, "tool/call")[0]!.arguments).toBe('{"city":"Oslo"}');
  expect(fake.calls[1]!.prompt[1]!.content).toMatchObject([{ type: "tool-call", input: { city: "Oslo" } }]);
});

test.each(chatDialects)(
  "B014 arguments that are an object and that the client refuses are an error, and no call (%s)",
  async (dialect) => {
    const body = callsOf({ index: 0, id: "c", function: { name: "add", arguments: { city: "Oslo" } } });
    expect(await cleanFailure(await open([body, says("fine")], { dialect, named: ["add"] }))).toBe(
      "MODEL_BAD_RESPONSE",
    );
    const block = { type: "tool-call", callId: "c", name: "add", arguments: { city: "Oslo" } };
    const { ran, reason } = await streamed(end(0, block));
    expect([ran, reason]).toEqual([[], expect.objectContaining({ code: "MALFORMED_CHUNK" })]);
  },
);

test.each(chatDialects)("B016 fragments that are interleaved join by their index (%s)", async (dialect) => {
  const body = callsOf(
    { index: 0, id: "c", function: { name: "add", arguments: '{"a":' } },
    { index: 1, id: "d", function: { name: "add", arguments: '{"b":' } },
    { index: 0, function: { arguments: "1}" } },
    { index: 1, function: { arguments: "2}" } },
  );
  const wired = await open([body, says("fine")], { dialect, named: ["add"] });
  await wired.ask();
  expect(wired.ran.map(({ args }) => args)).toEqual([{ a: 1 }, { b: 2 }]);
  const { ran } = await streamed(
    piece(0, '{"a":', { name: "add" }),
    piece(1, '{"b":', { name: "add" }),
    piece(0, "1}"),
    piece(1, "2}"),
  );
  expect(ran).toEqual([{ a: 1 }, { b: 2 }]);
});

test.each<[string, number[]]>([
  ["begin at 1", [1]],
  ["leave one out", [0, 2]],
  ["begin high and leave many out", [3, 400]],
])("B017 indices that %s make no holes", async (_, indices) => {
  const fields = (n: number): object => ({ id: `c${n}`, function: { name: "add", arguments: `{"n":${n}}` } });
  for (const dialect of chatDialects) {
    const body = callsOf(...indices.map((index, n) => ({ index, ...fields(n) })));
    const wired = await open([body, says("fine")], { dialect, named: ["add"], id: dialect });
    await wired.ask();
    expect(wired.ran.map(({ args }) => args)).toEqual(indices.map((_index, n) => ({ n })));
    expect(replayed(wired).results).toEqual(indices.map((_index, n) => `c${n}`));
  }
  const { session, ran } = await streamed(...indices.map((index, n) => piece(index, `{"n":${n}}`, { name: "add" })));
  expect(ran).toEqual(indices.map((_index, n) => ({ n })));
  expect(dataOf(session, "assistant/message")[0]!.content).toHaveLength(indices.length);
});

test("B019 one id for the calls of four steps: each result goes with its own call", async () => {
  const steps = [1, 2, 3, 4].map((n) =>
    callsOf({ index: 0, id: "Z", function: { name: "add", arguments: `{"n":${n}}` } }),
  );
  const wired = await open([...steps, says("fine")], { named: ["add"] });
  await wired.ask();
  expect(wired.ran.map(({ args }) => args)).toEqual([1, 2, 3, 4].map((n) => ({ n })));
  const { calls: sent, results } = replayed(wired);
  expect(results).toEqual(sent.map(([id]) => id));
  expect(new Set(results).size).toBe(4);
});

test("B020 the text of a number beyond what a double holds is kept, and sent again to the byte", async () => {
  const args = '{"id":2512292042121000001}';
  for (const dialect of chatDialects) {
    const body = callsOf({ index: 0, id: "c", function: { name: "add", arguments: args } });
    const wired = await open([body, says("fine")], { dialect, named: ["add"], id: dialect });
    await wired.ask();
    expect(dataOf(wired.session, "tool/call")[0]!.arguments).toBe(args);
    expect(replayed(wired).calls).toEqual([["c", "add", args]]);
  }
});

test("B022 an argument of 200,000 chunks is put together once", async () => {
  const size = 200_000;
  const x = piece(0, "x");
  const chunks = [
    piece(0, '{"text":"', { name: "add" }),
    ...Array.from({ length: size }, () => x),
    piece(0, '"}'),
    called,
  ];
  const ran: { text: string }[] = [];
  const add = tool("add", (args) => (ran.push(args as { text: string }), "done"));
  const { say } = await scene([{ chunks }, "fine"], { tools: [add] });
  expect(await say("go")).toEqual({ kind: "completed" });
  expect(ran.map(({ text }) => text.length)).toEqual([size]);
}, 30_000);

test.each(['{"a":"x" "b":1}', '{"a":', "{'a':1}", '{"a":1}}', "nonsense"])(
  "B023 malformed arguments (%s) do not run, not even as {}, and the model is told",
  async (args) => {
    const body = callsOf({ index: 0, id: "c", function: { name: "add", arguments: args } });
    const wired = await open([body, says("fine")], { named: ["add"] });
    expect((await wired.ask()).reason).toEqual({ kind: "completed" });
    expect([wired.ran, resultsOf(wired.session)]).toEqual([[], invalid]);
    expect(dataOf(wired.session, "tool/call")[0]!.arguments).toBe(args);
    expect(dataOf(wired.session, "tool/start")).toEqual([]);
    expect(replayed(wired).results).toEqual(["c"]);
  },
);

test.each(chatDialects)("B025 a tool call that leaks as text is text (%s)", async (dialect) => {
  const text = '<tool_call>{"name":"add","arguments":{}}</tool_call>';
  const wired = await open([says(text), says("fine")], { dialect, named: ["add"] });
  expect(await wired.ask()).toMatchObject({ text, reason: { kind: "completed" } });
  await wired.ask("again");
  expect([wired.ran, replayed(wired).calls]).toEqual([[], []]);
  expect(wired.sent[1]!["messages"][1]).toEqual({ role: "assistant", content: text });
});

test.each(chatDialects)(
  "B026 a name with a leaked header is no tool, and is replayed as a legal one (%s)",
  async (dialect) => {
    const body = callsOf({ index: 0, id: "c", function: { name: "add<|channel|>commentary", arguments: "{}" } });
    const wired = await open([body, says("fine")], { dialect, named: ["add"] });
    expect((await wired.ask()).text).toBe("fine");
    expect(resultsOf(wired.session)).toMatchObject([{ tool: "add<|channel|>commentary", code: "UNKNOWN_TOOL" }]);
    expect(wired.ran).toEqual([]);
    expect(replayed(wired).calls).toEqual([["c", "add__channel__commentary", "{}"]]);
  },
);

test("B026 a leaked header in the text is text", async () => {
  const text = "commentary to=functions.add json{}";
  const wired = await open([sse(delta({ content: text }), finish("stop"))], { named: ["add"] });
  expect(await wired.ask()).toMatchObject({ text, reason: { kind: "completed" } });
  expect(wired.ran).toEqual([]);
});
