/** Reads a log on from where it was left. */
import type { SessionEvent, SessionView } from "../core.ts";

/** Each call hands over what has come since the one before, in order. */
export function follow(session: SessionView, from: number, take: (event: SessionEvent) => void): () => void {
  let seq = from;
  return () => {
    for (; seq < session.seq; seq += 1) {
      const event = session.at(seq);
      if (event) take(event);
    }
  };
}
