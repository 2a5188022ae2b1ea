/** B: how an answer ends, and how it does not. */
import type { ErrorData, ModelChunk } from "turnloop";
import { aiSdkModel } from "turnloop/ai-sdk";
import { describe, expect, test } from "vitest";
import { calls, resultsOf, tool } from "../support/calls.ts";
import { languageModel, type Part } from "../support/language-model.ts";
import { lose, responses, sse, type Answer } from "../support/provider-answers.ts";
import { dataOf, linesOf, scene, type Scene } from "../support/scene.ts";
import { eventOf } from "../support/wait.ts";
import { callsOf, chatDialects, delta, cleanFailure, finish, says, useWire } from "../support/wire.ts";

const open = useWire();
const text = (value: string): ModelChunk => ({ type: "delta", index: 0, text: value });
const partial = sse(delta({ content: "Hel" }));

/** What policies are asked about failed requests; each is tried again, until `tries` are used up. */
function retries({ hooks }: Scene, tries = 9): { readonly error: ErrorData; readonly committed: boolean }[] {
  const asked: { error: ErrorData; committed: boolean }[] = [];
  hooks.on("agent/request-error", ({ attempt, error, committed }) => {
    asked.push({ error, committed });
    return { kind: attempt < tries ? "retry" : "fail" };
  });
  return asked;
}

test.each(chatDialects)("B028 tool calls are announced and there are none: the turn ends (%s)", async (dialect) => {
  const wired = await open([sse(finish("tool_calls")), says("never asked")], { dialect, named: ["add"] });
  expect(await wired.ask()).toMatchObject({ reason: { kind: "completed" }, text: "" });
  expect(wired.sent).toHaveLength(1);
});

test("B028 nor does it go on when such an answer brings text or usage", async () => {
  const { say, model } = await scene([{ text: "hm", usage: { output: 1 }, finish: "tool-calls" }, "never asked"]);
  expect(await say("go")).toEqual({ kind: "completed" });
  expect(model.requests).toHaveLength(1);
});

const cutArguments: [string, string][] = [
  ["half of its arguments", '{"path":"/a","content":"li'],
  ["arguments that could be whole", '{"path":"/a"}'],
  ["no arguments yet", ""],
];

// The contract's #161: the calls of such an answer are left out, and the turn ends as max-tokens.
test.each(cutArguments)("B029 B031 an answer that was cut at its length with %s runs no call", async (_, args) => {
  for (const dialect of chatDialects) {
    const call = { index: 0, id: "c", function: { name: "write", arguments: args } };
    const body = sse(delta({ content: "I write" }), delta({ tool_calls: [call] }), finish("length"));
    const wired = await open([body, says("fine")], { dialect, named: ["write"], id: dialect });
    expect(await wired.ask()).toMatchObject({ reason: { kind: "max-tokens" }, text: "I write" });
    expect([wired.ran, resultsOf(wired.session), dataOf(wired.session, "tool/call")]).toEqual([[], [], []]);
    await wired.ask("go on");
    expect(wired.sent[1]!["messages"].map(({ role }: { role: string }) => role)).toEqual(["user", "assistant", "user"]);
  }
});

test("B029 a hook cannot smuggle the calls of a cut answer back in", async () => {
  const { hooks, say, session } = await scene([{ ...calls("write"), finish: "max-tokens" }], {
    tools: [tool("write", () => expect.unreachable())],
  });
  const block = { type: "tool-call", callId: "x", name: "write", arguments: "{}" } as const;
  hooks.on("agent/step-result", ({ message }) => ({ ...message, content: [{ type: "text", text: "." }, block] }));
  expect(await say("go")).toEqual({ kind: "max-tokens" });
  expect(linesOf(session.deriveMessages())).toEqual(["user: go", "assistant: ."]);
});

describe("B032 an answer without a finish reason is no end", () => {
  const line = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;
  test.each<[string, string]>([
    ["that just stops", line(delta({ content: "Hel" }))],
    ["with [DONE]", partial],
    [
      "with a finish reason of null",
      sse(delta({ content: "Hel" }), { choices: [{ index: 0, delta: {}, finish_reason: null }] }),
    ],
    ["with an event without choices", sse(delta({ content: "Hel" }), { choices: [] })],
  ])("%s", async (_, body) => {
    for (const dialect of chatDialects) {
      const wired = await open([body, says("fine")], { dialect, id: dialect });
      expect(await wired.ask()).toMatchObject({ reason: { kind: "error", code: "STREAM_INTERRUPTED" }, text: "Hel" });
      expect(dataOf(wired.session, "assistant/message")).toMatchObject([{ interrupted: true }]);
      expect((await wired.ask("go on")).text).toBe("fine");
    }
  });
});

