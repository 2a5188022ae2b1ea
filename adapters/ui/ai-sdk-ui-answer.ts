/** The answer of one step as it is written: what the model streams, chunk by chunk, and what it came to. */
import type { UIMessageChunk } from "ai";
import { jsonEqual, type ContentBlock, type ModelChunk } from "../../src/core.ts";
import { chunksOfBlock } from "./ai-sdk-ui-blocks.ts";

export interface Writing {
  write(chunk: ModelChunk): UIMessageChunk[];
  /** Ends the parts that are still open. */
  close(): UIMessageChunk[];
  /** Whether what was written is what the history has got. */
  is(content: readonly ContentBlock[]): boolean;
  /** The calls that have a part. */
  readonly calls: ReadonlySet<string>;
}

interface Streamed {
  readonly type: "text" | "reasoning" | "tool-call";
  readonly id: string;
  name: string;
  text: string;
  told: boolean;
  open: boolean;
}

type Written = Streamed | { readonly type: "whole"; readonly block: ContentBlock };

/** `place` tells this attempt from all others: turn, step and attempt. */
export function createWriting(place: string): Writing {
  const written: Written[] = [];
  const byIndex = new Map<number, Streamed>();
  const calls = new Set<string>();

  function open(index: number, type: Streamed["type"]): Streamed {
    // The loop's own name for the call of this block.
    const id = type === "tool-call" ? `call_${place}_${index}` : `${type}_${place}_${index}`;
    const part: Streamed = { type, id, name: "", text: "", told: false, open: true };
    byIndex.set(index, part);
    written.push(part);
    return part;
  }

  function append(part: Streamed, text: string): UIMessageChunk[] {
    part.text += text;
    const { id, type } = part;
    if (type !== "tool-call") return [...tell(part), { type: `${type}-delta`, id, delta: text }];
    // Without a name there is no part yet; what was written until then comes with it.
    const isNew = !part.told;
    const told = tell(part);
    if (!part.told) return told;
    return [...told, { type: "tool-input-delta", toolCallId: id, inputTextDelta: isNew ? part.text : text }];
  }

  function tell(part: Streamed): UIMessageChunk[] {
    if (part.told || (part.type === "tool-call" && part.name === "")) return [];
    part.told = true;
    if (part.type !== "tool-call") return [{ type: `${part.type}-start`, id: part.id }];
    calls.add(part.id);
    return [{ type: "tool-input-start", toolCallId: part.id, toolName: part.name }];
  }

  function end(part: Streamed): UIMessageChunk[] {
    const isOpen = part.open && part.told && part.type !== "tool-call";
    part.open = false;
    return isOpen ? [{ type: `${part.type}-end`, id: part.id }] : [];
  }

  function endBlock(index: number, block: ContentBlock | undefined): UIMessageChunk[] {
    const part = byIndex.get(index);
    if (part) {
      if (!part.open) return [];
      const rest = block && part.text === "" && "text" in block && block.text !== "" ? append(part, block.text) : [];
      if (block?.type === "tool-call") {
        part.name ||= block.name;
        if (part.text === "") return [...append(part, block.arguments), ...end(part)];
      }
      return [...rest, ...end(part)];
    }
    if (!block) return [];
    if (block.type === "text" || block.type === "reasoning" || block.type === "tool-call") {
      open(index, block.type);
      return endBlock(index, block);
    }
    written.push({ type: "whole", block });
    return chunksOfBlock(block, `block_${place}_${index}`);
  }

  return {
    calls,

    write(chunk) {
      if (chunk.type === "block-start") {
        if (byIndex.has(chunk.index)) return [];
        const part = open(chunk.index, chunk.block.type);
        if (chunk.block.type === "tool-call") part.name = chunk.block.name ?? "";
        return tell(part);
      }
      if (chunk.type === "delta") {
        const isCall = chunk.id !== undefined || chunk.name !== undefined;
        const part = byIndex.get(chunk.index) ?? open(chunk.index, isCall ? "tool-call" : "text");
        if (!part.open) return [];
        part.name ||= chunk.name ?? "";
        return append(part, chunk.text);
      }
      return chunk.type === "block-end" ? endBlock(chunk.index, chunk.block) : [];
    },

    close: () => [...byIndex.values()].flatMap(end),

    is(content) {
      if (content.length !== written.length) return false;
      return content.every((block, place_) => isSame(block, written[place_]!));
    },
  };
}

function isSame(block: ContentBlock, written: Written): boolean {
  if (written.type === "whole") return jsonEqual(block, written.block);
  if (block.type === "tool-call")
    return block.callId === written.id && block.name === written.name && block.arguments === written.text;
  return block.type === written.type && "text" in block && block.text === written.text;
}
