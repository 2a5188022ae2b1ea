/** What was said, as the JSON of the conventions' messages. */
import type { Attributes } from "@opentelemetry/api";
import type { ContentBlock, Message, ToolSchema } from "../src/core.ts";

export function inputOf(messages: readonly Message[]): string {
  return JSON.stringify(messages.map(({ role, content }) => ({ role, parts: content.map(partOf) })));
}

export function outputOf(content: readonly ContentBlock[], finish = "stop"): string {
  return JSON.stringify([{ role: "assistant", parts: content.map(partOf), finish_reason: finish }]);
}

export function instructionsOf(system: string | undefined): Attributes {
  if (system === undefined) return {};
  return { "gen_ai.system_instructions": JSON.stringify([{ type: "text", content: system }]) };
}

export function definitionsOf(tools: readonly ToolSchema[] | undefined): Attributes {
  if (!tools) return {};
  return { "gen_ai.tool.definitions": JSON.stringify(tools.map((tool) => ({ type: "function", ...tool }))) };
}

export function argumentsOf(args: unknown): string {
  return JSON.stringify(args);
}

export function resultOf(content: readonly ContentBlock[]): string {
  return JSON.stringify(content.map(partOf));
}

/** A type of part that the conventions do not know keeps its own name, as they have it. */
function partOf(block: ContentBlock): object {
  switch (block.type) {
    case "text":
    case "reasoning":
      return { type: block.type, content: block.text };
    case "tool-call":
      return { type: "tool_call", id: block.callId, name: block.name, arguments: parsed(block.arguments) };
    case "tool-result":
      return { type: "tool_call_response", id: block.callId, response: block.content.map(partOf) };
    case "file": {
      const { mediaType, data } = block;
      const what = { modality: mediaType.split("/", 1)[0]!, mime_type: mediaType };
      return "base64" in data
        ? { type: "blob", ...what, content: data.base64 }
        : { type: "uri", ...what, uri: data.url };
    }
    default:
      return block;
  }
}

/** As the model wrote them: they may be no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
