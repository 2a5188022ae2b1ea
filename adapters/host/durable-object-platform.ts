/** What of the platform is used by an agent in a Durable Object. */
import type { DurableObjectContext } from "../storage/durable-object.ts";

/** A WebSocket that may outlive the instance that has accepted it. */
export interface HibernatableSocket {
  send(text: string): void;
  close(code?: number, reason?: string): void;
  serializeAttachment(value: unknown): void;
  deserializeAttachment(): unknown;
}

/** The `ctx` that the platform hands to the constructor of an object whose class has an SQLite database. */
export interface AgentObjectContext extends DurableObjectContext {
  readonly id: { readonly name?: string; toString(): string };
  readonly storage: DurableObjectContext["storage"] & {
    readonly kv: { get(key: string): unknown; put(key: string, value: unknown): void };
    setAlarm(time: number): Promise<void>;
    deleteAlarm(): Promise<void>;
  };
  // The classes of the platform are named nowhere in what is published, so that nobody needs its types.
  acceptWebSocket(socket: never, tags?: string[]): void;
  getWebSockets(tag?: string): HibernatableSocket[];
  setWebSocketAutoResponse(pair?: never): void;
}

interface Platform {
  readonly WebSocketPair: new () => { readonly 0: object; readonly 1: HibernatableSocket & { accept(): void } };
  readonly WebSocketRequestResponsePair: new (request: string, response: string) => never;
}

export function platform(): Platform {
  return globalThis as unknown as Platform;
}

/** The answer that turns a request into a WebSocket. */
export function upgraded(client: object): Response {
  return new Response(null, { status: 101, webSocket: client } as ResponseInit);
}

/** Where no harness is awake that could be told: into the log of the Worker. */
export function warn(code: string, message: string, cause?: unknown): void {
  console.warn(`turnloop: ${code}: ${message}`, ...(cause === undefined ? [] : [cause]));
}
