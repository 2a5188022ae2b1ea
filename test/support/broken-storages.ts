/** Storages that each break one sentence of the port: what the contract must catch. */
import { memoryStorage, TurnloopError, type SessionBatch, type SessionEvent, type SessionStorage } from "turnloop";

/** What differs from the good storage on the medium; `opened` counts its storage objects. */
type Break = (good: SessionStorage) => Partial<SessionStorage>;

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));
const half = ({ events, ...rest }: SessionBatch): [SessionBatch, SessionBatch] => {
  const middle = Math.ceil(events.length / 2);
  const { header: _, ...later } = rest;
  return [
    { ...rest, events: events.slice(0, middle) },
    { ...later, from: rest.from + middle, events: events.slice(middle) },
  ];
};

/** What is read, made otherwise. */
const reading =
  (change: (event: SessionEvent, from: number) => SessionEvent): Break =>
  (good) => ({
    async load(id, options) {
      const stored = await good.load(id, options);
      if (!stored) return undefined;
      const { batches } = stored;
      const changed = (async function* () {
        for await (const batch of batches) yield batch.map((event) => change(event, options?.from ?? 0));
      })();
      return { ...stored, batches: changed };
    },
  });

/** What a failed append does instead. */
const appending =
  (otherwise: (batch: SessionBatch, error: TurnloopError, good: SessionStorage) => Promise<void>): Break =>
  (good) => ({
    append: (batch) => good.append(batch).catch((error: TurnloopError) => otherwise(batch, error, good)),
  });

const lengthOf = async (good: SessionStorage, id: string): Promise<number> => (await good.load(id))?.length ?? 0;

