import { aiSdkModel } from "turnloop/ai-sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { ContentBlock, Message } from "turnloop";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { chunksOf, languageModel, request, stop } from "../support/language-model.ts";
import { chat, providerUrl } from "../support/provider-answers.ts";
import { startProviderServer, type ProviderServer } from "../support/provider-server.ts";

const text = (words: string, more: object = {}): ContentBlock => ({ type: "text", text: words, ...more });
const user = (...content: ContentBlock[]): Message => ({ role: "user", content });
const own = (...content: ContentBlock[]): Message => ({ role: "assistant", model: "acme/m1", content });
const foreign = (...content: ContentBlock[]): Message => ({ role: "assistant", model: "other/m1", content });
const call = (callId: string, args = "{}", more: object = {}): ContentBlock => ({
  type: "tool-call",
  callId,
  name: "look",
  arguments: args,
  ...more,
});
const result = (callId: string, content: ContentBlock[] = [text("ok")], isError = false): Message => ({
  role: "tool",
  content: [{ type: "tool-result", callId, name: "look", content, isError }],
});

/** Whatever stands in a prompt; the tests say what. */
// oxlint-disable-next-line typescript/no-explicit-any -- they look into it at every depth
type Sent = any;

async function promptOf(messages: readonly Message[], options: object = {}, system?: string): Promise<Sent> {
  const fake = languageModel([stop], options);
  await chunksOf(aiSdkModel(fake), request(messages, system === undefined ? {} : { system }));
  return fake.calls[0]!.prompt;
}

test("a conversation keeps its order, and results in a row share one message", async () => {
  const prompt = await promptOf(
    [
      user(text("hi")),
      own(text("let me see"), call("c1"), call("c2", '{"q":1}')),
      result("c1"),
      result("c2"),
      user(text("and?")),
    ],
    {},
    "Be brief.",
  );
  expect(prompt).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "text", text: "hi" }] },
    {
      role: "assistant",
      content: [
        { type: "text", text: "let me see" },
        { type: "tool-call", toolCallId: "c1", toolName: "look", input: {} },
        { type: "tool-call", toolCallId: "c2", toolName: "look", input: { q: 1 } },
      ],
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: "c1", toolName: "look", output: { type: "text", value: "ok" } },
        { type: "tool-result", toolCallId: "c2", toolName: "look", output: { type: "text", value: "ok" } },
      ],
    },
    { role: "user", content: [{ type: "text", text: "and?" }] },
  ]);
});

