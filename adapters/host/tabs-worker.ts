/** The agents of a SharedWorker, served to the tabs that have its port. */
import { TurnloopError, type Harness } from "../../src/core.ts";
import { serveAgents } from "../transport/host.ts";
import { messagePort } from "../transport/message-port.ts";
import type { Connection } from "../transport/types.ts";
import { GRANT, LIMITS } from "./tabs-lead.ts";

/** The first thing said on a port: which session it is for. */
interface Call {
  readonly session: string;
}

/** What is used of a SharedWorker. */
export interface WorkerLike {
  readonly port: { postMessage(message: unknown): void };
}

/** What is used of the inside of a SharedWorker. */
interface WorkerScope {
  addEventListener(type: "connect", listener: (event: { readonly ports: readonly MessagePort[] }) => void): void;
}

/**
 * To be called in the script of a SharedWorker as it is first run: a tab that connects earlier is not heard. Serves
 * every session of the harness to `openInTabs({ worker })`. Throws INVALID_OPTIONS outside of a SharedWorker.
 */
export function serveTabs(harness: Harness): void {
  if (!("SharedWorkerGlobalScope" in globalThis))
    throw new TurnloopError("INVALID_OPTIONS", "serveTabs is for the script of a SharedWorker");
  const agents = serveAgents(harness, { limits: LIMITS });
  (globalThis as unknown as WorkerScope).addEventListener("connect", ({ ports: [port] }) => {
    port!.addEventListener(
      "message",
      ({ data }) => {
        const session = (data as Partial<Call> | null)?.session;
        if (typeof session === "string") agents.accept(messagePort(port), GRANT, session);
      },
      { once: true },
    );
    port!.start();
  });
}

/** The other end. */
export function callWorker({ port }: WorkerLike, session: string): Connection {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- ports have no origin
  port.postMessage({ session } satisfies Call);
  return messagePort(port);
}