test.each<[string, ModelChunk[], boolean]>([
  ["nothing", [], false],
  ["a block that has only begun", [{ type: "block-start", index: 0, block: { type: "text" } }], false],
  ["text", [text("Hel")], true],
])("B032 whoever decides about a retry knows whether anything was committed: %s", async (_, chunks, committed) => {
  const one = await scene([{ chunks }, "whole"]);
  const asked = retries(one);
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(asked).toMatchObject([{ error: { code: "STREAM_INCOMPLETE" }, committed }]);
  expect(linesOf(one.session.deriveMessages())).toEqual(["user: go", "assistant: whole"]);
});

test.each(chatDialects)("B034 a lost connection and an early end have codes of their own (%s)", async (dialect) => {
  const dropped: Answer = { body: partial, sent: partial.indexOf("data: [DONE]"), end: "drop-later" };
  const lost = await open([dropped], { dialect });
  lost.agent.on("assistant/chunk", ({ data: { chunk } }) => {
    if (chunk.type === "delta") void lose(lost.url);
  });
  expect((await lost.ask()).reason).toMatchObject({ code: "STREAM_BROKEN" });
  const ended = await open([partial], { dialect, id: "ended" });
  expect((await ended.ask()).reason).toMatchObject({ code: "STREAM_INTERRUPTED" });
});

test.each(chatDialects)(
  "B035 B094 a provider that never closes its answer holds up no cancel (%s)",
  async (dialect) => {
    const wired = await open([{ body: says("Hi"), end: "hang" }, says("fine")], { dialect });
    const asked = wired.ask();
    await eventOf(wired.session, "assistant/chunk", ({ data }) => data.chunk.type === "delta");
    wired.agent.cancel("enough");
    expect(await asked).toMatchObject({ reason: { kind: "aborted", reason: "enough" }, text: "Hi" });
    await wired.server.abandoned(wired.url);
    expect((await wired.ask("again")).text).toBe("fine");
  },
);

const usage = { choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } };
test.each<[string, string]>([
  ["before [DONE]", sse(delta({ content: "Hi" }), finish("stop", { usage: null }), usage)],
  [
    "behind [DONE]",
    `${sse(delta({ content: "Hi" }), finish("stop", { usage: null }))}data: ${JSON.stringify(usage)}\n\n`,
  ],
])("B037 usage that comes behind the finish reason, %s, is counted", async (_, body) => {
  for (const dialect of chatDialects) {
    const wired = await open([body], { dialect, id: dialect });
    expect((await wired.ask()).usage).toMatchObject({ input: 3, output: 2 });
  }
});

test("B037 usage that a model tells behind its finish chunk is counted", async () => {
  const chunks: ModelChunk[] = [
    text("Hi"),
    { type: "finish", reason: { kind: "stop" } },
    { type: "usage", usage: { input: 3, output: 2 } },
  ];
  const { say, session } = await scene([{ chunks }]);
  expect(await say("go")).toEqual({ kind: "completed" });
  expect(dataOf(session, "assistant/message")).toMatchObject([{ usage: { input: 3, output: 2 } }]);
});

test.each(chatDialects)(
  "B038 events without choices, and choices without a delta, change nothing (%s)",
  async (dialect) => {
    const body = sse({ choices: [], prompt_filter_results: [] }, delta({ content: "Hi" }), finish("stop"), {
      choices: [{ index: 0, finish_reason: null }],
    });
    const wired = await open([body], { dialect });
    expect(await wired.ask()).toMatchObject({ reason: { kind: "completed" }, text: "Hi" });
  },
);

describe("B040 a malformed function call without parts", () => {
  const malformed: Part = {
    type: "finish",
    finishReason: { unified: "error", raw: "MALFORMED_FUNCTION_CALL" },
    usage: {},
  };

  test("is a failed request that says why, and may be tried again", async () => {
    const one = await scene([], { model: aiSdkModel(languageModel([malformed])) });
    const asked = retries(one, 3);
    expect(await one.say("go")).toMatchObject({
      kind: "error",
      message: expect.stringContaining("MALFORMED_FUNCTION_CALL"),
    });
    expect(asked).toMatchObject([1, 2, 3].map(() => ({ committed: false, error: { code: "MODEL_ERROR" } })));
  });

  test("is not told by a finish reason that nobody knows: that counts as an end (#160), and keeps its name", async () => {
    const wired = await open([sse(finish("MALFORMED_FUNCTION_CALL"))]);
    expect((await wired.ask()).reason).toEqual({ kind: "completed" });
    expect(dataOf(wired.session, "assistant/chunk").at(-1)!.chunk).toMatchObject({ reason: { kind: "other" } });
    expect(wired.sent).toHaveLength(1);
  });
});

