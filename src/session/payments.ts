/** Which model has used what: read off the events of a log, in order. */
import type { Usage } from "../model/types.ts";
import type { SessionEvent } from "./types.ts";

export interface Payment {
  /** By `Model.id`. */
  readonly model: string;
  readonly usage: Usage;
}

/**
 * Takes every event of a log; answers for those that tell of usage: answers, attempts that failed or that a cancel
 * or a death has cut off, and requests outside of steps.
 */
export function readPayments(): (event: SessionEvent) => Payment | undefined {
  let asked = "";
  /** What the attempt under way has told, until an event that counts it. */
  let told: Usage | undefined;
  /** The step's last attempt has failed for good, and was counted: what is left of its answer tells its usage again. */
  let failed = false;
  return (event) => {
    switch (event.type) {
      case "request/header":
        asked = event.data.header.modelId ?? event.data.header.config.model;
        return undefined;
      case "assistant/chunk":
        if (event.data.chunk.type === "usage") told = event.data.chunk.usage;
        return undefined;
      case "step/end": {
        const usage = told;
        told = undefined;
        failed = false;
        return usage && { model: asked, usage };
      }
      case "request/failed":
        told = undefined;
        failed = event.data.next !== "retry";
        return event.data.usage && { model: asked, usage: event.data.usage };
      case "assistant/message":
        told = undefined;
        return failed ? undefined : event.data.usage && { model: event.data.model, usage: event.data.usage };
      case "model/aux":
        return event.data.usage && { model: event.data.model, usage: event.data.usage };
      default:
        return undefined;
    }
  };
}
