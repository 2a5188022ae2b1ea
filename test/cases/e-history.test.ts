/** E: a history that can be sent again, whatever has happened to it. */
import { createTranscript, jsonCopy, type ContentBlock, type Message, type ModelChunk } from "turnloop";
import { aiSdkModel } from "turnloop/ai-sdk";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, deafBody, resultsOf, tool } from "../support/calls.ts";
import { languageModel, request } from "../support/language-model.ts";
import { dataOf, linesOf, scene } from "../support/scene.ts";
import { unwatchedHarness } from "../support/unwatched.ts";
import { deferred } from "../support/wait.ts";
import { callsOf, chatDialects, replayed, says, useWire } from "../support/wire.ts";

const open = useWire();
const piece = (index: number, text: string, more = {}): ModelChunk => ({ type: "delta", index, text, ...more });
const called: ModelChunk = { type: "finish", reason: { kind: "tool-calls" } };
const rolesOf = (messages: readonly Message[]): string => messages.map(({ role }) => role).join(" ");

/** A turn that is cancelled while the tool of its first call runs, and one that follows. */
async function cancelled(...names: string[]) {
  const deaf = deafBody();
  const one = await scene([calls(...names), "fine"], { tools: [tool("work", deaf.body), tool("rest")] });
  const said = one.say("go");
  await deaf.running;
  one.agent.cancel("enough");
  expect(await said).toEqual({ kind: "aborted", reason: "enough" });
  expect(await one.say("again")).toEqual({ kind: "completed" });
  return { ...one, history: one.model.requests[1]!.messages };
}

test("B076 a call and its result stay together when their turn was cancelled", async () => {
  const { history } = await cancelled("work");
  expect(rolesOf(history)).toBe("user assistant tool user");
  const [call, result] = [history[1]!.content[0], history[2]!.content[0]] as unknown as Record<string, string>[];
  expect(result!["callId"]).toBe(call!["callId"]);
});

test("B077 a cancel in a tool leaves exactly one result for each call, before the next message", async () => {
  const { history, session } = await cancelled("work", "rest", "rest");
  expect(rolesOf(history)).toBe("user assistant tool tool tool user");
  expect(resultsOf(session)).toMatchObject([
    { tool: "work", code: "TOOL_ABORTED" },
    { tool: "rest", code: "ABORTED_BEFORE_DISPATCH" },
    { tool: "rest", code: "ABORTED_BEFORE_DISPATCH" },
  ]);
});

