/** The connections of an object: over WebSockets that stay open while it sleeps, and are taken up again when it wakes. */
import type { Unregister } from "../../src/core.ts";
import { PROTOCOL, type ClientFrame, type HostFrame, type Mark } from "../transport/protocol.ts";
import type { Connection, Grant } from "../transport/types.ts";
import type { HibernatableSocket } from "./durable-object-platform.ts";

/** What the platform keeps of a connection while the object sleeps: what its next instance needs to go on. */
interface Attachment {
  readonly turnloop: { readonly grant: Grant; readonly client?: string; readonly last?: Mark };
}

export interface ObjectConnection extends Connection {
  deliver(frame: string): void;
  closed(reason: string): void;
  /** Settles when the host follows again what it had followed before. */
  restored(session: string): Promise<void>;
}

/** Of our own sockets: a class may have others. */
export function grantOf(socket: HibernatableSocket): Grant | undefined {
  return attachmentOf(socket)?.grant;
}

function attachmentOf(socket: HibernatableSocket): Attachment["turnloop"] | undefined {
  return (socket.deserializeAttachment() as Partial<Attachment> | null)?.turnloop;
}

/** Throws when the grant is larger than what the platform keeps for a socket. */
export function attach(socket: HibernatableSocket, grant: Grant): void {
  socket.serializeAttachment({ turnloop: { grant } } satisfies Attachment);
}

/** Of a socket that was attached, by this instance or by one before. */
export function objectConnection(socket: HibernatableSocket): ObjectConnection {
  let attached = attachmentOf(socket)!;
  const messages = new Set<(frame: string) => void>();
  const closes = new Set<(reason?: unknown) => void>();
  let over: { readonly reason: unknown } | undefined;
  /** While the host is told again what the client had said: settled by its welcome. */
  let restoring: (() => void) | undefined;

  function keep(patch: Partial<Attachment["turnloop"]>): void {
    attached = { ...attached, ...patch };
    socket.serializeAttachment({ turnloop: attached } satisfies Attachment);
  }

  function finish(reason: unknown): void {
    if (over) return;
    over = { reason };
    restoring?.();
    for (const listener of [...closes]) listener(reason);
  }

  function deliver(frame: string): void {
    for (const listener of [...messages]) listener(frame);
  }

  function close(reason: string): void {
    if (over) return;
    closeQuietly(socket, reason);
    finish(reason);
  }

  /** The client hears from it where this instance has taken the log up; one that has another log must come anew. */
  function restore(frame: string): void {
    const settle = restoring;
    if (!settle || !frame.startsWith('{"type":"welcome"')) return;
    const { next } = JSON.parse(frame) as Extract<HostFrame, { type: "welcome" }>;
    if (next !== nextOf(attached.last)) close("the session has changed");
    restoring = undefined;
    settle();
  }

  function note(frame: string): void {
    if (!frame.startsWith('{"type":"events"')) return;
    const { events } = JSON.parse(frame) as { readonly events: readonly Mark[] };
    const { seq, time, type } = events.at(-1)!;
    keep({ last: { seq, time, type } });
  }

  return {
    watched: true,
    send(frame) {
      restore(frame);
      if (over) return;
      try {
        socket.send(frame);
        note(frame);
      } catch {
        finish("the socket is closed");
      }
    },
    onMessage(listener): Unregister {
      messages.add(listener);
      return () => void messages.delete(listener);
    },
    onClose(listener): Unregister {
      if (over) listener(over.reason);
      else closes.add(listener);
      return () => void closes.delete(listener);
    },
    close: (reason = "closed") => close(reason),
    deliver(frame) {
      if (over) return;
      if (attached.client === undefined) {
        const client = clientOf(frame);
        if (client !== undefined) keep({ client });
      }
      deliver(frame);
    },
    closed(reason) {
      closeQuietly(socket, reason);
      finish(reason);
    },
    async restored(session) {
      const { client, last } = attached;
      if (client === undefined || over) return;
      const hello: ClientFrame = {
        type: "hello",
        version: PROTOCOL,
        session,
        client,
        ...(last && { next: nextOf(last), last }),
      };
      await new Promise<void>((resolve) => {
        restoring = resolve;
        deliver(JSON.stringify(hello));
      });
    },
  };
}

function nextOf(last: Mark | undefined): number {
  return last ? last.seq + 1 : 0;
}

/** Whoever says hello, in a frame that the host will check. */
function clientOf(frame: string): string | undefined {
  try {
    const { type, client } = JSON.parse(frame) as { readonly type?: unknown; readonly client?: unknown };
    return type === "hello" && typeof client === "string" ? client : undefined;
  } catch {
    return undefined;
  }
}

/** A reason may be 123 bytes long. */
function closeQuietly(socket: HibernatableSocket, reason: string): void {
  try {
    socket.close(1000, reason.slice(0, 60));
  } catch {
    // It was closed by the other side, or is broken: it is gone either way.
  }
}
