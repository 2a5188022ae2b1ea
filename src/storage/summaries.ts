/** Tells `onSummary` what is stored of a session: in order, one call at a time, and again until it is heard. */
import { failureOf, type Report } from "../errors.ts";
import type { Clock } from "../scope.ts";
import type { SessionSummary } from "../session/types.ts";

/** What failed is tried again after this time, doubling up to the other. */
export const FIRST_RETRY_MS = 100;
export const LAST_RETRY_MS = 5000;

export interface Summaries {
  /** While a call is under way, or waits to be made again, the newest takes the place of those before it. */
  tell(summary: SessionSummary): void;
  /** What fails from here on is not tried again: the next opening tells it. */
  stop(): void;
}

export interface SummariesOptions {
  readonly onSummary: ((summary: SessionSummary) => unknown) | undefined;
  readonly clock: Clock;
  readonly report: Report;
}

export function createSummaries({ onSummary, clock, report }: SummariesOptions): Summaries {
  let next: SessionSummary | undefined;
  let telling = false;
  let stopped = false;
  let pause: AbortController | undefined;

  async function tellAll(hear: (summary: SessionSummary) => unknown): Promise<void> {
    telling = true;
    let wait = FIRST_RETRY_MS;
    while (next) {
      const summary: SessionSummary = next;
      next = undefined;
      try {
        await hear(summary);
        wait = FIRST_RETRY_MS;
      } catch (cause) {
        report(failureOf("LISTENER_FAILED", "onSummary failed", cause, summary.id));
        if (stopped || next) continue;
        next = summary;
        pause = new AbortController();
        await clock.sleep(wait, pause.signal).catch(() => {});
        pause = undefined;
        wait = Math.min(wait * 2, LAST_RETRY_MS);
        if (stopped) next = undefined;
      }
    }
    telling = false;
  }

  return {
    tell(summary) {
      if (!onSummary) return;
      next = summary;
      pause?.abort();
      if (!telling) void tellAll(onSummary);
    },
    stop() {
      stopped = true;
      pause?.abort();
    },
  };
}
