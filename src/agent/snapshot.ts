/** The snapshot of an agent: one frozen object until something in it changes. */
import { failureOf, type Report } from "../errors.ts";
import type { Interaction } from "../interaction/types.ts";
import type { Log } from "../session/log.ts";
import { isWaiting } from "../session/parking.ts";
import { openInteractions, queuedMessages } from "../session/state.ts";
import type { Recorder } from "../storage/recorder.ts";
import type { AgentSnapshot, AgentStatus, QueuedMessage } from "./types.ts";

export interface SnapshotStore {
  get(): AgentSnapshot;
  /** Tells the watchers, if anything that is shown differs from what they were told. */
  changed(): void;
  subscribe(watcher: () => void): () => void;
  /** Whether anybody watches. */
  watched(): boolean;
}

export function createSnapshots(
  log: Log,
  status: () => AgentStatus,
  recorder: Pick<Recorder, "durable" | "lost">,
  report: Report,
): SnapshotStore {
  const watchers = new Set<() => void>();
  const shown = new WeakMap<QueuedMessage, QueuedMessage>();
  let last: AgentSnapshot | undefined;
  let told: AgentSnapshot | undefined;

  function entryOf(entry: QueuedMessage): QueuedMessage {
    let entryShown = shown.get(entry);
    if (!entryShown) {
      const { id, content, source, as } = entry;
      shown.set(entry, (entryShown = Object.freeze({ id, content, source, as })));
    }
    return entryShown;
  }

  function get(): AgentSnapshot {
    const { state } = log;
    const now: AgentSnapshot = {
      status: status(),
      waiting: isWaiting(state),
      queue: queuedMessages(state).map(entryOf),
      interactions: openInteractions(state),
      durable: recorder.durable(),
      ...(recorder.lost && { error: recorder.lost }),
    };
    return (last = nextSnapshot(last, now, Object.is));
  }

  return {
    get,
    changed() {
      if (watchers.size === 0 || (told && isSame(told, get()))) return;
      told = last;
      for (const watcher of [...watchers]) {
        try {
          watcher();
        } catch (cause) {
          report(failureOf("LISTENER_FAILED", "a listener of the agent failed", cause));
        }
      }
    },
    subscribe(listener) {
      // A wrapper of its own, so that one function subscribed twice is removed once at a time.
      const watcher = (): void => listener();
      if (watchers.size === 0) told = get();
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
    watched: () => watchers.size > 0,
  };
}

/** The snapshot that follows `last`, frozen: the same object, and the same lists in it, where nothing differs. */
export function nextSnapshot(
  last: AgentSnapshot | undefined,
  now: AgentSnapshot,
  sameEntry: (a: QueuedMessage, b: QueuedMessage) => boolean,
): AgentSnapshot {
  const next: AgentSnapshot = {
    ...now,
    queue: keep(last?.queue, now.queue, sameEntry),
    interactions: keep(last?.interactions, now.interactions, sameInteraction),
  };
  return last && isSame(last, next) ? last : Object.freeze(next);
}

function sameInteraction(a: Interaction, b: Interaction): boolean {
  return a.id === b.id && a.claimedBy === b.claimedBy;
}

function isSame(a: AgentSnapshot, b: AgentSnapshot): boolean {
  return PARTS.every((part) => a[part] === b[part]);
}

const PARTS = [
  "status",
  "waiting",
  "queue",
  "interactions",
  "durable",
  "connection",
  "rights",
  "error",
] as const satisfies (keyof AgentSnapshot)[];

/** The list as it was, where it is still the same. */
function keep<T>(before: readonly T[] | undefined, now: readonly T[], equal: (a: T, b: T) => boolean): readonly T[] {
  const same = before?.length === now.length && now.every((item, i) => equal(before[i]!, item));
  return same ? before : Object.freeze(now);
}

/** What the snapshot shows changes with these alone: any other event costs one look-up. */
export const SHOWN: ReadonlySet<string> = new Set([
  "turn/start",
  "turn/end",
  "step/end",
  "user/message",
  "steering/message",
  "context/message",
  "prompt/blocked",
  "inbox/queued",
  "inbox/dropped",
  "agent/cancelled",
  "assistant/message",
  "tool/start",
  "tool/result",
  "interaction/requested",
  "interaction/claimed",
  "interaction/released",
  "interaction/resolved",
]);
