/** Puts the chunks of one answer together. */
import { TurnloopError } from "../errors.ts";
import type { ContentBlock, FinishReason, ModelChunk, ProviderMeta, Usage } from "./types.ts";

/** What a row of chunks amounts to. Frozen. */
export interface Assembled {
  /** In the order in which the model began them. */
  readonly blocks: readonly AssembledBlock[];
  readonly usage: Usage | undefined;
  /** Undefined when the stream has not said that it is done. */
  readonly finish: FinishReason | undefined;
}

export interface AssembledBlock {
  /** The model's index of it. */
  readonly index: number;
  readonly block: ContentBlock;
  /** Whether the model said that it is complete. */
  readonly ended: boolean;
  /** Of a tool call: the provider's own id. */
  readonly providerCallId: string | undefined;
}

interface OpenBlock {
  type: string | undefined;
  /** Joined in the end: a text that grows piece by piece keeps all of its pieces. */
  readonly texts: string[];
  id: string;
  name: string;
  meta: ProviderMeta | undefined;
  ended: ContentBlock | boolean;
}

/**
 * The same for any interleaving of blocks. A block-end that carries a block is authoritative, and the first
 * end of a block is its last word; the last usage and the last finish win.
 */
export function assemble(chunks: Iterable<ModelChunk>): Assembled {
  const open = new Map<number, OpenBlock>();
  let usage: Usage | undefined;
  let finish: FinishReason | undefined;

  const at = (index: number): OpenBlock => {
    let block = open.get(index);
    if (!block)
      open.set(index, (block = { type: undefined, texts: [], id: "", name: "", meta: undefined, ended: false }));
    return block;
  };

  for (const chunk of chunks) {
    switch (chunk.type) {
      case "delta": {
        const block = at(chunk.index);
        if (block.ended !== false) break;
        block.texts.push(chunk.text);
        if (chunk.id) block.id = chunk.id;
        if (chunk.name) block.name = chunk.name;
        if ((chunk.id || chunk.name) && block.type === undefined) block.type = "tool-call";
        break;
      }
      case "block-start": {
        const block = at(chunk.index);
        if (block.ended !== false) break;
        block.type ??= chunk.block.type;
        block.meta = { ...block.meta, ...chunk.meta };
        if (chunk.block.type === "tool-call") {
          block.id ||= chunk.block.id ?? "";
          block.name ||= chunk.block.name ?? "";
        }
        break;
      }
      case "block-end": {
        const block = at(chunk.index);
        if (block.ended !== false) break;
        block.meta = { ...block.meta, ...chunk.meta };
        block.ended = chunk.block ?? true;
        break;
      }
      case "usage":
        usage = chunk.usage;
        break;
      case "finish":
        finish = chunk.reason;
    }
  }

  const blocks = [...open].map(([index, block]) => close(index, block));
  return Object.freeze({ blocks: Object.freeze(blocks), usage, finish });
}

function close(index: number, open: OpenBlock): AssembledBlock {
  const ended = open.ended !== false;
  if (typeof open.ended === "object") {
    const given = open.ended;
    const meta = { ...open.meta, ...("meta" in given ? given.meta : undefined) };
    if (given.type === "tool-call") {
      return seal(
        index,
        toolCall(given.name || open.name, given.arguments ?? textOf(open), meta),
        ended,
        given.callId || open.id,
      );
    }
    return seal(index, { ...given, ...metaField(meta) }, ended, undefined);
  }
  switch (open.type ?? "text") {
    case "text":
    case "reasoning": {
      const type = (open.type ?? "text") as "text" | "reasoning";
      return seal(index, { type, text: textOf(open), ...metaField(open.meta) }, ended, undefined);
    }
    case "tool-call":
      return seal(index, toolCall(open.name, textOf(open), open.meta), ended, open.id);
    default:
      throw new TurnloopError("MALFORMED_CHUNK", `the model left a block of the unknown type ${open.type} open`);
  }
}

function textOf({ texts }: OpenBlock): string {
  return texts.join("").toWellFormed();
}

function seal(index: number, block: ContentBlock, ended: boolean, id: string | undefined): AssembledBlock {
  return Object.freeze({ index, block: Object.freeze(block), ended, providerCallId: id || undefined });
}

/** The call without its id in the log, which the loop gives. */
function toolCall(name: string, args: string, meta: ProviderMeta | undefined): ContentBlock {
  return {
    type: "tool-call",
    callId: "",
    name: name.toWellFormed(),
    arguments: args.toWellFormed(),
    ...metaField(meta),
  };
}

function metaField(meta: ProviderMeta | undefined): { meta?: ProviderMeta } {
  return meta && Object.keys(meta).length > 0 ? { meta: Object.freeze(meta) } : {};
}
