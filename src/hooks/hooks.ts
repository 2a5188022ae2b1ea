/** Registering and dispatching hooks, in layers: an agent's listeners run beside the harness's. */
import { failureOf, type Report, TurnloopError } from "../errors.ts";
import type { HookMap } from "./map.ts";
import type {
  Awaitable,
  Emit,
  HookName,
  HookOptions,
  Hooks,
  Parallel,
  Serial,
  Unregister,
  Waterfall,
} from "./types.ts";

type Names<Kind> = { [K in HookName]: HookMap[K] extends Kind ? K : never }[HookName];
export type EmitName = Names<Emit<unknown>>;
export type WaterfallName = Names<Waterfall<unknown, unknown, unknown>>;
export type SerialName = Names<Serial<unknown, unknown>>;
export type ParallelName = Names<Parallel<unknown>>;
type Payload<K extends HookName> = HookMap[K]["payload"];
type Answer<K extends HookName> = HookMap[K] extends { readonly answer: infer R } ? R : never;
type Patch<K extends HookName> = HookMap[K] extends { readonly patch: infer N } ? N : never;

/** The dispatching side of a layer of hooks. */
export interface Dispatch extends Hooks {
  /** For the layer above: counts changes, of this layer and of those below. */
  version(): number;
  /** All who hear it, in the order in which they are asked. */
  listeners(name: string): readonly Listener[];
  /** Whether anybody would hear it. */
  heard(name: HookName): boolean;
  emit<K extends EmitName>(name: K, payload: Payload<K>): void;
  /**
   * Answers without a promise where nobody listens and `last` needs none. What a listener hands to `next` is seen by
   * those behind it: `patched` makes the payload that they get.
   */
  waterfall<K extends WaterfallName>(
    name: K,
    payload: Payload<K>,
    last: (patch?: Patch<K>) => Awaitable<Answer<K>>,
    patched?: (payload: Payload<K>, patch: Patch<K>) => Payload<K>,
  ): Awaitable<Answer<K>>;
  /** Awaits every listener in turn; with `ends`, the first answer for which it holds ends the row. */
  serial<K extends SerialName>(
    name: K,
    payload: Payload<K>,
    ends?: (answer: unknown) => boolean,
  ): Awaitable<Answer<K> | undefined>;
  parallel<K extends ParallelName>(name: K, payload: Payload<K>): Promise<void>;
  /** Throws SCOPE_CLOSED once the layer is unwound: then nothing is registered on it any more, hooks or other. */
  checkOpen(): void;
  /** Removes every listener of this layer, and takes no more. */
  unwind(): void;
}

type Listener = (payload: never, next?: (patch?: never) => Promise<unknown>) => unknown;

/** Copied on write, so a dispatch under way keeps the listeners that it began with. */
interface Row {
  first: readonly Listener[];
  last: readonly Listener[];
}

const NOBODY: readonly Listener[] = [];

/** A layer of hooks above `parent`, whose listeners it dispatches to as well. */
export function createHooks(report: Report, parent?: Dispatch): Dispatch {
  const rows = new Map<string, Row>();
  const merged = new Map<string, readonly Listener[]>();
  let changes = 0;
  let seen = 0;
  let closed = false;

  const version = (): number => changes + (parent?.version() ?? 0);

  /** What was prepended here, the layer below, then the rest of this one. */
  function listeners(name: string): readonly Listener[] {
    const mine = rows.get(name);
    if (!mine) return parent?.listeners(name) ?? NOBODY;
    const now = version();
    if (now !== seen) {
      merged.clear();
      seen = now;
    }
    let row = merged.get(name);
    if (!row) merged.set(name, (row = [...mine.first, ...(parent?.listeners(name) ?? NOBODY), ...mine.last]));
    return row;
  }

  function change(name: string, next: (row: Row) => Row): void {
    const row = next(rows.get(name) ?? { first: NOBODY, last: NOBODY });
    if (row.first.length + row.last.length > 0) rows.set(name, row);
    else rows.delete(name);
    changes += 1;
  }

  function failed(name: string, cause: unknown): void {
    report(failureOf("LISTENER_FAILED", `a listener of ${name} failed`, cause));
  }

  const dispatch: Dispatch = {
    version,
    listeners,

    on(name, listener, options: HookOptions = {}): Unregister {
      if (typeof listener !== "function") {
        throw new TurnloopError("INVALID_HOOK", `the listener of ${String(name)} must be a function`);
      }
      dispatch.checkOpen();
      const { signal, prepend } = options;
      if (signal?.aborted) return () => {};
      // A wrapper of its own, so that one function registered twice is removed once at a time.
      const entry: Listener = (payload, next) => (listener as Listener)(payload, next);
      change(name, (row) =>
        prepend ? { ...row, first: [entry, ...row.first] } : { ...row, last: [...row.last, entry] },
      );
      const off = (): void => {
        signal?.removeEventListener("abort", off);
        const without = (list: readonly Listener[]): readonly Listener[] => list.filter((other) => other !== entry);
        change(name, (row) => ({ first: without(row.first), last: without(row.last) }));
      };
      signal?.addEventListener("abort", off, { once: true });
      return off;
    },

    checkOpen() {
      if (closed) throw new TurnloopError("SCOPE_CLOSED", "this layer is unwound; nothing can be registered");
    },

    heard: (name) => listeners(name).length > 0,

    emit(name, payload) {
      const row = listeners(name);
      for (let i = 0; i < row.length; i += 1) {
        try {
          const answer = row[i]!(payload as never);
          if (isThenable(answer)) answer.then(undefined, (cause: unknown) => failed(name, cause));
        } catch (cause) {
          failed(name, cause);
        }
      }
    },

    waterfall(name, payload, last, patched = (one, patch) => ({ ...one, ...(patch as object) })) {
      const row = listeners(name);
      if (row.length === 0) return last();
      type K = typeof name;
      const run = async (i: number, shown: Payload<K>, patch?: Patch<K>): Promise<Answer<K>> => {
        if (i === row.length) return last(patch);
        const next = (inner?: Patch<K>): Promise<Answer<K>> =>
          run(i + 1, inner === undefined ? shown : patched(shown, inner), inner ?? patch);
        return (await row[i]!(shown as never, next)) as Answer<K>;
      };
      return run(0, payload);
    },

    serial(name, payload, ends) {
      const row = listeners(name);
      if (row.length === 0) return undefined;
      type R = Answer<typeof name>;
      return (async (): Promise<R | undefined> => {
        for (const listener of row) {
          const answer = await listener(payload as never);
          if (ends?.(answer)) return answer as R;
        }
        return undefined;
      })();
    },

    async parallel(name, payload) {
      const row = listeners(name);
      if (row.length === 0) return;
      const settled = await Promise.allSettled(row.map(async (listener) => listener(payload as never)));
      const failure = settled.find((one) => one.status === "rejected");
      if (failure) throw failure.reason;
    },

    unwind() {
      closed = true;
      rows.clear();
      changes += 1;
    },
  };
  return dispatch;
}

/** Anything that can be awaited, a foreign promise too. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}
