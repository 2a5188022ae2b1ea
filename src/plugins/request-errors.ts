/** What is known of a request that failed: whether it may go well the next time, and what was tried already. */
import type { ErrorData, SessionView } from "../core.ts";

/** Trouble that passes, by the codes of this package and its adapters. */
const PASSING: ReadonlySet<string> = new Set([
  "RATE_LIMITED",
  "MODEL_OVERLOADED",
  "MODEL_UNREACHABLE",
  "MODEL_BAD_RESPONSE",
  "MODEL_STALLED",
  "MALFORMED_CHUNK",
  "STREAM_BROKEN",
  "STREAM_INTERRUPTED",
  "STREAM_INCOMPLETE",
  "EMPTY_RESPONSE",
]);
/** What the same request meets again, whatever its status. */
const LASTING: ReadonlySet<string> = new Set([
  "MODEL_AUTH",
  "MODEL_QUOTA",
  "MODEL_UNSUPPORTED",
  "CONTEXT_OVERFLOW",
  "CONTENT_FILTERED",
]);
/** Timeout, conflict, too early, too many: the statuses below 500 that pass. */
const PASSING_STATUS: ReadonlySet<number> = new Set([408, 409, 425, 429]);
/** For models written by hand: what the `fetch` of a browser, of Node or of a Worker throws. */
const NETWORK =
  /fetch failed|failed to fetch|load failed|network|timed? ?out|socket|terminated|\bE(?:CONN|PIPE|AI_AGAIN)/i;

/** Whether the same request may go well a little later. A quota that says when it is filled up again passes too. */
export function isPassing({ code, status, message, retryAfterMs }: ErrorData): boolean {
  if (code !== undefined && LASTING.has(code)) return code === "MODEL_QUOTA" && retryAfterMs !== undefined;
  if (status !== undefined && status >= 400) {
    return status >= 500 ? status !== 501 : PASSING_STATUS.has(status);
  }
  return (code !== undefined && PASSING.has(code)) || NETWORK.test(`${code ?? ""} ${message}`);
}

/** How many requests of the open step have failed in a row with the configuration that is in force. */
export function failuresSoFar(session: SessionView): number {
  let failures = 0;
  for (let seq = session.seq - 1; seq >= session.start; seq -= 1) {
    const type = session.at(seq)?.type;
    if (type === "step/start" || type === "request/header") break;
    if (type === "request/failed") failures += 1;
  }
  return failures;
}
