/** The log of a remote agent as far as it has come: read like any session, and folded by the same functions. */
import {
  advance,
  checkEvent,
  checkHeader,
  createState,
  createSubscribers,
  createSurface,
  inherit,
  jsonEqual,
  TurnloopError,
  type Durability,
  type LogState,
  type SessionEvent,
  type SessionView,
  type Surface,
} from "../../src/core.ts";
import type { Base, Mark } from "./protocol.ts";

export interface Mirror {
  readonly session: SessionView;
  readonly state: LogState;
  /** The last event. */
  readonly last: Mark | undefined;
  /** Takes what follows, one event after another; `each` is told behind the subscribers. Throws INVALID_LOG. */
  receive(from: number, events: readonly unknown[], each: (event: SessionEvent) => void): void;
  /** Takes what stands before the first. */
  prepend(base: Base, events: readonly unknown[]): void;
  /** The host has taken the log up at this seq. False when that is no news. */
  openedAt(seq: number): boolean;
  /**
   * Whether what a host with this header sends from `next` on goes on here. A session that never held an event may
   * have been begun again: then it takes the new header. Throws INVALID_HEADER, UNKNOWN_VERSION.
   */
  goesOn(header: unknown, next: number): boolean;
}

export interface MirrorOptions {
  readonly header: unknown;
  readonly id: string;
  readonly base: Base | undefined;
  readonly durable: () => Durability;
  readonly loadEarlier: () => Promise<void>;
  /** A subscriber has failed. */
  readonly failed: (cause: unknown) => void;
}

/** Throws INVALID_HEADER, UNKNOWN_VERSION. */
export function createMirror({ header: raw, id, base, durable, loadEarlier, failed }: MirrorOptions): Mirror {
  let header = checkHeader(raw, id);
  let start = base?.start ?? 0;
  let events: SessionEvent[] = [];
  let frozen: readonly SessionEvent[] | undefined;
  let state = stateAt(base);
  let surface: Surface = createSurface();
  /** Where hosts have taken the log up. */
  const openings = new Set<number>();

  const end = (): number => start + events.length;

  function fold(event: SessionEvent): void {
    advance(state, event, event.seq >= (header.seedLength ?? 0));
    surface.add(event);
    // At once, as nothing may follow for days.
    if (openings.has(event.seq + 1)) inherit(state);
  }

  const subscribers = createSubscribers(
    {
      get start() {
        return start;
      },
      get told() {
        return end();
      },
      get seq() {
        return end();
      },
      at: (seq) => events[seq - start],
    },
    failed,
  );

  const session: SessionView = {
    id,
    get header() {
      return header;
    },
    get seq() {
      return end();
    },
    get start() {
      return start;
    },
    get events() {
      return (frozen ??= Object.freeze(events.slice()));
    },
    get durable() {
      return durable();
    },
    loadEarlier: () => (start === 0 ? Promise.resolve() : loadEarlier()),
    at: (seq) => events[seq - start],
    deriveMessages: () => surface.messages(),
    history: () => surface.events(),
    subscribe: subscribers.subscribe,
  };

  return {
    session,
    get state() {
      return state;
    },
    get last() {
      const event = events.at(-1);
      return event && { seq: event.seq, time: event.time, type: event.type };
    },
    receive(from, raws, each) {
      if (from !== end()) throw new TurnloopError("INVALID_LOG", `event ${end()} should follow, not ${from}`);
      for (const one of raws) {
        const event = checkEvent(one, end());
        events.push(event);
        frozen = undefined;
        fold(event);
        subscribers.tell(event);
        each(event);
      }
    },
    prepend(earlier, raws) {
      if (earlier.start + raws.length !== start) return;
      const before = raws.map((one, i) => checkEvent(one, earlier.start + i));
      events = [...before, ...events];
      start = earlier.start;
      frozen = undefined;
      state = stateAt(earlier);
      if (openings.has(start)) inherit(state);
      surface = createSurface();
      for (const event of events) fold(event);
    },
    goesOn(other, next) {
      if (next !== end()) return false;
      if (next === 0) header = checkHeader(other, id);
      return jsonEqual(header, other);
    },
    openedAt(seq) {
      if (openings.has(seq)) return false;
      openings.add(seq);
      if (seq === end()) inherit(state);
      return true;
    },
  };
}

/** What a reader of the whole log would know at the start of a tail. */
function stateAt(base: Base | undefined): LogState {
  const state = createState();
  if (!base) return state;
  state.turn = base.turn;
  for (const entry of base.queue) {
    state.inbox.set(entry.id, { ...entry, cutShort: 0 });
    state.accepted.add(entry.id);
  }
  return state;
}
