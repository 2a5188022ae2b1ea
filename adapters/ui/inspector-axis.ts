/** From times to places on a picture, where stretches in which nothing was at work are short. */
import type { TimelineSpan } from "turnloop";

export interface Axis {
  /** 0 at the beginning, 1 at the end. */
  place(time: number): number;
  /** Where time was left out: each place, and how many milliseconds it stands for. */
  readonly breaks: readonly { readonly place: number; readonly ms: number }[];
}

/** How much of the picture a break may take, in parts of what is at work. */
const BREAK = 0.02;

/** `now` ends what is open. */
export function createAxis(spans: readonly TimelineSpan[], now: number): Axis {
  const marks = [...busyStretches(spans, now)].toSorted(([a], [b]) => a - b);
  const joined: (readonly [number, number])[] = [];
  for (const [start, end] of marks) {
    const last = joined.at(-1);
    if (last && start <= last[1]) joined[joined.length - 1] = [last[0], Math.max(last[1], end)];
    else joined.push([start, end]);
  }
  const busy = joined.reduce((sum, [start, end]) => sum + end - start, 0) || 1;

  /** Corners of the way from times to places. */
  const corners: { readonly time: number; readonly at: number }[] = [];
  const breaks: { at: number; ms: number }[] = [];
  let at = 0;
  for (const [index, [start, end]] of joined.entries()) {
    const before = joined[index - 1];
    if (before) {
      const ms = start - before[1];
      const shown = Math.min(ms, busy * BREAK);
      if (shown < ms) breaks.push({ at: at + shown / 2, ms });
      at += shown;
    }
    corners.push({ time: start, at }, { time: end, at: (at += end - start) });
  }
  const whole = at || 1;

  return {
    place(time) {
      let low = 0;
      let high = corners.length - 1;
      if (high < 0 || time <= corners[0]!.time) return 0;
      if (time >= corners[high]!.time) return 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (corners[middle]!.time <= time) low = middle;
        else high = middle;
      }
      const [from, to] = [corners[low]!, corners[high]!];
      const share = to.time === from.time ? 0 : (time - from.time) / (to.time - from.time);
      return (from.at + share * (to.at - from.at)) / whole;
    },
    breaks: breaks.map(({ at: place, ms }) => ({ place: place / whole, ms })),
  };
}

/** When a request or a tool was at work: a tool that waits for somebody is not. */
function* busyStretches(spans: readonly TimelineSpan[], now: number): Generator<readonly [number, number]> {
  for (const { kind, startedAt, endedAt = now, children } of spans) {
    yield* busyStretches(children, now);
    if (kind === "request") yield [startedAt, endedAt];
    if (kind !== "tool") continue;
    let from = startedAt;
    for (const wait of children) {
      if (wait.startedAt > from) yield [from, wait.startedAt];
      from = Math.max(from, wait.endedAt ?? now);
    }
    if (endedAt > from) yield [from, endedAt];
  }
}
