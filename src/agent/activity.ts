/** One stretch of work, from the moment that a turn is about to begin to its end: what a cancel stops. */
import { TurnloopError } from "../errors.ts";
import { createStoppable, type Stoppable } from "./stoppable.ts";

/** Why an activity was stopped. The first cause counts. */
export type Stop =
  | { readonly kind: "disposed" }
  | { readonly kind: "aborted"; readonly reason: string }
  | { readonly kind: "failed"; readonly error: TurnloopError };

export interface Activity extends Pick<Stoppable, "signal" | "check" | "wait"> {
  readonly stopped: Stop | undefined;
  stop(cause: Stop): void;
}

export function createActivity(): Activity {
  const work = createStoppable();
  let stopped: Stop | undefined;
  return {
    get signal() {
      return work.signal;
    },
    get stopped() {
      return stopped;
    },
    stop(cause) {
      // A disposal is stronger than a cancel, and may still come after it.
      if (stopped && (cause.kind !== "disposed" || stopped.kind !== "aborted")) return;
      stopped = cause;
      work.stop(errorOf(cause));
    },
    check: work.check,
    wait: work.wait,
  };
}

function errorOf(stop: Stop): TurnloopError {
  switch (stop.kind) {
    case "disposed":
      return new TurnloopError("AGENT_DISPOSED", "the agent was disposed");
    case "aborted":
      return new TurnloopError("ABORTED", stop.reason);
    case "failed":
      return stop.error;
  }
}
