/** From the stream parts of the AI SDK, of any version, to the chunks of a model. */
import type { LanguageModelV4StreamPart, SharedV4ProviderMetadata } from "@ai-sdk/provider";
import type { ContentBlock, ErrorData, FinishReason, ModelChunk, ProviderMeta, SourceBlock } from "../../src/core.ts";
import { keptFile } from "./ai-sdk-files.ts";
import { endingOf, usageOf } from "./ai-sdk-finish.ts";
import { plainJson, providerToolBlock } from "./ai-sdk-provider-tool.ts";

type Part = LanguageModelV4StreamPart;
type Finish = Extract<Part, { type: "finish" }>;

/** What the translation has to ask or tell. */
export interface Listener {
  error(thrown: unknown): ErrorData;
  /** The answer ended without the provider's word for it; `empty` when it held nothing at all. */
  cutOff(empty: boolean): ErrorData;
  warnings(warnings: readonly unknown[]): void;
}

export interface Translation {
  /** Undefined for a part that says nothing to the loop. */
  next(part: Part): ModelChunk | readonly ModelChunk[] | undefined;
  /** The failure that the stream told, if it has; what came after it was ignored. */
  readonly failure: ErrorData | undefined;
}

/** A block that is being streamed. It is not begun until something of it has come. */
interface OpenBlock {
  readonly index: number;
  begun: boolean;
  meta: SharedV4ProviderMetadata | undefined;
}

/**
 * Blocks are numbered as they are first seen. Metadata is given with the end of a block alone: a block that
 * was cut off has none, and is not taken for one that the provider knows.
 */
