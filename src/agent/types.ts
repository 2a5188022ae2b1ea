/** The Agent handle: what drives an agent, wherever it runs. */
import type { TurnloopError } from "../errors.ts";
import type { Awaitable, Unregister } from "../hooks/types.ts";
import type { ApprovalAnswer, ClientToolAnswer, Interaction } from "../interaction/types.ts";
import type { JsonSchema, JsonValue } from "../json.ts";
import type { CallConfig, ContentBlock, ContentInput, MessageSource } from "../model/types.ts";
import type { AgentScope } from "../scope.ts";
import type { Durability, SessionEvent, SessionEventType, SessionMeta, SessionView } from "../session/types.ts";

export type AgentStatus = "idle" | "running" | "disposed";

/** Frozen; the same object until something in it changes. */
export interface AgentSnapshot {
  readonly status: AgentStatus;
  /** The open turn waits for a person or a client, and for nothing else. */
  readonly waiting: boolean;
  readonly queue: readonly QueuedMessage[];
  readonly interactions: readonly Interaction[];
  readonly durable: Durability;
  /** Of a remote agent. */
  readonly connection?: "connecting" | "open" | "closed";
  /** Of a remote agent. */
  readonly rights?: readonly ("read" | "drive" | "answer")[];
  /** Why the session is lost; of a remote agent, why a command was refused. */
  readonly error?: TurnloopError;
}

/** Accepted, and not yet part of the history. */
export interface QueuedMessage {
  readonly id: string;
  readonly content: readonly ContentBlock[];
  readonly source: MessageSource;
  readonly as: "send" | "steer" | "inject";
}

export interface SendOptions {
  /** An id that was already accepted is accepted once. Default: a new one. */
  id?: string;
  /** Default: `{ kind: "user" }`. */
  source?: MessageSource;
  /** Asks for JSON of this schema; the message opens a turn of its own. */
  output?: JsonSchema;
}

export interface ListenOptions {
  signal?: AbortSignal;
}

/**
 * Drives one agent. The verbs take effect, and are in the log, when they return; all but `cancel` throw
 * AGENT_DISPOSED once it is disposed and READ_ONLY once its session is lost.
 */
export interface Agent {
  readonly id: string;
  readonly status: AgentStatus;
  readonly options: Readonly<AgentOptions>;
  /** Of a remote agent it may be replaced, when another writer's log won; `subscribe` tells. */
  readonly session: SessionView;
  readonly queue: readonly QueuedMessage[];
  readonly interactions: readonly Interaction[];
  /** Queues a message and returns its id; starts a turn when idle. INVALID_CONTENT. */
  send(content: ContentInput, options?: SendOptions): string;
  /** Into the running turn, before its next step; like `send` when idle. INVALID_CONTENT. */
  steer(content: ContentInput, options?: SendOptions): string;
  /** Context for the next request; never runs the model. INVALID_CONTENT. */
  inject(content: ContentInput, options?: SendOptions): string;
  /** A turn over the history as it stands, without a new message; `id` is its `command` in the log. TURN_OPEN. */
  continue(options?: { id?: string }): void;
  /** Takes back what is still queued; false when it is too late. */
  withdraw(id: string): Promise<boolean>;
  /**
   * Ends the turn that is open or about to open, and drops what is queued (`queue: "keep"`: it runs as the
   * next turn). Does nothing without either. Never waits for a model or a tool that does not listen. `id` is its
   * own in the log; default: a new one.
   */
  cancel(reason?: string, options?: { queue?: "drop" | "keep"; id?: string }): void;
  /**
   * Answers; resolves when the answer is stored. The first answer wins. Rejects INTERACTION_RESOLVED,
   * INTERACTION_NOT_FOUND, INVALID_ANSWER, UNAUTHORIZED, SESSION_CONFLICT, SESSION_CLOSED.
   */
  respond(interactionId: string, value: JsonValue | ApprovalAnswer | ClientToolAnswer): Promise<void>;
  /** Before running a client tool; resolves when stored. Rejects INTERACTION_CLAIMED. */
  claim(interactionId: string): Promise<void>;
  /** From the next request on; logged. INVALID_CONTENT. */
  configure(patch: Partial<CallConfig>): void;
  /** Resolves when no turn is open and none is about to open; when disposed, once the loop has ended. */
  whenIdle(): Promise<void>;
  /** Resolves when everything accepted so far is stored. Rejects SESSION_DEGRADED, SESSION_CONFLICT, SESSION_LOST, SESSION_CLOSED. */
  flush(): Promise<void>;
  /** Sugar over `session.subscribe`. */
  on<T extends SessionEventType>(
    type: T,
    listener: (event: SessionEvent<T>) => void,
    options?: ListenOptions,
  ): Unregister;
  /** Told when the snapshot changes: with `getSnapshot` an external store for UIs. */
  subscribe(listener: () => void): Unregister;
  getSnapshot(): AgentSnapshot;
  /** Only where the loop runs. */
  readonly scope?: AgentScope;
}

