/** Content blocks as the parts of a message. */
import type { ContentBlock } from "../core.ts";
import type { ToolPart, TranscriptPart } from "./types.ts";

/** Parts of content that is complete. Blocks that belong to tool traffic are no part of a message of their own. */
export function partsOf(content: readonly ContentBlock[], messageId: string): TranscriptPart[] {
  return content.flatMap((block, place) => partOf(block, providerCallId(messageId, place)) ?? []);
}

/** The id of the card of a call that the provider ran itself: the log has none for it. */
export function providerCallId(messageId: string, place: number): string {
  return `provider_${messageId}_${place}`;
}

/** `id` is for a call that the provider ran itself; one that runs here goes by `callId`. */
export function partOf(block: ContentBlock, id: string): TranscriptPart | undefined {
  switch (block.type) {
    case "text":
    case "reasoning":
      return { type: block.type, text: block.text, streaming: false };
    case "file":
    case "source":
      return { type: block.type, block };
    case "tool-call":
      return card(block.callId, block.name, block.arguments);
    case "provider-tool":
      return { ...card(id, block.name, JSON.stringify(block.data)), state: "done" };
    default:
      return undefined;
  }
}

/** A tool call that nobody has taken up yet. */
export function card(callId: string, name: string, args: string): ToolPart {
  return { type: "tool", callId, name, arguments: args, state: "writing" };
}
