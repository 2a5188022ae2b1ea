/** The session log: what is in it, and how it is read and written. */
import type { ErrorData } from "../errors.ts";
import type { Unregister } from "../hooks/types.ts";
import type { JsonSchema, JsonValue } from "../json.ts";
import type {
  CallConfig,
  ContentBlock,
  Message,
  MessageSource,
  ModelChunk,
  RequestHeader,
  Usage,
} from "../model/types.ts";

/**
 * - `stored`: everything so far is in the storage
 * - `pending`: the rest is on its way
 * - `degraded`: the storage has not answered for a while; tools that have side effects do not start
 * - `lost`: the storage refused for good; the session is read-only, its tail is only here
 */
export type Durability = "stored" | "pending" | "degraded" | "lost";

/** Free to use; `title` and `cwd` have a meaning here. Plain JSON. */
export interface SessionMeta {
  readonly title?: string;
  readonly cwd?: string;
  readonly [key: string]: JsonValue | undefined;
}

export interface SessionHeader {
  /** Of the log's format; this package reads and writes 1. */
  readonly version: number;
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly meta: SessionMeta;
  /** Where this one was forked from: its first `seq` events come from there. */
  readonly parent?: { readonly id: string; readonly seq: number };
  /** How many of the first events are a seed: history, but not this session's own doing. */
  readonly seedLength?: number;
}

export interface SessionSummary {
  readonly id: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The number of stored events. */
  readonly seq: number;
  readonly title?: string;
  readonly parent?: string;
  /** `open`: a turn is under way. `waiting`: it waits for a person or a client, and for nothing else. */
  readonly status: "idle" | "open" | "waiting";
}

/** A session as a reader sees it: local, remote or stored. */
export interface SessionView {
  readonly id: string;
  readonly header: SessionHeader;
  /** The next one: the number of events so far. */
  readonly seq: number;
  /** The first seq that is here: 0, unless only the tail was asked for. */
  readonly start: number;
  /** A frozen copy, kept until the next append: subscribe rather than poll. */
  readonly events: readonly SessionEvent[];
  loadEarlier?(): Promise<void>;
  readonly durable: Durability;
  at(seq: number): SessionEvent | undefined;
  /** The history as a model sees it: a fresh array of shared, frozen messages. */
  deriveMessages(): Message[];
  /** The events that it is made of, in its order: frozen, kept until it changes. A summary stands where its range did. */
  history(): readonly SessionEvent[];
  /**
   * Replays from `from` (default: the next seq), then follows, synchronously and in order: no gap, no
   * duplicate. A listener that throws is reported and disturbs nobody.
   */
  subscribe(listener: (event: SessionEvent) => void, options?: { signal?: AbortSignal; from?: number }): Unregister;
}

export interface Session extends SessionView {
  /** The seq from which on this opening has written: what was claimed before is claimed no more. */
  readonly openedAt: number;
  /**
   * Appends one event and returns it as it is in the log: copied, frozen, numbered. An append from inside
   * a listener commits at once; its own notification waits for the running one to end. Without `cites` an event that
   * replaces others cites those.
   *
   * Throws INVALID_CONTENT (not JSON, or not what this type holds), INVALID_SURFACE, MISPLACED_EVENT (only
   * bookkeeping may stand between turns) or READ_ONLY; the log is then as it was.
   */
  append<T extends SessionEventType>(
    type: T,
    data: SessionEventMap[T],
    meta?: { surface?: SurfaceOp; cites?: readonly Cite[] },
  ): SessionEvent<T>;
  /** Resolves when all that was appended is stored. */
  flush(): Promise<void>;
}

/** The seqs that an event is about: one, or a range with both ends included. */
export type Cite = number | readonly [number, number];

/** How a message enters the history: behind what is there, or in place of a range of surface nodes. */
export type SurfaceOp = "append" | { readonly replace: readonly [start: number, end: number] };

export interface EventEnvelope {
  readonly seq: number;
  /** Milliseconds since 1970, whole. */
  readonly time: number;
  readonly surface?: SurfaceOp;
  readonly cites?: readonly Cite[];
}

export type SessionEventType = keyof SessionEventMap & string;

export type SessionEvent<T extends SessionEventType = SessionEventType> = {
  [K in T]: EventEnvelope & { readonly type: K; readonly data: SessionEventMap[K] };
}[T];

export interface RequestFailure {
  turn: number;
  step: number;
  attempt: number;
  error: ErrorData;
  usage?: Usage;
  next: "fail" | "retry" | "new-step";
  afterMs?: number;
}

