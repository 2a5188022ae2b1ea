/** The way of a request from a Worker to the object that it is meant for, and who is turned away before. */
import { messageOf, TurnloopError } from "../../src/core.ts";
import { isOwnPage } from "../transport/origins.ts";
import type { WireError } from "../transport/protocol.ts";
import { refuse } from "../transport/refuse.ts";
import { socketConnection, type SocketLike } from "../transport/socket.ts";
import type { Authorize, Grant } from "../transport/types.ts";
import { platform, upgraded, warn } from "./durable-object-platform.ts";

/** What of a namespace of Durable Objects is used. */
export interface AgentNamespace {
  idFromName(name: string): unknown;
  get(id: never): object;
}

export interface RouteOptions<Env> {
  /** The objects, one for each session, by the name of its id: `(env) => env.AGENTS`. */
  namespace(env: Env): AgentNamespace;
  /** Asked here, before the object is woken, and once more by the object, which anybody with a binding may reach. */
  readonly authorize: Authorize;
  /** Of pages that may connect, such as `https://chat.example`. Default: pages of the same host. Clients that are no pages say none. */
  readonly origins?: readonly string[];
  /** In front of the id of the session: `/agents/<id>`. Default `/agents/`. */
  readonly path?: string;
}

/**
 * For the `fetch` of a Worker: the answer of the agent's object; undefined for a request that goes elsewhere. Throws
 * INVALID_OPTIONS.
 */
export async function routeAgentRequest<Env>(
  request: Request,
  env: Env,
  options: RouteOptions<Env>,
): Promise<Response | undefined> {
  const { authorize, origins, path = "/agents/" } = options;
  if (!path.startsWith("/") || !path.endsWith("/"))
    throw new TurnloopError("INVALID_OPTIONS", "`path` begins and ends with a slash");
  const { pathname } = new URL(request.url);
  if (!pathname.startsWith(path)) return undefined;
  const session = sessionIn(pathname.slice(path.length - 1));
  if (session === undefined || pathname.slice(path.length).includes("/")) return undefined;
  if (!isUpgrade(request)) return upgradeRequired();
  if (!isOwnPage(request, origins)) return new Response(null, { status: 403 });
  const grant = await grantFor(authorize, request, session);
  if (!grant) return refused();
  const objects = options.namespace(env);
  const object = objects.get(objects.idFromName(session) as never) as { fetch(request: Request): Promise<Response> };
  const passed = new Request(request);
  // It was looked at here; the object lets in no page of another host.
  passed.headers.delete("origin");
  return object.fetch(passed);
}

/** The id at the end of a path. */
export function sessionIn(pathname: string): string | undefined {
  try {
    return decodeURIComponent(pathname.slice(pathname.lastIndexOf("/") + 1)) || undefined;
  } catch {
    return undefined;
  }
}

export function isUpgrade({ headers }: Request): boolean {
  return headers.get("upgrade")?.toLowerCase() === "websocket";
}

export function upgradeRequired(): Response {
  return new Response("connect by WebSocket", { status: 426, headers: { upgrade: "websocket" } });
}

/** A throw of `authorize` refuses too, and its words stay here. */
export async function grantFor(authorize: Authorize, request: Request, session: string): Promise<Grant | undefined> {
  try {
    return await authorize(request, session);
  } catch (cause) {
    warn("AUTHORIZE_FAILED", `authorize failed: ${messageOf(cause)}`, cause);
    return undefined;
  }
}

const UNAUTHORIZED: WireError = { code: "UNAUTHORIZED", message: "you may not use this session; sign in" };

/** A page sees no status of an upgrade that failed: it is told in a frame. `retry`: it may try again. */
export function refused(error: WireError = UNAUTHORIZED, retry = false): Response {
  const { 0: client, 1: server } = new (platform().WebSocketPair)();
  server.accept();
  refuse(socketConnection(server as unknown as SocketLike), error, retry);
  return upgraded(client);
}
