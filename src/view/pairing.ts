/** Which result belongs to which call, in a history that may repeat ids and mix up places. */
import type { Message, ToolCallBlock, ToolResultBlock } from "../core.ts";

/**
 * The results by call. A result goes to the first unanswered call of its id in the last message that makes
 * such a call; a second result for a call, and one without a call, goes to none.
 */
export function pairCalls(messages: readonly Message[]): ReadonlyMap<ToolCallBlock, ToolResultBlock> {
  const pairs = new Map<ToolCallBlock, ToolResultBlock>();
  /** By id: the calls of the last message that has any. */
  const open = new Map<string, ToolCallBlock[]>();
  for (const message of messages) {
    const fresh = new Set<string>();
    for (const block of message.content) {
      if (block.type === "tool-call") {
        if (!fresh.has(block.callId)) open.set(block.callId, []);
        fresh.add(block.callId);
        open.get(block.callId)!.push(block);
      } else if (block.type === "tool-result") {
        const call = open.get(block.callId)?.shift();
        if (call) pairs.set(call, block);
      }
    }
  }
  return pairs;
}
