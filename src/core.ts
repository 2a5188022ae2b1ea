/** The face of the core: everything that adapters, plugins and views are made with. */
export { createHarness } from "./harness.ts";
export type { AgentScope, Clock, Harness, HarnessOptions, Plugin, Scope } from "./scope.ts";
export { systemClock } from "./clock.ts";
export { messageOf, TurnloopError, type Diagnostic, type ErrorData } from "./errors.ts";
export { jsonCopy, jsonEqual, type JsonSchema, type JsonValue } from "./json.ts";

export type {
  Awaitable,
  Emit,
  HookListener,
  HookName,
  HookOptions,
  Hooks,
  Parallel,
  Serial,
  Unregister,
  Waterfall,
} from "./hooks/types.ts";
export type { AtTurn, ContinuationDecision, HookMap, PromptDecision, RequestErrorDecision } from "./hooks/map.ts";

export type {
  Agent,
  AgentFactory,
  AgentHandle,
  AgentOptions,
  Agents,
  AgentSnapshot,
  AgentStatus,
  CreateAgentOptions,
  DeclaredAgent,
  Disposable,
  ForkAgentOptions,
  LifecycleOptions,
  ListenOptions,
  OpenAgentOptions,
  QueuedMessage,
  ResumeAgentOptions,
  SendOptions,
} from "./agent/types.ts";
export { nextSnapshot } from "./agent/snapshot.ts";
export { run, type Run, type RunOptions, type RunResult } from "./agent/run.ts";

export { checkAnswer } from "./interaction/answer.ts";
export { clientTools, type ClientToolBodies } from "./interaction/client-tools.ts";
export type {
  ApprovalAnswer,
  ApprovalPayload,
  ClientToolAnswer,
  ClientToolPayload,
  Interaction,
} from "./interaction/types.ts";

export type {
  Cite,
  Durability,
  EventEnvelope,
  RequestFailure,
  Session,
  SessionEvent,
  SessionEventMap,
  SessionEventType,
  SessionHeader,
  SessionMeta,
  Sessions,
  SessionSummary,
  SessionView,
  SurfaceOp,
  TurnEndReason,
} from "./session/types.ts";
export { rebuildRequest } from "./session/rebuild.ts";
export { checkHeader } from "./session/header.ts";
export { readPayments, type Payment } from "./session/payments.ts";
export { isWaiting } from "./session/parking.ts";
export { checkEvent } from "./session/shapes.ts";
export { advance, createState, inherit, openInteractions, queuedMessages, type LogState } from "./session/state.ts";
export { createSubscribers } from "./session/subscribers.ts";
export { createSurface, type Surface } from "./session/surface.ts";

export { memoryStorage } from "./storage/memory.ts";
export type { Claim, SessionBatch, SessionStorage, StoredSession } from "./storage/types.ts";

export { assemble } from "./model/assemble.ts";
export { chunkOf } from "./model/chunks.ts";
export { contentOf, sourceOf, textIn } from "./model/content.ts";
export { addUsage } from "./model/usage.ts";
export { configPatchOf, outputSchemaOf, sayableOf } from "./model/verbs.ts";
export type {
  CallConfig,
  ContentBlock,
  ContentInput,
  FileBlock,
  FinishReason,
  Message,
  MessageSource,
  Model,
  ModelChunk,
  ModelRegistry,
  ModelRequest,
  ProviderMeta,
  ProviderToolBlock,
  ReasoningBlock,
  RequestHeader,
  SourceBlock,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
  ToolSchema,
  Usage,
} from "./model/types.ts";

export type { PromptAssembly, PromptContext, PromptSection, SystemPrompt } from "./prompt/types.ts";

export { defineTool } from "./tools/define.ts";
export { toolResult } from "./tools/result.ts";
export type {
  HookContext,
  InferOutput,
  PostToolDecision,
  PreToolDecision,
  StandardSchema,
  ToolCallContext,
  ToolDefinition,
  ToolExecution,
  ToolInput,
  ToolOutcome,
  ToolRegistry,
  ToolTraits,
  ToolView,
} from "./tools/types.ts";