describe("what providers refuse is not sent:", () => {
  test("a blank system prompt, blank texts, and messages that have nothing else", async () => {
    const prompt = await promptOf(
      [user(text("hi"), text(" \n")), own(text("")), own(), user(text("  ")), user(text("there"))],
      {},
      " ",
    );
    expect(prompt).toEqual([
      { role: "user", content: [{ type: "text", text: "hi" }] },
      { role: "user", content: [{ type: "text", text: "there" }] },
    ]);
  });

  test("reasoning with nothing after it", async () => {
    const thought: ContentBlock = { type: "reasoning", text: "hm", meta: { acme: { signature: "s" } } };
    const [alone, between] = await Promise.all([
      promptOf([own(thought)]),
      promptOf([own(thought, text("so"), thought)]),
    ]);
    expect(alone).toEqual([]);
    expect(between[0].content.map(({ type }: { type: string }) => type)).toEqual(["reasoning", "text"]);
  });

  test("a reasoning item whose text was cut off before it became an item", async () => {
    const item = { meta: { openai: { itemId: "rs_1" } } };
    const thought: ContentBlock = { type: "reasoning", text: "hm", ...item };
    const cut = await promptOf([own(thought, text("so"))]);
    expect(cut[0].content).toEqual([{ type: "text", text: "so" }]);
    const complete = await promptOf([own(thought, text("so", { meta: { openai: { itemId: "msg_1" } } }))]);
    expect(complete[0].content).toHaveLength(2);
  });

  test("text after a tool call: it moves before the calls, and reasoning stays in its place", async () => {
    const thought: ContentBlock = { type: "reasoning", text: "hm" };
    const [message] = await promptOf([own(text("a"), thought, call("c1"), text("b"), thought, call("c2"), text("c"))]);
    expect(message.content.map((part: Sent) => part.text ?? part.toolCallId)).toEqual([
      "a",
      "hm",
      "b",
      "c",
      "c1",
      "hm",
      "c2",
    ]);
  });

  test("but a part that its provider has marked stays where that provider put it", async () => {
    const [message] = await promptOf([own(call("c1"), text("b", { meta: { acme: { itemId: "2" } } }))]);
    expect(message.content.map(({ type }: { type: string }) => type)).toEqual(["tool-call", "text"]);
  });

  test("half a surrogate pair, in any text and in any escape of the arguments", async () => {
    const prompt = await promptOf(
      [
        user(text("a\ud83d")),
        foreign(call("c1", '{"\\ud99cx":"b\\ud83d","c":"\\ud83d\\ude00"}')),
        result("c1", [text("ok \ud83d")]),
      ],
      {},
      "s\udc00",
    );
    expect(JSON.stringify(prompt)).not.toMatch(/\\ud[89a-f]/i);
    expect(prompt[2].content[0].input).toEqual({ "\ufffdx": "b\ufffd", c: "😀" });
  });

  test("an illegal or an empty name of a tool", async () => {
    const bad = (name: string): ContentBlock => ({
      type: "tool-call",
      callId: `c-${name.length}`,
      name,
      arguments: "{}",
    });
    const [message] = await promptOf([own(bad(""), bad("w<|channel|>commentary"), bad("x".repeat(80)))]);
    expect(message.content.map(({ toolName }: { toolName: string }) => toolName)).toEqual([
      "unknown_tool",
      "w__channel__commentary",
      "x".repeat(64),
    ]);
  });
});

describe("arguments of tool calls:", () => {
  const inputOf = async (args: string): Promise<unknown> =>
    (await promptOf([own(call("c1", args))]))[0].content[0].input;

  test.each(["", "  \n", "null", " null "])("%j means none", async (args) => {
    expect(await inputOf(args)).toEqual({});
  });

  test.each(["{", '{"a":"x" "b":1}', "[1]", '"text"', "7", "{}{}", `{"a":${"[".repeat(20_000)}${"]".repeat(20_000)}}`])(
    "what is no sensible object is shown to the model as it stands (%#)",
    async (args) => {
      const input = await inputOf(args);
      expect(input).toEqual({ malformed_arguments: args });
      expect(() => JSON.stringify(input)).not.toThrow();
    },
  );

  test("numbers are written again as they stood, however long", async () => {
    const args =
      '{"id":2512292042121000001,"n":[9007199254740993,1e400,-0,0.12345678901234567890],"s":"1e5","small":1}';
    expect(JSON.stringify(await inputOf(args))).toBe(args);
  });

  test("__proto__ and constructor are keys like others", async () => {
    const args = '{"__proto__":{"x":1},"constructor":12345678901234567890}';
    expect(JSON.stringify(await inputOf(args))).toBe(args);
    expect(({} as Sent)["x"]).toBeUndefined();
  });
});

