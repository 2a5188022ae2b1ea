/** What a provider ran or said itself and wants back: kept as `provider-tool` blocks, one for each part. */
import type { JSONValue, LanguageModelV4Message, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { JsonValue, ProviderToolBlock } from "../../src/core.ts";
import { argumentsOf } from "./ai-sdk-arguments.ts";
import { keptFile, sentFile, type KeptFile } from "./ai-sdk-files.ts";

type PromptPart = Extract<LanguageModelV4Message, { role: "assistant" }>["content"][number];
type StreamPart = Extract<
  LanguageModelV4StreamPart,
  { type: "tool-call" | "tool-result" | "tool-approval-request" | "reasoning-file" | "custom" }
>;

/** The `data` of the blocks that are written here. An approval that the provider asks for is kept, not answered. */
type Kept =
  | { readonly type: "call"; readonly id: string; readonly input: string }
  | { readonly type: "result"; readonly id: string; readonly result: JsonValue; readonly isError: boolean }
  | { readonly type: "approval-request"; readonly id: string; readonly callId: string }
  | { readonly type: "reasoning-file"; readonly mediaType: string; readonly file: KeptFile }
  | { readonly type: "custom"; readonly kind: string };

/** Undefined for a result that is only preliminary, and for a file without data. */
export function providerToolBlock(part: StreamPart): ProviderToolBlock | undefined {
  switch (part.type) {
    case "tool-call":
      return block(part.toolName, { type: "call", id: part.toolCallId, input: part.input });
    case "tool-result": {
      const { toolName, toolCallId: id, result, isError = false, preliminary } = part;
      return preliminary
        ? undefined
        : block(toolName, { type: "result", id, result: plainJson(result) ?? null, isError });
    }
    case "tool-approval-request":
      return block(part.type, { type: "approval-request", id: part.approvalId, callId: part.toolCallId });
    case "reasoning-file": {
      const file = keptFile(part.data);
      return file && block(part.type, { type: "reasoning-file", mediaType: part.mediaType, file });
    }
    case "custom":
      return block(part.kind, { type: "custom", kind: part.kind });
  }
}

/** Undefined for what has no place in a prompt, and for data that another adapter wrote. */
export function providerToolPart({ name, data }: ProviderToolBlock): PromptPart | undefined {
  if (typeof data !== "object" || data === null || !("type" in data)) return undefined;
  const kept = data as Kept;
  switch (kept.type) {
    case "call":
      return {
        type: "tool-call",
        toolCallId: kept.id,
        toolName: name,
        input: argumentsOf(kept.input),
        providerExecuted: true,
      };
    case "result": {
      const value = kept.result as JSONValue;
      const output = { type: kept.isError ? ("error-json" as const) : ("json" as const), value };
      return { type: "tool-result", toolCallId: kept.id, toolName: name, output };
    }
    case "reasoning-file": {
      const file = sentFile(kept.file);
      return file && { type: "reasoning-file", mediaType: kept.mediaType, data: file };
    }
    case "custom":
      // Kept as it came, which was of this form.
      return { type: "custom", kind: kept.kind as `${string}.${string}` };
    default:
      return undefined;
  }
}

/** As JSON says it, since the log takes nothing else: undefined fields go. Undefined if it cannot be said. */
export function plainJson(value: unknown): JsonValue | undefined {
  try {
    return JSON.parse(JSON.stringify(value)) as JsonValue;
  } catch {
    return undefined;
  }
}

function block(name: string, data: Kept): ProviderToolBlock {
  return { type: "provider-tool", name, data };
}
