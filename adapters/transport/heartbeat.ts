/** Notices a peer that is gone without a word. */
import type { Clock } from "../../src/core.ts";

/** How long a peer may be silent before it is asked, and again before it is given up. */
export const SILENCE_MS = 3000;

export interface Heartbeat {
  /** Something came from the peer. */
  heard(): void;
  stop(): void;
}

/** A peer that is asked and says nothing is dead. Counts what came, not the time: timers may be late, or stand still. */
export function createHeartbeat(clock: Clock, ask: () => void, dead: () => void): Heartbeat {
  const stopped = new AbortController();
  let count = 0;

  async function watch(): Promise<void> {
    let asked = false;
    for (;;) {
      const before = count;
      await clock.sleep(SILENCE_MS, stopped.signal);
      if (count !== before) asked = false;
      else if (asked) return dead();
      else {
        asked = true;
        ask();
      }
    }
  }

  watch().catch(() => {});
  return {
    heard: () => void (count += 1),
    stop: () => stopped.abort(),
  };
}
