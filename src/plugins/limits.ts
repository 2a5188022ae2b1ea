/** Looks at the numbers that a policy is given, before it registers anything. */
import { TurnloopError } from "../core.ts";

/** Throws INVALID_OPTIONS for a number that is not positive and finite, or, for a count, not whole. */
export function checkLimits<K extends string>(
  plugin: string,
  limits: { readonly [N in K]?: number | undefined },
  kind: "count" | "amount",
): void {
  for (const [name, value] of Object.entries<number | undefined>(limits)) {
    if (value === undefined) continue;
    if (kind === "count" ? Number.isSafeInteger(value) && value > 0 : Number.isFinite(value) && value > 0) continue;
    throw new TurnloopError(
      "INVALID_OPTIONS",
      `${plugin}: \`${name}\` must be a ${kind === "count" ? "whole number above 0" : "number above 0"}, not ${String(value)}`,
    );
  }
}
