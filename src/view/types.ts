/** What people see of a session: the transcript, and the store that tells when it changed. */
import type {
  ContentBlock,
  ErrorData,
  Interaction,
  JsonValue,
  MessageSource,
  ToolView,
  TurnEndReason,
  Unregister,
  Usage,
} from "../core.ts";

/** An external store, as UI frameworks want it (React: `useSyncExternalStore`). */
export interface Store<T> {
  /** Told, without arguments, when `getSnapshot` may answer something else. It may be told more often than that. */
  subscribe(listener: () => void): Unregister;
  /** The same object until something in it changes. Right without subscribers, too. */
  getSnapshot(): T;
}

/**
 * The conversation as people read it. Unlike the history that a model is sent, it keeps what compaction
 * replaced, what was blocked and what failed. What only waits in the queue is not in it: see
 * `agent.getSnapshot().queue`.
 *
 * A message that did not change is the same object in the next snapshot; so is a part of it.
 */
export interface Transcript {
  readonly messages: readonly TranscriptMessage[];
  /** The turn that is open. `startedAt`: milliseconds since 1970. */
  readonly turn?: { readonly number: number; readonly startedAt: number };
}

export interface TranscriptMessage {
  /** Unique in the transcript and stable: a key for lists. Of a user message, the id that `send` gave. */
  readonly id: string;
  /**
   * - `user`: what somebody sent, steering included; `source` says who
   * - `assistant`: one step of the model, its tool calls included; no parts yet while it is being waited for
   * - `context`: what a program told the model, through `inject` or a hook
   * - `mark`: something that happened to the conversation; `mark` says what
   */
  readonly role: "user" | "assistant" | "context" | "mark";
  /** The number of its turn; 0 for what stands between turns. */
  readonly turn: number;
  readonly parts: readonly TranscriptPart[];
  /**
   * - `streaming`: it may still change: the model writes, or its tools run
   * - `done`: settled
   * - `interrupted`: cut short by a cancel, a disposal or a crash; or, for a mark, never run
   * - `failed`: its turn ended in an error; `error` has it
   * - `blocked`: refused by a policy before the model saw it
   */
  readonly state: "streaming" | "done" | "interrupted" | "failed" | "blocked";
  /** Why it failed; while it is `streaming`: why the last attempt failed that is about to be repeated. */
  readonly error?: ErrorData;
  /** Of an assistant message: what this step used. */
  readonly usage?: Usage;
  /** Who it is from, of `user` and `context`. */
  readonly source?: MessageSource;
  readonly mark?: TranscriptMark;
}

/** What a message of role `mark` tells. The message's parts are the text that it is about, if any. */
export type TranscriptMark =
  /** A policy refused a message. */
  | { readonly kind: "blocked"; readonly reason: string }
  /** A message was accepted and never ran: it was cancelled while it waited, say. Withdrawn ones leave no mark. */
  | { readonly kind: "dropped"; readonly reason: string }
  /** From here on the model sees a summary (the parts) in place of what is above. */
  | { readonly kind: "compacted" }
  /** A turn ended otherwise than by completing, and no message could carry that. */
  | { readonly kind: "turn-end"; readonly reason: TurnEndReason };

export type TranscriptPart =
  | { readonly type: "text" | "reasoning"; readonly text: string; readonly streaming: boolean }
  | ToolPart
  | { readonly type: "file"; readonly block: ContentBlock }
  | { readonly type: "source"; readonly block: ContentBlock };

/** A tool call from its first byte to its result. */
export interface ToolPart {
  readonly type: "tool";
  readonly callId: string;
  /** Empty until the model has written it. */
  readonly name: string;
  /** Raw JSON text; while it is `writing`, a beginning of it. */
  readonly arguments: string;
  /**
   * - `writing`: the model writes it, or it waits for the calls before it
   * - `asking`: `interaction` waits for a person or a client
   * - `running`
   * - `done`: it has a result
   * - `failed`: its result is an error; it was denied; it never ran
   * - `unknown`: it was started and nobody knows how it ended; it may have taken effect
   */
  readonly state: "writing" | "asking" | "running" | "done" | "failed" | "unknown";
  /** The call as the tool presents it (`present.call`); only where the loop runs. */
  readonly call?: ToolView;
  /** The result as the tool presents it (`present.result`); only where the loop runs. */
  readonly view?: ToolView;
  readonly result?: readonly ContentBlock[];
  /** The last value given to `progress`. */
  readonly progress?: JsonValue;
  /** What has to be answered before it goes on: an approval, a question, a tool that a client runs. */
  readonly interaction?: Interaction;
}
