/** Writes a log behind, in order and without a gap, and says how far it has come. */
import { messageOf, TurnloopError, type Report } from "../errors.ts";
import { jsonEqual } from "../json.ts";
import type { Log, Recording } from "../session/log.ts";
import type { Durability, SessionEvent, SessionSummary } from "../session/types.ts";
import type { Clock } from "../scope.ts";
import { createSummaries, FIRST_RETRY_MS, LAST_RETRY_MS } from "./summaries.ts";
import { summaryOf } from "./summary.ts";
import type { SessionBatch, SessionStorage } from "./types.ts";

/** How many events one write takes at most. */
const BATCH = 1000;
/** How many events may wait before the model stream is slowed down. */
const BACKLOG = 5000;
/** A session is degraded when a write takes longer. */
export const PATIENCE_MS = 5000;

export interface Recorder extends Recording {
  /** How many events are stored. */
  readonly stored: number;
  /** Why the storage has refused for good. */
  readonly lost: TurnloopError | undefined;
  /** Resolves when all that is in the log now is stored; rejects once that can never be. */
  flush(): Promise<void>;
  /** The same, but rejects SESSION_DEGRADED once the session is: nobody in the loop waits for longer. */
  settle(): Promise<void>;
  /** At the opening of what was stored: tells what is stored, and writes what is not. */
  begin(): void;
  /** Nothing is written any more: another holds the right to. The first reason counts. */
  lose(error: TurnloopError): void;
  /** Undefined while the storage keeps up, else what the model stream waits for. */
  pressure(): Promise<void> | undefined;
  /** No more writes; resolves when the one under way has ended. */
  stop(): Promise<void>;
}

export interface RecorderOptions {
  readonly log: Log;
  readonly storage: SessionStorage;
  /** How many of the log's events are stored already. */
  readonly stored: number;
  readonly clock: Clock;
  readonly report: Report;
  readonly onSummary: ((summary: SessionSummary) => unknown) | undefined;
  /** `durable` has changed, in a way that lasts. */
  readonly onChange: () => void;
  /** The storage has refused for good. */
  readonly onLost: (error: TurnloopError) => void;
}

