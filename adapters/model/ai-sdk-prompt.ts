/** From the messages of a request to the prompt of the AI SDK's interface V4. */
import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultOutput,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from "@ai-sdk/provider";
import type { ContentBlock, FileBlock, Message, ModelRequest, ProviderMeta } from "../../src/core.ts";
import { argumentsOf, parseLossless } from "./ai-sdk-arguments.ts";
import { wireIds, wireName, type WireIds } from "./ai-sdk-ids.ts";
import { sentFile } from "./ai-sdk-files.ts";
import { providerToolPart } from "./ai-sdk-provider-tool.ts";

type AssistantPart = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number];
type UserPart = Extract<LanguageModelV4Message, { role: "user" }>["content"][number];

/** What stands in for a result without content, which some providers refuse. */
const NO_OUTPUT = "(no output)";

/** The part of a model id that names its provider: all before the first slash. */
function familyOf(modelId: string): string {
  const slash = modelId.indexOf("/");
  return slash < 0 ? modelId : modelId.slice(0, slash);
}

/**
 * What the model is sent. Reasoning, metadata and tools that a provider ran go back only to the provider
 * family that wrote the message. Whatever a provider refuses is left out: blank texts, empty messages,
 * reasoning with nothing after it. Consecutive results share one message.
 */
export function promptOf(request: ModelRequest, modelId: string): LanguageModelV4Prompt {
  const family = familyOf(modelId);
  const isOwn = (message: Message): boolean => message.model !== undefined && familyOf(message.model) === family;
  const ids = wireIds(request.messages, isOwn, family);
  const prompt: LanguageModelV4Prompt = [];
  if (!isBlank(request.system)) prompt.push({ role: "system", content: request.system.toWellFormed() });

  for (const message of request.messages) {
    switch (message.role) {
      case "user": {
        const content = message.content.flatMap(userPart);
        if (content.length > 0) prompt.push({ role: "user", content });
        break;
      }
      case "assistant": {
        const content = assistantParts(message.content, isOwn(message), ids);
        if (content.length > 0) prompt.push({ role: "assistant", content });
        break;
      }
      case "tool": {
        const content = message.content.flatMap((block) => resultPart(block, ids));
        const last = prompt.at(-1);
        if (last?.role === "tool") last.content.push(...content);
        else if (content.length > 0) prompt.push({ role: "tool", content });
      }
    }
  }
  return prompt;
}

function userPart(block: ContentBlock): UserPart[] {
  if (block.type === "file") return [filePart(block)];
  return block.type === "text" && !isBlank(block.text) ? [{ type: "text", text: block.text.toWellFormed() }] : [];
}

function assistantParts(blocks: readonly ContentBlock[], own: boolean, ids: WireIds): AssistantPart[] {
  const parts: AssistantPart[] = [];
  // Several providers refuse text after a call. One that marks its parts keeps them in its own order.
  let firstCall = -1;
  const speak = (part: AssistantPart): void => {
    if (firstCall < 0 || part.providerOptions) parts.push(part);
    else parts.splice(firstCall++, 0, part);
  };

  for (const block of blocks) {
    const options = own && "meta" in block ? optionsOf(block.meta) : undefined;
    switch (block.type) {
      case "text":
        if (options || !isBlank(block.text)) speak({ type: "text", text: block.text.toWellFormed(), ...options });
        break;
      case "reasoning":
        if (own && (options || !isBlank(block.text))) {
          parts.push({ type: "reasoning", text: block.text.toWellFormed(), ...options });
        }
        break;
      case "file":
        speak(own ? { ...filePart(block), ...options } : { type: "text", text: mentionOf(block) });
        break;
      case "tool-call":
        if (firstCall < 0) firstCall = parts.length;
        parts.push({
          type: "tool-call",
          toolCallId: ids(block.callId),
          toolName: wireName(block.name),
          input: argumentsOf(block.arguments),
          ...options,
        });
        break;
      case "provider-tool": {
        const part = own ? providerToolPart(block) : undefined;
        if (part) parts.push({ ...part, ...options });
        break;
      }
      case "source": // for people
      case "tool-result": // stands in a message of its own
        break;
    }
  }
  return parts.filter((part, at) => part.type !== "reasoning" || isFollowed(part, parts, at));
}

/**
 * Reasoning goes back with what it led to, or not at all: alone it is refused. An answer that was cut short
 * leaves such a rest; there, where items have ids (Responses), the text after it has none.
 */
function isFollowed(reasoning: AssistantPart, parts: readonly AssistantPart[], at: number): boolean {
  const next = parts.slice(at + 1).find(({ type }) => type !== "reasoning");
  return next !== undefined && (next.type !== "text" || isItem(next) || !isItem(reasoning));
}

function isItem({ providerOptions = {} }: AssistantPart): boolean {
  return Object.values(providerOptions).some((options) => typeof options?.itemId === "string");
}

function resultPart(block: ContentBlock, ids: WireIds): LanguageModelV4ToolResultPart[] {
  if (block.type !== "tool-result") return [];
  const { callId, name, content, isError } = block;
  return [
    { type: "tool-result", toolCallId: ids(callId), toolName: wireName(name), output: outputOf(content, isError) },
  ];
}

/** Text as text; with files among it as content, which cannot be marked as an error: its text says so. */
function outputOf(blocks: readonly ContentBlock[], isError: boolean): LanguageModelV4ToolResultOutput {
  const value = blocks.flatMap(userPart);
  if (value.some(({ type }) => type === "file")) return { type: "content", value };
  const text = value.map((part) => (part.type === "text" ? part.text : "")).join("\n") || NO_OUTPUT;
  if (!isError) return { type: "text", value: text };
  const json = /^\s*[[{]/.test(text) ? parseLossless(text) : undefined;
  // What JSON.parse gave is JSON.
  return json === undefined ? { type: "error-text", value: text } : { type: "error-json", value: json as null };
}

function filePart(block: FileBlock): LanguageModelV4FilePart | LanguageModelV4TextPart {
  const { mediaType, name } = block;
  const data = sentFile(block.data);
  if (!data) return { type: "text", text: mentionOf(block) };
  return { type: "file", mediaType, data, ...(name === undefined ? undefined : { filename: name.toWellFormed() }) };
}

/** What is said of a file that cannot be sent. */
function mentionOf({ name, mediaType, data }: FileBlock): string {
  return `[file: ${[name, mediaType, "url" in data ? data.url.slice(0, 200) : undefined].filter(Boolean).join(", ")}]`.toWellFormed();
}

/** `providerCallId` is the loop's own note on a tool call, and of no provider. */
function optionsOf(meta: ProviderMeta | undefined): { providerOptions: SharedV4ProviderOptions } | undefined {
  if (!meta) return undefined;
  const { providerCallId: _ours, ...own } = meta;
  // Came as provider metadata of the same shape, from the provider that gets it back.
  return Object.keys(own).length > 0 ? { providerOptions: own as SharedV4ProviderOptions } : undefined;
}

function isBlank(text: string | undefined): text is undefined | "" {
  return text === undefined || text.trim() === "";
}
