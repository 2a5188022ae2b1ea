/** A queue between a synchronous listener and an async iteration. */

export interface Queue<T> extends AsyncIterable<T> {
  push(item: T): void;
  /** No more; what is there is still given out. */
  end(): void;
}

export function createQueue<T>(): Queue<T> {
  let items: T[] = [];
  let ended = false;
  let wake: (() => void) | undefined;

  const signal = (): void => {
    wake?.();
    wake = undefined;
  };

  return {
    push(item) {
      items.push(item);
      signal();
    },
    end() {
      ended = true;
      signal();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const batch = items;
        items = [];
        yield* batch;
        if (items.length > 0) continue;
        if (ended) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
