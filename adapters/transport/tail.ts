/** Where the tail of a long session begins, and what a reader of the whole would know there. */
import { advance, createState, inherit, queuedMessages } from "../../src/core.ts";
import type { Session } from "../../src/core.ts";
import type { Base } from "./protocol.ts";

/** A tail has at least so many events, where there are as many. */
export const TAIL = 500;

/** The start of the last turn that lies so far before `before`; 0 when there is none. */
export function startOfTail(session: Session, before: number): number {
  for (let seq = before - TAIL; seq > 0; seq -= 1) if (session.at(seq)?.type === "turn/start") return seq;
  return 0;
}

export function baseAt(session: Session, start: number): Base {
  const seedLength = session.header.seedLength ?? 0;
  const state = createState();
  for (let seq = 0; seq < start; seq += 1) {
    if (seq === session.openedAt) inherit(state);
    advance(state, session.at(seq)!, seq >= seedLength);
  }
  const queue = queuedMessages(state).map(({ id, content, source, as }) => ({ id, content, source, as }));
  return { start, turn: state.turn, queue };
}
