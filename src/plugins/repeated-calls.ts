/** Ends a turn whose model runs in a circle. */
import { type Agent, type Plugin, type SessionEvent } from "../core.ts";
import { foldOf, ownStart, type Fold } from "./follow.ts";
import { checkLimits } from "./limits.ts";
import { together } from "./together.ts";

export interface RepeatedCallsOptions {
  /** The model is told at so many. Default 3. */
  warnAt?: number;
  /** The turn ends at so many. Default 5. */
  stopAt?: number;
  /** So many calls in a row that fail, whatever they are, end the turn too. Default 10. */
  maxFailures?: number;
}

interface Count {
  /** The calls of the last step, and how often they were made in a row. */
  same: number;
  name: string;
  failures: number;
}

/**
 * The same call, by its name and its arguments, again and again: the order of the arguments' keys makes no difference,
 * nor what the tool answers. So do the same calls of one step after another. Anything else begins a new count. The
 * turn ends as `{ kind: "stopped", by: "repeated-calls", reason }`. Throws INVALID_OPTIONS.
 */
export function repeatedCalls({ warnAt = 3, stopAt = 5, maxFailures = 10 }: RepeatedCallsOptions = {}): Plugin {
  checkLimits("repeatedCalls", { warnAt, stopAt, maxFailures }, "count");
  return ({ hooks }) => {
    const countIn = foldOf(createCounting, ownStart);
    const countOf = ({ session }: Agent): Count => ({ ...countIn(session).count });
    return together(
      hooks.on("agent/turn-continuation", async ({ agent }, next) => {
        const before = countOf(agent);
        const decision = await next();
        const { same, name } = before;
        if (decision.action !== "continue" || decision.reason || same < warnAt) return decision;
        const content = `You have called ${name} ${same} times in a row with the same arguments. The same call will not help: do something else, or end.`;
        return { action: "continue", reason: { content, source: { kind: "repeated-calls" } } };
      }),
      hooks.on("agent/turn-stop", ({ agent }) => {
        const { same, name, failures } = countOf(agent);
        const reason =
          same >= stopAt
            ? `${name} was called ${same} times in a row with the same arguments`
            : failures >= maxFailures
              ? `${failures} calls in a row have failed`
              : undefined;
        return reason === undefined ? undefined : { stop: { by: "repeated-calls", reason } };
      }),
    );
  };
}

interface Counting extends Fold {
  readonly count: Count;
}

/** Counts the steps of the open turn as they end. */
function createCounting(): Counting {
  let last = "";
  let calls: { readonly key: string; readonly name: string }[] = [];
  const count: Count = { same: 0, name: "", failures: 0 };
  const take = ({ type, data }: SessionEvent): void => {
    switch (type) {
      case "turn/start":
        Object.assign(count, { same: 0, failures: 0 });
        break;
      case "tool/call":
        calls.push({ key: `${data.name} ${canonical(data.arguments)}`, name: data.name });
        break;
      case "tool/result":
        count.failures = data.isError ? count.failures + 1 : 0;
        break;
      case "step/end": {
        if (calls.length === 0) break;
        const keys = [...new Set(calls.map(({ key }) => key))].toSorted();
        const made = keys.length === 1 ? calls.length : 1;
        const key = keys.join("\n");
        count.same = key === last ? count.same + made : made;
        count.name = [...new Set(calls.map(({ name }) => name))].join(" and ");
        last = key;
        calls = [];
        break;
      }
    }
  };
  return { count, take };
}

/** The same text for the same JSON, whatever the order of its keys; what is no JSON stands for itself. */
function canonical(json: string): string {
  try {
    return JSON.stringify(sorted(JSON.parse(json)));
  } catch {
    return json;
  }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  // Pairs, since a key may be `__proto__`.
  return {
    pairs: Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  };
}
