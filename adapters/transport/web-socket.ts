/** Connections over the WebSocket of the platform. */
import { TurnloopError } from "../../src/core.ts";
import { socketConnection, type SocketLike } from "./socket.ts";
import type { Connection } from "./types.ts";

/**
 * For `connect` of `connectAgent`: each call makes one socket, and `connectAgent` makes another when it is gone. A
 * function is asked for the URL each time, so that it can hold a token that expires; an answer of undefined, or a
 * throw, is tried again later, and one of TurnloopError UNAUTHORIZED ends the handle for good. The connection rejects
 * CONNECTION_FAILED when the socket does not open. Throws INVALID_OPTIONS where the platform has no WebSocket.
 */
export function webSocket(url: string | URL | (() => string | URL | Promise<string | URL>)): () => Promise<Connection> {
  const { WebSocket } = globalThis as { WebSocket?: new (address: string | URL) => SocketLike };
  if (!WebSocket) throw new TurnloopError("INVALID_OPTIONS", "there is no WebSocket here; use another connection");
  return async () => {
    const socket = new WebSocket(typeof url === "function" ? await url() : url);
    const connection = socketConnection(socket);
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open" as "message", () => resolve());
      connection.onClose((reason) =>
        reject(new TurnloopError("CONNECTION_FAILED", `no connection to the host: ${String(reason)}`)),
      );
    });
    return connection;
  };
}
