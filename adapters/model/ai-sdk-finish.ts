/** How an answer ended and what it cost, of any version of the interface. */
import type { FinishReason, Usage } from "../../src/core.ts";

/** Undefined where nothing is known. Counts are disjoint, whole and never negative. */
export function usageOf(usage: unknown): Usage | undefined {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = fields(usage);
  // V2 has numbers where V3 and V4 have objects.
  const input =
    typeof inputTokens === "number" ? { total: inputTokens, cacheRead: cachedInputTokens } : fields(inputTokens);
  const output =
    typeof outputTokens === "number" ? { total: outputTokens, reasoning: reasoningTokens } : fields(outputTokens);
  const cacheRead = count(input.cacheRead);
  const cacheWrite = count(input.cacheWrite);
  const reasoning = count(output.reasoning);
  const outputTotal = count(output.total);
  const counts = {
    input: count(input.noCache) ?? rest(count(input.total), cacheRead, cacheWrite),
    cacheRead,
    cacheWrite,
    // A total below its part did not count it (xAI).
    output: isBelow(outputTotal, reasoning) ? outputTotal : (count(output.text) ?? rest(outputTotal, reasoning)),
    reasoning,
  };
  const known = Object.entries(counts).filter(([, value]) => value !== undefined);
  return known.length > 0 ? Object.fromEntries(known) : undefined;
}

/** `interrupted` and `error` need the words of the stream, so they are left to the caller. */
export type Ending =
  | FinishReason
  | { readonly kind: "interrupted" }
  | { readonly kind: "failed"; readonly raw: string | undefined };

export function endingOf(finishReason: unknown): Ending {
  // V2 has the bare word.
  const { unified = finishReason, raw } = fields(finishReason);
  const rawText = typeof raw === "string" && raw !== "" ? raw : undefined;
  switch (unified) {
    case "stop":
    case "tool-calls":
    case "content-filter":
      return { kind: unified };
    case "length":
      return { kind: "max-tokens" };
    case "error":
      return { kind: "failed", raw: rawText };
    case "interrupted":
      return { kind: "interrupted" };
    default:
      return { kind: "other", raw: rawText ?? String(unified) };
  }
}

function rest(total: number | undefined, ...parts: readonly (number | undefined)[]): number | undefined {
  if (total === undefined) return undefined;
  return Math.max(
    0,
    parts.reduce<number>((left, part) => left - (part ?? 0), total),
  );
}

function isBelow(total: number | undefined, part: number | undefined): boolean {
  return total !== undefined && part !== undefined && total < part;
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;
}

function fields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
