/** Batches of events for storages. */
import type { SessionBatch, SessionEvent, SessionStorage } from "turnloop";

/** Events of a plugin's type, one for each text, numbered from `from` on. */
export function batchOf(id: string, from: number, texts: readonly string[]): SessionBatch {
  const events = texts.map(
    // The type is a plugin's own, which the map of the core does not have.
    (text, i) =>
      ({ seq: from + i, time: 1000 + from + i, type: "my/event", data: { text } }) as unknown as SessionEvent,
  );
  const seq = from + texts.length;
  return {
    id,
    from,
    events,
    summary: { id, createdAt: 1000, updatedAt: 1000 + seq, seq, status: "idle" },
    ...(from === 0 && { header: { version: 1, id, createdAt: 1000, meta: {} } }),
  };
}

export async function textsOf(storage: SessionStorage, id: string, from = 0): Promise<string[]> {
  const texts: string[] = [];
  for await (const batch of (await storage.load(id, { from }))?.batches ?? []) {
    for (const { data } of batch) texts.push((data as unknown as { text: string }).text);
  }
  return texts;
}