export interface AgentOptions {
  /** A route in the model registry. Default: the harness's. */
  readonly model?: string;
  readonly call?: Partial<Omit<CallConfig, "model">>;
  /** Reaches tools and hooks; never logged. */
  readonly context?: unknown;
}

export interface LifecycleOptions {
  /** Composes the agent's scope before anybody can see it; must not drive the agent. */
  setup?(scope: AgentScope): Awaitable<unknown>;
  /** A parent that co-owns this one: it is disposed first. */
  owner?: Agent;
  /** Of the creation only; aborting it later does nothing. */
  signal?: AbortSignal;
  /**
   * When another writer holds the right to the session: `fail` rejects SESSION_CLAIMED at once, `wait` waits until
   * it lets go, `steal` takes the right from it, and its agent there is lost. Default: `fail`. A storage without
   * claims leaves it at the conflict of two writers.
   */
  claim?: "fail" | "wait" | "steal";
  /** How long a claim may take: past it SESSION_CLAIMED. Default: as long as it takes. */
  claimTimeoutMs?: number;
}

export interface CreateAgentOptions extends AgentOptions, LifecycleOptions {
  id?: string;
  meta?: SessionMeta;
  seed?: readonly SessionEvent[];
  /** `seq` is exclusive; it equals the seed's length in a fork. */
  parent?: { readonly id: string; readonly seq: number };
}

export interface ResumeAgentOptions extends AgentOptions, LifecycleOptions {
  id: string;
  /** What becomes of a turn that was cut short. Default: the harness's. */
  interrupted?: "close" | "continue";
}

export interface OpenAgentOptions extends ResumeAgentOptions {
  /** For a session that is new. */
  meta?: SessionMeta;
}

export interface ForkAgentOptions extends AgentOptions, LifecycleOptions {
  from: string;
  /** The seq of a `turn/end`. Default: the last one. */
  at?: number;
  /** The id of the first user message of a turn: cuts before that turn. */
  before?: string;
  id?: string;
}

/** What ends once, for everybody. */
export interface Disposable {
  /** May be called again: everybody awaits the same end. */
  dispose(): Promise<void>;
}

/** An agent that `createHarness` starts. `sessionId` goes on or begins; `resumeSessionId` must be stored. */
export interface DeclaredAgent {
  /** A label; without a session id of its own each start is a new session `${id}-session-<uuid>`. */
  id: string;
  sessionId?: string;
  resumeSessionId?: string;
  model?: string;
  /** Of a new session. */
  cwd?: string;
}

/** Whoever holds it can tear the agent down. */
export interface AgentHandle extends Disposable {
  readonly agent: Agent;
}

export interface Agents {
  /**
   * Resumes if it is stored, else creates: "the same id goes on". A live or opening id is joined, and the
   * joiner's own options are ignored (OPEN_JOINED is reported where they differ); the last handle's dispose
   * tears it down.
   */
  open(options: OpenAgentOptions): Promise<AgentHandle>;
  /**
   * Rejects SESSION_EXISTS, INVALID_ID, INVALID_CONTENT, INVALID_HEADER, INVALID_LOG (a seed), NO_ADAPTER,
   * HARNESS_DISPOSED, AGENT_DISPOSED (the owner), SESSION_CLAIMED, STORAGE_FAILED; with the signal's reason, and with what `setup` threw.
   */
  create(options?: CreateAgentOptions): Promise<AgentHandle>;
  /** Like `create`, and SESSION_NOT_FOUND, SESSION_LIVE, UNKNOWN_VERSION, UNKNOWN_EVENT. */
  resume(options: ResumeAgentOptions): Promise<AgentHandle>;
  /** From a live or a stored session. SESSION_NOT_FOUND, SESSION_EXISTS, INVALID_BOUNDARY. */
  fork(options: ForkAgentOptions): Promise<AgentHandle>;
  get(id: string): Agent | undefined;
  list(): Agent[];
  /** Advanced: synchronous, a minted id, no setup, owned by the harness. */
  start(options?: AgentOptions & { cwd?: string }): Agent;
  /** Those that no other agent owns. */
  roots(): Agent[];
  isOwnedBy(id: string, owner: Agent): boolean;
  /** Advanced: an agent built elsewhere, such as another loop or a remote one. SESSION_LIVE. */
  register(agent: Agent): Unregister;
  /** Advanced: instead of the built-in loop. FACTORY_SET when there is one. */
  setFactory(factory: AgentFactory): Unregister;
}

export interface AgentFactory {
  create(options: CreateAgentOptions): Promise<AgentHandle>;
  resume(options: ResumeAgentOptions): Promise<AgentHandle>;
  start?(options: AgentOptions & { cwd?: string }): Agent;
}
