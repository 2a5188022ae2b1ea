/** Which model has used what: read off the events of a log, in order. */
import type { Usage } from "../model/types.ts";
import type { SessionEvent } from "./types.ts";

export interface Payment {
  /** By `Model.id`. */
  readonly model: string;
  readonly usage: Usage;
}

/**
 * Takes every event of a log; answers for those that tell of usage: answers, attempts that failed, and requests
 * outside of steps.
 */
export function readPayments(): (event: SessionEvent) => Payment | undefined {
  let asked = "";
  return (event) => {
    switch (event.type) {
      case "request/header":
        asked = event.data.header.modelId ?? event.data.header.config.model;
        return undefined;
      case "request/failed":
        return event.data.usage && { model: asked, usage: event.data.usage };
      case "assistant/message":
      case "model/aux":
        return event.data.usage && { model: event.data.model, usage: event.data.usage };
      default:
        return undefined;
    }
  };
}
