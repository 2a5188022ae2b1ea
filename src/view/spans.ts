/** A tree of spans while it grows: what changed is built when somebody looks, the rest is shared. */
import type { TimelineSpan } from "./timeline-types.ts";

/** One span that may still change; whoever changes it calls `changed`. */
export type SpanDraft = { -readonly [K in keyof Omit<TimelineSpan, "children" | "events">]: TimelineSpan[K] } & {
  readonly parent: SpanDraft | undefined;
  readonly first: number;
  last: number;
  readonly children: SpanDraft[];
  built: TimelineSpan | undefined;
};

export type SpanStart = Pick<SpanDraft, "id" | "kind" | "name" | "startedAt" | "first"> &
  Partial<Pick<SpanDraft, "turn" | "step" | "attempt" | "callId">>;

export interface Spans {
  /** `parent` undefined: at the root. */
  open(parent: SpanDraft | undefined, start: SpanStart): SpanDraft;
  /** Ends it, and whatever is still open in it. An ended span stays as it is. */
  close(span: SpanDraft, at: { readonly time: number; readonly seq: number }, state: TimelineSpan["state"]): void;
  changed(span: SpanDraft): void;
  /** The same array until something changed. */
  snapshot(): readonly TimelineSpan[];
}

export function createSpans(): Spans {
  const roots: SpanDraft[] = [];
  let built: readonly TimelineSpan[] | undefined = Object.freeze([]);

  function changed(span: SpanDraft): void {
    for (let one: SpanDraft | undefined = span; one; one = one.parent) one.built = undefined;
    built = undefined;
  }

  function close(span: SpanDraft, at: { time: number; seq: number }, state: TimelineSpan["state"]): void {
    if (span.endedAt !== undefined) return;
    for (const child of span.children) close(child, at, state === "done" ? "stopped" : state);
    span.endedAt = Math.max(at.time, span.startedAt);
    span.last = at.seq;
    span.state = state;
    changed(span);
  }

  return {
    open(parent, start) {
      const span: SpanDraft = { ...start, parent, state: "open", last: start.first, children: [], built: undefined };
      (parent?.children ?? roots).push(span);
      changed(span);
      return span;
    },
    close,
    changed,
    snapshot: () => (built ??= Object.freeze(roots.map(build))),
  };
}

function build(span: SpanDraft): TimelineSpan {
  if (span.built) return span.built;
  const { parent: _, built: __, first, last, children, ...rest } = span;
  span.built = Object.freeze({
    ...rest,
    events: Object.freeze([first, last] as const),
    children: Object.freeze(children.map(build)),
  });
  return span.built;
}
