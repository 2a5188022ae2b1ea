/** Clients of the agents in workerd, and what a test does with either. */
import type { AgentHandle } from "turnloop";
import { connectAgent, type Connection } from "turnloop/transport";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { socketConnection } from "../../adapters/transport/socket.ts";
import { deferred } from "../support/wait.ts";
import type { HostMachine } from "./host-machine.ts";

export function addressOf(machine: HostMachine, session: string, token = "ann"): URL {
  const url = new URL(`/agents/${session}?token=${token}`, machine.address);
  url.protocol = "ws:";
  return url;
}

export interface ConnectOptions {
  readonly token?: string;
  /** Told each connection. */
  dialled?(connection: Connection): void;
}

export async function connect(
  machine: HostMachine,
  session: string,
  options: ConnectOptions = {},
): Promise<AgentHandle> {
  const handle = await connectAgent({
    session,
    async connect() {
      const connection = await dial(addressOf(machine, session, options.token));
      options.dialled?.(connection);
      return connection;
    },
  });
  onTestFinished(() => handle.dispose());
  return handle;
}

export async function dial(url: URL, headers: Readonly<Record<string, string>> = {}): Promise<Connection> {
  const socket = new WebSocket(url, { headers });
  const connection = socketConnection(socket);
  await new Promise<void>((resolve, reject) => {
    socket.once("open", () => resolve());
    socket.once("error", reject);
  });
  return connection;
}

/** How many instances of the object there were, and how often anybody was authorised. */
export async function seen(machine: HostMachine, object: string): Promise<{ instances: number; asked: number }> {
  return (await machine.ask("seen", object)) as { instances: number; asked: number };
}

/** A model that does not answer before it is let go. */
export function held(machine: HostMachine): { readonly asked: Promise<void>; answer(text: string): void } {
  const asked = deferred();
  const answer = deferred<string>();
  machine.play(() => {
    asked.resolve();
    return answer.promise;
  });
  return { asked: asked.promise, answer: answer.resolve };
}
