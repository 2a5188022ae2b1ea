/** What the tests of transports share: saying what is wrong, waiting for what is told, and breaking connections. */
import { jsonEqual } from "../core.ts";
import type { ConnectionUnderTest } from "./transport-contract.ts";

export function same(found: unknown, wanted: unknown, what: string): void {
  if (!jsonEqual(found, wanted)) throw new Error(`${what}: found ${short(found)} instead of ${short(wanted)}`);
}

export function holds(condition: boolean, what: string): void {
  if (!condition) throw new Error(what);
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? "undefined";
  return text.length > 300 ? `${text.slice(0, 300)}...` : text;
}

/** The first so many frames that come. */
export function framesOf(connection: ConnectionUnderTest, count: number): Promise<string[]> {
  return new Promise((resolve) => {
    const frames: string[] = [];
    connection.onMessage((frame) => {
      frames.push(frame);
      if (frames.length === count) resolve(frames);
    });
  });
}

/** When the connection is told to be closed. */
export function closeOf(connection: ConnectionUnderTest): Promise<unknown> {
  return new Promise((resolve) => {
    connection.onClose(resolve);
  });
}

/** Numbers from 0 up to 1, the same for the same seed. */
export function numbersFrom(seed: number): () => number {
  let state = (seed * 2_654_435_761 + 1) % 4_294_967_296;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}

/** How often, of a thousand frames, something happens to one. */
export interface Faults {
  readonly duplicate: number;
  readonly delay: number;
  /** The frame is lost, and the connection with it. */
  readonly drop: number;
  /** The connection ends behind the frame. */
  readonly cut: number;
}

export const MANY_FAULTS: Faults = { duplicate: 100, delay: 150, drop: 40, cut: 40 };

/** The same connection over a bad line, in both directions. What is delayed delays what comes behind it. */
export function withFaults(inner: ConnectionUnderTest, random: () => number, faults: Faults): ConnectionUnderTest {
  let cut = false;

  function lane(deliver: (frame: string) => void): (frame: string) => void {
    const held: string[] = [];
    let working = false;

    async function work(): Promise<void> {
      working = true;
      while (held.length > 0 && !cut) {
        const frame = held.shift()!;
        const fate = random() * 1000;
        if (fate < faults.delay) await pause();
        if (fate < faults.drop) return end();
        deliver(frame);
        if (random() * 1000 < faults.duplicate) deliver(frame);
        if (random() * 1000 < faults.cut) return end();
      }
      working = false;
    }

    return (frame) => {
      held.push(frame);
      if (!working) void work();
    };
  }

  function end(): void {
    cut = true;
    inner.close("cut");
  }

  return {
    send: lane((frame) => inner.send(frame)),
    onMessage: (listener) => inner.onMessage(lane((frame) => cut || listener(frame))),
    onClose: (listener) => inner.onClose(listener),
    close(reason) {
      cut = true;
      inner.close(reason);
    },
  };
}

/** A few turns of the event loop. */
export function pause(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 1);
  });
}