describe("ids of tool calls:", () => {
  const idsOf = (prompt: Sent): string[] =>
    prompt.flatMap(({ content }: Sent) => content.map((part: Sent) => part.toolCallId));
  const given = (id: unknown) => ({ meta: { providerCallId: id } });

  test("the provider that made the call gets its own id back, at the call and at the result", async () => {
    const conversation = [own(call("c1", "{}", given("call_abc"))), result("c1")];
    const prompt = await promptOf(conversation);
    expect(idsOf(prompt)).toEqual(["call_abc", "call_abc"]);
    expect(prompt[0].content[0]).not.toHaveProperty("providerOptions");
    expect(idsOf(await promptOf(conversation, { provider: "other.chat" }))).toEqual(["c1", "c1"]);
  });

  test("an id that its provider gave twice is no id: both calls go by the log's", async () => {
    const messages = [own(call("c1", "{}", given("Z"))), result("c1"), own(call("c2", "{}", given("Z"))), result("c2")];
    expect(idsOf(await promptOf(messages))).toEqual(["c1", "c1", "c2", "c2"]);
  });

  test("an id that another call has in the log is not taken", async () => {
    const messages = [own(call("c1", "{}", given("c2"))), result("c1"), own(call("c2")), result("c2")];
    expect(idsOf(await promptOf(messages))).toEqual(["c1", "c1", "c2", "c2"]);
  });

  test.each(["x".repeat(86), "call_x|fc_y", "", 7])(
    "an id that no provider would take (%j) is not sent",
    async (id) => {
      expect(idsOf(await promptOf([own(call("c1", "{}", given(id))), result("c1")]))).toEqual(["c1", "c1"]);
    },
  );

  test("long and odd ids of an imported log are shortened: legal, distinct, the same on both sides and each time", async () => {
    const names = [`${"x".repeat(86)}1`, `${"x".repeat(86)}2`, "call_x|fc_y", "call_x_fc_y", ""];
    const messages = names.flatMap((name) => [own(call(name)), result(name)]);
    const ids = idsOf(await promptOf(messages));
    expect(ids.every((id) => /^[a-zA-Z0-9_-]{1,64}$/.test(id))).toBe(true);
    expect(new Set(ids).size).toBe(names.length);
    names.forEach((_, at) => expect(ids[2 * at]).toBe(ids[2 * at + 1]));
    expect(idsOf(await promptOf(messages))).toEqual(ids);
  });

  test("a shortened id that is another call's own is made anew", async () => {
    const [odd] = idsOf(await promptOf([own(call("call_x|fc_y"))]));
    const ids = idsOf(await promptOf([own(call(odd!), call("call_x|fc_y")), result(odd!), result("call_x|fc_y")]));
    expect(ids[0]).toBe(odd);
    expect(ids[1]).not.toBe(odd);
    expect(ids.slice(2)).toEqual(ids.slice(0, 2));
  });

  test("Mistral gets nine letters and digits", async () => {
    const messages = [
      foreign(call("call_1_1_1_0"), call("call_1_1_1_1")),
      result("call_1_1_1_0"),
      result("call_1_1_1_1"),
    ];
    const ids = idsOf(await promptOf(messages, { provider: "mistral.chat" }));
    expect(ids.every((id) => /^[a-zA-Z0-9]{9}$/.test(id))).toBe(true);
    expect(ids[0]).toBe(ids[2]);
    expect(ids[1]).toBe(ids[3]);
    expect(ids[0]).not.toBe(ids[1]);
  });
});

