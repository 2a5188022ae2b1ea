/** What a client may cost its host. */
import { TurnloopError, type Clock } from "../../src/core.ts";
import type { Limits } from "./types.ts";

const DEFAULTS: Required<Limits> = {
  maxFrameBytes: 8 * 1024 * 1024,
  commandsPerSecond: 50,
  sessionsPerConnection: 16,
  maxBufferedBytes: 1024 * 1024,
  claimGraceMs: 30_000,
};

/** Throws INVALID_OPTIONS for a limit that is no positive number. */
export function limitsOf(limits: Limits = {}): Required<Limits> {
  const all = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS) as (keyof Limits)[]) {
    const value = limits[name];
    if (value === undefined) continue;
    if (!(value > 0)) throw new TurnloopError("INVALID_OPTIONS", `the limit \`${name}\` must be a positive number`);
    all[name] = value;
  }
  return all;
}

/** Throws FRAME_TOO_LARGE. Counts the bytes only where the number of characters leaves it open. */
export function checkSize(frame: string, max: number): void {
  const { length } = frame;
  if (length * 3 <= max || (length <= max && new TextEncoder().encode(frame).length <= max)) return;
  throw new TurnloopError("FRAME_TOO_LARGE", `a frame may have ${max} bytes; send less at once`);
}

export interface Pace {
  /**
   * Runs a task that counts as so many when its turn has come: at once as a rule. Throws TOO_MANY_COMMANDS when too
   * many wait already.
   */
  take(count: number, task: () => void): void;
  stop(): void;
}

/** So many frames of commands may wait. */
const WAITING = 64;

/** In order, and on the average not more than so many a second; as many at once. */
export function createPace(perSecond: number, clock: Clock): Pace {
  const stopped = new AbortController();
  const burst = Math.max(1, perSecond);
  let tokens = burst;
  let last = clock.now();
  let waiting: { readonly count: number; task(): void }[] = [];
  let sleeping = false;

  function refill(): void {
    const now = clock.now();
    tokens = Math.min(burst, tokens + (Math.max(0, now - last) * perSecond) / 1000);
    last = now;
  }

  async function work(): Promise<void> {
    sleeping = true;
    while (waiting.length > 0) {
      await clock.sleep(Math.ceil(((1 - tokens) * 1000) / perSecond), stopped.signal);
      refill();
      while (tokens >= 1 && waiting.length > 0) run(waiting.shift()!);
    }
    sleeping = false;
  }

  /** What comes together is done together, and waited for by what comes behind it. */
  function run({ count, task }: (typeof waiting)[number]): void {
    tokens -= count;
    task();
  }

  return {
    take(count, task) {
      refill();
      if (!sleeping && tokens >= 1) return run({ count, task });
      if (waiting.length >= WAITING)
        throw new TurnloopError("TOO_MANY_COMMANDS", `this host takes ${perSecond} commands a second`);
      waiting.push({ count, task });
      if (!sleeping) work().catch(() => {});
    },
    stop() {
      waiting = [];
      stopped.abort();
    },
  };
}
