/** One stretch of work, from the moment that a turn is about to begin to its end: what a cancel stops. */
import { TurnloopError } from "../errors.ts";
import { Work, type Stoppable } from "./stoppable.ts";

/** Why an activity was stopped. The first cause counts, unless a stronger one comes before the end. */
export type Stop =
  | { readonly kind: "disposed" }
  | { readonly kind: "aborted"; readonly reason: string }
  | { readonly kind: "failed"; readonly error: TurnloopError }
  | { readonly kind: "stopped"; readonly by: string; readonly reason: string };

/** What each cause may still take the place of. */
const WEAKER: Readonly<Record<Stop["kind"], readonly Stop["kind"][]>> = {
  disposed: ["aborted", "stopped"],
  aborted: ["stopped"],
  failed: ["stopped"],
  stopped: [],
};

export interface Activity extends Pick<Stoppable, "signal" | "check" | "wait" | "failure"> {
  readonly stopped: Stop | undefined;
  /** Whether a cause of this kind would count. */
  yields(kind: Stop["kind"]): boolean;
  stop(cause: Stop): void;
}

export function createActivity(): Activity {
  return new Stretch();
}

class Stretch extends Work implements Activity {
  stopped: Stop | undefined;

  yields(kind: Stop["kind"]): boolean {
    return !this.stopped || WEAKER[kind].includes(this.stopped.kind);
  }

  override stop(cause: Stop): void {
    if (!this.yields(cause.kind)) return;
    this.stopped = cause;
    super.stop(errorOf(cause));
  }
}

function errorOf(stop: Stop): TurnloopError {
  switch (stop.kind) {
    case "disposed":
      return new TurnloopError("AGENT_DISPOSED", "the agent was disposed");
    case "aborted":
      return new TurnloopError("ABORTED", stop.reason);
    case "failed":
      return stop.error;
    case "stopped":
      return new TurnloopError("TURN_STOPPED", stop.reason);
  }
}
