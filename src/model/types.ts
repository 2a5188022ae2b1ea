/** The model port: what a request is, what a model streams, and what both are made of. */
import type { ErrorData } from "../errors.ts";
import type { JsonSchema, JsonValue } from "../json.ts";
import type { Unregister } from "../hooks/types.ts";

/** A language model behind one method. `turnloop/ai-sdk` makes one of any AI SDK model. */
export interface Model {
  /** `provider/model`, such as `openai/gpt-5.5`: what the log names. */
  readonly id: string;
  /** In tokens, where it is known. */
  readonly contextWindow?: number;
  /** False: it cannot answer in JSON of a schema by itself, and `outputTool` has it call a tool. Default true. */
  readonly structuredOutput?: boolean;
  /**
   * Answers one request. The request is deeply frozen. Chunks may come one by one or in arrays.
   *
   * Contract: `usage` comes before `finish`, and nothing after it; tool arguments are raw JSON text; the
   * signal is honoured, though the loop goes on without a model that ignores it. A failure is either
   * thrown or a `finish` of kind `error`. Secrets belong to the model object, never to the request.
   */
  stream(
    request: ModelRequest,
    options: { signal: AbortSignal; sessionId: string },
  ): AsyncIterable<ModelChunk | readonly ModelChunk[]>;
}

export interface ModelRegistry {
  /** Adds a route. Throws DUPLICATE_ADAPTER, leaving everything as it was. */
  register(name: string, model: Model): Unregister;
  get(name: string): Model | undefined;
  names(): string[];
}

/** Exactly what a step sends; `rebuildRequest` gives the same from the log alone. */
export interface ModelRequest {
  readonly config: CallConfig;
  readonly system?: string;
  readonly tools?: readonly ToolSchema[];
  readonly messages: readonly Message[];
}

/** Everything about a call that is logged. Secrets (headers, keys) belong to the model, never here. */
export interface CallConfig {
  /** The route: a name in the model registry. */
  readonly model: string;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  readonly stop?: readonly string[];
  readonly seed?: number;
  readonly reasoning?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";
  readonly toolChoice?: "auto" | "none" | "required" | { readonly tool: string };
  readonly responseFormat?: { readonly type: "json"; readonly schema?: JsonSchema; readonly name?: string };
  /** Passed to the provider as it is, by provider name. */
  readonly providerOptions?: Readonly<Record<string, JsonValue>>;
}

export interface Message {
  readonly role: "user" | "assistant" | "tool";
  readonly content: readonly ContentBlock[];
  /** Of an assistant message: the id of the model that wrote it. */
  readonly model?: string;
  /** Of a user message: who it is from. */
  readonly source?: MessageSource;
}

/** Who or what a message comes from. `kind` is `user` for people; plugins choose their own. */
export interface MessageSource {
  readonly kind: string;
  readonly [key: string]: JsonValue;
}

/** Handed back untouched to the provider that made it, and to no other. */
export type ProviderMeta = Readonly<Record<string, JsonValue>>;

export type TextBlock = { readonly type: "text"; readonly text: string; readonly meta?: ProviderMeta };
export type ReasoningBlock = { readonly type: "reasoning"; readonly text: string; readonly meta?: ProviderMeta };
export type FileBlock = {
  readonly type: "file";
  readonly mediaType: string;
  readonly data: { readonly url: string } | { readonly base64: string };
  readonly name?: string;
  readonly meta?: ProviderMeta;
};
export type SourceBlock = {
  readonly type: "source";
  readonly url?: string;
  readonly title?: string;
  readonly meta?: ProviderMeta;
};
export type ToolCallBlock = {
  readonly type: "tool-call";
  readonly callId: string;
  readonly name: string;
  /** Raw JSON text, as the model wrote it. */
  readonly arguments: string;
  readonly meta?: ProviderMeta;
};
export type ToolResultBlock = {
  readonly type: "tool-result";
  readonly callId: string;
  readonly name: string;
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
};
/** A tool that the provider ran itself: kept and handed back, never dispatched here. */
export type ProviderToolBlock = {
  readonly type: "provider-tool";
  readonly name: string;
  readonly data: JsonValue;
  readonly meta?: ProviderMeta;
};
export type ContentBlock =
  | TextBlock
  | ReasoningBlock
  | FileBlock
  | SourceBlock
  | ToolCallBlock
  | ToolResultBlock
  | ProviderToolBlock;

/** Text, or blocks. Text becomes one text block. */
export type ContentInput = string | readonly ContentBlock[];

/**
 * A piece of an answer. Blocks are told apart by `index`. A `block-start` is optional for text, and a
 * `block-end` that carries a block is authoritative over the deltas before it.
 */
export type ModelChunk =
  | {
      readonly type: "block-start";
      readonly index: number;
      readonly block:
        | { readonly type: "text" | "reasoning" }
        | { readonly type: "tool-call"; readonly id?: string; readonly name?: string };
      readonly meta?: ProviderMeta;
    }
  | {
      readonly type: "delta";
      readonly index: number;
      readonly text: string;
      readonly id?: string;
      readonly name?: string;
    }
  | { readonly type: "block-end"; readonly index: number; readonly block?: ContentBlock; readonly meta?: ProviderMeta }
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "finish"; readonly reason: FinishReason };

export type FinishReason =
  | { readonly kind: "stop" }
  | { readonly kind: "tool-calls" }
  | { readonly kind: "max-tokens" }
  | { readonly kind: "content-filter" }
  | ({ readonly kind: "error" } & ErrorData)
  | { readonly kind: "aborted" }
  | { readonly kind: "other"; readonly raw?: string };

/** Tokens, as disjoint counts: their sum is the whole. A count that is not known is absent, never NaN. */
export interface Usage {
  /** Input that was neither read from nor written to a cache. */
  readonly input?: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  /** Output without reasoning. */
  readonly output?: number;
  readonly reasoning?: number;
}

/** A tool as the model sees it. */
export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
}

/** What a request holds besides its messages. Logged whenever it changes. */
export interface RequestHeader {
  readonly config: CallConfig;
  /** `Model.id` of the model behind the route `config.model`. */
  readonly modelId?: string;
  readonly system?: string;
  readonly tools?: readonly ToolSchema[];
  readonly prefix?: readonly Message[];
}
