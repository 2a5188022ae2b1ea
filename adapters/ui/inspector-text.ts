/** Spans in words. */
import type { TimelineSpan, Usage } from "turnloop";

export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

export function tokensText({ input, output }: Usage): string {
  return `${tokenCount(input)} in, ${tokenCount(output)} out`;
}

export function countText(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function tokenCount(count: number | undefined): string {
  if (count === undefined) return "?";
  return count < 10_000 ? String(count) : `${(count / 1000).toFixed(1)}k`;
}

export function titleOf({ kind, name, turn, step, attempt }: TimelineSpan): string {
  if (kind === "turn") return `Turn ${turn}`;
  if (kind === "step") return `Step ${step}`;
  if (kind === "request" && attempt !== undefined && attempt > 1) return `${name}, attempt ${attempt}`;
  return name || kind;
}

/** Why a span ended as it did, where that is worth a word. */
export function outcomeOf({ state, error, reason }: TimelineSpan): string | undefined {
  if (error) return error.code === undefined ? error.message : `${error.code}: ${error.message}`;
  if (reason?.kind === "aborted" || reason?.kind === "stopped" || reason?.kind === "rejected") {
    return `${reason.kind}: ${reason.reason}`;
  }
  if (reason && reason.kind !== "completed") return reason.kind;
  return state === "stopped" ? "cut short" : undefined;
}
