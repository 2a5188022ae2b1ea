/** Reads logs on from where they were left. */
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

/** What takes the events of one session. */
export interface Fold {
  take(event: SessionEvent): void;
}

/** A fold of each session, as its log stands at the call; `begin` makes one. Each event is looked at once. */
export function foldOf<F extends Fold>(
  begin: (session: SessionView) => F,
  from: (session: SessionView) => number,
): (session: SessionView) => F {
  const known = new WeakMap<SessionView, { readonly fold: F; catchUp(): void }>();
  return (session) => {
    let one = known.get(session);
    if (!one) {
      const fold = begin(session);
      known.set(session, (one = { fold, catchUp: follow(session, from(session), (event) => fold.take(event)) }));
    }
    one.catchUp();
    return one.fold;
  };
}

/** For what is a session's own: not what a fork inherited. */
export function ownStart({ header }: SessionView): number {
  return header.seedLength ?? 0;
}
