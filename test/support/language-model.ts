/** A language model of the AI SDK that plays given parts, and remembers what it was asked. */
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import type { Message, Model, ModelChunk, ModelRequest } from "turnloop";

export type Part = { readonly type: string; readonly [key: string]: unknown };

export interface FakeOptions {
  readonly specificationVersion?: string;
  readonly provider?: string;
  readonly modelId?: string;
  /** Instead of the parts: answers by itself. */
  doStream?(options: LanguageModelV4CallOptions): unknown;
}

/** `parts` is a whole answer; without a `finish` the stream just ends. */
export function languageModel(parts: readonly Part[] = [], options: FakeOptions = {}) {
  const calls: LanguageModelV4CallOptions[] = [];
  return {
    specificationVersion: "v4",
    provider: "acme.chat",
    modelId: "m1",
    supportedUrls: {},
    calls,
    async doStream(call: LanguageModelV4CallOptions): Promise<unknown> {
      calls.push(call);
      return { stream: streamOf(parts) };
    },
    ...options,
  };
}

export function streamOf(parts: readonly Part[]): ReadableStream<Part> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

export const stop: Part = { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: {} };

export function request(messages: readonly Message[] = [], more: Partial<ModelRequest> = {}): ModelRequest {
  return { config: { model: "default" }, messages, ...more };
}

/** All chunks of one answer, one by one. Rejects as the stream does. */
export async function chunksOf(
  model: Model,
  ask: ModelRequest = request([{ role: "user", content: [{ type: "text", text: "hi" }] }]),
  signal: AbortSignal = new AbortController().signal,
): Promise<ModelChunk[]> {
  const chunks: ModelChunk[] = [];
  for await (const some of model.stream(ask, { signal, sessionId: "s1" })) chunks.push(...[some].flat());
  return chunks;
}
