/** The ports of the transport: a connection, and what whoever comes over one may do. */
import type { JsonValue, Unregister } from "../../src/core.ts";

/**
 * One connection, from its opening to its end: it never comes back. What is sent before the other side listens
 * must not be lost. Run `transportContract` of `turnloop/testing` on your own.
 */
export interface Connection {
  /** Hands over one frame, a text; in order. Does nothing once it is closed. */
  send(frame: string): void;
  /** How many characters were handed over and have not left yet, where the platform tells. */
  readonly buffered?: number;
  /**
   * The platform itself tells of a dead peer: the host sends no heartbeat and keeps no timer for it. Say so where
   * a timer would keep awake what should sleep.
   */
  readonly watched?: boolean;
  onMessage(listener: (frame: string) => void): Unregister;
  /** Told once, also by one's own `close`. */
  onClose(listener: (reason?: unknown) => void): Unregister;
  close(reason?: string): void;
}

/** `drive` covers every verb but `respond` and `claim`, which are `answer`. Every grant implies `read`. */
export type Right = "read" | "drive" | "answer";

/** What somebody may do with one session. */
export interface Grant {
  /**
   * Who it is: the host writes it into the `source` of what comes from there, as `{ kind: "user", identity }`.
   * `null` is for a peer that is this program itself, such as another tab: it says itself who speaks.
   */
  readonly identity: JsonValue;
  readonly rights: readonly Right[];
  /** Milliseconds since 1970; past it the connection ends, and may be made anew. */
  readonly expiresAt?: number;
}

/** Asked for every connection, before a resting session is woken. Undefined refuses. */
export type Authorize = (request: Request, session: string) => Promise<Grant | undefined> | Grant | undefined;

export interface Limits {
  /** Of a frame from a client. Default 8 MiB. */
  maxFrameBytes?: number;
  /** Of one connection; what comes faster waits. Default 50. */
  commandsPerSecond?: number;
  /** Default 16. */
  sessionsPerConnection?: number;
  /** How far a client may fall behind before it is left alone until it has caught up. Default 1 MiB. */
  maxBufferedBytes?: number;
  /** How many milliseconds a client may be gone before what it has claimed lapses. Default 30,000. */
  claimGraceMs?: number;
}
