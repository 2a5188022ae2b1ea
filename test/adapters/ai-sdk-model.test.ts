import { aiSdkModel } from "turnloop/ai-sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { expect, test, vi } from "vitest";
import { chunksOf, languageModel, request, stop, streamOf } from "../support/language-model.ts";

test.each([
  ["a model id", "gpt-5.5", /names no provider.*openai\("gpt-5.5"\)/],
  ["nothing", undefined, /no doStream/],
  ["a provider instead of its model", createOpenAI({ apiKey: "k" }), /no doStream|interface/],
  [
    "an interface that is not known",
    languageModel([], { specificationVersion: "v9" }),
    /interface is v9.*V2, V3 and V4/,
  ],
  ["a model without a name", { ...languageModel(), modelId: undefined }, /modelId/],
])("%s is refused with INVALID_MODEL, saying what to pass", (_, model, message) => {
  expect(() => aiSdkModel(model)).toThrow(
    expect.objectContaining({ code: "INVALID_MODEL", message: expect.stringMatching(message) }),
  );
});

test("the id is the provider's family and the model's name, unless one is given", () => {
  const openai = createOpenAI({ apiKey: "k" });
  expect(aiSdkModel(openai.responses("gpt-5.5")).id).toBe("openai/gpt-5.5");
  expect(aiSdkModel(openai.chat("gpt-5.5")).id).toBe("openai/gpt-5.5");
  expect(aiSdkModel(languageModel(), { id: "mine", contextWindow: 9 })).toMatchObject({ id: "mine", contextWindow: 9 });
  expect(aiSdkModel(languageModel(), { structuredOutput: false })).toMatchObject({ structuredOutput: false });
  for (const field of ["contextWindow", "structuredOutput"])
    expect(field in aiSdkModel(languageModel()), field).toBe(false);
});

test("settings of the call reach the model, and nothing is sent that was not set", async () => {
  const fake = languageModel([stop]);
  await chunksOf(aiSdkModel(fake), request([], { config: { model: "default" } }));
  expect(Object.keys(fake.calls[0]!).toSorted()).toEqual(["abortSignal", "prompt"]);

  const parameters = { type: "object", properties: { a: { type: "string" } } };
  await chunksOf(
    aiSdkModel(fake, { headers: { "x-team": "blue" } }),
    request([], {
      tools: [{ name: "look", description: "Looks", parameters }],
      config: {
        model: "default",
        maxOutputTokens: 5,
        temperature: 0,
        topP: 1,
        topK: 2,
        presencePenalty: 0.1,
        frequencyPenalty: 0.2,
        stop: ["END"],
        seed: 7,
        reasoning: "high",
        toolChoice: { tool: "look" },
        responseFormat: { type: "json", schema: parameters, name: "answer" },
        providerOptions: { acme: { tier: "flex" } },
      },
    }),
  );
  expect(fake.calls[1]).toMatchObject({
    tools: [{ type: "function", name: "look", description: "Looks", inputSchema: parameters }],
    maxOutputTokens: 5,
    temperature: 0,
    topP: 1,
    topK: 2,
    presencePenalty: 0.1,
    frequencyPenalty: 0.2,
    stopSequences: ["END"],
    seed: 7,
    reasoning: "high",
    toolChoice: { type: "tool", toolName: "look" },
    responseFormat: { type: "json", schema: parameters, name: "answer" },
    providerOptions: { acme: { tier: "flex" } },
    headers: { "x-team": "blue" },
  });
});

test("a choice of tools is not sent without tools", async () => {
  const fake = languageModel([stop]);
  await chunksOf(aiSdkModel(fake), request([], { tools: [], config: { model: "m", toolChoice: "required" } }));
  expect(fake.calls[0]).not.toHaveProperty("toolChoice");
  expect(fake.calls[0]).not.toHaveProperty("tools");
});

test("older interfaces get no reasoning option, and a warning says so once", async () => {
  const told: string[] = [];
  const fake = languageModel([stop], { specificationVersion: "v3" });
  const model = aiSdkModel(fake, { onWarning: (message) => told.push(message) });
  await chunksOf(model, request([], { config: { model: "m", reasoning: "low" } }));
  await chunksOf(model, request([], { config: { model: "m", reasoning: "low" } }));
  expect(fake.calls[0]).not.toHaveProperty("reasoning");
  expect(told).toEqual([expect.stringMatching(/reasoning.*v3.*providerOptions/)]);
});

test("each distinct warning of a provider is told once", async () => {
  const told: string[] = [];
  const warnings = [
    { type: "unsupported", feature: "topK", details: "ignored" },
    { type: "other", message: "slow today" },
    { type: "unsupported-setting", setting: "seed" },
  ];
  const model = aiSdkModel(languageModel([{ type: "stream-start", warnings }, stop]), {
    onWarning: (w) => told.push(w),
  });
  await chunksOf(model);
  await chunksOf(model);
  expect(told).toEqual(["unsupported: topK: ignored", "slow today", "unsupported-setting: seed"]);
});

