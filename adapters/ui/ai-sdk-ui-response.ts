/** A run, or what a transport streams, as the HTTP response that `useChat` reads. */
import type { UIMessageChunk } from "ai";
import type { Run } from "../../src/core.ts";
import { chunkStream } from "./ai-sdk-ui-stream.ts";
import { createTurnFold } from "./ai-sdk-ui-turn.ts";

const HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache",
  "x-vercel-ai-ui-message-stream": "v1",
  "x-accel-buffering": "no",
};

/**
 * Server-sent events for `DefaultChatTransport`. A client that goes away stops following and nothing else. A route
 * that also takes answers and resumes gives what `agentChatTransport(...).sendMessages` streams instead of a run.
 */
export function toUIMessageStreamResponse(source: Run<unknown> | ReadableStream<UIMessageChunk>): Response {
  const chunks = source instanceof ReadableStream ? source : chunksOfRun(source);
  return new Response(chunks.pipeThrough(sentEvents()).pipeThrough(new TextEncoderStream()), { headers: HEADERS });
}

function chunksOfRun(run: Run<unknown>): ReadableStream<UIMessageChunk> {
  const fold = createTurnFold();
  return chunkStream(fold, (sink) => {
    const events = run[Symbol.asyncIterator]();
    let ended = false;
    const follow = async (): Promise<void> => {
      try {
        for (let next = await events.next(); !next.done; next = await events.next()) {
          ended = next.value.type === "turn/end";
          sink.event(next.value);
        }
        sink.end();
      } catch (error) {
        // The end of the turn has said it already.
        if (ended) sink.end();
        else sink.fail(error);
      }
    };
    void follow();
    return () => void events.return?.();
  });
}

function sentEvents(): TransformStream<UIMessageChunk, string> {
  return new TransformStream({
    transform: (chunk, controller) => controller.enqueue(`data: ${JSON.stringify(chunk)}\n\n`),
    flush: (controller) => controller.enqueue("data: [DONE]\n\n"),
  });
}
