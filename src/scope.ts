/** The harness and its layers, as types: what plugins and hooks are handed. */
import type { Agent, Agents, DeclaredAgent, Disposable } from "./agent/types.ts";
import type { Diagnostic } from "./errors.ts";
import type { Awaitable, Hooks, Unregister } from "./hooks/types.ts";
import type { Model, ModelRegistry } from "./model/types.ts";
import type { SystemPrompt } from "./prompt/types.ts";
import type { Session, Sessions, SessionSummary } from "./session/types.ts";
import type { SessionStorage } from "./storage/types.ts";
import type { ToolDefinition, ToolRegistry } from "./tools/types.ts";

/** A layer of registrations that unwinds together: the harness's own, or one agent's. */
export interface Scope {
  readonly harness: Harness;
  readonly hooks: Hooks;
  readonly tools: ToolRegistry;
  readonly prompt: SystemPrompt;
  /** Runs a plugin on this layer; what it returns is called when the layer unwinds. */
  use(plugin: Plugin): Unregister;
}

export interface AgentScope extends Scope {
  readonly agent: Agent;
  readonly session: Session;
  /**
   * For policies: ends the open turn at once, whatever it waits for, as `{ kind: "stopped", by, reason }`, with what
   * has been streamed kept and each call answered. Final, as `agent/turn-stop` is; a cancel or a disposal that comes
   * before the end is stronger. False when no turn is open, or it ends already. Throws INVALID_DECISION.
   */
  stop(policy: { readonly by: string; readonly reason: string }): boolean;
}

/** A policy: a function that registers hooks, tools and prompt parts on the layer that it is given. */
export type Plugin = (scope: Scope) => void | Unregister;

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after `ms`; rejects with the signal's reason when that aborts first. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export interface HarnessOptions {
  /** The default route: a model, or the name of an entry of `models`. */
  model?: Model | string;
  models?: Readonly<Record<string, Model>>;
  /** Default: `memoryStorage()`. */
  storage?: SessionStorage;
  /** The persona, taken literally: section `persona`, order 0. */
  system?: string;
  tools?: readonly ToolDefinition[];
  plugins?: readonly Plugin[];
  /** Default 10; only for tools with `parallel`. */
  maxParallelToolCalls?: number;
  /**
   * What becomes of a turn that was cut short, when its session is opened again: it is closed, or goes on where it
   * was, three times in all. One that waits for an answer goes on either way. Default: `close`.
   */
  interrupted?: "close" | "continue";
  /** Default true: an ask waits for an answer. False: there is nobody to ask, and it is denied at once. */
  interactive?: boolean;
  /** Rebuilds `AgentOptions.context` when the host itself opens a session. */
  context?(sessionId: string): Awaitable<unknown>;
  /**
   * Told what is stored of a session, whenever that has changed, at least once and in order; for an index of one's
   * own. Called for one change after another; while a call lasts, or has failed and waits to be made again, the
   * newest summary takes the place of those before it.
   */
  onSummary?(summary: SessionSummary): Awaitable<void>;
  /**
   * Told what no caller can be told. Default: `console.warn`. Codes: LISTENER_FAILED, PLUGIN_FAILED, OPEN_JOINED,
   * INTERACTION_WAITING, MESSAGE_DROPPED, AGENT_NOT_STARTED, SESSION_NOT_FOUND (a declared agent), STORAGE_FAILED,
   * SESSION_DEGRADED, SESSION_CONFLICT, SESSION_LOST, FLUSH_FAILED, TURN_NOT_CLOSED, LOOP_FAILED.
   */
  onDiagnostic?(diagnostic: Diagnostic): void;
  /** Default: `Date.now` and `setTimeout`. */
  clock?: Clock;
  /** Default: `crypto.randomUUID`. */
  newId?(): string;
  /** Advanced: started at once; `ready` settles when they are live. */
  agents?: readonly DeclaredAgent[];
  /** The order in which the model sees the tools: names, and `*` once for the rest. Default: by name. */
  toolOrder?: readonly string[];
}

export interface Harness extends Disposable, Scope {
  /** Settles when the declared agents are live. Never rejects: what failed is reported. */
  readonly ready: Promise<void>;
  readonly agents: Agents;
  readonly sessions: Sessions;
  readonly models: ModelRegistry;
  readonly clock: Clock;
  newId(): string;
  report(diagnostic: Diagnostic): void;
}
