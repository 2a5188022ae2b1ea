/** Agents behind one fetch handler: Next, Hono, Bun, Deno, and whatever else answers a Request with a Response. */
import { TurnloopError, type Harness } from "../../src/core.ts";
import { serveAgents, type AgentServer } from "./host.ts";
import { serveRequests } from "./sse-requests.ts";
import type { Authorize, Limits } from "./types.ts";

export interface AgentRouteOptions {
  /** Who may do what, asked for every request before the session is touched. Undefined, or a throw, refuses: 401. */
  readonly authorize: Authorize;
  /** Of pages that may connect, such as `https://chat.example`. Default: pages of the same host. Clients that are no pages say none. */
  readonly origins?: readonly string[];
  readonly limits?: Limits;
}

export interface AgentRoute extends Pick<AgentServer, "disconnect" | "close"> {
  (request: Request): Promise<Response>;
}

/**
 * The other end of `sse`: GET opens a stream, POST brings commands, the session's id is the last part of the path.
 * All requests for one session must come to the same process, and the route is made once in it. Throws
 * INVALID_OPTIONS.
 */
export function agentRoute(harness: Harness, options: AgentRouteOptions): AgentRoute {
  const { authorize, limits } = options;
  if (typeof authorize !== "function") throw new TurnloopError("INVALID_OPTIONS", "`authorize` must be a function");
  const agents = serveAgents(harness, limits ? { limits } : {});
  const { accept, disconnect, close } = agents;
  return Object.assign(serveRequests(harness, accept, options), { disconnect, close });
}
