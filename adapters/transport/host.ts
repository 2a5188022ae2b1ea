/** Serves the agents of a harness to whoever is let in. */
import { TurnloopError, type Harness, type JsonValue } from "../../src/core.ts";
import { createHostConnection, type HostConnection } from "./host-connection.ts";
import { openHostSession, type HostSession } from "./host-session.ts";
import { limitsOf } from "./limits.ts";
import type { Connection, Grant, Limits } from "./types.ts";

/** The edges accept connections; who may do what is decided there, before `accept` is called. */
export interface AgentServer {
  /**
   * From now on the other side may reach the session, as far as the grant goes; the session is opened when it asks
   * for it. Once for each session of a connection. Throws TOO_MANY_SESSIONS, HOST_CLOSED.
   */
  accept(connection: Connection, grant: Grant, session: string): void;
  /** Ends the connections of whoever matches, for good: somebody has signed out. Agents go on. */
  disconnect(match: (identity: JsonValue) => boolean): void;
  /** Ends all connections, which may find another host, and lets the agents go. */
  close(): Promise<void>;
}

/**
 * Follows and drives the agents of the harness over connections. A session that rests is opened on demand, and let
 * go when its agent is idle and nobody follows it; one whose turn is open stays, as disconnecting is not cancelling.
 * Throws INVALID_OPTIONS.
 */
export function serveAgents(harness: Harness, options: { limits?: Limits } = {}): AgentServer {
  const limits = limitsOf(options.limits);
  const { claimGraceMs } = limits;
  const connections = new Map<Connection, HostConnection>();
  const sessions = new Map<string, Promise<HostSession>>();
  let closed = false;

  function sessionOf(id: string, mayBegin: boolean): Promise<HostSession> {
    const known = sessions.get(id);
    if (known) return known;
    const forget = (): void => {
      if (sessions.get(id) === opening) sessions.delete(id);
    };
    const opening: Promise<HostSession> = openHostSession(harness, id, { mayBegin, claimGraceMs, over: forget });
    sessions.set(id, opening);
    opening.catch(forget);
    return opening;
  }

  return {
    accept(connection, grant, session) {
      if (closed) throw new TurnloopError("HOST_CLOSED", "this host is closed; call `serveAgents` again");
      const known = connections.get(connection);
      if (known) return known.allow(grant, session);
      const made = createHostConnection(connection, {
        harness,
        limits,
        session: sessionOf,
        closed: () => connections.delete(connection),
      });
      connections.set(connection, made);
      made.allow(grant, session);
    },

    disconnect(match) {
      const error = new TurnloopError("UNAUTHORIZED", "the permission was taken back; sign in again");
      for (const connection of [...connections.values()]) {
        if (connection.grants().some(({ identity }) => match(identity))) connection.end(error, false);
      }
    },

    async close() {
      closed = true;
      const error = new TurnloopError("HOST_CLOSED", "the host is closing; connect again");
      for (const connection of [...connections.values()]) connection.end(error, true);
      await Promise.allSettled([...sessions.values()].map(async (opening) => (await opening).end(error)));
    },
  };
}
