/** Ends a turn that has used up what it may use. */
import { TurnloopError, type Agent, type Plugin, type ToolExecution } from "../core.ts";
import { limitTime } from "./budget-time.ts";
import { openLedger, type Ledger, type Price, type Prices, type Spent } from "./ledger.ts";
import { checkLimits } from "./limits.ts";
import { together } from "./together.ts";

/** At least one limit. */
export interface BudgetLimits {
  /** Requests to the model; attempts of one step count once. */
  steps?: number;
  /** Calls that the model asks for. The first one beyond is refused, and the turn ends after its step. */
  toolCalls?: number;
  /** Of any kind, as far as the models tell; failed requests and those beside the steps count too. */
  tokens?: number;
  /** In the currency of `prices`, which it needs. */
  cost?: number;
  /** By `Model.id`, for a million tokens. A model that has none fails the turn as NO_PRICE before it is asked. */
  prices?: Prices;
  /** Milliseconds of work: not those in which a turn waits for a person or a client. Acts in mid step. */
  ms?: number;
  /** What is counted: each turn by itself, or all that the session has done, seeds aside. Default `turn`. */
  per?: "turn" | "session";
}

/**
 * A turn that would go on, and has used up one of these, ends as `{ kind: "stopped", by: "budget", reason }`, behind a
 * whole step, or where its time is over: every call has its result. One that was just about to end by itself ends as what it is. Where a session
 * has used up its budget, its next turns end so too, before anything is sent.
 *
 * The budget is a fold of the log, so it survives reloads. Throws INVALID_OPTIONS.
 */
export function budget({ prices, per = "turn", ...limits }: BudgetLimits): Plugin {
  const { steps, toolCalls, tokens, cost, ms } = limits;
  checkLimits("budget", { steps, toolCalls, tokens }, "count");
  checkLimits("budget", { cost, ms }, "amount");
  for (const price of Object.values(prices ?? {})) checkPrice(price);
  if (Object.values(limits).every((limit) => limit === undefined)) throw invalid("give it at least one limit");
  if (cost !== undefined && !prices) throw invalid("`cost` needs `prices`, by the ids of the models");
  if (per !== "turn" && per !== "session") throw invalid('`per` must be "turn" or "session"');

  const because = (what: string): string => `the budget of ${what} a ${per} is used up`;
  /** Why there may be nothing more, or undefined. */
  const usedUp = (spent: Spent): string | undefined => {
    if (steps !== undefined && spent.steps >= steps) return because(`${steps} steps`);
    if (toolCalls !== undefined && spent.toolCalls > toolCalls) return because(`${toolCalls} tool calls`);
    if (tokens !== undefined && spent.tokens >= tokens) return because(`${tokens} tokens`);
    if (cost !== undefined && spent.cost >= cost) return because(`a cost of ${cost}`);
    return ms !== undefined && spent.ms >= ms ? because(`${ms} ms`) : undefined;
  };

  return ({ harness: { clock, models }, hooks, tools }) => {
    const ledger = ledgers(per, () => clock.now(), cost === undefined ? undefined : prices);
    const stop = (agent: Agent, reason: string): unknown => agent.scope?.stop({ by: "budget", reason });
    const refused = ({ agent, callId }: ToolExecution): string | undefined =>
      ledger(agent).place(callId) > (toolCalls ?? Infinity) ? because(`${toolCalls} tool calls`) : undefined;
    return together(
      hooks.on("agent/turn-stop", ({ agent, goesOn }) => {
        const reason = goesOn ? usedUp(ledger(agent).now().spent) : undefined;
        return reason === undefined ? undefined : { stop: { by: "budget", reason } };
      }),
      hooks.on("tools/pre-execute", ({ execution }, next) => {
        const reason = refused(execution);
        return reason === undefined ? next() : { kind: "deny", reason };
      }),
      // For what no policy is asked about: an approval that was given before.
      tools.guard(refused),
      ms === undefined
        ? () => {}
        : limitTime({ hooks, clock, ms, ledger, over: (agent) => stop(agent, because(`${ms} ms`)) }),
      hooks.on(
        "model/stream",
        ({ agent, request: { config } }, next) => {
          const { spent } = ledger(agent).now();
          const model = models.get(config.model)?.id ?? config.model;
          const unpriced = spent.unpriced ?? (cost !== undefined && !Object.hasOwn(prices!, model) ? model : undefined);
          if (unpriced !== undefined) throw noPrice(unpriced);
          // This step is under way already.
          const reason = usedUp({ ...spent, steps: spent.steps - 1 });
          if (reason !== undefined) stop(agent, reason);
          return next();
        },
        { prepend: true },
      ),
    );
  };
}

function ledgers(per: "turn" | "session", time: () => number, prices: Prices | undefined): (agent: Agent) => Ledger {
  const known = new WeakMap<Agent, Ledger>();
  return (agent) => {
    let ledger = known.get(agent);
    if (!ledger) known.set(agent, (ledger = openLedger(agent.session, per, time, prices)));
    return ledger;
  };
}

function checkPrice(price: Price): void {
  for (const part of [price.input, price.output, price.cacheRead ?? 0, price.cacheWrite ?? 0]) {
    if (!(Number.isFinite(part) && part >= 0))
      throw invalid("a price needs `input` and `output`, as numbers from 0 on");
  }
}

function invalid(what: string): TurnloopError {
  return new TurnloopError("INVALID_OPTIONS", `budget: ${what}`);
}

function noPrice(model: string): TurnloopError {
  return new TurnloopError(
    "NO_PRICE",
    `budget: \`cost\` is limited, and \`prices\` has none for ${JSON.stringify(model)}`,
  );
}
