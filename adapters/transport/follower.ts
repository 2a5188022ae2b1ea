/** One client that follows one session: sent what is stored, as fast as it takes it and no faster. */
import { jsonEqual } from "../../src/core.ts";
import type { HostFrame, HostState } from "./protocol.ts";

export interface Follower {
  /** Something is stored, or the state has changed, or the client has taken something: sends what it can. */
  pump(): void;
  /** Sends the frame behind all events before `seq`. */
  after(seq: number, frame: HostFrame): void;
  /** So much of what was sent has arrived. */
  seen(amount: number): void;
}

export interface FollowerOptions {
  /** The seq that is sent first. */
  readonly next: number;
  readonly source: {
    readonly stored: number;
    state(): HostState;
    /** The JSON of a row of stored events, as long as `enough` or one event longer. */
    encode(from: number, enough: number): { readonly to: number; readonly json: string };
  };
  readonly session: string;
  readonly maxBuffered: number;
  send(frame: string): void;
  /** What the connection itself holds back. */
  buffered(): number;
}

/** A frame of events holds about so many characters. */
const FRAME = 64 * 1024;

/** The log is its only buffer: a client that has fallen behind is sent nothing until it has caught up. */
export function createFollower(options: FollowerOptions): Follower {
  const { source, session, maxBuffered, send, buffered } = options;
  let { next } = options;
  let underWay = 0;
  let told: HostState | undefined;
  const later: { readonly seq: number; readonly frame: HostFrame }[] = [];

  function sendLater(): void {
    while (later.length > 0 && later[0]!.seq <= next) send(JSON.stringify(later.shift()!.frame));
  }

  const follower: Follower = {
    pump() {
      while (next < source.stored && underWay < maxBuffered && buffered() < maxBuffered) {
        const { to, json } = source.encode(next, FRAME);
        const frame = `{"type":"events","session":${JSON.stringify(session)},"from":${next},"events":${json}}`;
        underWay += frame.length;
        next = to;
        send(frame);
        sendLater();
      }
      // What the log does not tell is told behind it: an agent is idle only once its last turn has been seen.
      if (next < source.stored) return;
      const state = source.state();
      if (!told || !jsonEqual(told, state)) {
        told = state;
        send(JSON.stringify({ type: "state", session, state } satisfies HostFrame));
      }
      sendLater();
    },

    after(seq, frame) {
      later.push({ seq, frame });
      follower.pump();
    },

    seen(amount) {
      underWay = Math.max(0, underWay - amount);
      follower.pump();
    },
  };
  return follower;
}
