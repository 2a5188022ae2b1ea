/** The host's end of a connection over server-sent events: a stream goes out, and requests bring what comes in. */
import type { Clock } from "../../src/core.ts";
import { SILENCE_MS } from "./heartbeat.ts";
import { ALIVE, encodeFrame, encodeOpen } from "./sse-codec.ts";
import { createEnds } from "./ends.ts";
import type { Connection } from "./types.ts";

export interface EventStream {
  readonly connection: Connection;
  /** The body of the response that stays open. */
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** A request has brought it. */
  receive(frame: string): void;
  /** The other side has gone. */
  gone(): void;
}

/** The stream says so often that it is alive; a client answers every few times, and is given up after so many. */
const PATIENCE = 24;

/** `id` is told to the client alone: whoever knows it may speak for it. */
export function createEventStream(id: string, clock: Clock): EventStream {
  const ends = createEnds();
  const encoder = new TextEncoder();
  const stopped = new AbortController();
  let controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>;
  let silent = 0;

  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start(given) {
        controller = given;
      },
      cancel: () => finish("the client has gone"),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
  );

  /** What the stream holds that nobody has read. */
  const buffered = (): number => Math.max(0, -(controller.desiredSize ?? 0));
  const write = (text: string): void => controller.enqueue(encoder.encode(text));

  function finish(reason: unknown): void {
    stopped.abort();
    ends.finish(reason);
  }

  function close(reason: string): void {
    if (ends.closed) return;
    controller.close();
    finish(reason);
    // Whoever does not read to the end is cut off.
    if (buffered() > 0) void clock.sleep(PATIENCE * SILENCE_MS, new AbortController().signal).then(cutOff);
  }

  function cutOff(): void {
    controller.error(new Error("the client does not read"));
  }

  async function watch(): Promise<void> {
    for (;;) {
      await clock.sleep(SILENCE_MS, stopped.signal);
      silent += 1;
      if (silent > PATIENCE) return close("nothing was heard of the client");
      if (buffered() === 0) write(ALIVE);
    }
  }

  write(encodeOpen(id));
  watch().catch(() => {});
  return {
    body,
    connection: {
      // By the stream's own signs of life.
      watched: true,
      get buffered() {
        return ends.closed ? 0 : buffered();
      },
      send(frame) {
        if (!ends.closed) write(encodeFrame(frame));
      },
      onMessage: ends.onMessage,
      onClose: ends.onClose,
      close: (reason = "closed") => close(reason),
    },
    receive(frame) {
      silent = 0;
      ends.receive(frame);
    },
    gone: () => finish("the client has gone"),
  };
}
