/** What the tests of the browser's storage are made with: events without an agent, and a database of one's own. */
import type { Diagnostic, SessionBatch, SessionEvent, SessionStorage } from "turnloop";
import { indexedDBStorage, type IndexedDBStorage } from "turnloop/indexeddb";
import { onTestFinished } from "vitest";

let databases = 0;

/** A name that no other test has. */
export function newName(): string {
  databases += 1;
  return `test-${crypto.randomUUID()}-${databases}`;
}

export interface Opened extends IndexedDBStorage {
  readonly told: readonly Diagnostic[];
}

/** Closed, and its database deleted, when the test is over. */
export function openStorage(name: string = newName()): Opened {
  const told: Diagnostic[] = [];
  const storage = indexedDBStorage({ name, onDiagnostic: (one) => told.push(one) });
  onTestFinished(async () => {
    await storage.close?.();
    indexedDB.deleteDatabase(name);
  });
  return Object.assign(storage, { told });
}

export function queued(seq: number, id = `m${seq}`): SessionEvent {
  const content = [{ type: "text" as const, text: `message ${seq}` }];
  return { seq, time: 1000 + seq, type: "inbox/queued", data: { id, content, source: { kind: "user" }, as: "send" } };
}

/** Bookkeeping events, numbered from `from` on. */
export function events(from: number, count: number, make = queued): SessionEvent[] {
  return Array.from({ length: count }, (_, i) => make(from + i));
}

/** The batch that takes a session from `from` on; the first one brings its header. */
export function batchOf(id: string, from: number, list: readonly SessionEvent[]): SessionBatch {
  const updatedAt = list.at(-1)?.time ?? 1000;
  return {
    id,
    from,
    events: list,
    summary: { id, createdAt: 1000, updatedAt, seq: from + list.length, status: "idle" },
    ...(from === 0 && { header: { version: 1, id, createdAt: 1000, meta: {} } }),
  };
}

export async function append(storage: SessionStorage, id: string, from: number, count: number): Promise<void> {
  await storage.append(batchOf(id, from, events(from, count)));
}

/** What is stored of a session, from a seq on; undefined when it is not. */
export async function stored(storage: SessionStorage, id: string, from = 0): Promise<SessionEvent[] | undefined> {
  const found = await storage.load(id, { from });
  if (!found) return undefined;
  const all: SessionEvent[] = [];
  for await (const batch of found.batches) all.push(...batch);
  return all;
}

/** The code that a promise is rejected with. */
export async function codeOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => "resolved",
    (thrown: unknown) => (thrown as { code?: unknown }).code,
  );
}
