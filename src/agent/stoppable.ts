/** Work that can be stopped from outside, at once, whatever it is waiting for. */
import { isThenable } from "../hooks/hooks.ts";
import type { Awaitable } from "../hooks/types.ts";

export interface Stoppable {
  /** What it was stopped with. */
  readonly failure: { readonly error: unknown } | undefined;
  /** For those outside: aborts with the same error. */
  readonly signal: AbortSignal;
  /** Whoever waits is rejected with the error. It may be said again, when something stronger comes. */
  stop(error: unknown): void;
  /** Throws when it was stopped. */
  check(): void;
  /**
   * Awaits what hooks, models, tools and stores answer. A stop wins over all of them, so that nothing deaf
   * can hold it up; what they settle to later is ignored.
   */
  wait<T>(value: Awaitable<T>): Awaitable<T>;
}

export function createStoppable(): Stoppable {
  const waiting = new Set<(error: unknown) => void>();
  let failure: Stoppable["failure"];
  // Made when it is asked for: the births of agents are rarely looked at from outside.
  let controller: AbortController | undefined;

  function race<T>(value: PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      waiting.add(reject);
      value.then(
        (result) => {
          waiting.delete(reject);
          resolve(result);
        },
        (thrown: unknown) => {
          waiting.delete(reject);
          reject(thrown);
        },
      );
    });
  }

  return {
    get failure() {
      return failure;
    },
    get signal() {
      if (!controller) {
        controller = new AbortController();
        if (failure) controller.abort(failure.error);
      }
      return controller.signal;
    },
    stop(error) {
      failure = { error };
      for (const reject of [...waiting]) reject(error);
      waiting.clear();
      controller?.abort(error);
    },
    check() {
      if (failure) throw failure.error;
    },
    wait(value) {
      if (!isThenable(value)) {
        if (failure) throw failure.error;
        return value;
      }
      if (!failure) return race(value);
      // It is not waited for, and may fail unheard.
      value.then(undefined, () => {});
      throw failure.error;
    },
  };
}
