/** A time limit for every tool that has none of its own. */
import { TurnloopError, type Plugin } from "../core.ts";
import { limited } from "./body-limit.ts";
import { checkLimits } from "./limits.ts";

/**
 * After `ms` milliseconds the body's signal aborts and the call fails TOOL_TIMEOUT, which the model reads; the turn
 * goes on, and what the body does later is ignored. A tool with a `timeoutMs` keeps that. The time in which a call
 * waits for a person's answer, or for a client to take it, does not count. Throws INVALID_OPTIONS.
 */
export function toolTimeout(ms: number): Plugin {
  checkLimits("toolTimeout", { ms }, "amount");
  return ({ harness, hooks }) =>
    hooks.on("tools/execute", ({ execution }, next) => {
      const { agent, name } = execution;
      if ((agent.scope?.tools ?? harness.tools).get(name)?.["timeoutMs"] !== undefined) return next();
      const late = (): Error =>
        new TurnloopError("TOOL_TIMEOUT", `${name} took longer than ${ms} ms; it may still finish`);
      return limited(execution, harness.clock, ms, next, late);
    });
}
