/** A real MCP server on the loopback, which can be killed and started again. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline, Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";

export interface Loopback {
  readonly url: string;
  /** The headers of the requests, oldest first. */
  readonly seen: readonly IncomingMessage["headers"][];
  /** Ends every connection in the middle of what it says. */
  kill(): Promise<void>;
  /** At the same address. */
  revive(): Promise<void>;
}

export async function serve(handle: (request: Request) => Promise<Response>): Promise<Loopback> {
  const seen: IncomingMessage["headers"][] = [];
  let server: Server;
  let port = 0;

  async function listen(): Promise<void> {
    server = createServer(async (incoming, outgoing) => {
      seen.push(incoming.headers);
      const gone = new AbortController();
      outgoing.on("close", () => gone.abort());
      const body = incoming.method === "POST" ? { body: Readable.toWeb(incoming), duplex: "half" as const } : {};
      const request = new Request(`http://127.0.0.1:${port}${incoming.url}`, {
        method: incoming.method!,
        headers: incoming.headers as Record<string, string>,
        signal: gone.signal,
        ...(body as RequestInit),
      });
      const answer = await handle(request);
      outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
      if (!answer.body) return void outgoing.end();
      outgoing.flushHeaders();
      // When one end is gone, so is the other.
      pipeline(Readable.fromWeb(answer.body as ReadableStream), outgoing, () => outgoing.destroy());
    });
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    ({ port } = server.address() as AddressInfo);
  }

  await listen();
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    seen,
    kill: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
    revive: listen,
  };
}
