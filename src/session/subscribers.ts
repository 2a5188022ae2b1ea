/** Who listens to a log: each is told every event once, in order, from the seq that it asked for. */
import { isThenable } from "../hooks/hooks.ts";
import type { Unregister } from "../hooks/types.ts";
import type { SessionEvent, SessionView } from "./types.ts";

export interface Subscribers {
  /** Replays what it asks for, and follows from there. */
  readonly subscribe: SessionView["subscribe"];
  tell(event: SessionEvent): void;
}

/** What is told: the events from `start` on, of which those before `told` were told already. */
export interface Told {
  readonly start: number;
  readonly told: number;
  /** Of the event that is appended next. */
  readonly seq: number;
  at(seq: number): SessionEvent | undefined;
}

interface Subscriber {
  readonly listener: (event: SessionEvent) => unknown;
  next: number;
}

/** `failed` is told of a listener that throws or rejects; the others hear the event all the same. */
export function createSubscribers(log: Told, failed: (cause: unknown) => void): Subscribers {
  // Copied on write, so that those who come or go meanwhile change nothing for the event that is told.
  let row: readonly Subscriber[] = [];

  function deliver(subscriber: Subscriber, event: SessionEvent): void {
    if (event.seq < subscriber.next) return;
    subscriber.next = event.seq + 1;
    try {
      const answer = subscriber.listener(event);
      if (isThenable(answer)) answer.then(undefined, failed);
    } catch (cause) {
      failed(cause);
    }
  }

  return {
    subscribe(listener, { from, signal } = {}): Unregister {
      if (signal?.aborted) return () => {};
      const subscriber: Subscriber = {
        listener,
        next: Number.isSafeInteger(from) ? Math.max(from!, log.start) : log.seq,
      };
      while (subscriber.next < log.told && !signal?.aborted) deliver(subscriber, log.at(subscriber.next)!);
      if (signal?.aborted) return () => {};
      row = [...row, subscriber];
      const off = (): void => {
        signal?.removeEventListener("abort", off);
        row = row.filter((other) => other !== subscriber);
      };
      signal?.addEventListener("abort", off, { once: true });
      return off;
    },

    tell(event) {
      const all = row;
      for (let i = 0; i < all.length; i += 1) deliver(all[i]!, event);
    },
  };
}
