/** Tools: what a definition holds, what a call is, and what comes of it. */
import type { Agent } from "../agent/types.ts";
import type { Awaitable, Unregister } from "../hooks/types.ts";
import type { JsonSchema, JsonValue } from "../json.ts";
import type { ContentBlock, ContentInput, MessageSource, ToolSchema } from "../model/types.ts";

/** The interface that schema libraries share (standardschema.dev), as far as it is needed here. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly validate: (value: unknown) => unknown;
  };
}
export type InferOutput<S> = S extends { readonly "~standard": { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer O }
    ? O
    : unknown
  : unknown;

/** What a tool's body is given besides its arguments. */
export interface ToolCallContext {
  /** Unique in the session; the key under which a side effect can be made idempotent. */
  readonly callId: string;
  readonly agent: Agent;
  /** `AgentOptions.context`, as the agent was opened with. Never logged. */
  readonly context: unknown;
  /** Aborts when the turn is cancelled, the agent disposed, or the call timed out. */
  readonly signal: AbortSignal;
  /** Logged as `tool/progress`; does nothing once the call has ended. */
  progress(value: JsonValue): void;
  /**
   * Asks a person, and waits for the answer, however long it takes. Its id is `${callId}/${n}`, n from 1; a
   * body that is run again after a crash gets the logged answer. Rejects INTERACTION_EXPIRED, or
   * INTERACTION_CANCELLED, or INTERACTION_UNAVAILABLE when `interactive` is false.
   */
  ask(payload: JsonValue, options?: { expiresInMs?: number }): Promise<JsonValue>;
}

export interface ToolTraits<Args> {
  /** 1 to 64 letters, digits, `_` or `-`. */
  name: string;
  description: string;
  /** Whether a person has to allow the call first. */
  needsApproval?: boolean | ((args: Args, call: ToolCallContext) => Awaitable<boolean>);
  /** Has no side effect: implies `idempotent` and `parallel`. */
  readOnly?: boolean;
  /** May be run again after a crash. */
  idempotent?: boolean;
  /** May run beside other calls of the same answer. */
  parallel?: boolean;
  /** After this the body's signal aborts and the call fails TOOL_TIMEOUT. Milliseconds; positive, finite. */
  timeoutMs?: number;
  /** How people see it. */
  present?: {
    call?(args: Args): ToolView | undefined;
    result?(
      args: Args,
      result: { content: readonly ContentBlock[]; isError: boolean; meta?: JsonValue },
    ): ToolView | undefined;
  };
}

export interface ToolView {
  readonly title: string;
  readonly kind?: string;
  readonly detail?: string;
  readonly blocks?: readonly ContentBlock[];
}

/** Made by `defineTool`. */
export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  readonly [key: string]: unknown;
}

/** One call on its way through the pipeline. Frozen; `arguments` is the parsed JSON. */
export interface ToolExecution {
  readonly callId: string;
  readonly name: string;
  readonly arguments: unknown;
  readonly agent: Agent;
  readonly signal: AbortSignal;
  readonly parent?: string;
}

/** What came of it. Frozen JSON. */
export interface ToolOutcome {
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  readonly error?: { readonly name: string; readonly code: string };
  /** For programs, not for the model. */
  readonly meta?: JsonValue;
  /** Written as a `context/message` after all results of the step. */
  readonly additionalContext?: HookContext;
}

/** Context that a hook adds. The source is never guessed: say who speaks. */
export interface HookContext {
  readonly content: ContentInput;
  readonly source: MessageSource;
}

/** The same, checked: detached and frozen. */
export interface CheckedContext {
  readonly content: readonly ContentBlock[];
  readonly source: MessageSource;
}

/** `deny` beats `ask` beats `allow`: a listener that wants to be strict asks `next()` first. */
export type PreToolDecision =
  | { readonly kind: "allow" }
  | { readonly kind: "deny"; readonly reason: string }
  | { readonly kind: "ask"; readonly reason?: string; readonly expiresInMs?: number };

export type PostToolDecision =
  | {
      readonly kind: "accept";
      readonly content?: readonly ContentBlock[];
      readonly additionalContext?: HookContext;
    }
  | { readonly kind: "block"; readonly feedback: string; readonly additionalContext?: HookContext };

/** A layer of tools: the harness's, or one agent's above it. */
export interface ToolRegistry {
  /** DUPLICATE_TOOL within one layer; an agent's tool hides the harness's of the same name. INVALID_TOOL. */
  register(tool: ToolDefinition): Unregister;
  /** Denies with a reason, or abstains. Synchronous; runs after every approval; nothing can undo it. */
  guard(guard: (execution: ToolExecution) => string | undefined): Unregister;
  /**
   * Hides tools of the harness from this agent; several restrictions intersect. An agent's own tools stay.
   * INVALID_RESTRICTION on the harness's layer, for an unknown name, and for an empty filter.
   */
  restrict(filter: { allow?: readonly string[]; deny?: readonly string[] }): Unregister;
  /** One that is visible here. */
  get(name: string): ToolDefinition | undefined;
  /** What the model is shown: visible tools by name, as fresh copies. */
  schemas(): ToolSchema[];
}

/** Input of a tool as a schema library says it, or as JSON Schema. */
export type ToolInput = StandardSchema<unknown, unknown> | JsonSchema;
