/** The class of Durable Objects that each hold one agent. */
import { DurableObject } from "cloudflare:workers";
import { hostAgent } from "./durable-object-host.ts";
import type { AgentObjectContext } from "./durable-object-platform.ts";
import type { AgentObjectHandlers as Handlers, AgentObjectOptions } from "./durable-object-types.ts";

/** What of `hostAgent` the class has as methods. */
export interface AgentObject extends Omit<Handlers, "nextAlarm"> {
  /** By which the types of the platform know what may be called by RPC. It is not there. */
  readonly __DURABLE_OBJECT_BRAND: never;
}

/**
 * `export class Chat extends agentObject({ ... }) {}`. Its class needs an SQLite database (`new_sqlite_classes`), and
 * the alarm of its objects is the agent's: use `hostAgent` where it has others.
 */
export function agentObject<Env>(
  options: AgentObjectOptions<Env>,
): new (ctx: AgentObjectContext, env: Env) => AgentObject {
  class Hosting extends DurableObject implements Omit<AgentObject, "__DURABLE_OBJECT_BRAND"> {
    readonly #host: Handlers;

    constructor(ctx: AgentObjectContext, env: Env) {
      super(ctx, env);
      this.#host = hostAgent(ctx, env, options);
    }

    // RPC reaches what stands on the prototype.
    fetch(...args: Parameters<Handlers["fetch"]>): ReturnType<Handlers["fetch"]> {
      return this.#host.fetch(...args);
    }
    webSocketMessage(...args: Parameters<Handlers["webSocketMessage"]>): ReturnType<Handlers["webSocketMessage"]> {
      return this.#host.webSocketMessage(...args);
    }
    webSocketClose(...args: Parameters<Handlers["webSocketClose"]>): ReturnType<Handlers["webSocketClose"]> {
      return this.#host.webSocketClose(...args);
    }
    webSocketError(...args: Parameters<Handlers["webSocketError"]>): ReturnType<Handlers["webSocketError"]> {
      return this.#host.webSocketError(...args);
    }
    alarm(): ReturnType<Handlers["alarm"]> {
      return this.#host.alarm();
    }
    send(...args: Parameters<Handlers["send"]>): ReturnType<Handlers["send"]> {
      return this.#host.send(...args);
    }
    respond(...args: Parameters<Handlers["respond"]>): ReturnType<Handlers["respond"]> {
      return this.#host.respond(...args);
    }
    cancel(...args: Parameters<Handlers["cancel"]>): ReturnType<Handlers["cancel"]> {
      return this.#host.cancel(...args);
    }
    snapshot(): ReturnType<Handlers["snapshot"]> {
      return this.#host.snapshot();
    }
    disconnect(...args: Parameters<Handlers["disconnect"]>): ReturnType<Handlers["disconnect"]> {
      return this.#host.disconnect(...args);
    }
  }
  // The brand is a matter of types alone.
  return Hosting as unknown as new (ctx: AgentObjectContext, env: Env) => AgentObject;
}
