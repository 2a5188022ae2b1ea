/** Every hook, with what it tells and what it may answer. */
import type { Agent, AgentStatus, QueuedMessage } from "../agent/types.ts";
import type { ErrorData } from "../errors.ts";
import type { Interaction } from "../interaction/types.ts";
import type { JsonValue } from "../json.ts";
import type {
  CallConfig,
  ContentBlock,
  ContentInput,
  Message,
  MessageSource,
  ModelChunk,
  ModelRequest,
} from "../model/types.ts";
import type { PromptAssembly, PromptContext } from "../prompt/types.ts";
import type { Session, SessionEvent } from "../session/types.ts";
import type { HookContext, PostToolDecision, PreToolDecision, ToolExecution, ToolOutcome } from "../tools/types.ts";
import type { Emit, Parallel, Serial, Waterfall } from "./types.ts";

/** Where in a turn a hook runs; the signal is the turn's. */
export interface AtTurn {
  readonly agent: Agent;
  readonly turn: number;
  readonly step: number;
  readonly signal: AbortSignal;
}

type ModelStream = AsyncIterable<ModelChunk | readonly ModelChunk[]>;

/** Open for declaration merging. */
export interface HookMap {
  "session/created": Emit<{ readonly session: Session }>;
  "session/disposed": Emit<{ readonly session: Session }>;
  "session/event": Emit<{ readonly session: Session; readonly event: SessionEvent }>;
  /** Before a turn counts as stored. */
  "session/flush": Parallel<{ readonly session: Session }>;

  "agent/created": Emit<{ readonly agent: Agent }>;
  "agent/disposed": Emit<{ readonly agent: Agent }>;
  /** Once per instance, before its loop starts: the first place to `send` or `inject`. */
  "agent/session-start": Emit<{ readonly agent: Agent; readonly source: "startup" | "resume" }>;
  "agent/status": Emit<{ readonly agent: Agent; readonly status: AgentStatus }>;
  "agent/queued": Emit<{ readonly agent: Agent; readonly message: QueuedMessage; readonly steering: boolean }>;
  /** The live twin of an error in a `turn/end`, once per failure. `step` is 0 outside a step. */
  "agent/error": Emit<{ readonly agent: Agent; readonly turn: number; readonly step: number; readonly error: Error }>;

  /**
   * At the beginning of every turn, and when one goes on that was parked or cut short, before anything of it runs:
   * what its tools or its model need may be waited for here. A failure is reported, and the turn runs.
   */
  "agent/turn-start": Parallel<{ readonly agent: Agent; readonly turn: number; readonly signal: AbortSignal }>;
  /** May replace a message, add context behind it, or block it. */
  "agent/prompt-submit": Waterfall<
    {
      readonly agent: Agent;
      readonly id: string;
      readonly content: readonly ContentBlock[];
      readonly source: MessageSource;
      readonly signal: AbortSignal;
    },
    PromptDecision
  >;
  /** Messages in front of every request of this instance; composed once, never history. */
  "agent/session-prefix": Waterfall<{ readonly agent: Agent; readonly signal: AbortSignal }, readonly Message[]>;
  /** Outside any step; what it appends is part of this request. Compaction happens here. */
  "agent/pre-step": Serial<AtTurn & { readonly system: string; readonly prefix: readonly Message[] }>;
  /** Answers with the configuration of this request: another model, other settings. */
  "agent/request": Waterfall<AtTurn & { readonly config: CallConfig }, CallConfig>;
  /** A request failed. `config`: its own; `committed`: some of its output was already streamed. Default: fail. */
  "agent/request-error": Waterfall<
    AtTurn & {
      readonly config: CallConfig;
      readonly attempt: number;
      readonly error: ErrorData;
      readonly committed: boolean;
    },
    RequestErrorDecision
  >;
  /** Answers with the message that is logged, and whose tool calls run. */
  "agent/step-result": Waterfall<AtTurn & { readonly message: Message }, Message>;
  "agent/turn-continuation": Waterfall<AtTurn & { readonly decision: ContinuationDecision }, ContinuationDecision>;
  /**
   * After every step. The first stop is final: nothing that waits can override it. `goesOn`: another step follows
   * unless the turn is stopped; steering counts.
   */
  "agent/turn-stop": Serial<
    AtTurn & { readonly goesOn: boolean },
    { readonly stop: { readonly by: string; readonly reason: string } }
  >;

  "prompt/assemble": Waterfall<{ readonly assembly: PromptAssembly; readonly context: PromptContext }, PromptAssembly>;
  "prompt/change": Emit<{}>;
  "tools/change": Emit<{}>;

  /** Around the model's stream; `next({ signal })` narrows the signal. */
  "model/stream": Waterfall<
    { readonly agent: Agent; readonly request: ModelRequest; readonly signal: AbortSignal },
    ModelStream,
    { readonly signal: AbortSignal }
  >;

  /** Default: ask for a tool with `needsApproval`, else allow. */
  "tools/pre-execute": Waterfall<{ readonly execution: ToolExecution }, PreToolDecision>;
  /** Around the body; `next({ signal })` narrows the signal; the answer is already normalised. */
  "tools/execute": Waterfall<{ readonly execution: ToolExecution }, ToolOutcome, { readonly signal: AbortSignal }>;
  "tools/post-execute": Waterfall<
    { readonly execution: ToolExecution; readonly outcome: ToolOutcome },
    PostToolDecision
  >;
  /** Once for every call, with what the model will read. */
  "tools/result": Emit<{ readonly execution: ToolExecution; readonly outcome: ToolOutcome }>;

  "interaction/requested": Emit<{ readonly agent: Agent; readonly interaction: Interaction }>;
  "interaction/resolved": Emit<{
    readonly agent: Agent;
    readonly interaction: Interaction;
    readonly value?: JsonValue;
  }>;
}

export type PromptDecision =
  | { readonly kind: "allow"; readonly content?: ContentInput; readonly additionalContext?: HookContext }
  | { readonly kind: "block"; readonly reason: string };

/** `reason` becomes steering for the next step of the same turn. */
export type ContinuationDecision =
  | { readonly action: "continue"; readonly reason?: HookContext }
  | { readonly action: "stop" };

/** `retry` stays in the step; `new-step` closes it and runs pre-step again. */
export type RequestErrorDecision =
  | { readonly kind: "fail" }
  | { readonly kind: "retry"; readonly afterMs?: number; readonly config?: CallConfig }
  | { readonly kind: "new-step" };
