/** Agents behind servers on loopback, over server-sent events; and clients that speak to them by hand. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createHarness, type Harness, type HarnessOptions } from "turnloop";
import { hostAgents, type NodeHost, type NodeHostOptions } from "turnloop/node";
import { sse, type Connection } from "turnloop/transport";
import { onTestFinished } from "vitest";
import { respond } from "../../adapters/host/node-http.ts";
import { createDecoder, encodeFrame } from "../../adapters/transport/sse-codec.ts";
import { serveRequests } from "../../adapters/transport/sse-requests.ts";
import { ANN, type Frame } from "./support.ts";
import type { SocketPairs } from "./sockets.ts";

export async function listening(server: Server, port = 0): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** Pairs of connections, and nothing behind them. */
export async function streamPairs(): Promise<SocketPairs> {
  const harness = createHarness();
  let arrived: (connection: Connection) => void = () => {};
  const serve = serveRequests(harness, (connection) => arrived(connection), { authorize: () => ANN });
  const server = createServer((incoming, outgoing) => void respond(incoming, outgoing, serve));
  const dial = sse(`http://127.0.0.1:${await listening(server)}/s`);
  return {
    async pair() {
      const arriving = new Promise<Connection>((resolve) => {
        arrived = resolve;
      });
      const client = await dial();
      return { client, host: await arriving };
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await harness.dispose();
    },
  };
}

export interface Place {
  readonly server: Server;
  readonly host: NodeHost;
  readonly harness: Harness;
  /** Of the session `s`. */
  readonly url: string;
}

export async function open(options: HarnessOptions, hosting: Partial<NodeHostOptions> = {}): Promise<Place> {
  const harness = createHarness({ onDiagnostic() {}, ...options });
  const server = createServer((_request, response) => void response.end("a page"));
  const port = await listening(server);
  const host = hostAgents(server, harness, { authorize: () => ANN, ...hosting });
  onTestFinished(async () => {
    await host.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await harness.dispose();
  });
  return { server, host, harness, url: `http://127.0.0.1:${port}/agents/s` };
}

export interface HandClient {
  readonly response: Response;
  readonly stream: string;
  readonly frames: readonly Frame[];
  /** The first frame of the type, come already or still to come. */
  got(type: string): Promise<Frame>;
  /** Settles when the host has ended the stream. */
  readonly ended: Promise<void>;
  say(body: BodyInit, headers?: Record<string, string>): Promise<Response>;
  hello(): Promise<Response>;
}

type Fetch = (request: Request) => Promise<Response>;

/** A client that is not ours. */
export async function handClient(url: string, send: Fetch = fetch): Promise<HandClient> {
  const response = await send(new Request(url));
  const opened = Promise.withResolvers<string>();
  const frames: Frame[] = [];
  let lookers: (() => void)[] = [];
  const decode = createDecoder({
    open: opened.resolve,
    frame(text) {
      frames.push(JSON.parse(text) as Frame);
      for (const look of lookers) look();
    },
  });
  async function read(): Promise<void> {
    const decoder = new TextDecoder();
    for await (const bytes of response.body!) decode(decoder.decode(bytes, { stream: true }));
  }
  const ended = read();
  ended.catch(() => {});
  const stream = await opened.promise;
  const say: HandClient["say"] = (body, headers = {}) =>
    send(new Request(url, { method: "POST", headers: { "turnloop-stream": stream, ...headers }, body }));
  return {
    response,
    stream,
    frames,
    ended,
    say,
    hello: () => say(encodeFrame(JSON.stringify({ type: "hello", version: 1, session: "s", client: "by hand" }))),
    got: (type) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = frames.find((frame) => frame.type === type);
          if (!found) return;
          lookers = lookers.filter((other) => other !== look);
          resolve(found);
        };
        lookers = [...lookers, look];
        look();
      }),
  };
}
