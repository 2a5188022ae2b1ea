/** The near end of a connection: who listens, what came before anybody did, and its one end. */
import type { Unregister } from "../../src/core.ts";

export interface Ends {
  readonly closed: boolean;
  /** Kept until somebody listens. */
  receive(frame: string): void;
  /** The first reason counts; frames that come later are nobody's. */
  finish(reason: unknown): void;
  onMessage(listener: (frame: string) => void): Unregister;
  onClose(listener: (reason?: unknown) => void): Unregister;
}

/** `closing` runs once, before anybody is told. */
export function createEnds(closing: () => void = () => {}): Ends {
  const messages = new Set<(frame: string) => void>();
  const closes = new Set<(reason?: unknown) => void>();
  let early: string[] = [];
  let closed: { readonly reason: unknown } | undefined;

  return {
    get closed() {
      return closed !== undefined;
    },
    receive(frame) {
      if (closed) return;
      if (messages.size === 0) early.push(frame);
      else for (const listener of [...messages]) listener(frame);
    },
    finish(reason) {
      if (closed) return;
      closed = { reason };
      closing();
      for (const listener of [...closes]) listener(reason);
    },
    onMessage(listener) {
      messages.add(listener);
      const waiting = early;
      early = [];
      for (const frame of waiting) listener(frame);
      return () => void messages.delete(listener);
    },
    onClose(listener) {
      if (closed) listener(closed.reason);
      else closes.add(listener);
      return () => void closes.delete(listener);
    },
  };
}
