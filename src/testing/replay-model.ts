/** A model that answers as a recorded session was answered. */
import { jsonEqual, rebuildRequest, TurnloopError, type Model, type ModelChunk, type SessionEvent } from "../core.ts";

interface Recorded {
  readonly turn: number;
  readonly step: number;
  readonly attempt: number;
  readonly chunks: readonly ModelChunk[];
}

/**
 * Answers each request with the chunks that the log has of it, in the order of the log, attempts included.
 * Throws REPLAY_MISMATCH when a request differs from the recorded one, saying where, and REPLAY_ENDED when
 * the log has no more. `events` must begin at seq 0.
 */
export function replayModel(events: readonly SessionEvent[]): Model {
  const recorded = requestsOf(events);
  let next = 0;
  return {
    id: modelIdOf(events),
    async *stream(request) {
      const answer = recorded[next];
      if (!answer)
        throw new TurnloopError(
          "REPLAY_ENDED",
          `the recorded session has ${recorded.length} requests, and this is one more`,
        );
      next += 1;
      const expected = rebuildRequest(events, answer);
      const place = difference(expected, request);
      if (place !== undefined) {
        throw new TurnloopError(
          "REPLAY_MISMATCH",
          `request ${next} (turn ${answer.turn}, step ${answer.step}) differs from the recorded one at ${place}`,
        );
      }
      yield* answer.chunks;
    },
  };
}

function requestsOf(events: readonly SessionEvent[]): Recorded[] {
  const found: Recorded[] = [];
  let chunks: ModelChunk[] = [];
  let attempt = 1;
  let open = false;
  const close = (turn: number, step: number): void => {
    found.push({ turn, step, attempt, chunks });
    chunks = [];
    attempt += 1;
    open = false;
  };
  for (const event of events) {
    switch (event.type) {
      case "step/start":
        chunks = [];
        attempt = 1;
        open = true;
        break;
      case "assistant/chunk":
        chunks.push(event.data.chunk);
        open = true;
        break;
      case "request/failed":
        close(event.data.turn, event.data.step);
        break;
      case "assistant/message":
      case "step/end":
        if (open) close(event.data.turn, event.data.step);
        break;
      default:
    }
  }
  return found.filter((one) => one.chunks.length > 0);
}

function modelIdOf(events: readonly SessionEvent[]): string {
  const header = events.find((event) => event.type === "request/header");
  return header?.data.header.modelId ?? "replay/model";
}

/** The first place where two requests differ, as a path. */
function difference(a: unknown, b: unknown, path = "the request"): string | undefined {
  if (jsonEqual(a, b)) return undefined;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return path;
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const found = difference(
      (a as Record<string, unknown>)[key],
      (b as Record<string, unknown>)[key],
      `${path}.${key}`,
    );
    if (found !== undefined) return found;
  }
  return path;
}
