/** C: how server-sent events are cut and framed. The clients own the parsing; what comes of it is ours. */
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { ModelChunk } from "turnloop";
import { aiSdkModel } from "turnloop/ai-sdk";
import { describe, expect, test } from "vitest";
import { chunksOf } from "../support/language-model.ts";
import { sse } from "../support/provider-answers.ts";
import { dataOf } from "../support/scene.ts";
import { eventOf } from "../support/wait.ts";
import { chatDialects, delta, cleanFailure, finish, says, useWire } from "../support/wire.ts";

const open = useWire();
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
/** Without its [DONE]. */
const events = (...all: object[]): string => sse(...all).replace("data: [DONE]\n\n", "");

/** What both clients make of a body that comes in these pieces: the text, or how it failed. */
async function read(pieces: readonly Uint8Array[]): Promise<string> {
  const fetch = async (): Promise<Response> => {
    const stream = new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(piece);
        controller.close();
      },
    });
    return new Response(stream, { headers: { "content-type": "text/event-stream" } });
  };
  const options = { baseURL: "http://127.0.0.1", apiKey: "k", fetch };
  const said = await Promise.all(
    [createOpenAICompatible({ ...options, name: "acme" })("m1"), createOpenAI(options).chat("m1")].map(async (client) =>
      textOf(await chunksOf(aiSdkModel(client))),
    ),
  );
  expect(said[1]).toBe(said[0]);
  return said[0]!;
}

function textOf(chunks: readonly ModelChunk[]): string {
  const texts = chunks.map((chunk) => (chunk.type === "delta" ? chunk.text : ""));
  const [last] = chunks.slice(-1);
  expect(last).toEqual({ type: "finish", reason: { kind: "stop" } });
  return texts.join("");
}

/** The bytes, cut at these places. */
function cutAt(bytes: Uint8Array, ...places: number[]): Uint8Array[] {
  const ends = [...places, bytes.length];
  return ends.map((to, n) => bytes.subarray(n === 0 ? 0 : ends[n - 1], to));
}

/** Every way to cut the bytes once, and many to cut them twice. */
function* cuts(bytes: Uint8Array): Generator<Uint8Array[]> {
  for (let a = 0; a <= bytes.length; a += 1) yield cutAt(bytes, a);
  for (let a = 1; a < bytes.length; a += 7) for (let b = a; b < bytes.length; b += 11) yield cutAt(bytes, a, b);
}

/** Every text that comes of a body, in whatever way it is cut. */
async function textsHoweverCut(body: string): Promise<string[]> {
  const bytes = bytesOf(body);
  const texts = new Set([await read(Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)))]);
  for (const pieces of cuts(bytes)) texts.add(await read(pieces));
  return [...texts];
}

const short = (content: string): string => events(delta({ content }), finish("stop"));

test("B046 line ends of CR and LF, cut anywhere, give the same text", async () => {
  expect(await textsHoweverCut(short("A B").replaceAll("\n", "\r\n"))).toEqual(["A B"]);
}, 20_000);

test("B046 an event of two data lines, cut between its CR and LF, is one event", async () => {
  const body = 'data: {"choices":\r\ndata: [{"index":0,"delta":{"content":"A"},"finish_reason":"stop"}]}\r\n\r\n';
  expect(await textsHoweverCut(body)).toEqual(["A"]);
}, 20_000);

test("B047 characters that are cut anywhere in their bytes stay whole", async () => {
  expect(await textsHoweverCut(short("你好🙂"))).toEqual(["你好🙂"]);
}, 20_000);

test.each(chatDialects)("B047 over a real connection, in pieces of all sizes (%s)", async (dialect) => {
  const content = "你好🙂 ".repeat(100).trim();
  for (const seed of [1, 2, 3]) {
    const wired = await open([{ body: says(content), seed }], { dialect, id: `s${seed}` });
    expect((await wired.ask()).text).toBe(content);
  }
});

test.each(chatDialects)("B049 comments between events are passed over (%s)", async (dialect) => {
  const body = `: OPENROUTER PROCESSING\n\n:x\n\n:\n\n${events(delta({ content: "Hi" }))}: x\n\n${sse(finish("stop"))}`;
  const wired = await open([body], { dialect });
  expect(await wired.ask()).toMatchObject({ reason: { kind: "completed" }, text: "Hi" });
});

test.each(chatDialects)(
  "B049 data that is no JSON is an error with a code, and the next request is sound (%s)",
  async (dialect) => {
    expect(await cleanFailure(await open([`data: : PING\n\n${says("Hi")}`, says("fine")], { dialect }))).toBe(
      "MODEL_BAD_RESPONSE",
    );
  },
);

test.each(chatDialects)("B050 a comment and a blank line behind an event are no event (%s)", async (dialect) => {
  const wired = await open([`id: 1\n${says("Hi").replaceAll("\n\n", "\n\n: ping\n\n")}`], { dialect });
  expect(await wired.ask()).toMatchObject({ reason: { kind: "completed" }, text: "Hi" });
  expect(dataOf(wired.session, "assistant/chunk").filter(({ chunk }) => chunk.type === "delta")).toHaveLength(1);
});

