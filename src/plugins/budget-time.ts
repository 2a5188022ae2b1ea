/** The time limit of a budget: it acts in the middle of an answer, of a tool's body and of the wait for another try. */
import { TurnloopError, type Agent, type Harness, type Hooks, type ModelChunk, type Unregister } from "../core.ts";
import { limited } from "./body-limit.ts";
import { breakable } from "./breakable.ts";
import type { Ledger } from "./ledger.ts";
import { stopwatch } from "./stopwatch.ts";
import { together } from "./together.ts";

/** What the budget knows of one agent. */
export interface Account {
  readonly ledger: Ledger;
  /** Why the request under way was not made, or not waited for. */
  cut: string | undefined;
}

export interface TimeLimit {
  readonly harness: Harness;
  readonly hooks: Hooks;
  readonly ms: number;
  readonly reason: string;
  readonly account: (agent: Agent) => Account;
}

/** Marks, in the log, where a budget has ended an answer. */
export const CUT: ModelChunk = Object.freeze({
  type: "finish",
  reason: Object.freeze({ kind: "other", raw: "budget" }),
});

/**
 * The step is brought to an end, so that `agent/turn-stop` is asked: an answer ends where it is, without its calls; a
 * body fails; the calls behind it are refused; a wait ends early, and no request follows.
 */
export function limitTime({ harness, hooks, ms, reason, account }: TimeLimit): Unregister {
  const { clock } = harness;
  const left = (agent: Agent): number => Math.max(0, ms - account(agent).ledger.read().ms);
  const late = (agent: Agent): Error => {
    account(agent).cut = reason;
    return new TurnloopError("BUDGET_EXCEEDED", `${reason}; what it was doing may still finish`);
  };
  return together(
    hooks.on(
      "model/stream",
      async ({ agent, signal }, next) => {
        const over = new AbortController();
        const stream = await next({ signal: AbortSignal.any([signal, over.signal]) });
        if (typeof stream?.[Symbol.asyncIterator] !== "function") return stream;
        return {
          [Symbol.asyncIterator]() {
            const time = stopwatch(clock, left(agent), () => {
              over.abort(late(agent));
              chunks.break({ last: CUT });
            });
            const chunks = breakable(stream, { ended: () => time.end() });
            time.run();
            return chunks;
          },
        };
      },
      { prepend: true },
    ),
    hooks.on(
      "agent/step-result",
      async ({ agent }, next) => {
        const message = await next();
        if (account(agent).cut === undefined) return message;
        return { ...message, content: message.content.filter(({ type }) => type !== "tool-call") };
      },
      { prepend: true },
    ),
    hooks.on(
      "tools/execute",
      ({ execution }, next) => limited(execution, clock, left(execution.agent), next, () => late(execution.agent)),
      { prepend: true },
    ),
    hooks.on(
      "agent/request-error",
      async ({ agent }, next) => {
        const decision = await next();
        if (decision?.kind !== "retry" || !decision.afterMs) return decision;
        return { ...decision, afterMs: Math.min(decision.afterMs, left(agent)) };
      },
      { prepend: true },
    ),
  );
}