test("without onWarning the console is told", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  await chunksOf(
    aiSdkModel(languageModel([{ type: "stream-start", warnings: [{ type: "other", message: "hm" }] }, stop])),
  );
  expect(warn.mock.calls).toEqual([["turnloop: acme/m1: hm"]]);
  warn.mockRestore();
});

test("tools that the provider runs are added to each request", async () => {
  const fake = languageModel([stop]);
  const search = createOpenAI({ apiKey: "k" }).tools.webSearch({ searchContextSize: "low" });
  await chunksOf(aiSdkModel(fake, { providerTools: { search } }));
  expect(fake.calls[0]!.tools).toEqual([
    { type: "provider", id: "openai.web_search", name: "search", args: { searchContextSize: "low" } },
  ]);
  const old = languageModel([stop], { specificationVersion: "v2" });
  await chunksOf(aiSdkModel(old, { providerTools: { search } }));
  expect(old.calls[0]!.tools).toMatchObject([{ type: "provider-defined", id: "openai.web_search" }]);
  expect(() => aiSdkModel(fake, { providerTools: { mine: { execute: () => 1 } } })).toThrow(
    /"mine" is not a tool that a provider runs/,
  );
});

test("an abort before the request asks nobody", async () => {
  const fake = languageModel([stop]);
  expect(await chunksOf(aiSdkModel(fake), request(), AbortSignal.abort())).toEqual([
    { type: "finish", reason: { kind: "aborted" } },
  ]);
  expect(fake.calls).toEqual([]);
});

test("an abort ends an answer that never comes, and lets go of one that comes too late", async () => {
  const control = new AbortController();
  const late = Promise.withResolvers<{ stream: ReadableStream }>();
  const cancelled = Promise.withResolvers<unknown>();
  const answer = chunksOf(aiSdkModel(languageModel([], { doStream: () => late.promise })), request(), control.signal);
  control.abort();
  expect(await answer).toEqual([{ type: "finish", reason: { kind: "aborted" } }]);
  late.resolve({ stream: new ReadableStream({ cancel: cancelled.resolve }) });
  await cancelled.promise;
});

test("an abort ends a stream that has gone silent, keeps what came, and cancels the reader", async () => {
  const control = new AbortController();
  const cancelled = Promise.withResolvers<unknown>();
  const stream = new ReadableStream({
    start: (out) => out.enqueue({ type: "text-delta", id: "1", delta: "so far" }),
    pull: () => new Promise(() => {}),
    cancel: cancelled.resolve,
  });
  const model = aiSdkModel(languageModel([], { doStream: async () => ({ stream }) }));
  const seen = [];
  for await (const some of model.stream(request(), { signal: control.signal, sessionId: "s" })) {
    seen.push(...[some].flat());
    if (seen.length === 2) control.abort("enough");
  }
  expect(seen.slice(1)).toEqual([
    { type: "delta", index: 0, text: "so far" },
    { type: "finish", reason: { kind: "aborted" } },
  ]);
  expect(await cancelled.promise).toBe("enough");
});

test("whoever stops listening early lets go of the stream", async () => {
  const cancelled = Promise.withResolvers<unknown>();
  const stream = new ReadableStream({
    pull: (out) => out.enqueue({ type: "text-delta", id: "1", delta: "on and on" }),
    cancel: cancelled.resolve,
  });
  const model = aiSdkModel(languageModel([], { doStream: async () => ({ stream }) }));
  for await (const _ of model.stream(request(), { signal: new AbortController().signal, sessionId: "s" })) break;
  await expect(cancelled.promise).resolves.toBeUndefined();
});

test("no listener stays on a signal that outlives its requests", async () => {
  const control = new AbortController();
  let listening = 0;
  const { signal } = control;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listening += 1;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listening -= 1;
    remove(...args);
  };
  const failing = { doStream: () => Promise.reject(new Error("no")) };
  await chunksOf(aiSdkModel(languageModel([stop])), request(), signal);
  await chunksOf(aiSdkModel(languageModel([])), request(), signal);
  await chunksOf(aiSdkModel(languageModel([], failing)), request(), signal).catch(() => {});
  expect(listening).toBe(0);
});

test("a model that throws at once fails like one that rejects", async () => {
  const throwing = {
    doStream: () => {
      throw new Error("not today");
    },
  };
  await expect(chunksOf(aiSdkModel(languageModel([], throwing)))).rejects.toMatchObject({
    code: "MODEL_ERROR",
    message: expect.stringContaining("not today"),
  });
});

test("a stream that ends without its finish just ends", async () => {
  const stream = streamOf([{ type: "text-delta", id: "1", delta: "half" }]);
  const chunks = await chunksOf(aiSdkModel(languageModel([], { doStream: async () => ({ stream }) })));
  expect(chunks.map(({ type }) => type)).toEqual(["block-start", "delta"]);
});
