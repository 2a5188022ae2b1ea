/** Adding up tokens. */
import type { Usage } from "./types.ts";

const COUNTS = ["input", "cacheRead", "cacheWrite", "output", "reasoning"] as const;

/** The sum; a count that neither knows stays absent. */
export function addUsage(a: Usage, b: Usage | undefined): Usage {
  if (!b) return a;
  const sum: { -readonly [K in keyof Usage]: Usage[K] } = { ...a };
  for (const count of COUNTS) {
    const more = b[count];
    if (typeof more === "number" && Number.isFinite(more)) sum[count] = (sum[count] ?? 0) + more;
  }
  return sum;
}
