/** `turnloop/node`: agents behind a `node:http` server, over WebSockets and server-sent events. Needs the package `ws`. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";
import { messageOf, TurnloopError, type Harness, type JsonValue } from "../../src/core.ts";
import { serveAgents } from "../transport/host.ts";
import { limitsOf } from "../transport/limits.ts";
import { refuse } from "../transport/refuse.ts";
import { socketConnection } from "../transport/socket.ts";
import { serveRequests } from "../transport/sse-requests.ts";
import type { Authorize, Grant, Limits } from "../transport/types.ts";
import { beforeOthers, requestOf, respond } from "./node-http.ts";

export interface NodeHostOptions {
  /** Who may do what, asked for every upgrade and request before the session is touched. Undefined, or a throw, refuses. */
  readonly authorize: Authorize;
  /** In front of the id of the session: `/agents/<id>`. Default `/agents/`. */
  readonly path?: string;
  /** Of pages that may connect, such as `https://chat.example`. Default: pages of the same host. Clients that are no pages say none. */
  readonly origins?: readonly string[];
  readonly limits?: Limits;
}

export interface NodeHost {
  /** Ends the connections of whoever matches: somebody has signed out. */
  disconnect(match: (identity: JsonValue) => boolean): void;
  /** Ends all connections and lets the agents go, stored; the server and the harness stay. */
  close(): Promise<void>;
}

/**
 * Takes the upgrades (`webSocket`) and the requests (`sse`) that go to `path`, and leaves all others to the listeners
 * that the server has by now. A session is opened when its first client comes, and let go when it rests alone. Throws
 * INVALID_OPTIONS.
 */
export function hostAgents(server: Server, harness: Harness, options: NodeHostOptions): NodeHost {
  const { authorize, path = "/agents/", origins, limits } = options;
  if (typeof authorize !== "function") throw new TurnloopError("INVALID_OPTIONS", "`authorize` must be a function");
  const agents = serveAgents(harness, limits ? { limits } : {});
  const sockets = new WebSocketServer({
    noServer: true,
    // Ours is told in a frame; this only bounds what is held of one that is far larger.
    maxPayload: 2 * limitsOf(limits).maxFrameBytes,
  });
  const serve = serveRequests(harness, agents.accept, { authorize, origins, limits });
  let closed = false;

  function request(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    if (sessionOf(incoming, path) === undefined) return false;
    void respond(incoming, outgoing, serve);
    return true;
  }

  function upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const session = sessionOf(incoming, path);
    if (session === undefined) return;
    // A client may go at any moment, and that is no failure of ours.
    socket.on("error", () => socket.destroy());
    if (!isOwnPage(incoming, origins)) {
      socket.end("HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    void grantFor(incoming, session).then((grant) => {
      if (socket.destroyed) return;
      // A page sees no status of an upgrade that failed: it is told in a frame.
      sockets.handleUpgrade(incoming, socket, head, (opened) => enter(opened, grant, session));
    });
  }

  async function grantFor(incoming: IncomingMessage, session: string): Promise<Grant | undefined> {
    try {
      return await authorize(requestOf(incoming), session);
    } catch (cause) {
      harness.report({
        code: "AUTHORIZE_FAILED",
        message: `authorize failed: ${messageOf(cause)}`,
        cause,
        sessionId: session,
      });
      return undefined;
    }
  }

  function enter(opened: WebSocket, grant: Grant | undefined, session: string): void {
    const connection = socketConnection(opened);
    if (!grant) {
      refuse(connection, { code: "UNAUTHORIZED", message: "you may not use this session; sign in" }, false);
    } else if (closed) {
      refuse(connection, { code: "HOST_CLOSED", message: "the host is closing; connect again" }, true);
    } else {
      agents.accept(connection, grant, session);
    }
  }

  server.on("upgrade", upgrade);
  const offRequest = beforeOthers(server, request);
  return {
    disconnect: (match) => agents.disconnect(match),
    async close() {
      closed = true;
      server.off("upgrade", upgrade);
      await agents.close();
      offRequest();
      sockets.close();
    },
  };
}

/** The id in the path; undefined for a path that is not ours. */
function sessionOf({ url = "" }: IncomingMessage, path: string): string | undefined {
  const [place = ""] = url.split("?", 1);
  if (!place.startsWith(path)) return undefined;
  try {
    const id = decodeURIComponent(place.slice(path.length));
    return id === "" || id.includes("/") ? undefined : id;
  } catch {
    return undefined;
  }
}

function isOwnPage({ headers }: IncomingMessage, origins: readonly string[] | undefined): boolean {
  const { origin, host } = headers;
  if (origin === undefined) return true;
  if (origins) return origins.includes(origin);
  return URL.canParse(origin) && new URL(origin).host === host;
}