interface Waiter {
  readonly seq: number;
  /** Gives up when the session is degraded. */
  readonly bounded: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

export function createRecorder(options: RecorderOptions): Recorder {
  const { log, storage, clock, report, onChange, onLost } = options;
  const { id, header } = log.session;
  const summaries = createSummaries(options);
  let { stored } = options;
  let degraded = false;
  let lost: TurnloopError | undefined;
  let scheduled = false;
  let writing: Promise<void> | undefined;
  /** The write under way takes longer than a turn of the event loop: what is appended behind it has to wait. */
  let lasting = false;
  /** It was told that something waits. */
  let toldPending = false;
  let stopped = false;
  /** Wakes a write that waits to be tried again. */
  let retrying: AbortController | undefined;
  /** Resolves when the write under way is waited for no longer. */
  let stalled = Promise.withResolvers<void>();
  let waiters: Waiter[] = [];

  const unwatch = storage.watchTail?.(id, () => (stored < log.seq && !lost ? batchTo(log.seq) : undefined));

  function batchTo(to: number): SessionBatch {
    const summary = { ...summaryOf(log), seq: to };
    return { id, from: stored, events: log.slice(stored, to), summary, ...(stored === 0 && { header }) };
  }

  /** Told only when a write lasts: most are done before anybody could look. */
  function tellPending(): void {
    if (toldPending || degraded || lost) return;
    toldPending = true;
    onChange();
  }

  /** Writes at the end of this turn of the event loop: what it appended is one batch. */
  function wake(): void {
    if (lasting && !toldPending) tellPending();
    if (scheduled || writing || lost || stopped || stored >= log.seq) return;
    scheduled = true;
    soon(() => {
      scheduled = false;
      write();
    });
  }

  function write(): void {
    if (writing || lost || stored >= log.seq || stopped) return;
    const to = Math.min(log.seq, stored + BATCH);
    writing = DONE.then(() => store(to)).then(() => {
      writing = undefined;
      if (lost || stopped) return;
      const ready = waiters.filter((waiter) => waiter.seq <= stored);
      waiters = waiters.filter((waiter) => waiter.seq > stored);
      const whole = stored === log.seq;
      const changed = whole || degraded;
      degraded = false;
      toldPending = !whole && (toldPending || changed);
      if (changed) onChange();
      for (const waiter of ready) waiter.resolve();
      if (waiters.length > 0) write();
      else if (stored < log.seq) wake();
    });
  }

  /** Stores up to `to`, however long it takes. Never rejects. */
  async function store(to: number): Promise<void> {
    const batch = batchTo(to);
    let done = false;
    let patience: AbortController | undefined;
    stalled = Promise.withResolvers<void>();
    // Most writes are done before any timer could matter.
    soon(() => {
      if (done) return;
      lasting = true;
      if (log.seq > to) tellPending();
      patience = new AbortController();
      clock.sleep(PATIENCE_MS, patience.signal).then(degrade, () => {});
    });
    for (let wait = FIRST_RETRY_MS; !stopped && !lost; wait = Math.min(wait * 2, LAST_RETRY_MS)) {
      try {
        await append(batch);
        stored = to;
        summaries.tell(batch.summary);
        break;
      } catch (cause) {
        if (isRefusal(cause)) {
          lose(conflict(id, cause));
          break;
        }
        report({
          code: "STORAGE_FAILED",
          message: `a write failed and will be tried again: ${messageOf(cause)}`,
          cause,
          sessionId: id,
        });
      }
      if (stopped || lost) break;
      tellPending();
      retrying = new AbortController();
      await clock.sleep(wait, retrying.signal).catch(() => {});
    }
    done = true;
    lasting = false;
    patience?.abort();
  }

  /** A refusal whose stored tail is the batch itself only means that an acknowledgement was lost. */
  async function append(batch: SessionBatch): Promise<void> {
    try {
      await storage.append(batch);
    } catch (cause) {
      if (!isRefusal(cause) || !(await isStored(batch.events))) throw cause;
    }
  }

  async function isStored(events: readonly SessionEvent[]): Promise<boolean> {
    const found = await storage.load(id, { from: stored });
    if (found?.length !== stored + events.length || !jsonEqual(found.header, header)) return false;
    const tail: SessionEvent[] = [];
    for await (const batch of found.batches) tail.push(...batch);
    return jsonEqual(tail, events);
  }

  function degrade(): void {
    stalled.resolve();
    if (degraded || lost) return;
    degraded = true;
    report({
      code: "SESSION_DEGRADED",
      message: "the storage has not taken anything for a while; the session goes on in memory",
      sessionId: id,
    });
    onChange();
    drop((waiter) => waiter.bounded, degradedError);
  }

  function drop(which: (waiter: Waiter) => boolean, error: () => TurnloopError): void {
    const dropped = waiters.filter(which);
    waiters = waiters.filter((waiter) => !which(waiter));
    for (const waiter of dropped) waiter.reject(error());
  }

  function lose(error: TurnloopError): void {
    if (lost) return;
    lost = error;
    retrying?.abort();
    report({ code: error.code, message: error.message, cause: error.cause, sessionId: id });
    onChange();
    onLost(error);
    drop(
      () => true,
      () => error,
    );
  }

  function caughtUp(bounded: boolean): Promise<void> {
    if (lost) return Promise.reject(lost);
    if (stored >= log.seq) return DONE;
    if (stopped)
      return Promise.reject(new TurnloopError("SESSION_CLOSED", "the session is closed, and part of it is not stored"));
    if (bounded && degraded) return Promise.reject(degradedError());
    return new Promise((resolve, reject) => {
      waiters.push({ seq: log.seq, bounded, resolve, reject });
      write();
    });
  }

  return {
    get durable(): Durability {
      if (lost) return "lost";
      if (degraded) return "degraded";
      return stored < log.seq ? "pending" : "stored";
    },
    get stored() {
      return stored;
    },
    get lost() {
      return lost;
    },
    wake,
    begin() {
      // Its last word may have been lost with the process that stored it.
      if (stored > 0 && stored === log.seq) summaries.tell(summaryOf(log));
      wake();
    },
    lose,
    flush: () => caughtUp(false),
    settle: () => caughtUp(true),
    pressure: () => (log.seq - stored > BACKLOG && !degraded && !lost ? caughtUp(true).catch(() => {}) : undefined),
    async stop() {
      stopped = true;
      retrying?.abort();
      summaries.stop();
      // A storage that does not answer is not waited for.
      if (!degraded && writing) await Promise.race([writing, stalled.promise]);
      drop(
        () => true,
        () => new TurnloopError("SESSION_CLOSED", "the session was closed before all of it was stored"),
      );
      unwatch?.();
    },
  };
}

const DONE = Promise.resolve();

/** What no second try would change. */
function isRefusal(thrown: unknown): thrown is TurnloopError {
  return TurnloopError.is(thrown, "SESSION_CONFLICT") || TurnloopError.is(thrown, "SESSION_EXISTS");
}

function conflict(id: string, cause: TurnloopError): TurnloopError {
  return new TurnloopError(
    "SESSION_CONFLICT",
    `another writer has the session ${id}; open it again to see what it wrote`,
    { cause },
  );
}

function degradedError(): TurnloopError {
  return new TurnloopError(
    "SESSION_DEGRADED",
    "the storage does not answer; what is not stored yet is kept in memory and tried again",
  );
}

/** After what is running now, before any timer where the platform can. Hidden tabs only delay what nobody waits for. */
function soon(task: () => void): void {
  const { setImmediate } = globalThis as { setImmediate?: (task: () => void) => unknown };
  if (setImmediate) setImmediate(task);
  else setTimeout(task, 0);
}
