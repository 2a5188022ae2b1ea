/** A store over a log: what a fold makes of it, kept up with the events that come. */
import type { Agent, SessionEvent, SessionView } from "../core.ts";
import type { Store } from "./types.ts";

export interface Fold<T> {
  apply(event: SessionEvent): void;
  /** The same object until something in it changes. */
  snapshot(): T;
}

/**
 * The log is read when `getSnapshot` is called, each event once. Subscribers are told of every event,
 * synchronously. The log is followed only for those who subscribed: a store that is dropped leaves nothing behind.
 */
export function followLog<T>(of: Agent | SessionView, createFold: () => Fold<T>): Store<T> {
  const agent = "getSnapshot" in of ? of : undefined;
  /** A remote agent's session may be replaced. */
  const current = (): SessionView => ("getSnapshot" in of ? of.session : of);
  let session: SessionView;
  let fold: Fold<T>;
  let start: number;
  let next: number;

  function begin(): void {
    session = current();
    fold = createFold();
    start = next = session.start;
  }

  begin();
  return {
    subscribe(listener) {
      const tell = (): void => listener();
      let followed = current();
      let unfollow = followed.subscribe(tell);
      const unwatch = agent?.subscribe(() => {
        if (current() === followed) return;
        unfollow();
        followed = current();
        unfollow = followed.subscribe(tell);
        tell();
      });
      return () => {
        unwatch?.();
        unfollow();
      };
    },

    getSnapshot() {
      // Another log, or a tail that got its beginning: all is read anew.
      if (session !== current() || start !== session.start) begin();
      for (; next < session.seq; next += 1) {
        const event = session.at(next);
        if (event) fold.apply(event);
      }
      return fold.snapshot();
    },
  };
}
