/** What an agent in a Durable Object is made of, and what it can be asked. */
import type { AgentSnapshot, ContentInput, ErrorData, HarnessOptions, JsonValue, SendOptions } from "../../src/core.ts";
import type { Authorize, Limits } from "../transport/types.ts";
import type { AgentObjectContext, HibernatableSocket } from "./durable-object-platform.ts";

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
  /** Ends the connections of whoever has signed out, for good. The agent goes on, and is not woken for it. */
  disconnect(identity: JsonValue): Promise<void>;
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
   * in milliseconds since 1970; undefined: not at all. `alarm` of the class is called at other times too. Rejects
   * INVALID_OPTIONS.
   */
  nextAlarm(mine?: number): Promise<void>;
}
