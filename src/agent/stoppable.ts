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
  return new Work();
}

/** Its getters stand on a prototype: each object literal that has some is a dictionary, which only a full collection frees. */
export class Work implements Stoppable {
  failure: Stoppable["failure"];
  // Few wait at a time, and each for a moment only: a list is lighter than a set.
  #waiting: ((error: unknown) => void)[] = [];
  // Made when it is asked for: the births of agents are rarely looked at from outside.
  #controller: AbortController | undefined;

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.failure) this.#controller.abort(this.failure.error);
    }
    return this.#controller.signal;
  }

  stop(error: unknown): void {
    this.failure = { error };
    const all = this.#waiting;
    this.#waiting = [];
    for (const end of all) end(error);
    this.#controller?.abort(error);
  }

  check(): void {
    if (this.failure) throw this.failure.error;
  }

  wait<T>(value: Awaitable<T>, leave?: () => void): Awaitable<T> {
    if (!isThenable(value)) {
      this.check();
      return value;
    }
    if (!this.failure) return this.#race(value, leave);
    // It is not waited for, and may fail unheard.
    value.then(undefined, () => {});
    leave?.();
    throw this.failure.error;
  }

  #race<T>(value: PromiseLike<T>, leave: (() => void) | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const stop = (error: unknown): void => {
        reject(error);
        leave?.();
      };
      const end =
        <R>(settle: (result: R) => void) =>
        (result: R): void => {
          const place = this.#waiting.indexOf(stop);
          if (place >= 0) this.#waiting.splice(place, 1);
          settle(result);
        };
      this.#waiting.push(stop);
      value.then(end(resolve), end(reject));
    });
  }
}
