/** D: reasoning, and what providers want back with it. */
import { eventsFromMessages, type ContentBlock, type ModelChunk } from "turnloop";
import { expect, test } from "vitest";
import { resultsOf, tool } from "../support/calls.ts";
import { responses, sse } from "../support/provider-answers.ts";
import { dataOf, scene } from "../support/scene.ts";
import { eventOf } from "../support/wait.ts";
import { chatDialects, delta, finish, replayed, says, useWire } from "../support/wire.ts";

const open = useWire();
const stop: ModelChunk = { type: "finish", reason: { kind: "stop" } };
const piece = (index: number, text: string): ModelChunk => ({ type: "delta", index, text });
const start = (index: number, type: "text" | "reasoning"): ModelChunk => ({
  type: "block-start",
  index,
  block: { type },
});

test.each<[string, object]>([
  ["reasoning", { reasoning: "hm" }],
  ["reasoning_content", { reasoning_content: "hm" }],
  ["both", { reasoning: "hm", reasoning_content: "hm" }],
])("B061 reasoning that comes as %s is there once, and goes back", async (_, fields) => {
  const wired = await open([sse(delta(fields), delta({ content: "Hi" }), finish("stop")), says("fine")]);
  await wired.ask();
  expect(dataOf(wired.session, "assistant/message")[0]!.content).toEqual([
    { type: "reasoning", text: "hm" },
    { type: "text", text: "Hi" },
  ]);
  await wired.ask("again");
  expect(wired.sent[1]!["messages"][1]).toEqual({ role: "assistant", content: "Hi", reasoning_content: "hm" });
});

test("B062 text that a provider sends twice is not cut down, and does not grow as it is replayed", async () => {
  const twice = sse(
    ...["hm ", "hm "].map((text) => delta({ reasoning_content: text })),
    delta({ content: "Hi" }),
    finish("stop"),
  );
  const wired = await open([twice, says("a"), says("b"), says("c")]);
  for (const text of ["1", "2", "3", "4"]) await wired.ask(text);
  for (const { messages } of wired.sent.slice(1)) {
    expect(messages[1]).toEqual({ role: "assistant", content: "Hi", reasoning_content: "hm hm " });
    expect(JSON.stringify(messages).split("hm ")).toHaveLength(3);
  }
});

test("B064 reasoning never becomes visible text", async () => {
  const wired = await open([sse(delta({ reasoning_content: "secret" }), delta({ content: "Hi" }), finish("stop"))]);
  expect((await wired.ask()).text).toBe("Hi");
  const one = await scene([
    { chunks: [start(0, "reasoning"), piece(1, "H"), piece(0, "secret"), piece(1, "i"), stop] },
  ]);
  await one.say("go");
  expect(dataOf(one.session, "assistant/message")[0]!.content).toEqual([
    { type: "reasoning", text: "secret" },
    { type: "text", text: "Hi" },
  ]);
});

test.each([
  ["<th", "ink>a</thi", "nk>b"],
  ["a</think>b"],
  ["```\n<think>", "\n```"],
  ["<thi"],
  ["a<think>never closed"],
])("B065 tags of thinking in the text stay text, and none of it is lost (%s%s%s)", async (...pieces) => {
  const text = pieces.join("");
  const wired = await open([sse(...pieces.map((content) => delta({ content })), finish("stop")), says("fine")]);
  expect((await wired.ask()).text).toBe(text);
  await wired.ask("again");
  expect(wired.sent[1]!["messages"][1]).toEqual({ role: "assistant", content: text });
});

