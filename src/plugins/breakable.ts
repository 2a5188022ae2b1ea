/** A stream whose end does not depend on whoever sends it. */

export interface Watcher<T> {
  /** Somebody waits for the next value. */
  waits?(): void;
  came?(value: T): void;
  /** Nothing more is asked for. Called once. */
  ended(): void;
}

export interface Breakable<T> extends AsyncIterator<T> {
  /** Ends the stream here, with a failure or with one last value. Whoever waits is told at once. */
  break(how: { readonly failure: Error } | { readonly last: T }): void;
}

/** Whoever iterates asks for one value at a time, as the loop does. */
export function breakable<T>(stream: AsyncIterable<T>, watcher: Watcher<T>): Breakable<T> {
  const inner = stream[Symbol.asyncIterator]();
  const done: IteratorResult<T> = { done: true, value: undefined };
  let answer: ((result: Promise<IteratorResult<T>>) => void) | undefined;
  let rest: (() => Promise<IteratorResult<T>>) | undefined;
  let isOver = false;

  const end = (): void => {
    isOver = true;
    answer = undefined;
    watcher.ended();
  };
  const leave = (): void => {
    try {
      inner.return?.().then(undefined, () => {});
    } catch {
      // It is left either way.
    }
  };

  return {
    next() {
      if (isOver) {
        const last = rest?.() ?? Promise.resolve(done);
        rest = undefined;
        return last;
      }
      watcher.waits?.();
      return new Promise((resolve, reject) => {
        answer = resolve;
        inner.next().then(
          (result) => {
            if (isOver) return;
            answer = undefined;
            if (result.done) end();
            else watcher.came?.(result.value);
            resolve(result);
          },
          (thrown: unknown) => {
            if (!isOver) end();
            // After a break somebody has been told already.
            reject(thrown);
          },
        );
      });
    },
    return() {
      if (!isOver) end();
      leave();
      return Promise.resolve(done);
    },
    break(how) {
      if (isOver) return;
      const tell = answer;
      end();
      rest = () =>
        "failure" in how ? Promise.reject(how.failure) : Promise.resolve({ done: false as const, value: how.last });
      if (tell) {
        tell(rest());
        rest = undefined;
      }
      leave();
    },
  };
}
