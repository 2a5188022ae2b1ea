/** An agent in a Durable Object: one object for each root session, its sub-agents inside. */
import { createHarness, messageOf, TurnloopError } from "../../src/core.ts";
import type {
  Agent,
  AgentHandle,
  AgentSnapshot,
  ContentInput,
  ErrorData,
  Harness,
  HarnessOptions,
  JsonValue,
  SendOptions,
} from "../../src/core.ts";
import { durableObjectStorage } from "../storage/durable-object.ts";
import { serveAgents, type AgentServer } from "../transport/host.ts";
import { PING, PONG } from "../transport/protocol.ts";
import type { Authorize, Grant, Limits } from "../transport/types.ts";
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

export interface AgentObjectOptions<Env> {
  /**
   * Called once in each instance of the object, when it first has something to do. Where it says nothing else, the
   * storage is the database of the object and `interrupted` is `continue`.
   */
  harness(ctx: AgentObjectContext, env: Env): HarnessOptions;
  /** Who may do what, asked for every connection. Undefined, or a throw, refuses. */
  readonly authorize: Authorize;
  readonly limits?: Limits;
}

/** A snapshot that can go over RPC. */
export type AgentObjectSnapshot = Omit<AgentSnapshot, "error"> & { readonly error?: ErrorData };

/** For a Worker, a webhook or a queue that has a binding: they are not asked by `authorize`. */
export interface AgentObjectMethods {
  /** Resolves with the id of the message when it is stored; the turn goes on by itself. */
  send(content: ContentInput, options?: SendOptions): Promise<string>;
  /** Rejects INTERACTION_NOT_FOUND, INTERACTION_RESOLVED, INVALID_ANSWER. */
  respond(interaction: string, value: JsonValue): Promise<void>;
  cancel(reason?: string): Promise<void>;
  snapshot(): Promise<AgentObjectSnapshot>;
}

/** Each is what the method of this name of the class must do. */
export interface AgentObjectHandlers extends AgentObjectMethods {
  fetch(request: Request): Promise<Response>;
  webSocketMessage(socket: HibernatableSocket, message: string | ArrayBuffer): Promise<void>;
  webSocketClose(socket: HibernatableSocket, code: number): Promise<void>;
  webSocketError(socket: HibernatableSocket): Promise<void>;
  alarm(): Promise<void>;
  /**
   * Instead of `ctx.storage.setAlarm`, for a class that has a use for the alarm itself: when it wants to be woken,
   * in milliseconds since 1970; undefined: not at all. `alarm` of the class is called at other times too.
   */
  nextAlarm(mine?: number): Promise<void>;
}

/** What there is of it in an instance that has something to do. */
interface Live {
  readonly harness: Harness;
  readonly agents: AgentServer;
  readonly connections: Map<HibernatableSocket, ObjectConnection>;
}

const TAG = "turnloop";

/** The handlers of `agentObject`, for a class of your own. Call it in the constructor. */
export function hostAgent<Env>(
  ctx: AgentObjectContext,
  env: Env,
  options: AgentObjectOptions<Env>,
): AgentObjectHandlers {
  const { harness: make, authorize, limits } = options;
  if (typeof authorize !== "function") throw new TurnloopError("INVALID_OPTIONS", "`authorize` must be a function");
  // Answered by the platform, so that they wake nobody.
  ctx.setWebSocketAutoResponse(new (platform().WebSocketRequestResponsePair)(PING, PONG));
  const alarm = createAlarm(ctx);
  const session = ctx.id.name ?? alarm.session ?? ctx.id.toString();
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
    alarm.remember(session);
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

  async function open(): Promise<Agent> {
    const { harness } = await wake();
    const known = await handle?.catch(() => undefined);
    if (known && known.agent.status !== "disposed") return known.agent;
    handle = harness.agents.open({ id: session });
    return (await handle).agent;
  }

  async function gone(socket: HibernatableSocket, reason: string): Promise<void> {
    // An instance that was made for this has nothing to end.
    const connection = live && (await live).connections.get(socket);
    connection?.closed(reason);
  }

  return {
    async fetch(request) {
      const asked = sessionIn(new URL(request.url).pathname);
      if (asked !== session) return new Response("there is no such session in this object", { status: 404 });
      if (!isUpgrade(request)) return upgradeRequired();
      const grant = await grantFor(authorize, request, session);
      if (!grant) return refused();
      const begun = await wake();
      const { 0: client, 1: socket } = new (platform().WebSocketPair)();
      attach(socket, grant);
      ctx.acceptWebSocket(socket as never, [TAG]);
      enter(begun, socket, grant);
      return upgraded(client);
    },

    async webSocketMessage(socket, message) {
      if (!grantOf(socket)) return;
      const { connections } = await wake();
      // There are no binary frames: one is said to be no JSON, and ends the connection.
      connections.get(socket)?.deliver(typeof message === "string" ? message : "");
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
    async snapshot() {
      const { error, ...rest } = (await open()).getSnapshot();
      return { ...rest, ...(error && { error: { message: error.message, code: error.code } }) };
    },
  };
}
