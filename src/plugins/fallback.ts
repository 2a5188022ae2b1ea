/** Asks another model when a request has failed for good. */
import { jsonCopy, jsonEqual, TurnloopError, type Agent, type CallConfig, type Plugin } from "../core.ts";
import { together } from "./together.ts";

export interface FallbackOptions {
  /**
   * Who is asked next, in this order: the name of a route, or changes to the configuration that the step was to be
   * asked with, such as `{ model: "b", temperature: 0 }`.
   */
  models: readonly (string | Partial<CallConfig>)[];
  /** Also when a part of the answer has been streamed, which people then see replaced. Default false. */
  afterOutput?: boolean;
}

/** Where an agent has got to in the row, in one turn. */
interface Place {
  readonly turn: number;
  /** What the policies wanted for this step. */
  readonly wanted: CallConfig;
  /** How many of the row were taken. */
  readonly taken: number;
}

/**
 * Any failed request moves on to the next model of the row, in the same step, once no other listener has an answer to
 * it: beside `retry`, in either order, each model is tried again as often as `retry` says. The rest of the turn stays
 * with the model that it came to; the next turn begins with the first one again. When the row is used up the turn
 * fails with the last error. A route that is not registered is passed over, and reported as NO_ADAPTER.
 *
 * The log holds each failure (`request/failed`) and each change (`request/header`). Throws INVALID_OPTIONS.
 */
export function fallback({ models, afterOutput = false }: FallbackOptions): Plugin {
  const row = rowOf(models);
  return ({ harness, hooks }) => {
    const places = new WeakMap<Agent, Place>();
    return together(
      hooks.on(
        "agent/request",
        async ({ agent, turn }, next) => {
          const wanted = await next();
          const before = places.get(agent);
          const taken = before?.turn === turn ? before.taken : 0;
          places.set(agent, { turn, wanted, taken });
          return configOf(wanted, row[taken - 1]);
        },
        { prepend: true },
      ),
      hooks.on("agent/request-error", async ({ agent, config: failed, committed }, next) => {
        const decision = await next();
        const place = places.get(agent);
        if (decision.kind !== "fail" || !place || (committed && !afterOutput)) return decision;
        const { wanted } = place;
        for (let taken = place.taken + 1; taken <= row.length; taken += 1) {
          const config = configOf(wanted, row[taken - 1]);
          if (jsonEqual(config, failed)) continue;
          if (harness.models.get(config.model)) {
            places.set(agent, { ...place, taken });
            return { kind: "retry", config };
          }
          const message = `fallback: there is no model ${JSON.stringify(config.model)}; register it, or take it out of the row`;
          harness.report({ code: "NO_ADAPTER", message, sessionId: agent.id });
        }
        return decision;
      }),
    );
  };
}

function configOf(wanted: CallConfig, change: Partial<CallConfig> | undefined): CallConfig {
  return change ? { ...wanted, ...change } : wanted;
}

function rowOf(models: FallbackOptions["models"]): readonly Partial<CallConfig>[] {
  const wrong = (what: string): never => {
    throw new TurnloopError("INVALID_OPTIONS", `fallback: ${what}`);
  };
  if (!Array.isArray(models) || models.length === 0) return wrong("`models` must name at least one model");
  return models.map((entry: string | Partial<CallConfig>) => {
    if (typeof entry === "string" && entry !== "") return { model: entry };
    if (typeof entry === "object" && entry !== null) return jsonCopy(entry);
    return wrong("an entry of `models` must be the name of a route, or changes to the configuration");
  });
}
