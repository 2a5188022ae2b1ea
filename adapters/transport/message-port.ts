/** A connection over a MessagePort: to a Worker, a SharedWorker, an iframe, a thread of Node. */
import { TurnloopError } from "../../src/core.ts";
import { createEnds } from "./ends.ts";
import type { Connection } from "./types.ts";

/** What ports, workers and the inside of a worker have in common, in browsers and in Node. */
interface Port {
  postMessage(message: unknown): void;
  addEventListener?(type: string, listener: (event: { readonly data: unknown }) => void): void;
  removeEventListener?(type: string, listener: (event: { readonly data: unknown }) => void): void;
  /** Node's workers know only these. */
  on?(type: string, listener: (value: unknown) => void): void;
  off?(type: string, listener: (value: unknown) => void): void;
  start?(): void;
  close?(): void;
}

/** What travels: a frame, or the word that no more will come. Anything else on the port is not ours. */
interface Envelope {
  readonly turnloop: string | null;
}

/**
 * A connection over a port, a worker, or `self` inside a dedicated one. Of a port both sides make one; closing it
 * closes the port, while a worker stays. A page that dies says nothing, where the platform does not: heartbeats
 * notice. Throws INVALID_OPTIONS for what has no `postMessage`.
 */
export function messagePort(port: unknown): Connection {
  const end = port as Port | null | undefined;
  if (typeof end !== "object" || end === null || typeof end.postMessage !== "function")
    throw new TurnloopError("INVALID_OPTIONS", "messagePort takes a MessagePort or a worker");
  const ends = createEnds(() => {
    off();
    // Only a port has one: a worker is not ours to end.
    if (isPort(end)) end.close?.();
  });

  function receive(data: unknown): void {
    if (typeof data !== "object" || data === null || !Object.hasOwn(data, "turnloop")) return;
    const { turnloop: frame } = data as Envelope;
    if (frame === null) ends.finish("the other side has closed");
    else if (typeof frame === "string") ends.receive(frame);
  }

  function post(frame: string | null): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- ports and workers have no origin
    end!.postMessage({ turnloop: frame } satisfies Envelope);
  }

  const off = listen(end, receive, () => ends.finish("the port was closed"));
  return {
    send(frame) {
      if (!ends.closed) post(frame);
    },
    onMessage: ends.onMessage,
    onClose: ends.onClose,
    close(reason) {
      if (ends.closed) return;
      post(null);
      ends.finish(reason);
    },
  };
}

function isPort(port: Port): boolean {
  return typeof port.start === "function";
}

function listen(port: Port, message: (data: unknown) => void, close: () => void): () => void {
  if (typeof port.addEventListener === "function") {
    const take = (event: { readonly data: unknown }): void => message(event.data);
    port.addEventListener("message", take);
    // Where the platform tells that the other end is gone.
    port.addEventListener("close", close);
    port.start?.();
    return () => {
      port.removeEventListener?.("message", take);
      port.removeEventListener?.("close", close);
    };
  }
  port.on?.("message", message);
  port.on?.("exit", close);
  return () => {
    port.off?.("message", message);
    port.off?.("exit", close);
  };
}
