/** The order in which the model sees the tools: by name, or as `toolOrder` says. */
import { TurnloopError } from "../errors.ts";
import type { ToolSchema } from "../model/types.ts";

/** Stands for every tool that is not named. */
const REST = "*";

/** Names, and `*` exactly once. */
export type ToolOrder = readonly string[];

/** A checked copy. Throws INVALID_TOOL_ORDER. */
export function toolOrderOf(names: readonly string[]): ToolOrder {
  if (!Array.isArray(names) || names.some((name) => typeof name !== "string")) {
    throw invalid("must be an array of tool names");
  }
  if (new Set(names).size < names.length) throw invalid("names a tool, or `*`, twice");
  if (!names.includes(REST)) throw invalid("needs `*` once, for the tools that it does not name");
  return [...names];
}

/**
 * A frozen list, by name in code units, or by `order`. A name that is known but not among the schemas is
 * passed over; one that no layer knows throws INVALID_TOOL_ORDER.
 */
export function sortSchemas(
  schemas: readonly ToolSchema[],
  knows: (name: string) => boolean,
  order: ToolOrder = [REST],
): readonly ToolSchema[] {
  const named = new Map(schemas.map((schema) => [schema.name, schema]));
  const rest = schemas.filter(({ name }) => !order.includes(name)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return Object.freeze(
    order.flatMap((name) => {
      if (name === REST) return rest;
      if (!knows(name)) throw invalid(`names "${name}", but there is no such tool; register it, or take the name out`);
      return named.get(name) ?? [];
    }),
  );
}

function invalid(what: string): TurnloopError {
  return new TurnloopError("INVALID_TOOL_ORDER", `toolOrder ${what}`);
}
