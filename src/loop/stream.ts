/** Streams one request into the log: the only hot path, and the only place where a model is called. */
import { errorData, TurnloopError, type ErrorData } from "../errors.ts";
import { chunkOf } from "../model/chunks.ts";
import type { ModelChunk, ModelRequest } from "../model/types.ts";
import { write, type Turn } from "./instance.ts";

/** A request that failed, as opposed to a hook: only this may be tried again. */
export class RequestFailure extends Error {
  readonly data: ErrorData;

  constructor(cause: unknown, data: ErrorData = errorData(cause)) {
    super(data.message, {
      cause: cause instanceof Error ? cause : new TurnloopError(data.code ?? "UNKNOWN", data.message, { cause }),
    });
    this.data = data;
  }
}

type ModelStream = AsyncIterable<ModelChunk | readonly ModelChunk[]>;

/** Resolves when the model has said all. Throws RequestFailure when it fails, or what a hook threw. */
export async function streamAnswer(turn: Turn, request: ModelRequest): Promise<void> {
  const { instance, activity } = turn;
  const { agent, hooks, models } = instance;
  const { signal } = activity;
  const model = models.get(request.config.model)!;
  let failed: { readonly thrown: unknown } | undefined;
  const call = (patch?: { readonly signal: AbortSignal }): ModelStream => {
    activity.check();
    try {
      return model.stream(request, { signal: patch?.signal ?? signal, sessionId: agent.id });
    } catch (thrown) {
      failed = { thrown };
      throw thrown;
    }
  };
  let stream: ModelStream;
  try {
    stream = hooks.heard("model/stream")
      ? await activity.wait(hooks.waterfall("model/stream", { agent, request, signal }, call))
      : call();
  } catch (thrown) {
    if (failed && failed.thrown === thrown) throw new RequestFailure(thrown);
    throw thrown;
  }
  activity.check();
  const iterator = iteratorOf(stream);
  await activity.wait(pump(turn, iterator), () => leave(iterator));
}

/** Each chunk enters the log in the order in which it came; a chunk that comes after a stop is dropped. */
async function pump(turn: Turn, iterator: AsyncIterator<ModelChunk | readonly ModelChunk[]>): Promise<void> {
  const { activity, instance, number } = turn;
  const { log, recorder } = instance;
  const { number: step } = log.state.open!.step!;
  const take = (raw: ModelChunk): void => {
    write(turn, "assistant/chunk", { turn: number, step, chunk: failing(() => chunkOf(raw)) });
  };
  try {
    for (;;) {
      const { done, value } = await iterator.next();
      if (activity.stopped || done) return;
      if (isRow(value)) for (const raw of value) take(raw);
      else take(value);
      const pressure = recorder.pressure();
      if (pressure) await pressure;
    }
  } catch (thrown) {
    leave(iterator);
    throw thrown instanceof RequestFailure || activity.stopped || log.closed ? thrown : new RequestFailure(thrown);
  }
}

function isRow(value: ModelChunk | readonly ModelChunk[]): value is readonly ModelChunk[] {
  return Array.isArray(value);
}

/** What a model streams or throws is its failure. */
export function failing<T>(make: () => T): T {
  try {
    return make();
  } catch (cause) {
    throw new RequestFailure(cause);
  }
}

function iteratorOf(stream: ModelStream): AsyncIterator<ModelChunk | readonly ModelChunk[]> {
  if (typeof stream?.[Symbol.asyncIterator] === "function") return stream[Symbol.asyncIterator]();
  throw new RequestFailure(new TurnloopError("MALFORMED_CHUNK", "the model must stream an async iterable of chunks"));
}

/** Lets the model go, without waiting for it. */
function leave(iterator: AsyncIterator<unknown>): void {
  try {
    iterator.return?.().then(undefined, () => {});
  } catch {
    // It is left either way.
  }
}
