/** Sessions in memory: gone with the process, and the measure for every other storage. */
import { TurnloopError } from "../errors.ts";
import type { SessionEvent, SessionHeader, SessionSummary } from "../session/types.ts";
import type { SessionStorage } from "./types.ts";

interface Stored {
  readonly header: SessionHeader;
  readonly events: SessionEvent[];
  summary: SessionSummary;
}

/** A storage that forgets. Harnesses that are given the same one see the same sessions. */
export function memoryStorage(): SessionStorage {
  const sessions = new Map<string, Stored>();
  return {
    durable: false,

    async append({ id, from, events, header, summary }) {
      if (events.length === 0) return;
      const stored = sessions.get(id);
      if (from === 0) {
        if (stored)
          throw new TurnloopError(
            "SESSION_EXISTS",
            `the session ${id} is stored already; resume it, or choose another id`,
          );
        if (!header) throw new TurnloopError("INVALID_BATCH", "the first batch of a session needs its header");
        sessions.set(id, { header, events: [...events], summary });
        return;
      }
      if (!stored || stored.events.length !== from) {
        throw new TurnloopError(
          "SESSION_CONFLICT",
          `the session ${id} has ${stored?.events.length ?? 0} stored events, not ${from}: another writer has it`,
        );
      }
      for (const event of events) stored.events.push(event);
      stored.summary = summary;
    },

    async load(id, { from = 0 } = {}) {
      const stored = sessions.get(id);
      if (!stored) return undefined;
      const events = stored.events.slice(from);
      return {
        header: stored.header,
        length: stored.events.length,
        batches: (async function* () {
          if (events.length > 0) yield events;
        })(),
      };
    },

    async list({ limit = 50, cursor } = {}) {
      const all = [...sessions.values()].map((one) => one.summary).toSorted(newestFirst);
      const start = cursor === undefined ? 0 : all.findIndex((one) => keyOf(one) > cursor);
      const page = start < 0 ? [] : all.slice(start, start + limit);
      const last = page.at(-1);
      return { sessions: page, ...(last && start + limit < all.length && { cursor: keyOf(last) }) };
    },

    async delete(id) {
      sessions.delete(id);
    },
  };
}

/** Sorts as text by age, youngest first, so that a cursor survives what is added meanwhile. */
function keyOf({ updatedAt, id }: SessionSummary): string {
  return `${String(Number.MAX_SAFE_INTEGER - updatedAt).padStart(16, "0")} ${id}`;
}

function newestFirst(a: SessionSummary, b: SessionSummary): number {
  return keyOf(a) < keyOf(b) ? -1 : 1;
}
