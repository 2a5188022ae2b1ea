/** A connection over a WebSocket, whoever made it: a browser, Node, Bun, Deno, a Worker, or the `ws` package. */
import { createEnds } from "./ends.ts";
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
  const ends = createEnds();
  // There are no binary frames: one is said to be no JSON, and ends the connection.
  socket.addEventListener("message", ({ data }) => ends.receive(typeof data === "string" ? data : ""));
  socket.addEventListener("close", (event) =>
    ends.finish((event as { reason?: unknown }).reason || "the socket was closed"),
  );
  socket.addEventListener("error", () => ends.finish("the socket has failed"));

  return {
    get buffered() {
      return socket.bufferedAmount ?? 0;
    },
    send(frame) {
      if (!ends.closed && socket.readyState === OPEN) socket.send(frame);
    },
    onMessage: ends.onMessage,
    onClose: ends.onClose,
    close(reason = "closed") {
      if (ends.closed) return;
      socket.close(1000, reason.slice(0, REASON));
      ends.finish(reason);
    },
  };
}
