/** A write that a storage has not acknowledged: whether it failed at all, and whether a second try could change that. */
import { TurnloopError } from "../errors.ts";
import { jsonEqual } from "../json.ts";
import type { SessionEvent, SessionHeader } from "../session/types.ts";
import type { SessionBatch, SessionStorage } from "./types.ts";

/** What no second try would change. */
export function isRefusal(thrown: unknown): thrown is TurnloopError {
  return TurnloopError.is(thrown, "SESSION_CONFLICT") || TurnloopError.is(thrown, "SESSION_EXISTS");
}

/** A refusal whose stored tail is the batch itself only means that an acknowledgement was lost. Never rejects. */
export async function refusalOf(
  cause: unknown,
  storage: SessionStorage,
  header: SessionHeader,
  batch: SessionBatch,
): Promise<{ readonly cause: unknown } | undefined> {
  if (!isRefusal(cause)) return { cause };
  try {
    return (await isStored(storage, header, batch)) ? undefined : { cause };
  } catch (unread) {
    return { cause: unread };
  }
}

async function isStored(
  storage: SessionStorage,
  header: SessionHeader,
  { id, from, events }: SessionBatch,
): Promise<boolean> {
  const found = await storage.load(id, { from });
  if (found?.length !== from + events.length || !jsonEqual(found.header, header)) return false;
  const tail: SessionEvent[] = [];
  for await (const batch of found.batches) tail.push(...batch);
  return jsonEqual(tail, events);
}

export function conflict(id: string, cause: TurnloopError): TurnloopError {
  return new TurnloopError(
    "SESSION_CONFLICT",
    `another writer has the session ${id}; open it again to see what it wrote`,
    { cause },
  );
}
