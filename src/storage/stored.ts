/** Sessions that rest in the storage: read, and changed without an agent, one change after another. */
import { messageOf, TurnloopError } from "../errors.ts";
import { defined } from "../json.ts";
import { checkHeader } from "../session/header.ts";
import type { SessionSummary } from "../session/types.ts";
import { retitle, settleIn } from "./amend.ts";
import { readStored, type Archive } from "./archive.ts";
import type { Leases } from "./leases.ts";
import type { LiveSession } from "./live.ts";
import type { SessionStorage } from "./types.ts";

export interface StoredSessions {
  list: SessionStorage["list"];
  /** The whole of it, checked, once the changes that are under way are done; undefined when it is not stored. */
  read(id: string): Promise<Archive | undefined>;
  /** Reads no events. */
  isStored(id: string): Promise<boolean>;
  rename(id: string, title: string): Promise<void>;
  delete(id: string): Promise<void>;
  export(id: string): AsyncGenerator<string>;
  /** Resolves when no change is under way. */
  atRest(): Promise<void>;
  import(archive: Archive, options: { id: string | undefined; move: boolean }): Promise<SessionSummary>;
}

export interface StoredOptions {
  readonly storage: SessionStorage;
  readonly leases: Leases;
  /** Opens one in private, for a change. */
  readonly prepare: (archive: Archive, stored: number) => LiveSession;
  /** Throws SESSION_LIVE while an agent has it, or is made of it. */
  readonly checkAtRest: (id: string) => void;
  readonly idempotent: (tool: string) => boolean;
}

export function createStored({ storage, leases, prepare, checkAtRest, idempotent }: StoredOptions): StoredSessions {
  /** The last of the changes of each session that are under way. */
  const changes = new Map<string, Promise<unknown>>();

  const stored: StoredSessions = {
    list: (page) => guarded(() => storage.list(page)),

    async read(id) {
      await changes.get(id);
      return readNow(id);
    },

    async isStored(id) {
      await changes.get(id);
      return isStoredNow(id);
    },

    rename: (id, title) =>
      change(id, async () => {
        const archive = await readNow(id);
        if (!archive) throw notFound(id);
        await retitle(prepare, archive, title);
      }),

    delete: (id) => change(id, () => guarded(() => storage.delete(id))),

    async *export(id) {
      const archive = await stored.read(id);
      if (!archive) throw notFound(id);
      yield* (await import("./lines.ts")).toLines(archive);
    },

    async atRest() {
      await Promise.all(changes.values());
    },

    async import({ header, events }, { id, move }) {
      const target = checkHeader({ ...header, ...defined({ id }) });
      return change(target.id, async () => {
        if (await isStoredNow(target.id)) throw exists(target.id);
        return settleIn(prepare, { header: target, events }, { move, idempotent });
      });
    },
  };

  function isStoredNow(id: string): Promise<boolean> {
    return guarded(async () => Boolean(await storage.load(id)));
  }

  function readNow(id: string): Promise<Archive | undefined> {
    return guarded(async () => {
      const found = await storage.load(id);
      return found && readStored(id, found);
    });
  }

  /** Runs one change, with the right to write, when those before it are done. SESSION_LIVE, SESSION_CLAIMED. */
  async function change<T>(id: string, body: () => Promise<T>): Promise<T> {
    checkAtRest(id);
    const mine = (changes.get(id) ?? Promise.resolve()).then(async () => {
      const lease = await leases.take(id);
      try {
        return await body();
      } finally {
        await lease.release();
      }
    });
    const forget = (): void => {
      if (changes.get(id) === settled) changes.delete(id);
    };
    const settled: Promise<void> = mine.then(forget, forget);
    changes.set(id, settled);
    return mine;
  }

  return stored;
}

/** What a storage throws becomes an error of this package. */
async function guarded<T>(body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (cause) {
    if (TurnloopError.is(cause)) throw cause;
    throw new TurnloopError("STORAGE_FAILED", `the storage failed: ${messageOf(cause)}`, { cause });
  }
}

export function notFound(id: string): TurnloopError {
  return new TurnloopError("SESSION_NOT_FOUND", `no session ${id} is stored; \`open\` or \`create\` begins one`);
}

export function exists(id: string): TurnloopError {
  return new TurnloopError("SESSION_EXISTS", `a session ${id} exists already; \`open\` or \`resume\` goes on with it`);
}
