/** Connections over plain HTTP: a stream of server-sent events, and requests the other way. */
import { messageOf, systemClock, TurnloopError } from "../../src/core.ts";
import { SILENCE_MS } from "./heartbeat.ts";
import { PING, PONG } from "./protocol.ts";
import { BATCH } from "./sse-body.ts";
import { createDecoder, encodeFrame, STREAM_HEADER } from "./sse-codec.ts";
import { createEnds } from "./ends.ts";
import type { Connection } from "./types.ts";

export interface SseOptions {
  /** Asked for each request, so that a token may change. */
  headers?(): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;
}

type Address = string | URL | (() => string | URL | Promise<string | URL>);

/** A host that says nothing at all for so long is tried again. */
const OPENING_MS = 30_000;
/** So often a sign of life is answered: the host learns that somebody reads. */
const ANSWERED = 8;

/**
 * For `connect` of `connectAgent`, where a host is behind `agentRoute` or `hostAgents`: each call opens one stream, and
 * `connectAgent` opens another when it is gone and goes on where it was. A function is asked for the URL each time. An
 * answer of 401 or 403 rejects UNAUTHORIZED, which is final; anything else that is no stream CONNECTION_FAILED.
 */
export function sse(url: Address, options: SseOptions = {}): () => Promise<Connection> {
  return async () => {
    const address = typeof url === "function" ? await url() : url;
    return connect(address, async () => ({ ...(await options.headers?.()) }));
  };
}

async function connect(address: string | URL, headers: () => Promise<Record<string, string>>): Promise<Connection> {
  const ends = createEnds();
  const stopped = new AbortController();
  const opened = Promise.withResolvers<string>();
  let queue: string[] = [];
  let posting: Promise<void> | undefined;
  let alive = false;
  let signs = 0;

  function finish(reason: unknown): void {
    stopped.abort();
    opened.reject(failed(reason));
    ends.finish(reason);
  }

  async function read(): Promise<void> {
    const response = await fetch(address, {
      headers: { ...(await headers()), accept: "text/event-stream" },
      cache: "no-store",
      signal: stopped.signal,
    });
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    if (!response.ok || !isStream || !response.body) {
      response.body?.cancel().catch(() => {});
      throw response.status === 401 || response.status === 403
        ? new TurnloopError("UNAUTHORIZED", "the host does not let this client in; sign in")
        : failed(`it answered ${response.status} and no stream`);
    }
    const decode = createDecoder({
      open: opened.resolve,
      frame: ends.receive,
      alive() {
        alive = true;
        signs += 1;
        if (signs % ANSWERED === 0 && !ends.closed) post(PING);
      },
    });
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      decode(decoder.decode(value, { stream: true }));
    }
  }

  function post(frame: string): void {
    queue.push(frame);
    posting ??= work().catch(finish);
  }

  /** One request at a time, with all that was said meanwhile. */
  async function work(): Promise<void> {
    while (queue.length > 0) {
      let body = "";
      let count = 0;
      while (count < queue.length && (count === 0 || body.length + queue[count]!.length < BATCH))
        body += encodeFrame(queue[count++]!);
      queue = queue.slice(count);
      const response = await fetch(address, {
        method: "POST",
        headers: { ...(await headers()), "content-type": "text/event-stream", [STREAM_HEADER]: stream },
        body,
      });
      const text = await response.text();
      if (response.ok) continue;
      // The host says why, in the words of its last frame.
      ends.receive(text);
      throw failed(`it answered ${response.status}`);
    }
    posting = undefined;
  }

  read().then(
    () => finish("the host has ended the stream"),
    (thrown: unknown) => finish(thrown),
  );
  const waited = new AbortController();
  systemClock.sleep(OPENING_MS, waited.signal).then(
    () => finish("it says nothing"),
    () => {},
  );
  const stream = await opened.promise.finally(() => waited.abort());

  return {
    send(frame) {
      if (ends.closed) return;
      // The stream's own signs of life answer for it, and an answer of ours would be a request each.
      if (frame === PING) {
        if (alive) queueMicrotask(() => ends.receive(PONG));
        alive = false;
      } else if (frame !== PONG) post(frame);
    },
    onMessage: ends.onMessage,
    onClose: ends.onClose,
    close(reason = "closed") {
      if (ends.closed) return;
      ends.finish(reason);
      // What was said before is still sent, unless the host does not take it.
      const left = posting ?? Promise.resolve();
      void Promise.race([left, systemClock.sleep(SILENCE_MS, stopped.signal)]).then(
        () => stopped.abort(),
        () => {},
      );
    },
  };
}

function failed(reason: unknown): TurnloopError {
  if (TurnloopError.is(reason)) return reason;
  return new TurnloopError("CONNECTION_FAILED", `no connection to the host: ${messageOf(reason)}`, { cause: reason });
}
