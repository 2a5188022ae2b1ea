/** The chunks of a turn as a stream, which ends where the turn does, or where it waits for the page. */
import type { UIMessageChunk } from "ai";
import { messageOf, type SessionEvent, type Unregister } from "../../src/core.ts";
import type { TurnFold } from "./ai-sdk-ui-turn.ts";

export interface Sink {
  event(event: SessionEvent): void;
  /** The turn has ended: no more events. */
  end(): void;
  /** The log will not tell how it ended. */
  fail(error: unknown): void;
}

/** Cancelling the stream stops following and nothing else. `over` is called once it no longer follows. */
export function chunkStream(
  fold: TurnFold,
  follow: (sink: Sink) => Unregister,
  over: () => void = () => {},
): ReadableStream<UIMessageChunk> {
  let off: Unregister | undefined;
  let closed = false;
  let look: ReturnType<typeof setTimeout> | undefined;

  function stop(): void {
    closed = true;
    clearTimeout(look);
    off?.();
    over();
  }

  return new ReadableStream<UIMessageChunk>({
    start(controller) {
      const close = (chunks: readonly UIMessageChunk[]): void => {
        if (closed) return;
        for (const chunk of chunks) controller.enqueue(chunk);
        controller.close();
        stop();
      };
      const sink: Sink = {
        event(event) {
          if (closed) return;
          for (const chunk of fold.apply(event)) controller.enqueue(chunk);
          // Whoever takes an interaction up by itself, like a client tool, does so at once.
          if (fold.isWaiting()) look ??= setTimeout(lookAgain);
        },
        end: () => close(fold.finish()),
        fail: (error) => close([{ type: "error", errorText: messageOf(error) }]),
      };
      const lookAgain = (): void => {
        look = undefined;
        if (fold.isWaiting()) close(fold.finish());
      };
      off = follow(sink);
      if (closed) off();
    },
    cancel: stop,
  });
}
