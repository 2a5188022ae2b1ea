/** The requests of clients over server-sent events: who is let in, and what of their bodies goes where. */
import { jsonEqual, messageOf, TurnloopError, type Harness } from "../../src/core.ts";
import type { AgentServer } from "./host.ts";
import { limitsOf } from "./limits.ts";
import type { HostFrame } from "./protocol.ts";
import { refuse } from "./refuse.ts";
import { readFrames } from "./sse-body.ts";
import { STREAM_HEADER } from "./sse-codec.ts";
import { corsHeaders, isOwnPage } from "./origins.ts";
import { createEventStream, type EventStream } from "./sse-stream.ts";
import type { Authorize, Grant, Limits } from "./types.ts";
import { toWire } from "./wire-error.ts";

export interface RequestsOptions {
  readonly authorize: Authorize;
  readonly origins?: readonly string[] | undefined;
  readonly limits?: Limits | undefined;
}

interface Client {
  readonly stream: EventStream;
  readonly session: string;
  readonly grant: Grant;
  /** One request at a time: their order is that of what they say. */
  busy: boolean;
}

const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  // Proxies that gather what they pass on would hold back an answer until its end.
  "x-accel-buffering": "no",
};

/** GET opens a stream, POST brings frames of the client that has it. `accept` as of an AgentServer. */
export function serveRequests(
  harness: Harness,
  accept: AgentServer["accept"],
  options: RequestsOptions,
): (request: Request) => Promise<Response> {
  const { authorize, origins } = options;
  const { maxFrameBytes } = limitsOf(options.limits);
  const clients = new Map<string, Client>();

  function open(request: Request, session: string, grant: Grant): Response {
    const id = crypto.randomUUID();
    const stream = createEventStream(id, harness.clock);
    try {
      accept(stream.connection, grant, session);
    } catch (thrown) {
      stream.gone();
      throw thrown;
    }
    clients.set(id, { stream, session, grant, busy: false });
    stream.connection.onClose(() => clients.delete(id));
    request.signal.addEventListener("abort", stream.gone, { once: true });
    if (request.signal.aborted) stream.gone();
    return new Response(stream.body, { headers: STREAM_HEADERS });
  }

  async function take(request: Request, session: string, grant: Grant): Promise<Response> {
    const client = clients.get(request.headers.get(STREAM_HEADER) ?? "");
    // Another's stream is told apart from none by nobody.
    if (!client || client.session !== session || !jsonEqual(client.grant.identity, grant.identity))
      return told(410, new TurnloopError("SESSION_CLOSED", "there is no such stream any more"), true);
    const { stream } = client;
    try {
      if (client.busy) throw new TurnloopError("TOO_MANY_COMMANDS", "send one request at a time");
      client.busy = true;
      for (const frame of await readFrames(request, maxFrameBytes)) stream.receive(frame);
      client.busy = false;
      return new Response(null, { status: 204 });
    } catch (thrown) {
      // A request that broke off is a line that broke; anything else no well-behaved client does.
      const broke = !TurnloopError.is(thrown);
      const error = broke ? new TurnloopError("BAD_FRAME", "the request broke off; connect again") : thrown;
      refuse(stream.connection, error, broke);
      return told(STATUS[error.code] ?? 400, error, broke);
    }
  }

  async function grantFor(request: Request, session: string): Promise<Grant | undefined> {
    try {
      // Its body is read by nobody else.
      const { url, method, headers } = request;
      return await authorize(new Request(url, { method, headers }), session);
    } catch (cause) {
      const message = `authorize failed: ${messageOf(cause)}`;
      harness.report({ code: "AUTHORIZE_FAILED", message, cause, sessionId: session });
      return undefined;
    }
  }

  async function answer(request: Request): Promise<Response> {
    const { method } = request;
    const session = sessionOf(request);
    if (session === undefined) return told(404, new TurnloopError("SESSION_NOT_FOUND", "the path names no session"));
    if (!isOwnPage(request, origins)) return told(403, new TurnloopError("UNAUTHORIZED", "this page may not connect"));
    if (method === "OPTIONS") return new Response(null, { status: 204 });
    if (method !== "GET" && method !== "POST")
      return new Response(null, { status: 405, headers: { allow: "GET, POST" } });
    const grant = await grantFor(request, session);
    if (!grant) return told(401, new TurnloopError("UNAUTHORIZED", "you may not use this session; sign in"));
    return method === "GET" ? open(request, session, grant) : take(request, session, grant);
  }

  return async (request) => {
    let response: Response;
    try {
      response = await answer(request);
    } catch (thrown) {
      if (!TurnloopError.is(thrown, "HOST_CLOSED")) {
        harness.report({ code: "HOST_FAILED", message: "a request could not be served", cause: thrown });
      }
      response = told(503, thrown, true);
    }
    for (const [name, value] of corsHeaders(request, origins)) response.headers.set(name, value);
    return response;
  };
}

const STATUS: Readonly<Record<string, number>> = { FRAME_TOO_LARGE: 413, TOO_MANY_COMMANDS: 429 };

/** The refusal as the frame that ends a connection. */
function told(status: number, error: unknown, retry = false): Response {
  return Response.json({ type: "closed", error: toWire(error), retry } satisfies HostFrame, { status });
}

/** The id at the end of the path. */
function sessionOf({ url }: Request): string | undefined {
  const { pathname } = new URL(url);
  try {
    return decodeURIComponent(pathname.slice(pathname.lastIndexOf("/") + 1)) || undefined;
  } catch {
    return undefined;
  }
}
