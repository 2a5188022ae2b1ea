/** An agent in a Durable Object: one object for each root session, its sub-agents inside. */
import { createHarness, jsonEqual, messageOf, TurnloopError } from "../../src/core.ts";
import type { Agent, AgentHandle, Harness } from "../../src/core.ts";
import { durableObjectStorage } from "../storage/durable-object.ts";
import { serveAgents, type AgentServer } from "../transport/host.ts";
import { PING, PONG } from "../transport/protocol.ts";
import { isOwnPage } from "../transport/origins.ts";
import { refuse } from "../transport/refuse.ts";
import type { Grant } from "../transport/types.ts";
import { createAlarm } from "./durable-object-alarm.ts";
import {
  platform,
  upgraded,
  warn,
  type AgentObjectContext,
  type HibernatableSocket,
} from "./durable-object-platform.ts";
import { grantFor, isUpgrade, refused, sessionIn, upgradeRequired } from "./durable-object-route.ts";
import { attach, grantOf, objectConnection, type ObjectConnection } from "./durable-object-sockets.ts";
import type { AgentObjectHandlers, AgentObjectOptions } from "./durable-object-types.ts";

/** What there is of it in an instance that has something to do. */
interface Live {
  readonly harness: Harness;
  readonly agents: AgentServer;
  readonly connections: Map<HibernatableSocket, ObjectConnection>;
}

const TAG = "turnloop";

/**
 * The handlers of `agentObject`, for a class of your own. Call it in the constructor: it takes the WebSocket
 * auto-response of the object, and its alarm. Throws INVALID_OPTIONS.
 */
export function hostAgent<Env>(
  ctx: AgentObjectContext,
  env: Env,
  options: AgentObjectOptions<Env>,
): AgentObjectHandlers {
  const { harness: make, authorize, limits } = options;
  for (const [name, value] of Object.entries({ harness: make, authorize })) {
    if (typeof value !== "function") throw new TurnloopError("INVALID_OPTIONS", `\`${name}\` must be a function`);
  }
  // Answered by the platform, so that they wake nobody.
  ctx.setWebSocketAutoResponse(new (platform().WebSocketRequestResponsePair)(PING, PONG));
  const alarm = createAlarm(ctx);
  const { session } = alarm;
  let live: Promise<Live> | undefined;
  let handle: Promise<AgentHandle> | undefined;

  function wake(): Promise<Live> {
    live ??= begin().catch((thrown: unknown) => {
      live = undefined;
      throw thrown;
    });
    return live;
  }

  async function begin(): Promise<Live> {
    const harness = createHarness({
      storage: durableObjectStorage(ctx),
      interrupted: "continue",
      ...make(ctx, env),
    });
    alarm.follow(harness);
    const agents = serveAgents(harness, limits ? { limits } : {});
    const begun: Live = { harness, agents, connections: new Map() };
    const sockets = ctx.getWebSockets(TAG);
    await Promise.all(sockets.map((socket) => enter(begun, socket, grantOf(socket)!).restored(session)));
    return begun;
  }

  function enter({ agents, connections }: Live, socket: HibernatableSocket, grant: Grant): ObjectConnection {
    const connection = objectConnection(socket);
    connections.set(socket, connection);
    connection.onClose(() => connections.delete(socket));
    agents.accept(connection, grant, session);
    return connection;
  }

  /** For a client: the words stay here. */
  function notBegun(cause: unknown): TurnloopError {
    warn("AGENT_NOT_STARTED", `${session} cannot be served: ${messageOf(cause)}`, cause);
    return new TurnloopError("HOST_FAILED", "the host has failed; try again later");
  }

  async function open(): Promise<Agent> {
    const { harness } = await wake();
    const known = await handle?.catch(() => undefined);
    if (known && known.agent.status !== "disposed") return known.agent;
    handle = harness.agents.open({ id: session });
    return (await handle).agent;
  }

  /** The connection of a socket; in an instance that has not begun, one that nobody listens to. */
  async function connectionOf(socket: HibernatableSocket): Promise<ObjectConnection> {
    const begun = await live?.catch(() => undefined);
    return begun?.connections.get(socket) ?? objectConnection(socket);
  }

  async function gone(socket: HibernatableSocket, reason: string): Promise<void> {
    if (grantOf(socket)) (await connectionOf(socket)).closed(reason);
  }

  return {
    async fetch(request) {
      const asked = sessionIn(new URL(request.url).pathname);
      if (asked !== session) return new Response("there is no such session in this object", { status: 404 });
      if (!isUpgrade(request)) return upgradeRequired();
      // A page of another host that `routeAgentRequest` has let in is no more to be told from a client that is none.
      if (!isOwnPage(request, undefined)) return new Response(null, { status: 403 });
      const grant = await grantFor(authorize, request, session);
      if (!grant) return refused();
      let begun: Live;
      try {
        begun = await wake();
      } catch (thrown) {
        return refused(notBegun(thrown), true);
      }
      const { 0: client, 1: socket } = new (platform().WebSocketPair)();
      attach(socket, grant);
      ctx.acceptWebSocket(socket as never, [TAG]);
      enter(begun, socket, grant);
      return upgraded(client);
    },

    async webSocketMessage(socket, message) {
      if (!grantOf(socket)) return;
      try {
        const { connections } = await wake();
        // There are no binary frames: one is said to be no JSON, and ends the connection.
        connections.get(socket)?.deliver(typeof message === "string" ? message : "");
      } catch (thrown) {
        // Its pings are answered all the same: it would wait for ever.
        refuse(objectConnection(socket), notBegun(thrown), true);
      }
    },
    webSocketClose: (socket) => gone(socket, "the socket was closed"),
    webSocketError: (socket) => gone(socket, "the socket has failed"),

    async alarm() {
      const next = await alarm.rang(live === undefined);
      if (next === "give-up")
        warn("AGENT_NOT_STARTED", `${session} died of it too often, and is left alone; send to it to try once more`);
      if (next !== "take-up") return;
      try {
        await open();
      } catch (cause) {
        // It is tried again by the next alarm, which is armed already.
        warn("AGENT_NOT_STARTED", `${session} was not taken up: ${messageOf(cause)}`, cause);
      }
    },
    nextAlarm: (mine) => alarm.mine(mine),

    async send(content, sending) {
      const agent = await open();
      const id = agent.send(content, sending);
      await agent.flush();
      return id;
    },
    async respond(interaction, value) {
      const agent = await open();
      await agent.respond(interaction, value);
      await agent.flush();
    },
    async cancel(reason) {
      const agent = await open();
      agent.cancel(reason);
      await agent.flush();
    },
    async disconnect(identity) {
      const sockets = ctx.getWebSockets(TAG).filter((socket) => jsonEqual(grantOf(socket)?.identity, identity));
      const error = new TurnloopError("UNAUTHORIZED", "the permission was taken back; sign in again");
      for (const socket of sockets) refuse(await connectionOf(socket), error, false);
    },
    async snapshot() {
      const { error, ...rest } = (await open()).getSnapshot();
      return { ...rest, ...(error && { error: { message: error.message, code: error.code } }) };
    },
  };
}
