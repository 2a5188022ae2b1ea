/** One connection at the host: what comes over it is checked, paced, and handed to the sessions it may reach. */
import { TurnloopError } from "../../src/core.ts";
import type { Clock, Harness, MessageSource } from "../../src/core.ts";
import { createFollower, type Follower } from "./follower.ts";
import { createHeartbeat } from "./heartbeat.ts";
import type { HostSession } from "./host-session.ts";
import { checkSize, createPace } from "./limits.ts";
import { PING, PONG, PROTOCOL, readClientFrame, type ClientFrame, type Command, type HostFrame } from "./protocol.ts";
import { refuse } from "./refuse.ts";
import { baseAt, startOfTail } from "./tail.ts";
import type { Connection, Grant, Limits } from "./types.ts";
import { isGone, isOwnFault, toWire } from "./wire-error.ts";

export interface HostConnection {
  /** Lets it reach one more session. Throws TOO_MANY_SESSIONS. */
  allow(grant: Grant, session: string): void;
  grants(): readonly Grant[];
  /** Tells why, and closes. `retry`: another connection may do better. */
  end(error: unknown, retry: boolean): void;
}

export interface HostConnectionOptions {
  readonly harness: Harness;
  readonly limits: Required<Limits>;
  /** The session as the host has it; opened when nobody had it. */
  readonly session: (id: string, mayBegin: boolean) => Promise<HostSession>;
  readonly closed: () => void;
}

/** What a connection may reach, and what it follows of that. */
interface Reach {
  readonly id: string;
  readonly grant: Grant;
  client?: string;
  following?: { readonly host: HostSession; readonly follower: Follower; leave(): void };
}

/** Errors that a new connection would only meet again. */
const FINAL: ReadonlySet<string> = new Set(["UNAUTHORIZED", "SESSION_NOT_FOUND", "INVALID_ID", "UNSUPPORTED"]);