test("B067 calls of another provider's history are sent without a signature, and the log stays as it was", async () => {
  const meta = { google: { thoughtSignature: "sig" }, providerCallId: "their id!" };
  const seed = eventsFromMessages([
    { role: "user", content: [{ type: "text", text: "look" }] },
    {
      role: "assistant",
      model: "google/gemini",
      content: [
        { type: "reasoning", text: "hm", meta },
        { type: "tool-call", callId: "x", name: "look", arguments: "{}", meta },
      ],
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", callId: "x", name: "look", content: [{ type: "text", text: "saw" }], isError: false },
      ],
    },
    { role: "assistant", model: "google/gemini", content: [{ type: "text", text: "seen" }] },
  ]);
  const wired = await open([says("fine")]);
  const { agent } = await wired.harness.agents.create({ id: "imported", seed });
  const before = JSON.stringify(agent.session.events.slice(0, seed.length));
  agent.send("and now?");
  await agent.whenIdle();
  expect(JSON.stringify(wired.sent[0])).not.toMatch(/sig|their id|hm/);
  const { calls, results } = replayed(wired);
  expect(calls).toEqual([[results[0], "look", "{}"]]);
  expect(JSON.stringify(agent.session.events.slice(0, seed.length))).toBe(before);
  expect(before).toContain("sig");
});

const begun = { type: "response.created", response: { id: "resp_1", created_at: 1, model: "m" } };
const completed = { type: "response.completed", response: { usage: { input_tokens: 3, output_tokens: 2 } } };

/** An item of reasoning, whole or without its end. */
function thought(id: string, output_index: number, whole = true): object[] {
  const item = { id, type: "reasoning", summary: [], encrypted_content: null };
  const summary = { item_id: id, output_index, summary_index: 0 };
  const done = { ...item, summary: [{ type: "summary_text", text: id }], encrypted_content: `enc-${id}` };
  return [
    { type: "response.output_item.added", output_index, item },
    { type: "response.reasoning_summary_part.added", ...summary },
    { type: "response.reasoning_summary_text.delta", ...summary, delta: id },
    ...(whole ? [{ type: "response.output_item.done", output_index, item: done }] : []),
  ];
}

/** An item that calls `add`; its id may be another in each event. */
function called(call_id: string, output_index: number, ids = [call_id, call_id, call_id]): object[] {
  const item = { type: "function_call", call_id, name: "add", arguments: "" };
  const args = `{"of":"${call_id}"}`;
  return [
    { type: "response.output_item.added", output_index, item: { ...item, id: ids[0] } },
    { type: "response.function_call_arguments.delta", item_id: ids[1], output_index, delta: args },
    {
      type: "response.output_item.done",
      output_index,
      item: { ...item, id: ids[2], arguments: args, status: "completed" },
    },
  ];
}

/** What the last request holds, shortly. */
function items({ sent }: Awaited<ReturnType<typeof open>>): string[] {
  const input: readonly Record<string, string>[] = sent.at(-1)!["input"];
  return input.map(({ type, role, id, call_id }) => [type ?? role, call_id ?? id].filter(Boolean).join(" "));
}

test.each<[string, object[]]>([
  ["alone in a whole answer", [...thought("rs_1", 0), completed]],
  ["alone because the answer broke off", thought("rs_1", 0)],
  ["itself cut off", thought("rs_1", 0, false)],
  ["before a call that was cut off", [...thought("rs_1", 0), ...called("c1", 1).slice(0, 2)]],
  [
    "before a text that was cut off",
    [
      ...thought("rs_1", 0),
      { type: "response.output_item.added", output_index: 1, item: { id: "msg_1", type: "message" } },
      { type: "response.output_text.delta", item_id: "msg_1", output_index: 1, content_index: 0, delta: "Hel" },
    ],
  ],
])("B068 reasoning without the item that follows it is not replayed: %s", async (_, events) => {
  const wired = await open([sse(begun, ...events), responses("fine")], { dialect: "responses", named: ["add"] });
  await wired.ask();
  expect((await wired.ask("again")).text).toBe("fine");
  expect(JSON.stringify(wired.sent[1]!["input"])).not.toContain("rs_1");
  expect([wired.ran, resultsOf(wired.session)]).toEqual([[], []]);
});

test("B070 B071 reasoning and the calls that it led to go back together, in the order in which they came", async () => {
  const body = sse(
    begun,
    ...thought("rs_1", 0),
    ...called("c1", 1),
    ...thought("rs_2", 2),
    ...called("c2", 3),
    completed,
  );
  const wired = await open([body, responses("fine"), responses("fine")], { dialect: "responses", named: ["add"] });
  await wired.ask();
  const content = dataOf(wired.session, "assistant/message")[0]!.content;
  expect(content.map(({ type }) => type)).toEqual(["reasoning", "tool-call", "reasoning", "tool-call"]);
  const group = ["item_reference rs_1", "function_call c1", "item_reference rs_2", "function_call c2"];
  const results = ["function_call_output c1", "function_call_output c2"];
  expect(items(wired)).toEqual(["user", ...group, ...results]);
  await wired.ask("again");
  expect(items(wired)).toEqual(["user", ...group, ...results, "item_reference msg_1", "user"]);
});

