/** What the statements about storages are made of: events, batches, and checks that say what they found. */
import {
  TurnloopError,
  type SessionBatch,
  type SessionEvent,
  type SessionHeader,
  type SessionStorage,
} from "../core.ts";

/** One sentence of the port, and how to find out whether a storage keeps it. */
export interface Statement {
  readonly sentence: string;
  /** Takes seconds: many events, or large ones. */
  readonly heavy?: true;
  /** Rejects when the storage breaks it. */
  check(medium: Medium): Promise<void>;
}

export interface Medium {
  /** Another storage object on the same medium. */
  open(): Promise<SessionStorage>;
}

export function broken(what: string, cause?: unknown): TurnloopError {
  return new TurnloopError("CONTRACT_BROKEN", what, { cause });
}

export function checkThat(holds: boolean, what: string): void {
  if (!holds) throw broken(what);
}

/** Equal as JSON, with a message about the first difference. */
export function checkSame(found: unknown, wanted: unknown, what: string): void {
  const difference = differenceOf(found, wanted, what);
  if (difference !== undefined) throw broken(difference);
}

function differenceOf(found: unknown, wanted: unknown, place: string): string | undefined {
  if (found === wanted) return undefined;
  const differ = `${place} is ${show(found)}, not ${show(wanted)}`;
  if (typeof found !== "object" || typeof wanted !== "object" || found === null || wanted === null) return differ;
  if (Array.isArray(found) !== Array.isArray(wanted)) return differ;
  if (Array.isArray(found) && found.length !== (wanted as unknown[]).length) {
    return `${place} has ${found.length} items, not ${(wanted as unknown[]).length}`;
  }
  const keys = new Set([...Object.keys(wanted), ...Object.keys(found)]);
  for (const key of keys) {
    if (!Object.hasOwn(found, key)) return `${place} lacks the field ${show(key)}`;
    if (!Object.hasOwn(wanted, key)) return `${place} has a field ${show(key)} that was never stored`;
    const [one, other] = [found, wanted].map((value) => (value as Record<string, unknown>)[key]);
    const difference = differenceOf(one, other, `${place}, ${show(key)}`);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/** That it rejects; with a TurnloopError of this code, where one is given. */
export async function checkRefused(work: Promise<unknown>, what: string, code?: string): Promise<void> {
  const failed = await failureOf(work);
  if (!failed) throw broken(`${what} was taken, and must be refused`);
  if (code !== undefined) checkCode(failed.thrown, what, code);
}

export function checkCode(thrown: unknown, what: string, code: string): void {
  if (TurnloopError.is(thrown, code)) return;
  throw broken(`${what} must be refused with a TurnloopError of the code ${code}, not with ${String(thrown)}`, thrown);
}

/** Lets work go on that is done in turns of the event loop. */
export function pause(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve);
  });
}

/** What it rejected with, or undefined when it resolved. */
export function failureOf(work: Promise<unknown>): Promise<{ readonly thrown: unknown } | undefined> {
  return work.then(
    () => undefined,
    (thrown: unknown) => ({ thrown }),
  );
}

/** Deeply frozen, for a storage only reads what it is given. */
export function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) frozen(inner);
  }
  return value;
}

/** `count` small events, numbered from `from` on. `by` tells those of two writers apart. */
export function eventsFrom(from: number, count: number, by = "one"): readonly SessionEvent[] {
  return frozen(
    Array.from({ length: count }, (_, i): SessionEvent => {
      const seq = from + i;
      return { seq, time: 1_764_000_000_000 + seq, type: "session/titled", data: { title: `${by} ${seq}` } };
    }),
  );
}

export function headerOf(id: string, more: Partial<SessionHeader> = {}): SessionHeader {
  return frozen({ version: 1, id, createdAt: 1_764_000_000_000, meta: {}, ...more });
}

/** The batch of these events, which are at least one; a first one has its header. */
export function batchOf(id: string, events: readonly SessionEvent[], more: Partial<SessionBatch> = {}): SessionBatch {
  const from = events[0]!.seq;
  const last = events.at(-1)!;
  const summary = {
    id,
    createdAt: 1_764_000_000_000,
    updatedAt: last.time,
    seq: last.seq + 1,
    status: "idle",
  } as const;
  return frozen({ id, from, events, summary, ...(from === 0 && { header: headerOf(id) }), ...more });
}

export interface Whole {
  readonly header: SessionHeader;
  readonly length: number;
  readonly events: readonly SessionEvent[];
}

/** All that `load` gives; undefined when nothing is stored. */
export async function readAll(storage: SessionStorage, id: string, from?: number): Promise<Whole | undefined> {
  const stored = await storage.load(id, from === undefined ? {} : { from });
  if (!stored) return undefined;
  const events: SessionEvent[] = [];
  for await (const batch of stored.batches) for (const event of batch) events.push(event);
  return { header: stored.header, length: stored.length, events };
}

/** That exactly these events are stored, and so many that the session says. */
export async function checkStored(
  storage: SessionStorage,
  id: string,
  events: readonly SessionEvent[],
  what = "what is stored",
): Promise<void> {
  const found = await readAll(storage, id);
  if (!found) throw broken(`${what}: the session ${show(id)} is not there`);
  checkSame(found.events, events, what);
  checkSame(found.length, events.length, "the length of the stored session");
}

/** The ids of all pages, in their order. */
export async function listAll(storage: SessionStorage, limit: number): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await storage.list({ limit, ...(cursor !== undefined && { cursor }) });
    pages.push(page.sessions.map(({ id }) => id));
    ({ cursor } = page);
    checkThat(pages.length < 1000, "the pages of the list come to no end");
  } while (cursor !== undefined);
  return pages;
}
