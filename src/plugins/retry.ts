/** Tries a request again that has failed for a reason that passes. */
import type { Plugin } from "../core.ts";
import { checkLimits } from "./limits.ts";
import { failuresSoFar, isPassing } from "./request-errors.ts";

export interface RetryOptions {
  /** How often a request is made with one configuration, the first time included. Default 4. */
  maxAttempts?: number;
  /** The longest wait, in milliseconds. A provider that asks for a longer one is not tried again. Default 60,000. */
  maxDelayMs?: number;
  /** Also when a part of the answer has been streamed, which people then see replaced. Default false. */
  afterOutput?: boolean;
}

/** The first wait; each one after it is twice as long. */
const FIRST_DELAY_MS = 1000;

/**
 * Waits one second, then two, then four (each shortened at random by up to a half, so that many clients do not
 * come back at once), or as long as the provider has asked for, if that is longer. Rate limits, overload, network
 * failures, silence and answers that broke off are tried again; a wrong key, a used-up quota, an overflow of the
 * context and a refused request are not, and are left to the listeners behind this one.
 *
 * Each failure is in the log as `request/failed`, with what is done about it and the wait. A cancel or a disposal
 * ends the wait at once. Throws INVALID_OPTIONS.
 */
export function retry({ maxAttempts = 4, maxDelayMs = 60_000, afterOutput = false }: RetryOptions = {}): Plugin {
  checkLimits("retry", { maxAttempts }, "count");
  checkLimits("retry", { maxDelayMs }, "amount");
  return ({ hooks }) =>
    hooks.on("agent/request-error", ({ agent, committed, error }, next) => {
      const attempt = failuresSoFar(agent.session) + 1;
      const { retryAfterMs = 0 } = error;
      const isHopeless = attempt >= maxAttempts || retryAfterMs > maxDelayMs || !isPassing(error);
      if (isHopeless || (committed && !afterOutput)) return next();
      const longest = Math.min(maxDelayMs, FIRST_DELAY_MS * 2 ** (attempt - 1));
      const backoff = Math.round(longest * (1 - Math.random() / 2));
      return { kind: "retry", afterMs: Math.max(backoff, retryAfterMs) };
    });
}
