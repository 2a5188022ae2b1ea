/** One stretch of work, from the moment that a turn is about to begin to its end: what a cancel stops. */
import { TurnloopError } from "../errors.ts";
import { isThenable } from "../hooks/hooks.ts";
import type { Awaitable } from "../hooks/types.ts";

/** Why an activity was stopped. The first cause counts. */
export type Stop =
  | { readonly kind: "disposed" }
  | { readonly kind: "aborted"; readonly reason: string }
  | { readonly kind: "failed"; readonly error: TurnloopError };

export interface Activity {
  /** For hooks, models and tools: aborts with a TurnloopError. */
  readonly signal: AbortSignal;
  readonly stopped: Stop | undefined;
  stop(cause: Stop): void;
  /** Throws when it was stopped. */
  check(): void;
  /**
   * Awaits what hooks, models, tools and stores answer. A stop wins over all of them, so that nothing deaf
   * can hold it up; what they settle to later is ignored.
   */
  wait<T>(value: Awaitable<T>): Promise<T>;
}

export function createActivity(): Activity {
  const controller = new AbortController();
  const waiting = new Set<(error: TurnloopError) => void>();
  let stopped: Stop | undefined;
  let error: TurnloopError | undefined;

  const activity: Activity = {
    signal: controller.signal,
    get stopped() {
      return stopped;
    },
    stop(cause) {
      // A disposal is stronger than a cancel, and may still come after it.
      if (stopped && (cause.kind !== "disposed" || stopped.kind !== "aborted")) return;
      stopped = cause;
      error = errorOf(cause);
      for (const reject of [...waiting]) reject(error);
      controller.abort(error);
    },
    check() {
      if (error) throw error;
    },
    async wait(value) {
      activity.check();
      const result = isThenable(value) ? await race(value) : value;
      activity.check();
      return result as never;
    },
  };

  function race(value: PromiseLike<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      waiting.add(reject);
      const settle =
        <T>(then: (result: T) => void) =>
        (result: T): void => {
          waiting.delete(reject);
          then(result);
        };
      value.then(settle(resolve), settle(reject));
    });
  }

  return activity;
}

function errorOf(stop: Stop): TurnloopError {
  switch (stop.kind) {
    case "disposed":
      return new TurnloopError("AGENT_DISPOSED", "the agent was disposed");
    case "aborted":
      return new TurnloopError("ABORTED", stop.reason);
    case "failed":
      return stop.error;
  }
}
