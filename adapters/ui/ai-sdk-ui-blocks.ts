/** Content blocks as chunks of a UI message, and what UI messages hold as content. */
import type { UIMessageChunk } from "ai";
import {
  TurnloopError,
  type ContentBlock,
  type FileBlock,
  type JsonValue,
  type ProviderToolBlock,
} from "../../src/core.ts";

/** A block that came whole. `id` names it among the parts of its message. Calls are told when they are taken up. */
export function chunksOfBlock(block: ContentBlock, id: string): UIMessageChunk[] {
  switch (block.type) {
    case "text":
      return [
        { type: "text-start", id },
        { type: "text-delta", id, delta: block.text },
        { type: "text-end", id },
      ];
    case "reasoning":
      return [
        { type: "reasoning-start", id },
        { type: "reasoning-delta", id, delta: block.text },
        { type: "reasoning-end", id },
      ];
    case "file":
      return [{ type: "file", mediaType: block.mediaType, url: urlOf(block) }];
    case "source":
      if (block.url === undefined) return [];
      return [{ type: "source-url", sourceId: id, url: block.url, ...(block.title && { title: block.title }) }];
    case "provider-tool":
      return chunksOfProviderTool(block);
    default:
      return [];
  }
}

/** The file's address; of one that is in the log, a data URL. */
export function urlOf({ data, mediaType }: FileBlock): string {
  return "url" in data ? data.url : `data:${mediaType};base64,${data.base64}`;
}

const DATA_URL = /^data:([^;,]*)[^,]*;base64,/iu;

/** A file of a UI message as a block. */
export function fileOf(url: string, mediaType: string, name?: string): FileBlock {
  const inline = DATA_URL.exec(url);
  const data = inline ? { base64: url.slice(inline[0].length) } : { url };
  return {
    type: "file",
    mediaType: mediaType || inline?.[1] || "application/octet-stream",
    data,
    ...(name && { name }),
  };
}

/**
 * What a tool has answered: text that is a JSON object or array as that value, other text as it is, and more than
 * one block, or a file, as the blocks.
 */
export function outputOf(content: readonly ContentBlock[]): unknown {
  const [first, second] = content;
  if (!first) return null;
  if (second || first.type !== "text") return content;
  if (!/^\s*[[{]/u.test(first.text)) return first.text;
  return parsed(first.text) ?? first.text;
}

/** Arguments as the page sees them: no text is no arguments, and text that is not JSON stays text. */
export function inputOf(text: string): unknown {
  return text.trim() === "" ? {} : (parsed(text) ?? text);
}

export function textOf(content: readonly ContentBlock[]): string {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** As JSON says it. Throws INVALID_CONTENT for what it cannot say. */
export function plainJson(value: unknown): JsonValue {
  try {
    return JSON.parse(JSON.stringify(value) ?? "null") as JsonValue;
  } catch (cause) {
    throw new TurnloopError("INVALID_CONTENT", "what a tool has answered must be JSON", { cause });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Of the calls and results that a model of the AI SDK keeps of tools that its provider ran; others are not shown. */
function chunksOfProviderTool({ name, data }: ProviderToolBlock): UIMessageChunk[] {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return [];
  const { type, id, input, result, isError } = data as { readonly [key: string]: JsonValue | undefined };
  if (typeof id !== "string") return [];
  const call = { toolCallId: id, providerExecuted: true };
  if (type === "call") {
    const given = typeof input === "string" ? inputOf(input) : (input ?? {});
    return [{ type: "tool-input-available", toolName: name, input: given, ...call }];
  }
  if (type !== "result") return [];
  if (!isError) return [{ type: "tool-output-available", output: result ?? null, ...call }];
  return [
    { type: "tool-output-error", errorText: typeof result === "string" ? result : JSON.stringify(result), ...call },
  ];
}
