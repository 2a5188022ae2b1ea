/** What this page has not stored yet, kept for the next one when it goes; and what earlier pages have left. */
import { TurnloopError, type Diagnostic, type SessionBatch } from "../../src/core.ts";
import type { Claims } from "./indexeddb-claim.ts";
import type { Database, Mark } from "./indexeddb-database.ts";
import type { Journal } from "./indexeddb-journal.ts";
import { mergeTail } from "./indexeddb-merge.ts";

export interface Tails {
  /** A batch is on its way, until `stored`: one that failed will be tried again. */
  began(batch: SessionBatch): void;
  stored(batch: SessionBatch): void;
  /** Replaces what is on its way as the source of a session's tail, until it is undone. */
  watch(id: string, tail: () => SessionBatch | undefined): () => void;
  /** The session is deleted, or all are: nothing of it is kept, nothing is merged. */
  forget(id?: string): void;
  /** Keeps all that is not stored. Synchronous: the page may be going. */
  keep(): void;
  /** Whether another page may have stored our tail while this one was frozen. */
  completed(id: string): boolean;
  /** Resolves when all that was left before the first use is merged, as far as it can be. Never rejects. */
  ready(): Promise<void>;
  /** Merges what is left of one session. Never rejects. */
  merge(id: string): Promise<void>;
  close(): void;
}

export interface TailsOptions {
  readonly journal: Journal;
  readonly claims: Claims;
  readonly database: Database;
  readonly known: ReadonlyMap<string, Mark>;
  readonly report: (diagnostic: Diagnostic) => void;
}

/** Frozen, a page runs no timer: one that still runs after this was not, or is not any more. */
const THAWED_MS = 1000;

export function createTails({ journal, claims, database, known, report }: TailsOptions): Tails {
  const underWay = new Map<string, SessionBatch>();
  const watched = new Map<string, () => SessionBatch | undefined>();
  const deleted = new Set<string>();
  const completed = new Set<string>();
  let merged: Promise<void> | undefined;
  let listening: AbortController | undefined;
  let thaw: (() => void) | undefined;

  /** Of a session that is lost, whoever writes behind holds nothing more; what was refused is still ours. */
  const tailOf = (id: string): SessionBatch | undefined => watched.get(id)?.() ?? underWay.get(id);

  const withMark = (batch: SessionBatch): { batch: SessionBatch; mark?: Mark } => {
    const mark = known.get(batch.id);
    return { batch, ...(mark && { mark }) };
  };

  function keep(): void {
    const ids = new Set([...watched.keys(), ...underWay.keys()]);
    const tails = [...ids].flatMap((id) => {
      const batch = tailOf(id);
      return batch && !deleted.has(id) ? withMark(batch) : [];
    });
    if (!journal.keep(tails)) tellCut();
  }

  function tellCut(): void {
    const message = "the page goes with more unstored events than it can leave to the next one";
    report({ code: "TAIL_NOT_KEPT", message });
  }

  function freeze(): void {
    keep();
    if (thaw) return;
    const goOn = database.pause();
    const timer = setTimeout(resume, THAWED_MS);
    thaw = () => {
      clearTimeout(timer);
      goOn();
    };
  }

  /** A page that was frozen, or has come back from the browser's cache, goes on by itself; not every browser says so. */
  function resume(): void {
    for (const id of journal.takeBack()) completed.add(id);
    thaw?.();
    thaw = undefined;
  }

  function listen(): void {
    if (listening) return;
    listening = new AbortController();
    const { signal } = listening;
    const { document, navigator } = globalThis;
    globalThis.addEventListener?.("pagehide", keep, { signal });
    globalThis.addEventListener?.("pageshow", resume, { signal });
    document?.addEventListener("freeze", freeze, { signal });
    document?.addEventListener("resume", resume, { signal });
    // May ask the user, and may never answer.
    navigator?.storage?.persist?.().catch(() => {});
  }

  async function mergeAll(keys: readonly string[]): Promise<void> {
    for (const key of keys) await mergeOne(key);
  }

  /** Whose tail it is; undefined when it is gone. What nobody can make anything of goes, too. */
  function idOf(key: string): string | undefined {
    try {
      return journal.read(key)?.batch.id;
    } catch (cause) {
      journal.remove(key);
      report({ code: "TAIL_LOST", message: "what an earlier page has left cannot be read", cause });
      return undefined;
    }
  }

  async function mergeOne(key: string): Promise<void> {
    const id = idOf(key);
    if (id === undefined) return;
    try {
      await claims.whileFree(id, async () => {
        const tail = journal.read(key);
        if (!tail) return;
        await mergeTail(database, tail, report);
        journal.remove(key);
      });
    } catch (cause) {
      if (TurnloopError.is(cause, "STORAGE_UNAVAILABLE")) return;
      const message = "what an earlier page has left cannot be stored yet; loading the session tries again";
      report({ code: "STORAGE_FAILED", message, cause, sessionId: id });
    }
  }

  return {
    began: (batch) => void underWay.set(batch.id, batch),

    stored({ id }) {
      underWay.delete(id);
      deleted.delete(id);
      if (journal.used) keep();
    },

    watch(id, tail) {
      watched.set(id, tail);
      return () => {
        if (watched.get(id) !== tail) return;
        const batch = tailOf(id);
        watched.delete(id);
        underWay.delete(id);
        if (batch && !deleted.has(id) && !journal.leave(withMark(batch))) tellCut();
      };
    },

    forget(id) {
      for (const one of id === undefined ? [...watched.keys(), ...known.keys()] : [id]) deleted.add(one);
      if (id === undefined) underWay.clear();
      else underWay.delete(id);
      journal.clear(id);
    },

    keep,
    completed: (id) => completed.has(id),

    ready() {
      listen();
      return (merged ??= mergeAll(journal.find()));
    },

    merge: (id) => mergeAll(journal.find(id)),

    close() {
      listening?.abort();
      listening = undefined;
      thaw?.();
      thaw = undefined;
    },
  };
}