describe("what a provider wants back:", () => {
  const meta = { acme: { signature: "s", nested: [1] } };
  const blocks: ContentBlock[] = [
    { type: "reasoning", text: "", meta },
    { type: "reasoning", text: "aloud" },
    { type: "provider-tool", name: "search", data: { type: "call", id: "ws_1", input: '{"q":"x"}' }, meta },
    { type: "provider-tool", name: "search", data: { type: "result", id: "ws_1", result: [1], isError: false } },
    { type: "provider-tool", name: "search", data: { type: "result", id: "ws_2", result: "no", isError: true } },
    { type: "provider-tool", name: "acme.note", data: { type: "custom", kind: "acme.note" }, meta },
    {
      type: "provider-tool",
      name: "reasoning-file",
      data: { type: "reasoning-file", mediaType: "image/png", file: { base64: "AA" } },
    },
    { type: "provider-tool", name: "odd", data: "of another adapter" },
    { type: "file", mediaType: "image/png", data: { base64: "AAAA" }, name: "cat.png", meta },
    text("found", { meta }),
    { type: "source", url: "https://example.com" },
    { type: "tool-call", callId: "c1", name: "look", arguments: "{}", meta: { ...meta, providerCallId: "p1" } },
  ];

  test("it gets it untouched", async () => {
    const [message] = await promptOf([own(...blocks)]);
    const providerOptions = meta;
    expect(message.content).toEqual([
      { type: "reasoning", text: "", providerOptions },
      { type: "reasoning", text: "aloud" },
      {
        type: "tool-call",
        toolCallId: "ws_1",
        toolName: "search",
        input: { q: "x" },
        providerExecuted: true,
        providerOptions,
      },
      { type: "tool-result", toolCallId: "ws_1", toolName: "search", output: { type: "json", value: [1] } },
      { type: "tool-result", toolCallId: "ws_2", toolName: "search", output: { type: "error-json", value: "no" } },
      { type: "custom", kind: "acme.note", providerOptions },
      { type: "reasoning-file", mediaType: "image/png", data: { type: "data", data: "AA" } },
      {
        type: "file",
        mediaType: "image/png",
        filename: "cat.png",
        data: { type: "data", data: "AAAA" },
        providerOptions,
      },
      { type: "text", text: "found", providerOptions },
      { type: "tool-call", toolCallId: "p1", toolName: "look", input: {}, providerOptions },
    ]);
  });

  test("no other provider gets it, nor reasoning, nor what the provider ran", async () => {
    const [message] = await promptOf([own(...blocks)], { provider: "other.responses" });
    expect(message.content).toEqual([
      { type: "text", text: "[file: cat.png, image/png]" },
      { type: "text", text: "found" },
      { type: "tool-call", toolCallId: "c1", toolName: "look", input: {} },
    ]);
    const [unsigned] = await promptOf([{ role: "assistant", content: blocks }]);
    expect(JSON.stringify(unsigned)).not.toContain("providerOptions");
  });

  test("another model of the same family gets it; the family is what stands before the slash", async () => {
    const thought: ContentBlock = { type: "reasoning", text: "hm", meta };
    const [message] = await promptOf([{ role: "assistant", model: "acme/m0", content: [thought, text("so")] }]);
    expect(message.content[0]).toEqual({ type: "reasoning", text: "hm", providerOptions: meta });
  });

  test("older interfaces have no parts for some of it", async () => {
    const [message] = await promptOf([own(...blocks)], { specificationVersion: "v3" });
    expect(message.content.map(({ type }: { type: string }) => type)).not.toContain("custom");
    expect(message.content.map(({ type }: { type: string }) => type)).not.toContain("reasoning-file");
  });
});

describe("files:", () => {
  const file = (data: { url: string } | { base64: string }, mediaType = "image/png"): ContentBlock => ({
    type: "file",
    mediaType,
    data,
  });
  const files = [
    file({ base64: "AAAA" }),
    file({ url: "https://example.com/a.png" }),
    file({ url: "data:image/png;base64,BBBB" }),
    file({ url: "no url" }),
  ];

  test("bytes, links and data URLs are sent as each version carries them", async () => {
    const [v4] = await promptOf([user(...files)]);
    expect(v4.content).toEqual([
      { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } },
      { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://example.com/a.png") } },
      { type: "file", mediaType: "image/png", data: { type: "data", data: "BBBB" } },
      { type: "text", text: "[file: image/png, no url]" },
    ]);
    for (const specificationVersion of ["v2", "v3"]) {
      const [old] = await promptOf([user(...files)], { specificationVersion });
      expect(old.content.slice(0, 3).map(({ data }: { data: unknown }) => data)).toEqual([
        "AAAA",
        new URL("https://example.com/a.png"),
        "BBBB",
      ]);
    }
  });

  test("a result with files among its blocks is sent as content", async () => {
    const blocks = [
      text("see"),
      file({ base64: "AAAA" }),
      file({ url: "https://example.com/a.pdf" }, "application/pdf"),
    ];
    const outputOf = async (specificationVersion: string): Promise<unknown> => {
      const prompt = await promptOf([own(call("c1")), result("c1", blocks)], { specificationVersion });
      return prompt[1].content[0].output;
    };
    expect(await outputOf("v4")).toEqual({
      type: "content",
      value: [
        { type: "text", text: "see" },
        { type: "file", mediaType: "image/png", data: { type: "data", data: "AAAA" } },
        {
          type: "file",
          mediaType: "application/pdf",
          data: { type: "url", url: new URL("https://example.com/a.pdf") },
        },
      ],
    });
    expect(await outputOf("v3")).toEqual({
      type: "content",
      value: [
        { type: "text", text: "see" },
        { type: "image-data", mediaType: "image/png", data: "AAAA" },
        { type: "file-url", url: "https://example.com/a.pdf" },
      ],
    });
    expect(await outputOf("v2")).toEqual({
      type: "content",
      value: [
        { type: "text", text: "see" },
        { type: "media", mediaType: "image/png", data: "AAAA" },
        { type: "text", text: "[file: https://example.com/a.pdf]" },
      ],
    });
  });
});

