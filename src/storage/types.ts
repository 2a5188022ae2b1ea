/** The storage port: five methods that decide whether a session survives. */
import type { SessionEvent, SessionHeader, SessionSummary } from "../session/types.ts";

export interface SessionBatch {
  readonly id: string;
  /** The seq of the first event. */
  readonly from: number;
  readonly events: readonly SessionEvent[];
  /** With the first batch. */
  readonly header?: SessionHeader;
  readonly summary: SessionSummary;
}

/** A stored session, read lazily. */
export interface StoredSession {
  readonly header: SessionHeader;
  readonly length: number;
  readonly batches: AsyncIterable<readonly SessionEvent[]>;
}

/** Where sessions live. Run `storageContract` of `turnloop/testing` on your own. */
export interface SessionStorage {
  /** Whether what it holds outlives the process. */
  readonly durable: boolean;
  /**
   * Atomic, and durable on return. `from` must be the stored length, else SESSION_CONFLICT; from 0 needs
   * the header and fails SESSION_EXISTS if the id is stored. These two are permanent; anything else that is
   * thrown is retried with the same batch or a longer one.
   */
  append(batch: SessionBatch): Promise<void>;
  load(id: string, options?: { from?: number; signal?: AbortSignal }): Promise<StoredSession | undefined>;
  /** Newest first; reads no events. */
  list(options?: { limit?: number; cursor?: string }): Promise<{ sessions: SessionSummary[]; cursor?: string }>;
  delete(id: string): Promise<void>;
  /** A lease on the right to write, where the platform has one. Fails SESSION_CLAIMED. */
  claim?(id: string, options: { mode: "fail" | "wait" | "steal"; signal?: AbortSignal }): Promise<Claim>;
  /**
   * Hands in a reader of what a live session holds beyond the last acknowledged append; undefined when that is
   * nothing. A storage that keeps a journal reads it, synchronously, when the page is about to go. Returns its undo.
   */
  watchTail?(id: string, tail: () => SessionBatch | undefined): () => void;
  close?(): Promise<void>;
}

export interface Claim {
  /** Settles when somebody stole it. */
  readonly lost: Promise<void>;
  release(): Promise<void>;
}
