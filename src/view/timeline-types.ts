/** What a session did when: spans of time, from turns down to the waits of a call. */
import type { ErrorData, TurnEndReason, Usage } from "../core.ts";

/** The turns in order, and between them what was requested outside of turns. */
export interface Timeline {
  readonly spans: readonly TimelineSpan[];
}

/** One stretch of time. A span that did not change is the same object in the next snapshot. */
export interface TimelineSpan {
  /** Unique in the timeline and stable. */
  readonly id: string;
  /**
   * - `turn`: its children are its steps
   * - `step`: its children are its requests and its tool calls
   * - `request`: one attempt at a model, or a request outside of steps (a title, a summary)
   * - `tool`: a call from its body's start, or from the moment it waited for somebody, to its result
   * - `wait`: somebody was asked; or, of a request that failed, the delay before the next attempt
   */
  readonly kind: "turn" | "step" | "request" | "tool" | "wait";
  /** The model's id, the tool's name, the kind of the interaction, the purpose of a request outside of steps. */
  readonly name: string;
  /** 0: outside of turns. */
  readonly turn?: number;
  readonly step?: number;
  /** Of a request in a step: counts from 1, as `rebuildRequest` does. */
  readonly attempt?: number;
  readonly callId?: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** Missing while it is open. A turn that outlived its host ends when it was repaired or finished. */
  readonly endedAt?: number;
  /** Of a request: when its first chunk came. */
  readonly firstChunkAt?: number;
  /** `stopped`: it was cut short, by somebody or by the end of what it is part of. */
  readonly state: "open" | "done" | "failed" | "stopped";
  /** Of a request: what it used; of a turn and a step: their own requests together. */
  readonly usage?: Usage;
  readonly error?: ErrorData;
  /** Of a turn that has ended. */
  readonly reason?: TurnEndReason;
  /** The seqs of its events, from the first to the last so far; others may lie between. */
  readonly events: readonly [first: number, last: number];
  readonly children: readonly TimelineSpan[];
}
