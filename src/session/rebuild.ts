/** The exact request of a step, from the log alone. */
import { TurnloopError } from "../errors.ts";
import type { Message, ModelRequest, RequestHeader } from "../model/types.ts";
import { createSurface } from "./surface.ts";
import type { SessionEvent } from "./types.ts";

/** What a step sends: the header's fields, the prefix, then the history at its boundary. Deeply frozen. */
export function makeRequest(header: RequestHeader, history: readonly Message[]): ModelRequest {
  const { config, system, tools, prefix } = header;
  return Object.freeze({
    config,
    ...(system !== undefined && { system }),
    ...(tools !== undefined && { tools }),
    messages: Object.freeze(prefix ? [...prefix, ...history] : history),
  });
}

/**
 * The exact request of a step, rebuilt from the events of its session from seq 0 on. Attempts count from 1;
 * the default is the last. Throws REQUEST_NOT_FOUND when the log has no such request.
 */
export function rebuildRequest(
  events: readonly SessionEvent[],
  at: { turn: number; step: number; attempt?: number },
): ModelRequest {
  const surface = createSurface();
  let history: readonly Message[] | undefined;
  let header: RequestHeader | undefined;
  let attempt = 1;

  for (const event of events) {
    if (history === undefined) {
      if (event.type === "request/header") header = event.data.header;
      if (event.type === "step/start" && event.data.turn === at.turn && event.data.step === at.step) {
        history = surface.messages();
      } else {
        surface.add(event);
      }
      continue;
    }
    if (event.type === "step/end") break;
    // The header of an attempt stands behind the failure of the one before.
    if (event.type === "request/header") header = event.data.header;
    if (event.type !== "request/failed") continue;
    if (at.attempt === attempt || event.data.next !== "retry") break;
    attempt += 1;
  }
  if (!history || !header || (at.attempt !== undefined && at.attempt !== attempt)) {
    throw new TurnloopError(
      "REQUEST_NOT_FOUND",
      `the log has no request of turn ${at.turn}, step ${at.step}, attempt ${at.attempt ?? 1}`,
    );
  }
  return makeRequest(header, history);
}
