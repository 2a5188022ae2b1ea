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
   * can hold it up; what they settle to later is ignored. `leave` is called when it does win.
   */
  wait<T>(value: Awaitable<T>, leave?: () => void): Awaitable<T>;
}

export function createStoppable(): Stoppable {
  // Few wait at a time, and each for a moment only: a list is lighter than a set.
  let waiting: ((error: unknown) => void)[] = [];
  let failure: Stoppable["failure"];
  // Made when it is asked for: the births of agents are rarely looked at from outside.
  let controller: AbortController | undefined;

  function race<T>(value: PromiseLike<T>, leave: (() => void) | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const stop = (error: unknown): void => {
        reject(error);
        leave?.();
      };
      const done = (): void => {
        const place = waiting.indexOf(stop);
        if (place >= 0) waiting.splice(place, 1);
      };
      waiting.push(stop);
      value.then(
        (result) => {
          done();
          resolve(result);
        },
        (thrown: unknown) => {
          done();
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
      const all = waiting;
      waiting = [];
      for (const end of all) end(error);
      controller?.abort(error);
    },
    check() {
      if (failure) throw failure.error;
    },
    wait(value, leave) {
      if (!isThenable(value)) {
        if (failure) throw failure.error;
        return value;
      }
      if (!failure) return race(value, leave);
      // It is not waited for, and may fail unheard.
      value.then(undefined, () => {});
      leave?.();
      throw failure.error;
    },
  };
}
