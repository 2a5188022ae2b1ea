/** Finding one's way in a tree of spans. */
import type { TimelineSpan } from "turnloop";

export interface Row {
  readonly span: TimelineSpan;
  readonly depth: number;
}

/** A turn that is not open shows itself alone. */
export function rowsOf(spans: readonly TimelineSpan[], isOpen: (span: TimelineSpan) => boolean, depth = 0): Row[] {
  return spans.flatMap((span) => [{ span, depth }, ...(isOpen(span) ? rowsOf(span.children, isOpen, depth + 1) : [])]);
}

export function findSpan(spans: readonly TimelineSpan[], id: string | undefined): TimelineSpan | undefined {
  for (const span of spans) {
    const found = span.id === id ? span : findSpan(span.children, id);
    if (found) return found;
  }
  return undefined;
}

/** The requests of steps, in the order in which they were sent. */
export function requestsIn(spans: readonly TimelineSpan[]): TimelineSpan[] {
  return spans.flatMap((span) => [
    ...(span.kind === "request" && span.step !== undefined && span.attempt !== undefined ? [span] : []),
    ...requestsIn(span.children),
  ]);
}

/** The request that a span is about: itself, the last one in it, or that of its step. */
export function requestOf(spans: readonly TimelineSpan[], span: TimelineSpan): TimelineSpan | undefined {
  const own = requestsIn([span]).at(-1);
  return own ?? requestsIn(spans).findLast(({ turn, step }) => turn === span.turn && step === span.step);
}
