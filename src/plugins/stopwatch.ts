/** A time limit that can be held and let run again. */
import type { Clock } from "../core.ts";

export interface Stopwatch {
  run(): void;
  /** Stands, without a timer, until it runs again. */
  hold(): void;
  /** For good. */
  end(): void;
}

/** Calls `over` once it has run for `ms`. It stands at first. */
export function stopwatch(clock: Clock, ms: number, over: () => void): Stopwatch {
  let left = ms;
  let running: { readonly since: number; readonly timer: AbortController } | undefined;
  let isOver = false;

  const hold = (): void => {
    if (!running) return;
    left = Math.max(0, left - (clock.now() - running.since));
    running.timer.abort();
    running = undefined;
  };
  return {
    hold,
    run() {
      if (running || isOver) return;
      const timer = new AbortController();
      running = { since: clock.now(), timer };
      clock.sleep(left, timer.signal).then(
        () => {
          if (timer.signal.aborted) return;
          isOver = true;
          running = undefined;
          over();
        },
        () => {},
      );
    },
    end() {
      hold();
      isOver = true;
    },
  };
}
