/** A storage that fails as it is told, and a stage with a clock that stands, so that nobody waits for a retry. */
import {
  memoryStorage,
  TurnloopError,
  type Agent,
  type Diagnostic,
  type Harness,
  type HarnessOptions,
  type SessionBatch,
  type SessionEvent,
  type SessionStorage,
} from "turnloop";
import { afterEach } from "vitest";
import { testClock, type TestClock } from "./clock.ts";
import { harnessWith } from "./fixture.ts";
import { deferred } from "./wait.ts";

/** What becomes of one write. `store` does it; `released` resolves when the storage is healed. */
export type Fault = (store: () => Promise<void>, released: Promise<void>) => Promise<void>;

/** Nothing is stored, and it is said so. */
export const fails: Fault = async () => {
  throw new Error("the disk is busy");
};
/** All is stored, and the answer is lost on its way. */
export const losesAnswer: Fault = async (store) => {
  await store();
  throw new Error("the line is dead");
};
/** Neither stores nor answers. */
export const hangs: Fault = async (_, released) => {
  await released;
  throw new Error("it was too late");
};
/** Stores once it is released. */
export const holds: Fault = async (store, released) => {
  await released;
  await store();
};
/** Refuses for good. */
export const refuses =
  (code: "SESSION_CONFLICT" | "SESSION_EXISTS"): Fault =>
  async () => {
    throw new TurnloopError(code, "somebody else writes this session");
  };

export interface FailingStorage extends SessionStorage {
  /** Every write that was tried, in order. */
  readonly tried: readonly SessionBatch[];
  /** Every call, in order: `append s`, `load s`, `list`, `delete s`, `close`. */
  readonly calls: readonly string[];
  /** What the next writes meet, one each; after that what `always` says. */
  next(...faults: Fault[]): void;
  /** What every write meets from now on, until the storage is healed. */
  always(fault: Fault): void;
  /** The next call of a method other than `append` rejects with this. */
  breakNext(method: "load" | "list" | "delete" | "close", error: Error): void;
  /** What `always` said is over, and what hung or was held goes on. */
  release(): void;
  /** The same, and what the next writes were to meet is forgotten. */
  heal(): void;
  /** Resolves when a write is tried that makes `count` of them. */
  tries(count: number): Promise<void>;
  /** What is stored. */
  stored(id: string): Promise<SessionEvent[]>;
}

const failing = new Set<FailingStorage>();
const clocks = new Set<TestClock>();

/** Nothing stays broken behind a test: its sessions must be able to end. */
afterEach(async () => {
  for (const storage of failing) storage.heal();
  await turnOfTheEventLoop();
  for (const clock of clocks) await clock.advance(30_000);
  failing.clear();
  clocks.clear();
});

export function failingStorage(inner: SessionStorage = memoryStorage()): FailingStorage {
  const tried: SessionBatch[] = [];
  const calls: string[] = [];
  const waiting: { readonly count: number; resolve(): void }[] = [];
  const broken = new Map<string, Error>();
  let faults: Fault[] = [];
  let fallback: Fault | undefined;
  let held = deferred();

  function call(name: string, id = ""): void {
    calls.push(`${name} ${id}`.trim());
    const error = broken.get(name);
    broken.delete(name);
    if (error) throw error;
  }

  const storage: FailingStorage = {
    durable: inner.durable,
    tried,
    calls,
    async append(batch) {
      tried.push(batch);
      call("append", batch.id);
      for (const one of waiting) if (tried.length >= one.count) one.resolve();
      const fault = faults.shift() ?? fallback;
      const store = (): Promise<void> => inner.append(batch);
      await (fault ? fault(store, held.promise) : store());
    },
    async load(id, options) {
      call("load", id);
      return inner.load(id, options);
    },
    async list(options) {
      call("list");
      return inner.list(options);
    },
    async delete(id) {
      call("delete", id);
      await inner.delete(id);
    },
    async close() {
      call("close");
    },
    next: (...some) => void faults.push(...some),
    always: (fault) => void (fallback = fault),
    breakNext: (method, error) => void broken.set(method, error),
    release() {
      fallback = undefined;
      held.resolve();
      held = deferred();
    },
    heal() {
      faults = [];
      storage.release();
    },
    tries(count) {
      if (tried.length >= count) return Promise.resolve();
      return new Promise((resolve) => waiting.push({ count, resolve }));
    },
    async stored(id) {
      const events: SessionEvent[] = [];
      for await (const batch of (await inner.load(id))?.batches ?? []) events.push(...batch);
      return events;
    },
  };
  failing.add(storage);
  return storage;
}

export interface FaultyStage {
  readonly clock: TestClock;
  readonly storage: FailingStorage;
  readonly harness: Harness & { readonly diagnostics: readonly Diagnostic[] };
  open(id?: string): Promise<Agent>;
  /** Releases the storage, and moves the clock until it has taken everything, or has refused for good. */
  recover(agent: Agent): Promise<void>;
}

/** A harness over a storage that can be broken, with a clock that is moved by hand. */
export function faultyStage({ inner, ...options }: HarnessOptions & { inner?: SessionStorage } = {}): FaultyStage {
  const clock = testClock();
  clocks.add(clock);
  const storage = failingStorage(inner);
  const harness = harnessWith({ clock, storage, ...options });
  return {
    clock,
    storage,
    harness,
    open: async (id = "s") => (await harness.agents.open({ id })).agent,
    async recover({ session }) {
      while (session.durable !== "stored" && session.durable !== "lost") {
        storage.release();
        await turnOfTheEventLoop();
        await clock.advance(5000);
      }
    },
  };
}

/** Whatever can go on without a timer has gone on. */
export function turnOfTheEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** The codes of what was reported. */
export function codesOf(diagnostics: readonly Diagnostic[]): string[] {
  return diagnostics.map(({ code }) => code);
}
