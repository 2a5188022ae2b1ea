/** Writes a log behind, in order and without a gap, and says how far it has come. */
import { failureOf, type Report, TurnloopError } from "../errors.ts";
import type { Log, Recording } from "../session/log.ts";
import type { Durability, SessionSummary } from "../session/types.ts";
import type { Clock } from "../scope.ts";
import { conflict, isRefusal, refusalOf } from "./refusal.ts";
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
  let degraded = false;
  let writing: Promise<void> | undefined;
  /** Up to where. */
  let writingTo = 0;
  /** The write under way takes longer than a turn of the event loop: what is appended behind it has to wait. */
  let lasting = false;
  /** Something looks after the recorder at the end of this turn of the event loop; and the write began behind that. */
  let looking = false;
  let fresh = false;
  /** It was told that something waits. */
  let toldPending = false;
  let stopped = false;
  /** Ends the watch over a write that lasts. */
  let patience: AbortController | undefined;
  /** Wakes a write that waits to be tried again. */
  let retrying: AbortController | undefined;
  /** For the end: resolves when the write under way is waited for no longer. */
  let stalled: PromiseWithResolvers<void> | undefined;
  let waiters: Waiter[] = [];

  const unwatch = storage.watchTail?.(id, () =>
    recorder.stored < log.seq && !recorder.lost ? batchTo(log.seq) : undefined,
  );

  function batchTo(to: number): SessionBatch {
    const { stored: from } = recorder;
    return { id, from, events: log.slice(from, to), summary: summaryOf(log, to), ...(from === 0 && { header }) };
  }

  /** Told only when a write lasts: most are done before anybody could look. */
  function tellPending(): void {
    if (toldPending || degraded || recorder.lost) return;
    toldPending = true;
    onChange();
  }

  /** Writes at the end of this turn of the event loop: what it appended is one batch. */
  function wake(): void {
    if (lasting && !toldPending) tellPending();
    if (!writing && !recorder.lost && !stopped && recorder.stored < log.seq) lookSoon();
  }

  function lookSoon(): void {
    if (looking) return;
    looking = true;
    soon(look);
  }

  function look(): void {
    looking = false;
    if (!writing) write();
    else if (fresh) {
      fresh = false;
      lookSoon();
    } else if (!lasting) {
      lasting = true;
      if (log.seq > writingTo) tellPending();
      patience = new AbortController();
      clock.sleep(PATIENCE_MS, patience.signal).then(degrade, () => {});
    }
  }

  function write(): void {
    if (writing || recorder.lost || stopped || recorder.stored >= log.seq) return;
    writingTo = Math.min(log.seq, recorder.stored + BATCH);
    fresh = looking;
    // Most writes are done before any timer could matter.
    lookSoon();
    writing = store(writingTo);
  }

  async function store(to: number): Promise<void> {
    await DONE;
    await tryToStore(batchTo(to), to);
    lasting = false;
    patience?.abort();
    patience = undefined;
    writing = undefined;
    if (recorder.lost || stopped) return;
    const ready = waiters.filter((waiter) => waiter.seq <= recorder.stored);
    waiters = waiters.filter((waiter) => waiter.seq > recorder.stored);
    const whole = recorder.stored === log.seq;
    const changed = whole || degraded;
    degraded = false;
    toldPending = !whole && (toldPending || changed);
    if (changed) onChange();
    for (const waiter of ready) waiter.resolve();
    if (waiters.length > 0) write();
    else wake();
  }

  /** However long it takes. Never rejects. */
  async function tryToStore(batch: SessionBatch, to: number): Promise<void> {
    for (let wait = FIRST_RETRY_MS; !stopped && !recorder.lost; wait = Math.min(wait * 2, LAST_RETRY_MS)) {
      let failure: { readonly cause: unknown } | undefined;
      try {
        await storage.append(batch);
      } catch (cause) {
        failure = await refusalOf(cause, storage, header, batch);
      }
      if (!failure) {
        recorder.stored = to;
        summaries.tell(batch.summary);
        return;
      }
      const { cause } = failure;
      if (isRefusal(cause)) return lose(conflict(id, cause));
      report(failureOf("STORAGE_FAILED", "a write failed and will be tried again", cause, id));
      if (stopped || recorder.lost) return;
      tellPending();
      retrying = new AbortController();
      await clock.sleep(wait, retrying.signal).catch(() => {});
    }
  }

  function degrade(): void {
    stalled?.resolve();
    if (degraded || recorder.lost) return;
    degraded = true;
    report({
      code: "SESSION_DEGRADED",
      message: "the storage does not answer; the session goes on in memory",
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
    if (recorder.lost) return;
    recorder.lost = error;
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
    if (recorder.lost) return Promise.reject(recorder.lost);
    if (recorder.stored >= log.seq) return DONE;
    if (stopped)
      return Promise.reject(new TurnloopError("SESSION_CLOSED", "the session is closed, and part of it is not stored"));
    if (bounded && degraded) return Promise.reject(degradedError());
    return new Promise((resolve, reject) => {
      waiters.push({ seq: log.seq, bounded, resolve, reject });
      write();
    });
  }

  const recorder = {
    stored: options.stored,
    lost: undefined as TurnloopError | undefined,

    durable(): Durability {
      if (recorder.lost) return "lost";
      if (degraded) return "degraded";
      return recorder.stored < log.seq ? "pending" : "stored";
    },

    wake,
    begin() {
      // Its last word may have been lost with the process that stored it.
      if (recorder.stored > 0 && recorder.stored === log.seq) summaries.tell(summaryOf(log));
      wake();
    },
    lose,
    flush: () => caughtUp(false),
    settle: () => caughtUp(true),
    pressure: () =>
      log.seq - recorder.stored > BACKLOG && !degraded && !recorder.lost ? caughtUp(true).catch(() => {}) : undefined,
    async stop() {
      stopped = true;
      retrying?.abort();
      summaries.stop();
      // A storage that does not answer is not waited for.
      if (!degraded && writing) {
        stalled = Promise.withResolvers();
        await Promise.race([writing, stalled.promise]);
      }
      drop(
        () => true,
        () => new TurnloopError("SESSION_CLOSED", "the session is closed, and part of it is not stored"),
      );
      unwatch?.();
    },
  };
  return recorder;
}

const DONE = Promise.resolve();

function degradedError(): TurnloopError {
  return new TurnloopError("SESSION_DEGRADED", "the storage does not answer; what is not stored yet is tried again");
}

/** After what is running now, before any timer where the platform can. Hidden tabs only delay what nobody waits for. */
function soon(task: () => void): void {
  const { setImmediate } = globalThis as { setImmediate?: (task: () => void) => unknown };
  if (setImmediate) setImmediate(task);
  else setTimeout(task, 0);
}