export function createHostConnection(connection: Connection, options: HostConnectionOptions): HostConnection {
  const { harness, limits } = options;
  const { clock } = harness;
  const reaches = new Map<string, Reach>();
  const pace = createPace(limits.commandsPerSecond, clock);
  const heartbeat = connection.watched ? undefined : watchPeer(clock);
  let over = false;

  function watchPeer(by: Clock): ReturnType<typeof createHeartbeat> {
    const dead = (): void => end(new TurnloopError("PEER_SILENT", "nothing was heard of the client for a while"), true);
    return createHeartbeat(by, () => connection.send(PING), dead);
  }

  function send(frame: HostFrame): void {
    if (!over) connection.send(JSON.stringify(frame));
  }

  function leave(): void {
    if (over) return;
    over = true;
    heartbeat?.stop();
    pace.stop();
    for (const { following } of reaches.values()) following?.leave();
    options.closed();
  }

  function end(thrown: unknown, retry: boolean): void {
    if (over) return;
    const error = toWire(thrown);
    if (isOwnFault(error))
      harness.report({ code: "HOST_FAILED", message: "a remote agent could not be served", cause: thrown });
    leave();
    refuse(connection, error, retry);
  }

  /** Nothing is read and nothing is done with a grant that has run out. */
  function isValid({ grant: { expiresAt } }: Reach): boolean {
    if (expiresAt === undefined || clock.now() < expiresAt) return true;
    end(new TurnloopError("GRANT_EXPIRED", "the permission has run out; connect again"), true);
    return false;
  }

  async function hello(reach: Reach, frame: Extract<ClientFrame, { type: "hello" }>): Promise<void> {
    // A connection says hello once; a second one changes nothing.
    if (reach.client !== undefined) return;
    reach.client = frame.client;
    const host = await options.session(reach.id, reach.grant.rights.includes("drive"));
    if (!over && isValid(reach)) follow(reach, host, frame);
  }

  /** In one synchronous frame: no gap between what is told of the past and what follows, and nothing twice. */
  function follow(reach: Reach, host: HostSession, frame: Extract<ClientFrame, { type: "hello" }>): void {
    const { next = 0, last, history } = frame;
    const { session, source } = host;
    const known = next > 0 && last?.seq === next - 1 && host.knows(last);
    const start = !known && history === "tail" ? startOfTail(session, source.stored) : 0;
    const base = start > 0 ? baseAt(session, start) : undefined;
    send({
      type: "welcome",
      version: PROTOCOL,
      session: reach.id,
      header: session.header,
      rights: [...new Set(["read" as const, ...reach.grant.rights])],
      options: host.options,
      next: known ? next : start,
      ...(base && { base }),
      openedAt: session.openedAt,
      maxFrameBytes: limits.maxFrameBytes,
      seenEvery: Math.ceil(limits.maxBufferedBytes / 4),
    });
    const follower = createFollower({
      next: known ? next : start,
      source,
      session: reach.id,
      maxBuffered: limits.maxBufferedBytes,
      send: (text) => {
        if (!over && isValid(reach)) connection.send(text);
      },
      buffered: () => connection.buffered ?? 0,
    });
    const off = host.join(reach.client!, follower, (error) => end(error, true));
    if (over) return off();
    reach.following = { host, follower, leave: off };
    follower.pump();
  }

  function obey(reach: Reach, commands: readonly Command[]): void {
    const { following, client, grant, id: session } = reach;
    if (!following || client === undefined) throw new TurnloopError("BAD_FRAME", "a command comes after the welcome");
    const { host, follower } = following;
    const sender = { rights: grant.rights, client, source: sourceOf(grant) };
    for (const command of commands) {
      const { id, kind } = command;
      host.commands.take(command, sender).then(
        ({ value, seq }) => follower.after(seq, { type: "done", session, id, ...(value !== undefined && { value }) }),
        (thrown: unknown) => {
          // Not refused: it is sent again, to whoever has the session next.
          if (isGone(thrown)) return end(thrown, true);
          const error = toWire(thrown);
          if (isOwnFault(error))
            harness.report({ code: "HOST_FAILED", message: `${kind} failed`, cause: thrown, sessionId: session });
          follower.after(host.source.stored, { type: "refused", session, id, error });
        },
      );
    }
  }

  function take(frame: ClientFrame): void {
    const reach = reaches.get(frame.session);
    if (!reach) throw new TurnloopError("UNAUTHORIZED", "this connection may not reach that session");
    if (!isValid(reach)) return;
    const { following } = reach;
    switch (frame.type) {
      case "hello":
        hello(reach, frame).catch(giveUp);
        return;
      case "commands": {
        const { commands } = frame;
        return pace.take(commands.length, () => guarded(() => !over && isValid(reach) && obey(reach, commands)));
      }
      case "seen":
        return following?.follower.seen(frame.amount);
      case "earlier": {
        if (!following) return;
        const { session, source } = following.host;
        const before = Math.min(frame.before, source.stored);
        const base = baseAt(session, startOfTail(session, before));
        const events = [];
        for (let seq = base.start; seq < before; seq += 1) events.push(session.at(seq));
        return send({ type: "earlier", session: reach.id, base, events });
      }
    }
  }

  function giveUp(thrown: unknown): void {
    end(thrown, !(TurnloopError.is(thrown) && FINAL.has(thrown.code)));
  }

  function guarded(body: () => unknown): void {
    try {
      body();
    } catch (thrown) {
      // A frame that a well-behaved client never sends.
      end(thrown, false);
    }
  }

  connection.onMessage((text) => {
    if (over) return;
    heartbeat?.heard();
    if (text === PING) connection.send(PONG);
    else if (text !== PONG) {
      guarded(() => {
        checkSize(text, limits.maxFrameBytes);
        take(readClientFrame(text));
      });
    }
    for (const { following } of reaches.values()) following?.follower.pump();
  });
  connection.onClose(leave);

  return {
    allow(grant, id) {
      if (reaches.size >= limits.sessionsPerConnection && !reaches.has(id)) {
        const message = `a connection may reach ${limits.sessionsPerConnection} sessions; open another`;
        throw new TurnloopError("TOO_MANY_SESSIONS", message);
      }
      reaches.get(id)?.following?.leave();
      reaches.set(id, { id, grant });
    },
    grants: () => [...reaches.values()].map(({ grant }) => grant),
    end,
  };
}

function sourceOf({ identity }: Grant): MessageSource | undefined {
  return identity === null ? undefined : Object.freeze({ kind: "user", identity });
}
