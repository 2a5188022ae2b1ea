/** The fold behind a timeline: one session event after the other, at a cost that does not grow with the session. */
import { addUsage, type SessionEvent, type SessionEventMap, type TurnEndReason, type Usage } from "../core.ts";
import type { Fold } from "./followed.ts";
import { createSpans, type SpanDraft } from "./spans.ts";
import type { Timeline, TimelineSpan } from "./timeline-types.ts";

type Data<T extends keyof SessionEventMap> = SessionEventMap[T];
type Place = { readonly turn: number; readonly step: number };

export function createTimelineFold(): Fold<Timeline> {
  const spans = createSpans();
  let turn: SpanDraft | undefined;
  let step: SpanDraft | undefined;
  /** The attempt that is under way, or the delay before it. */
  let request: SpanDraft | undefined;
  let attempt = 0;
  /** Of the last header: whose request it is. */
  let model = "";
  /** The names of the turn's calls, and the spans of those that have begun. */
  const names = new Map<string, string>();
  const calls = new Map<string, SpanDraft>();
  const waits = new Map<string, SpanDraft>();
  let built: Timeline = Object.freeze({ spans: spans.snapshot() });

  function openTurn(at: SessionEvent, number: number): SpanDraft {
    if (turn?.turn === number) return turn;
    const id = `turn_${number}`;
    turn = spans.open(undefined, { ...startOf(at), id, kind: "turn", name: "turn", turn: number });
    return turn;
  }

  /** The step of an event. A log of which only the tail is here may begin in the middle of one. */
  function stepOf(at: SessionEvent, place: Place): SpanDraft {
    if (step?.turn === place.turn && step.step === place.step) return step;
    const id = `step_${place.turn}_${place.step}`;
    step = spans.open(openTurn(at, place.turn), { ...startOf(at), id, kind: "step", name: "step", ...placeOf(place) });
    attempt = 0;
    request = undefined;
    return step;
  }

  function requestOf(at: SessionEvent, place: Place): SpanDraft {
    const within = stepOf(at, place);
    if (request?.kind === "request" && request.endedAt === undefined) return request;
    if (request) spans.close(request, at, "done");
    attempt += 1;
    const id = `request_${place.turn}_${place.step}_${attempt}`;
    request = spans.open(within, { ...startOf(at), id, kind: "request", name: model, ...placeOf(place), attempt });
    return request;
  }

  function pay(span: SpanDraft, usage: Usage | undefined): void {
    if (!usage) return;
    for (let one: SpanDraft | undefined = span; one; one = one.parent) {
      one.usage = one.usage ? addUsage(one.usage, usage) : usage;
    }
    spans.changed(span);
  }

  function failed(at: SessionEvent, data: Data<"request/failed">): void {
    const span = requestOf(at, data);
    span.error = data.error;
    pay(span, data.usage);
    spans.close(span, at, "failed");
    if (data.next !== "retry") return;
    const id = `retry_${data.turn}_${data.step}_${attempt}`;
    request = spans.open(stepOf(at, data), { ...startOf(at), id, kind: "wait", name: "retry", ...placeOf(data) });
  }

  function settled(at: SessionEvent, data: Data<"assistant/message">): void {
    // What is left of an attempt that has failed for good, and has ended with that.
    if (request?.state === "failed") return;
    const span = requestOf(at, data);
    if (data.model !== "") span.name = data.model;
    pay(span, data.usage);
    spans.close(span, at, data.interrupted ? "stopped" : "done");
  }

  /** From when its body runs, or somebody is asked about it. */
  function callOf(at: SessionEvent, callId: string): SpanDraft {
    let span = calls.get(callId);
    if (!span) {
      const within = step ?? turn;
      const start = { ...startOf(at), id: `tool_${at.seq}`, name: names.get(callId) ?? "", callId };
      calls.set(callId, (span = spans.open(within, { ...start, kind: "tool", ...(within && placeOf(within)) })));
    }
    return span;
  }

  function asked(at: SessionEvent, { id, kind, callId }: Data<"interaction/requested">): void {
    const within = callId === undefined ? (step ?? turn) : callOf(at, callId);
    const start = { ...startOf(at), id: `wait_${at.seq}`, name: kind, ...(callId !== undefined && { callId }) };
    waits.set(id, spans.open(within, { ...start, kind: "wait", ...(within && placeOf(within)) }));
  }

  function aux(at: SessionEvent, { purpose, usage, error }: Data<"model/aux">): void {
    const within = step ?? turn;
    const start = { ...startOf(at), id: `aux_${at.seq}`, name: purpose, ...(within && placeOf(within)) };
    const span = spans.open(within, { ...start, kind: "request" });
    if (error) span.error = error;
    pay(span, usage);
    spans.close(span, at, error ? "failed" : "done");
  }

  function ended(at: SessionEvent, reason: TurnEndReason): void {
    if (turn) {
      turn.reason = reason;
      if (reason.kind === "error") turn.error = errorOf(reason);
      spans.close(turn, at, STATE_AFTER.get(reason.kind) ?? "stopped");
    }
    turn = step = request = undefined;
    names.clear();
    calls.clear();
    waits.clear();
  }

  function apply(event: SessionEvent): void {
    switch (event.type) {
      case "turn/start":
        openTurn(event, event.data.turn);
        return;
      case "step/start":
        stepOf(event, event.data);
        requestOf(event, event.data);
        return;
      case "request/header": {
        const { modelId, config } = event.data.header;
        model = modelId ?? config.model;
        if (!request || request.kind !== "request" || request.endedAt !== undefined) return;
        request.name = model;
        return spans.changed(request);
      }
      case "assistant/chunk": {
        const span = requestOf(event, event.data);
        span.last = event.seq;
        if (span.firstChunkAt !== undefined) return;
        span.firstChunkAt = event.time;
        return spans.changed(span);
      }
      case "assistant/message":
        return settled(event, event.data);
      case "request/failed":
        return failed(event, event.data);
      case "tool/call":
        names.set(event.data.callId, event.data.name);
        return;
      case "tool/start":
        callOf(event, event.data.callId);
        return;
      case "tool/result": {
        const span = callOf(event, event.data.callId);
        if (event.data.error) span.error = { message: event.data.error.name, code: event.data.error.code };
        return spans.close(span, event, event.data.isError ? "failed" : "done");
      }
      case "interaction/requested":
        return asked(event, event.data);
      case "interaction/resolved": {
        const wait = waits.get(event.data.id);
        if (wait) spans.close(wait, event, event.data.outcome === "answered" ? "done" : "stopped");
        return;
      }
      case "model/aux":
        return aux(event, event.data);
      case "step/end":
        if (step) spans.close(step, event, request?.state === "failed" ? "failed" : "done");
        step = request = undefined;
        return;
      case "turn/end":
        return ended(event, event.data.reason);
    }
  }

  return {
    apply,
    snapshot() {
      const next = spans.snapshot();
      if (next !== built.spans) built = Object.freeze({ spans: next });
      return built;
    },
  };
}

function startOf({ time, seq }: SessionEvent): { startedAt: number; first: number } {
  return { startedAt: time, first: seq };
}

function placeOf({ turn, step }: { turn?: number; step?: number }): { turn?: number; step?: number } {
  return { ...(turn !== undefined && { turn }), ...(step !== undefined && { step }) };
}

function errorOf({ message, code }: TurnEndReason & { kind: "error" }): NonNullable<TimelineSpan["error"]> {
  return { message, ...(code !== undefined && { code }) };
}

const STATE_AFTER: ReadonlyMap<TurnEndReason["kind"], TimelineSpan["state"]> = new Map([
  ["completed", "done"],
  ["max-tokens", "done"],
  ["content-filter", "done"],
  ["error", "failed"],
]);