test.each(chatDialects)("B079 text behind a call is sent before it (%s)", async (dialect) => {
  const chunks = [
    piece(0, "one"),
    {
      type: "block-end",
      index: 1,
      block: { type: "tool-call", callId: "", name: "add", arguments: "{}" },
    } as ModelChunk,
    piece(2, "two"),
    called,
  ];
  const mixed = scriptedModel([{ chunks }, "done"]);
  const wired = await open([says("fine")], { dialect, models: { mixed }, named: ["add"] });
  wired.agent.configure({ model: "mixed" });
  await wired.ask();
  expect(dataOf(wired.session, "assistant/message")[0]!.content.map(({ type }) => type)).toEqual([
    "text",
    "tool-call",
    "text",
  ]);
  wired.agent.configure({ model: wired.route });
  await wired.ask("again");
  const sent = wired.sent[0]!["messages"];
  expect(sent.map(({ role }: Message) => role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
  expect(sent[1].content).toBe("onetwo");
  expect(replayed(wired).calls).toHaveLength(1);
});

test("B080 an answer that a policy has emptied is in the log, and no message of the history", async () => {
  const { hooks, say, model, session } = await scene([{ text: "no", usage: { output: 1 }, finish: "other" }, "fine"]);
  const off = hooks.on("agent/step-result", ({ message }) => ({ ...message, content: [] }));
  expect(await say("go")).toEqual({ kind: "completed" });
  off();
  await say("again");
  expect(dataOf(session, "assistant/message")[0]).toMatchObject({ content: [], usage: { output: 1 } });
  expect(rolesOf(model.requests[1]!.messages)).toBe("user user");
});

test.each(chatDialects)("B080 an answer of blank text alone is not sent (%s)", async (dialect) => {
  const wired = await open([says(" \n"), says("fine")], { dialect });
  await wired.ask();
  await wired.ask("again");
  expect(wired.sent[1]!["messages"].map(({ role }: Message) => role)).toEqual(["user", "user"]);
});

test.each(chatDialects)(
  "B082 an answer of calls alone is sent as its client writes it: with a content of null (%s)",
  async (dialect) => {
    const wired = await open(
      [callsOf({ index: 0, id: "c", function: { name: "add", arguments: "{}" } }), says("fine")],
      { dialect, named: ["add"] },
    );
    await wired.ask();
    expect(wired.sent[1]!["messages"][1]).toMatchObject({ role: "assistant", content: null });
  },
);

test.each(chatDialects)(
  "B083 there is one system message, and it comes first, whatever is injected (%s)",
  async (dialect) => {
    const wired = await open([says("a"), says("b")], { dialect, system: "Be kind." });
    await wired.ask();
    wired.agent.inject("a note", { source: { kind: "system" } });
    await wired.ask("again");
    // Neighbours of one role are left apart: joining them is left to the clients whose providers need it.
    expect(wired.sent[1]!["messages"]).toEqual([
      { role: "system", content: "Be kind." },
      { role: "user", content: "go" },
      { role: "assistant", content: "a" },
      { role: "user", content: expect.anything() },
      { role: "user", content: "again" },
    ]);
  },
);

test("B085 a call has one result, though its body is run twice and also throws", async () => {
  let runs = 0;
  const { hooks, say, session } = await scene([calls("add"), "fine"], {
    tools: [
      tool("add", (_, { progress }) => {
        progress((runs += 1));
        if (runs === 2) throw new Error("the second run failed");
        return "the first run";
      }),
    ],
  });
  hooks.on("tools/execute", async (_, next) => {
    const first = await next();
    await next();
    return first;
  });
  expect(await say("go")).toEqual({ kind: "completed" });
  expect([runs, resultsOf(session)]).toEqual([2, [{ tool: "add", says: "the first run" }]]);
});

test("B085 of two results that stand in a log the history has the first", async () => {
  // The watch would tell of the second one, which a plugin wrote past the loop.
  const model = scriptedModel([calls("add"), "fine"]);
  const harness = unwatchedHarness({ model, tools: [tool("add", () => "real")] });
  const { agent } = await harness.agents.open({ id: "s" });
  const off = agent.on("tool/result", ({ data }) => {
    off();
    const content = [{ type: "text", text: "forged" }] as const;
    harness.sessions.get("s")!.append("tool/result", { ...data, content }, { surface: "append" });
  });
  agent.send("go");
  await agent.whenIdle();
  expect(linesOf(model.requests[1]!.messages.filter(({ role }) => role === "tool"))).toEqual(["tool: real"]);
  await harness.dispose();
});

test("B086 blocks of text and calls that overlap are told apart by their index, for the model and for people", async () => {
  const chunks: ModelChunk[] = [
    { type: "block-start", index: 0, block: { type: "text" } },
    { type: "block-start", index: 1, block: { type: "tool-call", name: "add" } },
    piece(0, "Hel"),
    piece(1, "{}"),
    { type: "block-end", index: 1 },
    piece(0, "lo"),
    { type: "block-end", index: 0 },
    called,
  ];
  const one = await scene([{ chunks }, "fine"], { tools: [tool("add")] });
  await one.say("go");
  const content = dataOf(one.session, "assistant/message")[0]!.content;
  expect(content).toMatchObject([
    { type: "text", text: "Hello" },
    { type: "tool-call", arguments: "{}" },
  ]);
  const { messages } = createTranscript(one.session).getSnapshot();
  expect(messages[1]!.parts).toMatchObject([
    { type: "text", text: "Hello" },
    { type: "tool", state: "done" },
  ]);
});

/** Calls under these ids of their provider, each with its result, as a request of the provider has them. */
async function idsSent(provider: string, providerIds: readonly string[]): Promise<string[]> {
  const client = languageModel([{ type: "finish", finishReason: { unified: "stop" }, usage: {} }], {
    provider: `${provider}.chat`,
  });
  const model = aiSdkModel(client);
  const content = providerIds.map((providerCallId, n): ContentBlock => ({
    type: "tool-call",
    callId: `call_1_1_1_${n}`,
    name: "add",
    arguments: "{}",
    meta: { providerCallId },
  }));
  const results = content.map((_, n): Message => ({
    role: "tool",
    content: [
      {
        type: "tool-result",
        callId: `call_1_1_1_${n}`,
        name: "add",
        content: [{ type: "text", text: "x" }],
        isError: false,
      },
    ],
  }));
  const ask = request([{ role: "assistant", model: model.id, content }, ...results]);
  for await (const _ of model.stream(ask, { signal: new AbortController().signal, sessionId: "s" }));
  const [called_, answered] = client.calls[0]!.prompt.map((message) =>
    (message.content as readonly { readonly toolCallId: string }[]).map(({ toolCallId }) => toolCallId),
  );
  expect(answered).toEqual(called_);
  expect(new Set(called_).size).toBe(providerIds.length);
  return called_!;
}

test("B088 Mistral gets ids of nine letters and digits: the same for call and result, each time, and no two alike", async () => {
  const ids = [
    "call_abcdefghijk",
    "call_abcdefghijl",
    "call_1",
    "ABCdef123",
    "",
    ...Array.from({ length: 200 }, (_, n) => `call_${n}_long`),
  ];
  const sent = await idsSent("mistral", ids);
  for (const id of sent) expect(id).toMatch(/^[a-zA-Z0-9]{9}$/);
  expect(sent[3]).toBe("ABCdef123");
  expect(await idsSent("mistral", ids)).toEqual(sent);
  // One that its provider gave, and that another call would be mapped to.
  expect((await idsSent("mistral", [...ids, sent[0]!])).at(-1)).toBe(sent[0]);
});

test("B089 ids that are too long, or not legal, are replaced on both sides, the same each time", async () => {
  const ids = ["x".repeat(86), `${"x".repeat(85)}y`, "call_x|fc_y", "ünicode", "fine_1"];
  const sent = await idsSent("openai", ids);
  for (const id of sent) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  expect(sent[4]).toBe("fine_1");
  expect(await idsSent("openai", ids)).toEqual(sent);
  // One that is the name of another call in the log.
  await idsSent("openai", ["call_1_1_1_1", "call|x"]);
});

test.each(chatDialects)("B089 the same over a real client (%s)", async (dialect) => {
  const wired = await open(
    [callsOf({ index: 0, id: "x".repeat(86), function: { name: "add", arguments: "{}" } }), says("fine")],
    { dialect, named: ["add"] },
  );
  await wired.ask();
  const { calls: sent, results } = replayed(wired);
  expect(sent).toEqual([[results[0], "add", "{}"]]);
  expect(results[0]).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
});

const half = "a🙂".slice(0, 2);

test.each(chatDialects)(
  "B091 halves of surrogate pairs do not reach a request, wherever they come from (%s)",
  async (dialect) => {
    const args = callsOf({ index: 0, id: "c", function: { name: "cut", arguments: '{"text":"\\ud99c"}' } });
    const seen: unknown[] = [];
    const cut = tool("cut", (given) => (seen.push(given), `ok ${half}`));
    const wired = await open([args, says(`fine`), says("fine")], { dialect, tools: [cut], system: `sys ${half}` });
    await wired.ask(`hello ${half}`);
    wired.agent.inject(`note ${half}`);
    expect((await wired.ask("again")).reason).toEqual({ kind: "completed" });
    expect(wired.sent).toHaveLength(3);
    for (const body of wired.sent) expect(strings(body).filter((text) => !text.isWellFormed())).toEqual([]);
    expect(
      replayed(wired).calls.map(([, , text]) => strings(JSON.parse(text)).every((one) => one.isWellFormed())),
    ).toEqual([true]);
  },
);

function strings(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => strings(inner).concat(key));
}

test("B091 nor do they get into the log, but as the escapes that the model wrote", async () => {
  const chunks = [piece(0, `x${half}`), piece(1, `{"t":"${half}"}`, { name: "cut" }), called];
  const one = await scene([{ chunks }, { text: `y${half}` }], { tools: [tool("cut", () => half)] });
  await one.say(half);
  const logged = [
    ...dataOf(one.session, "assistant/message"),
    ...dataOf(one.session, "tool/result"),
    ...dataOf(one.session, "user/message"),
  ];
  expect(strings(logged).filter((text) => !text.isWellFormed())).toEqual([]);
});

test("B092 characters of every plane come back from the log as they went in", async () => {
  const texts = ["🧩", "\u0000\u0001", "\u2028\u2029", "é\u0301", "\u{10ffff}", '"\\\n', "日本"];
  const seen: unknown[] = [];
  const one = await scene([calls({ name: "add", args: { texts } }), "🧩"], {
    tools: [tool("add", (args) => (seen.push(args), texts.join("")))],
  });
  await one.say(texts.join(" "));
  await one.agent.flush();
  expect(seen).toEqual([{ texts }]);
  const pieces: string[] = [];
  for await (const line of one.harness.sessions.export("session")) pieces.push(line);
  const bytes = new TextEncoder().encode(pieces.join(""));
  await one.harness.sessions.import([new TextDecoder().decode(bytes)], { id: "copy" });
  const copy = await one.harness.sessions.load("copy");
  expect(jsonCopy(copy!.events as never)).toEqual(one.session.events);
  expect(copy!.deriveMessages()).toEqual(one.session.deriveMessages());
});

test("B076 B077 what a tool settles to after its cancel changes nothing", async () => {
  const late = deferred<string>();
  const started = deferred();
  const one = await scene([calls("work"), "fine"], { tools: [tool("work", () => (started.resolve(), late.promise))] });
  const said = one.say("go");
  await started.promise;
  one.agent.cancel();
  await said;
  late.resolve("too late");
  expect(await one.say("again")).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toMatchObject([{ tool: "work", code: "TOOL_ABORTED" }]);
});