describe("B052 an answer that lacks its last blank line", () => {
  test.each(chatDialects)("is whole when that was the one of [DONE] (%s)", async (dialect) => {
    const wired = await open([says("Hi").trimEnd()], { dialect });
    expect(await wired.ask()).toMatchObject({ reason: { kind: "completed" }, text: "Hi" });
  });

  test.each(chatDialects)(
    "is otherwise not taken for whole: what came is kept, and it is an error (%s)",
    async (dialect) => {
      const wired = await open([events(delta({ content: "Hi" }), finish("stop")).trimEnd(), says("fine")], { dialect });
      expect(await wired.ask()).toMatchObject({ reason: { kind: "error", code: "STREAM_INTERRUPTED" }, text: "Hi" });
      expect((await wired.ask("again")).text).toBe("fine");
    },
  );
});

test("B053 a byte order mark hides nothing, wherever it is cut", async () => {
  expect(await textsHoweverCut(`\uFEFF${short("Hi")}`)).toEqual(["Hi"]);
  const [first, rest] = cutAt(bytesOf(`\uFEFF${short("Hi")}`), 2);
  expect(await read([new Uint8Array(), first!, new Uint8Array(), rest!])).toBe("Hi");
}, 20_000);

test.each<[string, string]>([
  ["on two lines", 'data: {"choices":[{"delta":{"content":"ha\n{"error":{"message":"boom"}}\n\n'],
  ["on one line", 'data: {"choices":[]}{"error":{"message":"boom"}}\n\n'],
])("B055 two objects glued into one event, %s, are an error; half an object is not used", async (_, glued) => {
  for (const dialect of chatDialects) {
    const body = events(delta({ content: "Hi" })) + glued;
    const wired = await open([body, says("fine")], { dialect, id: dialect });
    expect(await wired.ask()).toMatchObject({ reason: { kind: "error", code: "MODEL_BAD_RESPONSE" }, text: "Hi" });
    expect((await wired.ask("again")).text).toBe("fine");
  }
});

describe("B056 an error beside empty choices", () => {
  const failing = (code: unknown): object => ({ choices: [], error: { code, message: "upstream is gone" } });

  test.each<[string, unknown]>([
    ["a number", 502],
    ["a text", "502"],
  ])("whose code is %s fails the request, first or behind text that is kept", async (_, code) => {
    const first = await open([sse(failing(code))]);
    const told = { kind: "error", code: "MODEL_ERROR", message: expect.stringMatching(/502.*upstream is gone/) };
    expect(await first.ask()).toMatchObject({ reason: told, text: "" });
    const later = await open([sse(delta({ content: "Hi" }), failing(code), finish("stop"))], { id: "later" });
    expect(await later.ask()).toMatchObject({ reason: told, text: "Hi" });
  });

  test("is dropped by the other client: what it leaves is no success where nothing else came", async () => {
    expect(await cleanFailure(await open([sse(failing(502)), says("fine")], { dialect: "chat" }))).toBe(
      "MODEL_BAD_RESPONSE",
    );
    const cut = await open([sse(delta({ content: "Hi" }), failing(502))], { dialect: "chat", id: "cut" });
    expect(await cut.ask()).toMatchObject({ reason: { kind: "error", code: "STREAM_INTERRUPTED" }, text: "Hi" });
  });
});

describe("B058 B059 a provider that says nothing more holds up nobody who stops it", () => {
  const quiet = { end: "hang" as const };
  test.each<[string, object]>([
    ["that never answers", { silent: true }],
    ["that sends comments alone", { ...quiet, body: ": ping\n\n".repeat(20) }],
    ["that stops in the middle", { ...quiet, body: events(delta({ content: "Hi" })) }],
  ])("%s", async (_, answer) => {
    for (const dialect of chatDialects) {
      const wired = await open([answer, says("fine")], { dialect, id: dialect });
      const asked = wired.ask();
      await wired.server.asked(wired.url);
      wired.agent.cancel("enough");
      expect((await asked).reason).toEqual({ kind: "aborted", reason: "enough" });
      await wired.server.abandoned(wired.url);
      expect((await wired.ask("again")).text).toBe("fine");
    }
  });

  test("a policy can put a limit on the silence, through the signal of the stream", async () => {
    const wired = await open([{ ...quiet, body: events(delta({ content: "Hi" })) }, says("fine")]);
    const idle = new AbortController();
    wired.hooks.on("model/stream", (_, next) => next({ signal: idle.signal }));
    const asked = wired.ask();
    await eventOf(wired.session, "assistant/chunk", ({ data }) => data.chunk.type === "delta");
    idle.abort(new Error("silent for too long"));
    expect(await asked).toMatchObject({ reason: { kind: "error" }, text: "Hi" });
    await wired.server.abandoned(wired.url);
  });
});
