/** Pairs of connected WebSockets: the platform's at one end, that of the `ws` package at the other. */
import type { AddressInfo } from "node:net";
import { webSocket, type Connection } from "turnloop/transport";
import { WebSocketServer } from "ws";
import { socketConnection } from "../../adapters/transport/socket.ts";

export interface SocketPairs {
  pair(): Promise<{ readonly client: Connection; readonly host: Connection }>;
  close(): Promise<void>;
}

export async function socketPairs(): Promise<SocketPairs> {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  await new Promise<void>((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const dial = webSocket(`ws://127.0.0.1:${port}`);
  return {
    async pair() {
      const arriving = new Promise<Connection>((resolve) => {
        server.once("connection", (socket) => resolve(socketConnection(socket)));
      });
      const client = await dial();
      return { client, host: await arriving };
    },
    async close() {
      for (const socket of server.clients) socket.terminate();
      server.close();
    },
  };
}