/** Every type of event, with its data. Open for declaration merging. */
export interface SessionEventMap {
  "turn/start": {
    turn: number;
    trigger: { kind: "message" | "injection" | "continue"; source: MessageSource };
    /** The ids of what it took from the inbox. */
    messages?: readonly string[];
    command?: string;
  };
  "turn/resumed": { turn: number; attempt: number };
  "turn/end": { turn: number; reason: TurnEndReason };
  "step/start": { turn: number; step: number };
  "step/end": { turn: number; step: number };
  "user/message": { id: string; content: readonly ContentBlock[]; source: MessageSource };
  "prompt/blocked": { id: string; content: readonly ContentBlock[]; source: MessageSource; reason: string };
  "context/message": { id: string; content: readonly ContentBlock[]; source: MessageSource };
  "steering/message": { turn: number; id: string; content: readonly ContentBlock[]; source: MessageSource };
  "request/header": { header: RequestHeader; reason: "initial" | "resume" | "change" };
  "request/failed": RequestFailure;
  "assistant/chunk": { turn: number; step: number; chunk: ModelChunk };
  "assistant/message": {
    turn: number;
    step: number;
    model: string;
    content: readonly ContentBlock[];
    usage?: Usage;
    interrupted?: true;
  };
  "tool/call": {
    turn: number;
    step: number;
    callId: string;
    name: string;
    arguments: string;
    providerCallId?: string;
  };
  "tool/start": { turn: number; step: number; callId: string; attempt: number };
  "tool/progress": { callId: string; value: JsonValue };
  "tool/result": {
    turn: number;
    step: number;
    callId: string;
    content: readonly ContentBlock[];
    isError: boolean;
    error?: { name: string; code: string };
    meta?: JsonValue;
  };
  "interaction/requested": { id: string; kind: string; payload: JsonValue; callId?: string; expiresAt?: number };
  "interaction/claimed": { id: string; client: string; command?: string };
  /** The client that had claimed it is gone. */
  "interaction/released": { id: string; client: string };
  "interaction/resolved": {
    id: string;
    outcome: "answered" | "cancelled" | "expired";
    value?: JsonValue;
    by?: MessageSource;
    command?: string;
  };
  "inbox/queued": {
    id: string;
    content: readonly ContentBlock[];
    source: MessageSource;
    as: "send" | "steer" | "inject";
    output?: JsonSchema;
  };
  "inbox/dropped": { ids: readonly string[]; reason: string };
  "agent/cancelled": { id: string; reason: string; turn?: number; dropped: readonly string[] };
  "agent/configured": { patch: Partial<CallConfig>; command?: string };
  "session/titled": { title: string };
  "model/aux": { purpose: string; model: string; usage?: Usage; error?: ErrorData };
}

/** How a turn ended, strongest first; `interrupted` comes from repair alone. */
export type TurnEndReason =
  | { readonly kind: "disposed" }
  | { readonly kind: "aborted"; readonly reason: string }
  | { readonly kind: "error"; readonly step: number; readonly message: string; readonly code?: string }
  | { readonly kind: "max-tokens" }
  | { readonly kind: "content-filter" }
  | { readonly kind: "stopped"; readonly by: string; readonly reason: string }
  | { readonly kind: "rejected"; readonly reason: string }
  | { readonly kind: "completed" }
  | { readonly kind: "interrupted" };

export interface Sessions {
  /** A session that is live here. */
  get(id: string): Session | undefined;
  /** What is stored, newest first. */
  list(options?: { limit?: number; cursor?: string }): Promise<{ sessions: SessionSummary[]; cursor?: string }>;
  /** To read: neither repairs nor claims. */
  load(id: string): Promise<SessionView | undefined>;
  /** SESSION_NOT_FOUND; SESSION_CLAIMED when another writer has it. */
  rename(id: string, title: string): Promise<void>;
  /** SESSION_LIVE when it is live here, SESSION_CLAIMED elsewhere. One that is not stored is no error. */
  delete(id: string): Promise<void>;
  /** NDJSON: the header, then the events up to the seq of the call. SESSION_NOT_FOUND. */
  export(id: string): AsyncIterable<string>;
  /**
   * Stores what `export` gave, closing an open turn unless it is parked. INVALID_IMPORT, SESSION_EXISTS.
   * `id` gives it another id. `move` says that the original is given up, so that its queue goes on here;
   * without it, queued input is dropped.
   */
  import(
    lines: AsyncIterable<string> | Iterable<string>,
    options?: { id?: string; move?: boolean },
  ): Promise<SessionSummary>;
  /** Stores all, and awaits the listeners of `session/flush`. */
  flush(session: Session): Promise<void>;
  /** Says that a plugin's log-only event type may stand between turns. */
  define<T extends SessionEventType>(type: T, rules: { betweenTurns: boolean }): Unregister;
  /** Advanced: a session without an agent, for another loop. */
  create(options?: { id?: string; meta?: SessionMeta; seed?: readonly SessionEvent[] }): Promise<Session>;
}
