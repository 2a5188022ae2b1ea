/** The connection to an MCP server: made when it is needed, and made anew when it was lost. */
import {
  Client,
  ProtocolError,
  type ElicitRequest,
  type ElicitResult,
  type ListChangedHandlers,
} from "@modelcontextprotocol/client";
import { messageOf, TurnloopError, type Clock } from "../src/core.ts";
import { NO_TIMEOUT } from "./mcp-calls.ts";
import { httpTransport, LOST, TOO_LARGE, type Address } from "./mcp-transport.ts";

export type McpSource =
  | Address
  /** A connected `Client` of `@modelcontextprotocol/client`. */
  | { readonly client: unknown };

export interface Connection {
  /** Connected, and its lists read. Callers that come meanwhile share one attempt. Rejects MCP_UNAVAILABLE. */
  client(): Promise<Client>;
  /** The same for who only wants what is there: never rejects, and does not wait for a server that is known to be away. */
  ready(): Promise<void>;
  /**
   * Asks the server something. Rejects MCP_UNAVAILABLE, MCP_DISCONNECTED when it was lost meanwhile (the next caller
   * makes a new connection), MCP_TOO_LARGE, and with what the server says.
   */
  use<T>(signal: AbortSignal, ask: (client: Client) => Promise<T>): Promise<T>;
  close(): void;
}

export interface ConnectionHost {
  elicit(request: ElicitRequest): Promise<ElicitResult>;
  /** Reads what the server has, at first and after each change. The signal gives it up. */
  list(client: Client, signal: AbortSignal): Promise<void>;
  /** Once an outage. */
  unavailable(cause: unknown): void;
}

/** A server that has not said hello, or what it has, in this time is away. Milliseconds. */
const PATIENCE_MS = 10_000;

export function createConnection(source: McpSource, clock: Clock, host: ConnectionHost): Connection {
  let current: Promise<Client> | undefined;
  let opened: { readonly client: Client; readonly attempt: Promise<Client> } | undefined;
  let closed = false;
  let told = false;
  const ended = new AbortController();

  /** What is not done in time is given up, whether the library heeds that or not. */
  async function patiently<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const done = new AbortController();
    const late = new AbortController();
    const given = AbortSignal.any([late.signal, ended.signal]);
    const { promise: never, reject } = Promise.withResolvers<never>();
    given.addEventListener("abort", () => reject(given.reason), { once: true });
    clock.sleep(PATIENCE_MS, AbortSignal.any([done.signal, ended.signal])).then(
      () => late.abort(new TurnloopError("MCP_UNAVAILABLE", `it has said nothing in ${PATIENCE_MS} ms`)),
      () => {},
    );
    try {
      return await Promise.race([work(given), never]);
    } finally {
      done.abort();
    }
  }

  async function open(): Promise<Client> {
    try {
      const client = "url" in source ? await dial(source) : adopt(source.client as Client);
      try {
        await patiently((signal) => host.list(client, signal));
      } catch (cause) {
        if ("url" in source) void client.close().catch(() => {});
        throw cause;
      }
      // Taken back meanwhile: nobody else will close it.
      if (closed && "url" in source) void client.close();
      told = false;
      return client;
    } catch (cause) {
      if (!told && !closed) host.unavailable(cause);
      told = true;
      throw new TurnloopError("MCP_UNAVAILABLE", `the server cannot be reached: ${messageOf(cause)}`, { cause });
    }
  }

  async function dial(at: Address): Promise<Client> {
    const client: Client = new Client(
      { name: "turnloop", version: "0.1.0" },
      {
        capabilities: { elicitation: { form: {} } },
        versionNegotiation: { mode: "auto", probe: { timeoutMs: NO_TIMEOUT } },
        listChanged: listening(() => follow(client)),
      },
    );
    client.setRequestHandler("elicitation/create", host.elicit);
    try {
      await patiently((signal) => client.connect(httpTransport(at), { timeout: NO_TIMEOUT, signal }));
    } catch (error) {
      void client.close().catch(() => {});
      throw error;
    }
    // The stream of changes has ended: what changes from now on would not be heard.
    void client.autoOpenedSubscription?.closed.then(() => lose(client));
    return client;
  }

  /** Its owner has connected it, and has said what it can do. */
  function adopt(client: Client): Client {
    if (!client.transport) throw new TurnloopError("MCP_DISCONNECTED", "the client is not connected");
    for (const kind of ["tools", "prompts"] as const) {
      client.setNotificationHandler(`notifications/${kind}/list_changed`, () => follow(client));
    }
    try {
      client.setRequestHandler("elicitation/create", host.elicit);
    } catch {
      // It was made without this capability: its server asks nothing.
    }
    return client;
  }

  /** Changes that come while the lists are read make one more reading, after it. */
  const reading = new WeakMap<Client, "once" | "again">();
  async function follow(client: Client): Promise<void> {
    if (reading.has(client)) return void reading.set(client, "again");
    do {
      reading.set(client, "once");
      await patiently((signal) => host.list(client, signal)).catch(() => lose(client));
    } while (reading.get(client) === "again" && !closed);
    reading.delete(client);
  }

  /** Gives up a client that has proved dead: the next caller makes a new one. */
  function lose(client: Client): void {
    if (opened?.client !== client || current !== opened.attempt) return;
    current = undefined;
    if ("url" in source) void client.close().catch(() => {});
  }

  const connection: Connection = {
    client() {
      if (closed) return Promise.reject(new TurnloopError("MCP_UNAVAILABLE", "the plugin was taken back"));
      if (!current) {
        const attempt = (current = open());
        attempt.then(
          (client) => {
            const before = client.onclose;
            // oxlint-disable-next-line unicorn/prefer-add-event-listener -- it is no EventTarget
            client.onclose = () => {
              before?.();
              if (current === attempt) current = undefined;
            };
            opened = { client, attempt };
          },
          () => {
            if (current === attempt) current = undefined;
          },
        );
      }
      return current;
    },
    async ready() {
      const isAway = told;
      const attempt = connection.client().then(
        () => {},
        () => {},
      );
      if (!isAway) await attempt;
    },
    async use(signal, ask) {
      const client = await connection.client();
      try {
        return await ask(client);
      } catch (cause) {
        if (ProtocolError.isInstance(cause) && cause.code === TOO_LARGE) {
          throw new TurnloopError("MCP_TOO_LARGE", cause.message, { cause });
        }
        if (signal.aborted || !isLost(cause)) throw cause;
        lose(client);
        const message = `the server was lost meanwhile, and may have done what it was asked: ${messageOf(cause)}`;
        throw new TurnloopError("MCP_DISCONNECTED", message, { cause });
      }
    },
    close() {
      closed = true;
      ended.abort();
      if (opened) lose(opened.client);
    },
  };
  return connection;
}

function listening(changed: () => Promise<void>): ListChangedHandlers {
  const handler = { autoRefresh: false, debounceMs: 0, onChanged: () => void changed() };
  return { tools: handler, prompts: handler };
}

/** Whatever the server has not answered itself. */
function isLost(cause: unknown): boolean {
  if (TurnloopError.is(cause)) return false;
  return !ProtocolError.isInstance(cause) || cause.code === LOST;
}