/** By the beginning of the sentence that is broken. */
export const BREAKS: Readonly<Record<string, Break>> = {
  "events come back in the order": (good) => ({
    async load(id, options) {
      const stored = await good.load(id, options);
      if (!stored) return undefined;
      const events: SessionEvent[] = [];
      for await (const batch of stored.batches) events.unshift(...batch.toReversed());
      return {
        ...stored,
        batches: (async function* () {
          yield events;
        })(),
      };
    },
  }),
  "a batch that would leave a gap": appending(async (batch, error, good) => {
    if (batch.from <= (await lengthOf(good, batch.id))) throw error;
  }),
  "a batch that begins before the end": appending(async (batch, error, good) => {
    if (batch.from === 0 || batch.from > (await lengthOf(good, batch.id))) throw error;
  }),
  "a first batch for an id that is stored": appending(async (_, { code, message }) => {
    throw new TurnloopError(code === "SESSION_EXISTS" ? "SESSION_CONFLICT" : code, message);
  }),
  "a first batch without its header": (good) => ({
    append: (batch) => good.append({ header: { version: 1, id: batch.id, createdAt: 0, meta: {} }, ...batch }),
  }),
  "a batch without events": (good) => ({
    async append(batch) {
      if (batch.events.length === 0) throw new TurnloopError("INVALID_BATCH", "there is nothing in it");
      await good.append(batch);
    },
  }),
  "a batch counts as it was": (good) => ({
    async append(batch) {
      await turn();
      await good.append(batch);
    },
  }),
  "of two writers of the same batch": appending(async (batch, error, good) => {
    if (batch.from === 0) throw error;
    await good.append({ ...batch, from: await lengthOf(good, batch.id) });
  }),
  "of two writers that begin": appending(async (batch, error, good) => {
    if (batch.from > 0) throw error;
    await good.delete(batch.id);
    await good.append(batch);
  }),
  "a first write is atomic": (good) => ({
    async append(batch) {
      if (batch.from > 0 || batch.events.length < 2) return good.append(batch);
      const [first, second] = half(batch);
      await good.append(first);
      await turn();
      await good.append(second);
    },
  }),
  "every later write is atomic": (good) => ({
    async append(batch) {
      if (batch.from === 0 || batch.events.length < 2) return good.append(batch);
      const [first, second] = half(batch);
      await good.append(first);
      await turn();
      await good.append(second);
    },
  }),
  "a write that was refused does no harm": (good) => {
    let chain = Promise.resolve();
    return { append: (batch) => (chain = chain.then(() => good.append(batch))) };
  },
  "sessions that are written at the same time": (good) => {
    let events: readonly SessionEvent[];
    return {
      async append(batch) {
        ({ events } = batch);
        await turn();
        await good.append({ ...batch, events });
      },
    };
  },
  "a session that is not stored": (good) => ({
    async load(id, options) {
      const stored = await good.load(id, options);
      if (!stored) throw new TurnloopError("SESSION_NOT_FOUND", "there is none");
      return stored;
    },
  }),
  "a session can be read from any event on": (good) => ({ load: (id) => good.load(id) }),
  "what is loaded does not grow": (good) => ({
    async load(id, options) {
      const stored = await good.load(id, options);
      if (!stored) return undefined;
      const later = async function* () {
        yield* (await good.load(id, options))!.batches;
      };
      return { ...stored, batches: later() };
    },
  }),
  "who reads may stop in the middle": (good) => {
    let busy = false;
    return {
      async load(id, options) {
        if (busy) throw new Error("somebody reads");
        const stored = await good.load(id, options);
        if (!stored) return undefined;
        const alone = async function* () {
          busy = true;
          yield* stored.batches;
          busy = false;
        };
        return { ...stored, batches: alone() };
      },
    };
  },
  "a streamed answer comes back": reading((event, from) =>
    event.type === "assistant/message" && from > 0 ? { ...event, data: { ...event.data, content: [] } } : event,
  ),
  "a write is durable when it returns": () => memoryStorage(),
  "a session that was deleted is gone": (good) => {
    const gone = new Set<string>();
    return {
      load: async (id, options) => (gone.has(id) ? undefined : good.load(id, options)),
      delete: async (id) => void gone.add(id),
    };
  },
  "deleting a session that is not stored": (good) => ({
    async delete(id) {
      if (!(await good.load(id))) throw new TurnloopError("SESSION_NOT_FOUND", "there is none");
      await good.delete(id);
    },
  }),
  "the id of a deleted session is free": (good) => {
    const tombs = new Set<string>();
    return {
      async append(batch) {
        if (tombs.has(batch.id)) throw new TurnloopError("SESSION_EXISTS", "it was there once");
        await good.append(batch);
      },
      async delete(id) {
        tombs.add(id);
        await good.delete(id);
      },
    };
  },
  "closing in mid write": (good) => {
    let closed = false;
    return {
      async append(batch) {
        if (batch.events.length < 2) return good.append(batch);
        const [first, second] = half(batch);
        await good.append(first);
        await turn();
        if (closed) throw new Error("the storage is closed");
        await good.append(second);
      },
      async close() {
        closed = true;
      },
    };
  },
  "the list of a new medium": (good) => ({ list: async (options) => ({ cursor: "", ...(await good.list(options)) }) }),
  "the list gives the summary": (good) => ({
    list: async (options) => {
      const { sessions, ...rest } = await good.list(options);
      return {
        sessions: sessions.map(({ id, createdAt, updatedAt, seq, status }) => ({
          id,
          createdAt,
          updatedAt,
          seq,
          status,
        })),
        ...rest,
      };
    },
  }),
  "the list has the newest first": (good) => ({
    list: async (options) => {
      const { sessions, ...rest } = await good.list(options);
      return { sessions: sessions.toReversed(), ...rest };
    },
  }),
  "page by page": (good) => ({
    list: async (options) => {
      const { sessions } = await good.list(options);
      const last = sessions.at(-1);
      // A full page is taken for one that is not the last.
      const key = last && `${String(Number.MAX_SAFE_INTEGER - last.updatedAt).padStart(16, "0")} ${last.id}`;
      return { sessions, ...(sessions.length === options?.limit && { cursor: key! }) };
    },
  }),
  "a page goes on where the last one ended": (good) => ({
    list: async ({ limit = 50, cursor = "0" } = {}) => {
      const all = (await good.list({ limit: 1e6 })).sessions;
      const end = Number(cursor) + limit;
      return { sessions: all.slice(Number(cursor), end), ...(end < all.length && { cursor: String(end) }) };
    },
  }),
  "any text is an id of its own": (good) => ({
    append: (batch) => good.append({ ...batch, id: batch.id.toWellFormed() }),
    load: (id, options) => good.load(id.toWellFormed(), options),
  }),
  "`__proto__` and its like": reading((event) => Object.assign(event, { data: assigned(event.data) })),
  "texts come back as they were": reading(
    (event) =>
      JSON.parse(JSON.stringify(event), (_, value: unknown) =>
        typeof value === "string" ? value.toWellFormed() : value,
      ) as SessionEvent,
  ),
  "a header of an unknown format": (good) => ({
    async load(id, options) {
      const stored = await good.load(id, options);
      return stored && { ...stored, header: { ...stored.header, version: 1 } };
    },
  }),
  "a header with another id": (good) => ({
    async load(id, options) {
      const stored = await good.load(id, options);
      return stored && { ...stored, header: { ...stored.header, id } };
    },
  }),
  "an event may be large": refusing(({ events }) => JSON.stringify(events).length > 100_000),
  "an event of 5 MB": refusing(({ events }) => JSON.stringify(events).length > 2_000_000),
  "a batch of 100,000 events": refusing(({ events }) => events.length > 50_000),
  "100,000 events in batches of 1,000": refusing(({ from }) => from > 50_000),
  "a claimed session is refused": (good) => ({ claim: (id) => good.claim!(id, { mode: "steal" }) }),
  "a claim can be waited for": (good) => ({
    claim: (id, { mode }) => good.claim!(id, { mode: mode === "wait" ? "steal" : mode }),
  }),
  "a claim can be stolen": (good) => ({
    async claim(id, options) {
      const claim = await good.claim!(id, options);
      const free = async (): Promise<void> => (await good.claim!(id, { mode: "steal" })).release();
      return { ...claim, release: free };
    },
  }),
};

function refusing(tooLarge: (batch: SessionBatch) => boolean): Break {
  return (good) => ({
    async append(batch) {
      if (tooLarge(batch)) throw new Error("it is too large");
      await good.append(batch);
    },
  });
}

/** A copy such as loops make that never heard of `__proto__`. */
function assigned(value: unknown): never {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value as never;
  const copy: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) copy[key] = assigned(inner);
  return copy as never;
}
