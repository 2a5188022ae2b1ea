/** A clock that stands until it is moved. */
import type { Clock } from "turnloop";

export interface TestClock extends Clock {
  /** Moves on, waking the sleepers on the way in their order. */
  advance(ms: number): Promise<void>;
  /** Resolves when somebody sleeps for at least `ms`. */
  sleeping(ms: number): Promise<void>;
}

interface Sleeper {
  readonly until: number;
  readonly ms: number;
  wake(): void;
}

export function testClock(start = 1_700_000_000_000): TestClock {
  let now = start;
  let sleepers: Sleeper[] = [];
  let watchers: { readonly ms: number; tell(): void }[] = [];

  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) {
          reject(signal.reason as Error);
          return;
        }
        const leave = (): void => void (sleepers = sleepers.filter((other) => other !== sleeper));
        const sleeper: Sleeper = { until: now + ms, ms, wake: () => (leave(), resolve()) };
        sleepers.push(sleeper);
        signal.addEventListener("abort", () => (leave(), reject(signal.reason as Error)), { once: true });
        for (const watcher of watchers.filter((one) => ms >= one.ms)) watcher.tell();
      }),
    async advance(ms) {
      const end = now + ms;
      for (;;) {
        const [next] = sleepers.filter((one) => one.until <= end).toSorted((a, b) => a.until - b.until);
        if (!next) break;
        now = Math.max(now, next.until);
        next.wake();
        await new Promise<void>((resolve) => {
          setImmediate(resolve);
        });
      }
      now = end;
    },
    sleeping: (ms) =>
      sleepers.some((one) => one.ms >= ms)
        ? Promise.resolve()
        : new Promise((resolve) => {
            const watcher = {
              ms,
              tell() {
                watchers = watchers.filter((other) => other !== watcher);
                resolve();
              },
            };
            watchers.push(watcher);
          }),
  };
}
