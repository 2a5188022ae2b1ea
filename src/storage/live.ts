/** A session that is live here: its log, and the recorder that keeps it. */
import { TurnloopError, type Report } from "../errors.ts";
import type { Dispatch } from "../hooks/hooks.ts";
import { createLog, type Log } from "../session/log.ts";
import type { SessionEvent, SessionHeader, SessionSummary } from "../session/types.ts";
import type { Clock } from "../scope.ts";
import { createRecorder, PATIENCE_MS, type Recorder } from "./recorder.ts";
import type { SessionStorage } from "./types.ts";

export interface LiveSession {
  readonly log: Log;
  readonly recorder: Recorder;
  /** Set by whoever drives it: told when `durable` changes, and when the storage refuses for good. */
  listener: { changed(): void; lost(error: TurnloopError): void } | undefined;
  /** Stores all, and awaits the listeners of `session/flush`; of neither for longer than PATIENCE_MS. */
  flush(): Promise<void>;
  /** Ends it: nothing is appended or stored from here on. */
  close(): Promise<void>;
}

export interface LiveOptions {
  readonly header: SessionHeader;
  readonly events: readonly SessionEvent[];
  /** How many of the events are stored already. */
  readonly stored: number;
  readonly storage: SessionStorage;
  readonly clock: Clock;
  readonly report: Report;
  /** Where `session/event` is heard; a session that nobody drives is silent. */
  readonly hooks?: Dispatch | undefined;
  readonly betweenTurns: (type: string) => boolean;
  readonly onSummary?: ((summary: SessionSummary) => unknown) | undefined;
}

export function openLive(options: LiveOptions): LiveSession {
  const { header, events, stored, storage, clock, report, hooks, betweenTurns, onSummary } = options;
  const log = createLog({ header, events, now: () => clock.now(), report, betweenTurns, hooks });
  const recorder = createRecorder({
    log,
    storage,
    stored,
    clock,
    report,
    onSummary,
    onChange: () => live.listener?.changed(),
    onLost: (error) => (live.listener ? live.listener.lost(error) : log.close(() => error)),
  });
  log.record(recorder);
  const live: LiveSession = {
    log,
    recorder,
    listener: undefined,
    async flush() {
      const { session } = log;
      const listeners = hooks?.heard("session/flush")
        ? withinPatience(clock, hooks.parallel("session/flush", { session }))
        : undefined;
      const results = await Promise.allSettled([listeners, recorder.settle()]);
      for (const result of results) if (result.status === "rejected") throw result.reason;
    },
    async close() {
      log.close(() => new TurnloopError("SESSION_CLOSED", `the session ${header.id} is closed; open it again`));
      await recorder.stop();
    },
  };
  return live;
}

/** Nobody waits for a deaf listener. */
async function withinPatience(clock: Clock, listeners: Promise<void>): Promise<void> {
  const done = new AbortController();
  const late = clock.sleep(PATIENCE_MS, done.signal).then(
    () => {
      throw new TurnloopError("FLUSH_FAILED", `a listener of session/flush took longer than ${PATIENCE_MS} ms`);
    },
    () => {},
  );
  try {
    await Promise.race([listeners, late]);
  } finally {
    done.abort();
  }
}
