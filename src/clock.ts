/** The clock of the platform. */
import type { Clock } from "./scope.ts";

/** Timers count in 32 bits: a longer sleep is slept in pieces. */
const LONGEST_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    let left = ms;
    for (; left > LONGEST_MS; left -= LONGEST_MS) await timeout(LONGEST_MS, signal);
    await timeout(left, signal);
  },
};

function timeout(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal.addEventListener("abort", abort, { once: true });
  });
}

/** A number of milliseconds. */
export function isDuration(value: unknown): value is number {
  return Number.isFinite(value) && (value as number) >= 0;
}
