/** A connection over a WebSocket, whoever made it: a browser, Node, Bun, Deno, a Worker, or the `ws` package. */
import type { Unregister } from "../../src/core.ts";
import type { Connection } from "./types.ts";

/** What of a WebSocket is used. */
export interface SocketLike {
  readonly readyState: number;
  readonly bufferedAmount?: number;
  send(text: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
  addEventListener(type: "close" | "error", listener: (event: object) => void): void;
}

const OPEN = 1;
/** A reason may be 123 bytes long; ours are ASCII but for what a peer has named. */
const REASON = 60;

/** Of a socket that is open. What comes before somebody listens is kept. */
export function socketConnection(socket: SocketLike): Connection {
  const messages = new Set<(frame: string) => void>();
  const closes = new Set<(reason?: unknown) => void>();
  let early: string[] = [];
  let closed: { readonly reason: unknown } | undefined;

  function finish(reason: unknown): void {
    if (closed) return;
    closed = { reason };
    for (const listener of [...closes]) listener(reason);
  }

  socket.addEventListener("message", ({ data }) => {
    if (closed) return;
    // There are no binary frames: one is said to be no JSON, and ends the connection.
    const frame = typeof data === "string" ? data : "";
    if (messages.size === 0) early.push(frame);
    else for (const listener of [...messages]) listener(frame);
  });
  socket.addEventListener("close", (event) =>
    finish((event as { reason?: unknown }).reason || "the socket was closed"),
  );
  socket.addEventListener("error", () => finish("the socket has failed"));

  return {
    get buffered() {
      return socket.bufferedAmount ?? 0;
    },
    send(frame) {
      if (!closed && socket.readyState === OPEN) socket.send(frame);
    },
    onMessage(listener): Unregister {
      messages.add(listener);
      const waiting = early;
      early = [];
      for (const frame of waiting) listener(frame);
      return () => void messages.delete(listener);
    },
    onClose(listener): Unregister {
      if (closed) listener(closed.reason);
      else closes.add(listener);
      return () => void closes.delete(listener);
    },
    close(reason = "closed") {
      if (closed) return;
      socket.close(1000, reason.slice(0, REASON));
      finish(reason);
    },
  };
}