// The contract's D10: nothing at all is EMPTY_RESPONSE, whatever came before it.
test("B041 an empty answer after a tool never runs the tool again", async () => {
  let runs = 0;
  const one = await scene([calls("add"), { finish: "stop" }, { finish: "stop" }, "done now"], {
    tools: [tool("add", () => `run ${(runs += 1)}`)],
  });
  const asked = retries(one);
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(asked).toMatchObject([1, 2].map(() => ({ committed: false, error: { code: "EMPTY_RESPONSE" } })));
  expect(runs).toBe(1);
  expect(linesOf(one.session.deriveMessages()).slice(-2)).toEqual(["tool: run 1", "assistant: done now"]);
});

test("B041 without a policy it ends the turn, and the history can be sent again", async () => {
  const one = await scene([calls("add"), { finish: "stop" }, "hello"], { tools: [tool("add")] });
  expect(await one.say("go")).toMatchObject({ kind: "error", step: 2, code: "EMPTY_RESPONSE" });
  expect(await one.say("again")).toEqual({ kind: "completed" });
});

test.each<[string, string, string, RegExp]>([
  ["an error as JSON", "application/json", '{"error":{"message":"no such model"}}', /application\/json/],
  ["a whole completion as JSON", "application/json", '{"choices":[{"message":{"content":"hi"}}]}', /application\/json/],
  ["a web page", "text/html", "<!doctype html><html>Sign in</html>", /text\/html/],
])("B043 a request for a stream that gets %s fails, and says what came", async (_, type, body, says_) => {
  for (const dialect of chatDialects) {
    const wired = await open([{ headers: { "content-type": type }, body }, says("fine")], { dialect, id: dialect });
    expect(await cleanFailure(wired)).toBe("MODEL_BAD_RESPONSE");
    const [end] = dataOf(wired.session, "turn/end");
    expect(end!.reason).toMatchObject({ message: expect.stringMatching(says_) });
  }
});

describe("B044 the ends of a Responses stream are told apart", () => {
  const begun = [
    { type: "response.created", response: { id: "resp_1", created_at: 1, model: "m" } },
    { type: "response.output_item.added", output_index: 0, item: { id: "msg_1", type: "message" } },
    { type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: "Hel" },
  ];
  const counts = { input_tokens: 3, output_tokens: 2 };
  const cut = (reason: string): object => ({
    type: "response.incomplete",
    response: { incomplete_details: { reason }, usage: counts },
  });
  const error = { code: "server_error", message: "Oops" };
  test.each<[string, object[], object]>([
    ["completed", [{ type: "response.completed", response: { usage: counts } }], { kind: "completed" }],
    ["incomplete for its length", [cut("max_output_tokens")], { kind: "max-tokens" }],
    ["incomplete for its content", [cut("content_filter")], { kind: "content-filter" }],
    ["failed", [{ type: "response.failed", response: { error, usage: null } }], { kind: "error", code: "MODEL_ERROR" }],
    [
      "an error",
      [{ type: "error", sequence_number: 4, ...error, param: null }],
      { kind: "error", code: "MODEL_ERROR" },
    ],
    ["none", [], { kind: "error", code: "STREAM_INTERRUPTED" }],
  ])("%s", async (_, end, reason) => {
    const wired = await open([sse(...begun, ...end), responses("fine")], { dialect: "responses" });
    expect(await wired.ask()).toMatchObject({ reason, text: "Hel" });
    expect((await wired.ask("again")).text).toBe("fine");
  });
});

test("B044 a call of a Responses stream that failed does not run", async () => {
  const item = { id: "fc_1", type: "function_call", call_id: "c", name: "add" };
  const body = sse(
    { type: "response.created", response: { id: "resp_1", created_at: 1, model: "m" } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, arguments: "" } },
    { type: "response.output_item.done", output_index: 0, item: { ...item, arguments: "{}", status: "completed" } },
    { type: "response.failed", response: { error: { code: "server_error", message: "Oops" }, usage: null } },
  );
  const wired = await open([body], { dialect: "responses", named: ["add"] });
  expect((await wired.ask()).reason).toMatchObject({ kind: "error" });
  expect([wired.ran, dataOf(wired.session, "tool/call")]).toEqual([[], []]);
  // The same over Chat Completions.
  const call = { index: 0, id: "c", function: { name: "add", arguments: "{}" } };
  const broken = callsOf(call).replace('"finish_reason":"tool_calls"', '"finish_reason":null');
  const chat = await open([broken], { named: ["add"], id: "chat" });
  expect((await chat.ask()).reason).toMatchObject({ code: "STREAM_INTERRUPTED" });
  expect([chat.ran, dataOf(chat.session, "tool/call")]).toEqual([[], []]);
});
