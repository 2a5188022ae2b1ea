/** Chunks from a model, checked and detached, so that they can enter the log. */
import { TurnloopError } from "../errors.ts";
import { isCount, isObject, jsonCopy } from "../json.ts";
import { answerBlocksOf } from "./content.ts";
import type { ModelChunk } from "./types.ts";

/** A frozen copy. Throws MALFORMED_CHUNK: what a model streams is foreign data. */
export function chunkOf(raw: ModelChunk): ModelChunk {
  // Nearly all chunks are plain deltas: these are copied by hand.
  if (raw?.type === "delta" && raw.id === undefined && raw.name === undefined) {
    const { index, text } = raw;
    if (isCount(index) && typeof text === "string") return Object.freeze({ type: "delta", index, text });
  }
  const chunk = copyOf(raw);
  checkChunk(chunk);
  return chunk;
}

/** Throws MALFORMED_CHUNK for what is none. */
export function checkChunk(chunk: ModelChunk): void {
  const { type } = chunk;
  switch (type) {
    case "delta":
      if (!isCount(chunk.index) || typeof chunk.text !== "string" || !isText(chunk.id) || !isText(chunk.name)) {
        throw malformed("a delta needs an `index` and a `text`");
      }
      return;
    case "block-start":
      if (!isCount(chunk.index) || typeof chunk.block?.type !== "string") {
        throw malformed("a block-start needs an `index` and a `block`");
      }
      if (chunk.block.type === "tool-call" && !(isText(chunk.block.id) && isText(chunk.block.name))) {
        throw malformed("the `id` and the `name` of a tool call are texts");
      }
      return;
    case "block-end":
      if (!isCount(chunk.index)) throw malformed("a block-end needs an `index`");
      if (chunk.block !== undefined) checkBlock(chunk.block);
      return;
    case "usage":
      if (!isObject(chunk.usage)) throw malformed("a usage chunk needs its `usage`");
      return;
    case "finish":
      if (typeof chunk.reason?.kind !== "string") throw malformed("a finish chunk needs its `reason`");
      return;
    default:
      throw malformed(`there is no chunk of type ${JSON.stringify(type)}`);
  }
}

function isText(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

function copyOf(raw: ModelChunk): ModelChunk {
  try {
    const copy = jsonCopy(raw);
    if (isObject(copy)) return copy;
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

function malformed(message: string, cause?: unknown): TurnloopError {
  return new TurnloopError("MALFORMED_CHUNK", `the model streamed no chunks: ${message}`, { cause });
}
