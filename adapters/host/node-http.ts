/** The requests of a `node:http` server as those that every other runtime has, and the answers back. */
import { Readable } from "node:stream";
import type { IncomingMessage, Server, ServerResponse } from "node:http";

/** With the body if it has one, and a signal that aborts when the client has gone. */
export function requestOf(incoming: IncomingMessage, signal?: AbortSignal): Request {
  const { url = "/", method = "GET", headers } = incoming;
  const own = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) own.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(new URL(url, `http://${headers.host ?? "localhost"}`), {
    method,
    headers: own,
    ...(signal && { signal }),
    ...(hasBody && { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" }),
  });
}

/** Resolves when all is said, or the client has gone. Never rejects. */
export async function respond(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  handler: (request: Request) => Promise<Response>,
): Promise<void> {
  const gone = new AbortController();
  outgoing.on("close", () => gone.abort());
  outgoing.on("error", () => gone.abort());
  try {
    const response = await handler(requestOf(incoming, gone.signal));
    // What was not read of the request would be taken for the next one.
    if (!incoming.complete) outgoing.setHeader("connection", "close");
    outgoing.writeHead(response.status, [...response.headers].flat());
    if (response.body) await pass(response.body, outgoing, gone.signal);
    outgoing.end();
  } catch {
    outgoing.destroy();
  }
}

/** As fast as the client reads. */
async function pass(body: ReadableStream<Uint8Array>, outgoing: ServerResponse, gone: AbortSignal): Promise<void> {
  const reader = body.getReader();
  const cancel = (): void => void reader.cancel().catch(() => {});
  gone.addEventListener("abort", cancel, { once: true });
  if (gone.aborted) cancel();
  outgoing.flushHeaders();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    if (!outgoing.write(value) && !gone.aborted) await drained(outgoing);
  }
}

function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      outgoing.off("drain", go);
      outgoing.off("close", go);
      resolve();
    };
    outgoing.on("drain", go);
    outgoing.on("close", go);
  });
}

type Take = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean;

/** Asks `take` before the listeners that the server has; what it does not take is theirs. Answers with the undo. */
export function beforeOthers(server: Server, take: Take): () => void {
  const others = server.listeners("request") as ((...args: unknown[]) => void)[];
  const first = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (take(incoming, outgoing)) return;
    for (const other of others) other.call(server, incoming, outgoing);
    // Nobody else would ever answer.
    if (others.length === 0 && server.listenerCount("request") === 1) outgoing.writeHead(404).end();
  };
  server.removeAllListeners("request");
  server.on("request", first);
  return () => {
    server.off("request", first);
    for (const other of others) server.on("request", other);
  };
}
