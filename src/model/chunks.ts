/** Chunks from a model, checked and detached, so that they can enter the log. */
import { TurnloopError } from "../errors.ts";
import { jsonCopy } from "../json.ts";
import { answerBlocksOf } from "./content.ts";
import type { ModelChunk } from "./types.ts";

/** A frozen copy. Throws MALFORMED_CHUNK: what a model streams is foreign data. */
export function chunkOf(raw: ModelChunk): ModelChunk {
  // Nearly all chunks are plain deltas: these are copied by hand.
  if (raw?.type === "delta" && raw.id === undefined && raw.name === undefined) {
    const { index, text } = raw;
    if (isIndex(index) && typeof text === "string") return Object.freeze({ type: "delta", index, text });
  }
  const chunk = copyOf(raw);
  const { type } = chunk;
  switch (type) {
    case "delta":
      if (!isIndex(chunk.index) || typeof chunk.text !== "string")
        throw malformed("a delta needs an `index` and a `text`");
      return chunk;
    case "block-start":
      if (!isIndex(chunk.index) || typeof chunk.block?.type !== "string")
        throw malformed("a block-start needs an `index` and a `block`");
      return chunk;
    case "block-end":
      if (!isIndex(chunk.index)) throw malformed("a block-end needs an `index`");
      if (chunk.block !== undefined) checkBlock(chunk.block);
      return chunk;
    case "usage":
      if (typeof chunk.usage !== "object" || chunk.usage === null) throw malformed("a usage chunk needs its `usage`");
      return chunk;
    case "finish":
      if (typeof chunk.reason?.kind !== "string") throw malformed("a finish chunk needs its `reason`");
      return chunk;
    default:
      throw malformed(`there is no chunk of type ${JSON.stringify(type)}`);
  }
}

function copyOf(raw: ModelChunk): ModelChunk {
  try {
    const copy = jsonCopy(raw);
    if (typeof copy === "object" && copy !== null) return copy;
  } catch (cause) {
    throw malformed((cause as Error).message, cause);
  }
  throw malformed("a chunk must be an object");
}

/** The loop names the calls: a model may leave the id out, and arguments that came in deltas. */
function checkBlock(block: object): void {
  try {
    answerBlocksOf([{ callId: "", arguments: "", ...block }]);
  } catch (cause) {
    throw malformed((cause as Error).message, cause);
  }
}

function isIndex(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function malformed(message: string, cause?: unknown): TurnloopError {
  return new TurnloopError("MALFORMED_CHUNK", `the model streamed something else than chunks: ${message}`, { cause });
}