export function translation(listener: Listener): Translation {
  const texts = new Map<string, OpenBlock>();
  const thoughts = new Map<string, OpenBlock>();
  const calls = new Map<string, OpenBlock>();
  let nextIndex = 0;
  let empty = true;
  let failure: ErrorData | undefined;

  const open = (blocks: Map<string, OpenBlock>, id: string, meta?: SharedV4ProviderMetadata): OpenBlock => {
    const block = { index: nextIndex++, begun: false, meta };
    blocks.set(id, block);
    return block;
  };

  const begin = (block: OpenBlock, type: "text" | "reasoning"): ModelChunk => {
    block.begun = true;
    return { type: "block-start", index: block.index, block: { type } };
  };

  const grow = (
    type: "text" | "reasoning",
    blocks: Map<string, OpenBlock>,
    part: Extract<Part, { type: "text-delta" | "reasoning-delta" }>,
  ): ModelChunk | readonly ModelChunk[] | undefined => {
    const block = blocks.get(part.id) ?? open(blocks, part.id);
    if (part.providerMetadata) block.meta = part.providerMetadata;
    if (part.delta === "") return undefined;
    empty = false;
    const delta: ModelChunk = { type: "delta", index: block.index, text: part.delta };
    return block.begun ? delta : [begin(block, type), delta];
  };

  const end = (
    type: "text" | "reasoning",
    blocks: Map<string, OpenBlock>,
    part: Extract<Part, { type: "text-end" | "reasoning-end" }>,
  ): ModelChunk | readonly ModelChunk[] | undefined => {
    const block = blocks.get(part.id);
    if (!block) return undefined;
    blocks.delete(part.id);
    const meta = metaField(part.providerMetadata ?? block.meta);
    if (!block.begun && !meta) return undefined;
    empty = false;
    const last: ModelChunk = { type: "block-end", index: block.index, ...meta };
    return block.begun ? last : [begin(block, type), last];
  };

  const whole = (
    block: ContentBlock | undefined,
    meta?: SharedV4ProviderMetadata,
    known?: OpenBlock,
  ): ModelChunk | undefined => {
    if (!block) return undefined;
    empty = false;
    const index = known?.index ?? nextIndex++;
    return { type: "block-end", index, block: { ...block, ...metaField(meta) } };
  };

  const finish = (part: Finish): readonly ModelChunk[] => {
    const usage = usageOf(part.usage);
    const chunk: ModelChunk = { type: "finish", reason: reasonOf(part) };
    return usage ? [{ type: "usage", usage }, chunk] : [chunk];
  };

  const reasonOf = ({ finishReason }: Finish): FinishReason => {
    const ending = endingOf(finishReason);
    if (ending.kind === "interrupted") failure ??= listener.cutOff(empty);
    if (ending.kind === "failed") failure ??= listener.error({ message: ending.raw ?? "" });
    if (failure) return { kind: "error", ...failure };
    // The two kinds above always leave a failure.
    return ending as FinishReason;
  };

  const next = (part: Part): ModelChunk | readonly ModelChunk[] | undefined => {
    switch (part.type) {
      case "text-delta":
        return grow("text", texts, part);
      case "reasoning-delta":
        return grow("reasoning", thoughts, part);
      case "tool-input-delta": {
        const call = calls.get(part.id);
        return call && part.delta !== "" ? { type: "delta", index: call.index, text: part.delta } : undefined;
      }
      case "text-start":
        open(texts, part.id, part.providerMetadata);
        return undefined;
      case "reasoning-start":
        open(thoughts, part.id, part.providerMetadata);
        return undefined;
      case "text-end":
        return end("text", texts, part);
      case "reasoning-end":
        return end("reasoning", thoughts, part);
      case "tool-input-start": {
        // What the provider runs itself is no call for the loop.
        if (part.providerExecuted) return undefined;
        empty = false;
        const { index } = open(calls, part.id);
        return { type: "block-start", index, block: { type: "tool-call", id: part.id, name: part.toolName } };
      }
      case "tool-call": {
        if (part.providerExecuted) return whole(providerToolBlock(part), part.providerMetadata);
        const call = calls.get(part.toolCallId);
        calls.delete(part.toolCallId);
        return whole(callBlock(part), part.providerMetadata, call);
      }
      case "tool-result":
      case "tool-approval-request":
      case "reasoning-file":
      case "custom":
        return whole(providerToolBlock(part), part.providerMetadata);
      case "file": {
        const data = keptFile(part.data);
        return whole(data && { type: "file", mediaType: part.mediaType, data }, part.providerMetadata);
      }
      case "source":
        return whole(sourceBlock(part), part.providerMetadata);
      case "stream-start":
        listener.warnings(part.warnings);
        return undefined;
      case "finish":
        return finish(part);
      case "error":
        failure = isCutOff(part.error) ? listener.cutOff(empty) : listener.error(part.error);
        return undefined;
      default:
        // tool-input-end, response-metadata, ping, raw, and what later versions add.
        return undefined;
    }
  };

  return {
    next: (part) => (failure && part.type !== "finish" ? undefined : next(part)),
    get failure() {
      return failure;
    },
  };
}

/** openai-compatible says by an error what others say by the finish reason `interrupted`. */
function isCutOff(error: unknown): boolean {
  return error instanceof Error && error.message.includes("without a finish reason");
}

function callBlock({ toolCallId, toolName, input }: Extract<Part, { type: "tool-call" }>): ContentBlock {
  // A string by its type; some clients hand on the object that a server sent.
  const text: unknown = input;
  return {
    type: "tool-call",
    callId: toolCallId,
    name: toolName,
    arguments: typeof text === "string" ? text : JSON.stringify(text ?? {}),
  };
}

function sourceBlock(part: Extract<Part, { type: "source" }>): SourceBlock {
  const title = part.title ?? ("filename" in part ? part.filename : undefined);
  return {
    type: "source",
    ...("url" in part ? { url: part.url } : undefined),
    ...(title === undefined ? undefined : { title }),
  };
}

function metaField(metadata: SharedV4ProviderMetadata | undefined): { meta: ProviderMeta } | undefined {
  const meta = metadata && plainJson(metadata);
  // Objects by provider name, or nothing.
  return meta && Object.keys(meta).length > 0 ? { meta: meta as ProviderMeta } : undefined;
}