test("B071 interleaved blocks of reasoning and calls keep their order and their signatures in the log", async () => {
  const block = (n: number): ModelChunk[] => [
    start(2 * n, "reasoning"),
    piece(2 * n, `R${n}`),
    { type: "block-end", index: 2 * n, meta: { p: { signature: `s${n}` } } },
    { type: "block-end", index: 2 * n + 1, block: { type: "tool-call", callId: "", name: "add", arguments: "{}" } },
  ];
  const chunks = [...block(0), ...block(1), { type: "finish", reason: { kind: "tool-calls" } } as const];
  const { say, model } = await scene([{ chunks }, "fine"], { tools: [tool("add")] });
  await say("go");
  const short = (one: ContentBlock): unknown => (one.type === "reasoning" ? [one.text, one.meta] : one.type);
  expect(model.requests[1]!.messages[1]!.content.map(short)).toEqual([
    ["R0", { p: { signature: "s0" } }],
    "tool-call",
    ["R1", { p: { signature: "s1" } }],
    "tool-call",
  ]);
});

test("B073 a cancel keeps the signature of reasoning that was complete, and gives none to what was not", async () => {
  const meta = { p: { signature: "s" } };
  const chunks: ModelChunk[] = [
    start(0, "reasoning"),
    piece(0, "hm"),
    { type: "block-end", index: 0, meta },
    start(1, "reasoning"),
    piece(1, "and"),
    piece(2, "Hel"),
  ];
  const one = await scene([{ chunks, hang: "polite" }, "fine"]);
  const said = one.say("go");
  await eventOf(
    one.session,
    "assistant/chunk",
    ({ data: { chunk } }) => chunk.type === "delta" && chunk.text === "Hel",
  );
  one.agent.cancel();
  expect(await said).toMatchObject({ kind: "aborted" });
  expect(dataOf(one.session, "assistant/message")).toMatchObject([{ interrupted: true }]);
  expect(dataOf(one.session, "assistant/message")[0]!.content).toEqual([
    { type: "reasoning", text: "hm", meta },
    { type: "reasoning", text: "and" },
    { type: "text", text: "Hel" },
  ]);
  expect(await one.say("go on")).toEqual({ kind: "completed" });
});

test("B074 items whose id changes from event to event are one item", async () => {
  const text = (type: string, more: object): object => ({ type: `response.${type}`, output_index: 0, ...more });
  const body = sse(
    begun,
    text("output_item.added", { item: { id: "x", type: "message" } }),
    text("output_text.delta", { item_id: "y", content_index: 0, delta: "Hel" }),
    text("output_text.delta", { item_id: "z", content_index: 0, delta: "lo" }),
    text("output_item.done", { item: { id: "w", type: "message" } }),
    ...called("c1", 1, ["x", "y", "z"]),
    completed,
  );
  const wired = await open([body, responses("fine")], { dialect: "responses", named: ["add"] });
  await wired.ask();
  expect(dataOf(wired.session, "assistant/message")[0]!.content).toMatchObject([
    { type: "text", text: "Hello" },
    { type: "tool-call", arguments: '{"of":"c1"}' },
  ]);
  expect(wired.ran).toEqual([{ name: "add", args: { of: "c1" } }]);
  expect(items(wired).slice(-2)).toEqual(["function_call c1", "function_call_output c1"]);
});

test.each(chatDialects)(
  "B061 a client that knows no reasoning leaves it out, and nothing else (%s)",
  async (dialect) => {
    const wired = await open([sse(delta({ reasoning: "hm" }), delta({ content: "Hi" }), finish("stop"))], { dialect });
    expect(await wired.ask()).toMatchObject({ reason: { kind: "completed" }, text: "Hi" });
  },
);
