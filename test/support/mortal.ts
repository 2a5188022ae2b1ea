/** A harness that dies: from a moment on nothing that it writes is stored, though it believes so. */
import { memoryStorage, type SessionEvent, type SessionEventType, type SessionStorage } from "turnloop";
import { deferred } from "./wait.ts";

export interface Mortal {
  /** For the harness that will die. */
  readonly storage: SessionStorage;
  /** What survives it. */
  readonly disk: SessionStorage;
  /** Resolves at its death. */
  readonly dead: Promise<void>;
  kill(): void;
  /** The event of this seq is the last that is stored. */
  killAt(seq: number): void;
  /** Dies of an event: it is the last that is stored. */
  killAfter<T extends SessionEventType>(type: T, matches?: (event: SessionEvent<T>) => boolean): void;
}

export function mortal(disk: SessionStorage = memoryStorage()): Mortal {
  const death = deferred();
  let isDead = false;
  let isFatal = (_event: SessionEvent): boolean => false;
  return {
    disk,
    dead: death.promise,
    kill() {
      isDead = true;
      death.resolve();
    },
    killAt(seq) {
      isFatal = (event) => event.seq === seq;
    },
    killAfter(type, matches = () => true) {
      isFatal = (event) => event.type === type && matches(event as never);
    },
    storage: {
      ...disk,
      async append(batch) {
        if (isDead) return;
        const fatal = batch.events.findIndex(isFatal);
        if (fatal < 0) {
          await disk.append(batch);
          return;
        }
        isDead = true;
        const events = batch.events.slice(0, fatal + 1);
        await disk.append({ ...batch, events, summary: { ...batch.summary, seq: batch.from + events.length } });
        death.resolve();
      },
    },
  };
}

/** What is stored of a session. */
export async function storedEvents(disk: SessionStorage, id = "session"): Promise<SessionEvent[]> {
  const stored = await disk.load(id);
  const events: SessionEvent[] = [];
  if (stored) for await (const batch of stored.batches) events.push(...batch);
  return events;
}