test("errors of tools are marked as such, as JSON where they are JSON; nothing at all is said in words", async () => {
  const outputOf = async (content: ContentBlock[], isError: boolean): Promise<unknown> =>
    (await promptOf([own(call("c1")), result("c1", content, isError)]))[1].content[0].output;
  expect(await outputOf([text("Error: no")], true)).toEqual({ type: "error-text", value: "Error: no" });
  expect(await outputOf([text('{"code":5}')], true)).toEqual({ type: "error-json", value: { code: 5 } });
  expect(await outputOf([text("{oops")], true)).toEqual({ type: "error-text", value: "{oops" });
  expect(await outputOf([text("a"), text("b")], false)).toEqual({ type: "text", value: "a\nb" });
  expect(await outputOf([], false)).toEqual({ type: "text", value: "(no output)" });
  expect(await outputOf([text(" ")], true)).toEqual({ type: "error-text", value: "(no output)" });
});

describe("over the wire, through real clients,", () => {
  let server: ProviderServer;
  beforeAll(async () => void (server = await startProviderServer()));
  afterAll(() => server.close());
  const args = '{"id":2512292042121000001}';
  const messages = [user(text("hi")), own(call("c1", args), text("after")), result("c1")];

  test("the Chat Completions dialect gets legal messages and whole numbers", async () => {
    const clients = [
      (baseURL: string) => createOpenAI({ baseURL, apiKey: "k" }).chat("m1"),
      (baseURL: string) => createOpenAICompatible({ baseURL, name: "acme", apiKey: "k" })("m1"),
    ];
    for (const client of clients) {
      const url = providerUrl(server.url, { body: chat({ content: "ok" }) });
      await chunksOf(aiSdkModel(client(url)), request(messages));
      expect(server.requests(url)[0]!["messages"]).toEqual([
        { role: "user", content: "hi" },
        {
          role: "assistant",
          content: "after",
          tool_calls: [{ id: "c1", type: "function", function: { name: "look", arguments: args } }],
        },
        { role: "tool", tool_call_id: "c1", content: "ok" },
      ]);
    }
  });

  test("and so does the Responses dialect", async () => {
    const url = providerUrl(server.url, { body: "" });
    await chunksOf(aiSdkModel(createOpenAI({ baseURL: url, apiKey: "k" }).responses("gpt-5.5")), request(messages));
    expect(server.requests(url)[0]!["input"]).toEqual([
      { role: "user", content: [{ type: "input_text", text: "hi" }] },
      { role: "assistant", content: "after" },
      { type: "function_call", call_id: "c1", name: "look", arguments: args },
      { type: "function_call_output", call_id: "c1", output: "ok" },
    ]);
  });
});
