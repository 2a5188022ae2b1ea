/** A session as it is stored: its header, and the events that it heads. */
import { TurnloopError } from "../errors.ts";
import { checkHeader } from "../session/header.ts";
import { checkEvent } from "../session/shapes.ts";
import type { SessionEvent, SessionHeader } from "../session/types.ts";
import type { StoredSession } from "./types.ts";

export interface Archive {
  readonly header: SessionHeader;
  readonly events: readonly SessionEvent[];
}

/** A whole stored session, checked. Throws INVALID_LOG, INVALID_HEADER, UNKNOWN_VERSION, UNKNOWN_EVENT. */
export async function readStored(id: string, stored: StoredSession): Promise<Archive> {
  const header = checkHeader(stored.header, id);
  const events: SessionEvent[] = [];
  for await (const batch of stored.batches) for (const event of batch) events.push(checkEvent(event, events.length));
  if (events.length < stored.length) {
    throw new TurnloopError(
      "INVALID_LOG",
      `the session ${id} should have ${stored.length} events, and ${events.length} could be read`,
    );
  }
  return makeArchive(header, events);
}

/** A header and the events that it heads. Throws INVALID_HEADER. */
export function makeArchive(header: SessionHeader, events: readonly SessionEvent[]): Archive {
  if ((header.seedLength ?? 0) > events.length) {
    throw new TurnloopError(
      "INVALID_HEADER",
      `the header has a seed of ${header.seedLength} events, and there are ${events.length}`,
    );
  }
  return { header, events };
}
