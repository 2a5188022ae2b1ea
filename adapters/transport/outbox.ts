/** The commands of a remote handle that its host has not acknowledged: sent again until it has. */
import type { JsonValue, TurnloopError } from "../../src/core.ts";
import { readCommand, type Command } from "./protocol.ts";

/** Where an outbox is kept over a reload of its page. */
export interface OutboxStore {
  load(session: string): string | undefined;
  /** Undefined: nothing is left. May throw; the outbox is then only in memory. */
  save(session: string, outbox: string | undefined): void;
}

export interface Outbox {
  /** In the order of their acceptance. */
  readonly commands: readonly Command[];
  /** Resolves when it is acknowledged, with what the verb answers; rejects when it is refused. */
  add(command: Command): Promise<JsonValue | undefined>;
  done(id: string, value: JsonValue | undefined): void;
  /** True when nobody else hears of it: whoever calls `respond`, `claim` or `withdraw` holds a promise. */
  refuse(id: string, error: TurnloopError): boolean;
  /** On a new connection all of it goes out again. */
  resend(send: (commands: readonly Command[]) => void): void;
  /** The connection is gone: nothing is sent until the next. */
  hold(): void;
  /** Resolves when all that is in it now is settled; rejects with the first refusal that nobody else hears of. */
  flush(): Promise<void>;
  /** No command of this handle is acknowledged any more; what is kept for a reload stays, unless `forget`. */
  close(error: TurnloopError, forget: boolean): void;
}

interface Entry {
  readonly command: Command;
  /** Its sender waits for the answer. */
  readonly awaited: boolean;
  readonly settled: PromiseWithResolvers<JsonValue | undefined>;
  /** The frame that it went out with, on this connection. */
  frame: object | undefined;
}

/** So many frames wait for their answers at once: a host takes only so many a second. The rest gathers. */
const WINDOW = 16;

export function createOutbox(session: string, store: OutboxStore | undefined, changed: () => void): Outbox {
  let entries: Entry[] = loaded(session, store).map((command) => entryOf(command, false));
  let sending: ((commands: readonly Command[]) => void) | undefined;
  let scheduled = false;

  function keep(): void {
    // Who claims a tool has its body; another page has not.
    const kept = entries.map(({ command }) => command).filter(({ kind }) => kind !== "claim");
    try {
      store?.save(session, kept.length > 0 ? JSON.stringify(kept) : undefined);
    } catch {
      // No room, or no permission: then it is not kept.
    }
  }

  /** Behind the frame that runs now: what is asked for in one synchronous frame travels together. */
  function pump(): void {
    if (scheduled) return;
    scheduled = true;
    queueMicrotask(() => {
      scheduled = false;
      const next = entries.filter((entry) => !entry.frame);
      if (!sending || next.length === 0) return;
      if (new Set(entries.map(({ frame }) => frame)).size > WINDOW) return;
      const frame = {};
      for (const entry of next) entry.frame = frame;
      sending(next.map(({ command }) => command));
    });
  }

  function remove(id: string): Entry | undefined {
    const entry = entries.find(({ command }) => command.id === id);
    if (!entry) return undefined;
    entries = entries.filter((other) => other !== entry);
    keep();
    return entry;
  }

  return {
    get commands() {
      return entries.map(({ command }) => command);
    },
    add(command) {
      const known = entries.find((entry) => entry.command.id === command.id);
      if (known) return known.settled.promise;
      const entry = entryOf(command, AWAITED.has(command.kind));
      entries.push(entry);
      keep();
      changed();
      pump();
      return entry.settled.promise;
    },
    done(id, value) {
      const entry = remove(id);
      entry?.settled.resolve(value);
      pump();
      if (entry) changed();
    },
    refuse(id, error) {
      const entry = remove(id);
      entry?.settled.reject(error);
      pump();
      if (entry?.awaited) changed();
      return entry !== undefined && !entry.awaited;
    },
    resend(send) {
      sending = send;
      for (const entry of entries) entry.frame = undefined;
      pump();
    },
    hold() {
      sending = undefined;
    },
    async flush() {
      await Promise.all(
        entries.map(({ settled: { promise }, awaited }) => (awaited ? promise.catch(() => {}) : promise)),
      );
    },
    close(error, forget) {
      sending = undefined;
      const rest = entries;
      entries = [];
      if (forget) keep();
      for (const { settled } of rest) settled.reject(error);
    },
  };
}

/** The verbs that answer with a promise. */
const AWAITED: ReadonlySet<Command["kind"]> = new Set(["withdraw", "respond", "claim"]);

function entryOf(command: Command, awaited: boolean): Entry {
  const settled = Promise.withResolvers<JsonValue | undefined>();
  // Whoever asks for it is told; nobody has to.
  settled.promise.catch(() => {});
  return { command, awaited, settled, frame: undefined };
}

function loaded(session: string, store: OutboxStore | undefined): Command[] {
  try {
    const kept: unknown = JSON.parse(store?.load(session) ?? "[]");
    return Array.isArray(kept) ? kept.flatMap((one) => readCommand(one) ?? []) : [];
  } catch {
    return [];
  }
}

/** The page's own session storage: it survives a reload, and no other tab has it. Undefined where there is none. */
export function pageStore(): OutboxStore | undefined {
  // Node has one too, which warns when it is asked for.
  if (typeof document === "undefined") return undefined;
  let kept: Storage;
  try {
    kept = globalThis.sessionStorage;
  } catch {
    // A page may be forbidden to store anything.
    return undefined;
  }
  const keyOf = (session: string): string => `turnloop:outbox:${session}`;
  return {
    load: (session) => kept.getItem(keyOf(session)) ?? undefined,
    save(session, outbox) {
      if (outbox === undefined) kept.removeItem(keyOf(session));
      else kept.setItem(keyOf(session), outbox);
    },
  };
}
