/** Gives up on a model that has fallen silent. */
import { TurnloopError, type Clock, type ModelChunk, type Plugin } from "../core.ts";
import { breakable } from "./breakable.ts";
import { checkLimits } from "./limits.ts";

export interface StallLimits {
  /** Up to the first chunk, in milliseconds. Models that think in silence take minutes. Default 300,000. */
  firstChunkMs?: number;
  /** From one chunk to the next, in milliseconds. Default 120,000. */
  betweenChunksMs?: number;
}

/**
 * A model that sends nothing for so long is let go, and its request fails as MODEL_STALLED, whether it hears its
 * signal or not; `retry` makes it again. Only what says something counts: not the bytes of a connection that is kept
 * alive, not rows without chunks, not deltas without text. The time in which the loop itself is busy does not count
 * either. Throws INVALID_OPTIONS.
 */
export function stallLimits({ firstChunkMs = 300_000, betweenChunksMs = 120_000 }: StallLimits = {}): Plugin {
  checkLimits("stallLimits", { firstChunkMs, betweenChunksMs }, "amount");
  return ({ harness, hooks }) =>
    hooks.on("model/stream", async ({ request, signal }, next) => {
      const stalled = new AbortController();
      const stream = await next({ signal: AbortSignal.any([signal, stalled.signal]) });
      // What cannot be read is for the loop to refuse.
      if (typeof stream?.[Symbol.asyncIterator] !== "function") return stream;
      const { model } = request.config;
      const tell = (ms: number): Error => {
        const message = `${harness.models.get(model)?.id ?? model} has sent nothing for ${ms} ms; send again`;
        const error = new TurnloopError("MODEL_STALLED", message);
        stalled.abort(error);
        return error;
      };
      return { [Symbol.asyncIterator]: () => watched(stream, harness.clock, { firstChunkMs, betweenChunksMs }, tell) };
    });
}

type Chunks = ModelChunk | readonly ModelChunk[];

/** One sleeper watches the whole stream: a chunk only leaves the time at which it was asked for. */
function watched(
  stream: AsyncIterable<Chunks>,
  clock: Clock,
  { firstChunkMs, betweenChunksMs }: Required<StallLimits>,
  tell: (ms: number) => Error,
): AsyncIterator<Chunks> {
  let limit = firstChunkMs;
  let timer = new AbortController();
  let since = 0;
  let isWaiting = false;
  let isSilent = false;

  const watch = async ({ signal }: AbortController): Promise<void> => {
    for (let left = limit; left > 0; left = isWaiting ? since + limit - clock.now() : limit) {
      await clock.sleep(left, signal);
      if (signal.aborted) return;
    }
    chunks.break({ failure: tell(limit) });
  };
  const start = (): void => {
    timer.abort();
    timer = new AbortController();
    watch(timer).catch(() => {});
  };
  const chunks = breakable(stream, {
    waits() {
      if (!isSilent) since = clock.now();
      isWaiting = true;
    },
    came(value) {
      isWaiting = false;
      isSilent = !says(value);
      if (isSilent || limit === betweenChunksMs) return;
      limit = betweenChunksMs;
      start();
    },
    ended: () => timer.abort(),
  });
  start();
  return chunks;
}

function says(value: Chunks): boolean {
  if (Array.isArray(value)) return value.some(says);
  const chunk = value as ModelChunk | undefined;
  return chunk?.type !== "delta" || chunk.text !== "" || chunk.id !== undefined || chunk.name !== undefined;
}
