/** What comes in as content, as the log keeps it. */
import { TurnloopError } from "../errors.ts";
import { isObject, jsonCopy } from "../json.ts";
import type { ContentBlock, ContentInput, MessageSource } from "./types.ts";

/** What a block of each type must hold besides its type, as text. */
const TEXT_FIELDS: Readonly<Record<ContentBlock["type"], readonly string[]>> = {
  text: ["text"],
  reasoning: ["text"],
  file: ["mediaType"],
  source: [],
  "tool-call": ["callId", "name", "arguments"],
  "tool-result": ["callId", "name"],
  "provider-tool": ["name"],
};

/** Detached, deeply frozen blocks. Throws INVALID_CONTENT. */
export function contentOf(input: ContentInput): readonly ContentBlock[] {
  if (typeof input === "string")
    return Object.freeze([Object.freeze({ type: "text" as const, text: input.toWellFormed() })]);
  return blocksOf(jsonCopy(input));
}

/** What the text blocks say, and nothing of the others. */
export function textIn(content: readonly ContentBlock[]): string {
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

/** Checks what is already a frozen copy. Throws INVALID_CONTENT. */
export function blocksOf(blocks: unknown): readonly ContentBlock[] {
  for (const block of answerBlocksOf(blocks)) {
    if (!Object.hasOwn(TEXT_FIELDS, block.type))
      throw invalid(`there is no block of type ${JSON.stringify(block.type)}`);
  }
  return blocks as readonly ContentBlock[];
}

/** The same for what a model wrote: a type that is not known here passes through. */
export function answerBlocksOf(blocks: unknown): readonly ContentBlock[] {
  if (!Array.isArray(blocks)) throw invalid("content must be a string or an array of blocks");
  for (const block of blocks as unknown[]) checkBlock(block);
  return blocks as readonly ContentBlock[];
}

function checkBlock(block: unknown): void {
  const { type, data } = (block ?? {}) as { type?: unknown; data?: { url?: unknown; base64?: unknown } };
  if (typeof type !== "string") throw invalid("a block needs a `type`");
  if (!Object.hasOwn(TEXT_FIELDS, type)) return;
  for (const field of TEXT_FIELDS[type as ContentBlock["type"]]) {
    if (typeof (block as Record<string, unknown>)[field] !== "string")
      throw invalid(`a ${type} block needs \`${field}\` as text`);
  }
  if (type === "file" && typeof data?.url !== "string" && typeof data?.base64 !== "string") {
    throw invalid("a file block needs `data` with a `url` or with `base64`");
  }
}

/** Detached and frozen. Throws INVALID_CONTENT. */
export function sourceOf(source: MessageSource | undefined): MessageSource {
  if (source === undefined) return USER;
  const copy = jsonCopy(source);
  if (!isObject(copy) || typeof copy.kind !== "string") throw invalid("a source needs a `kind`");
  return copy;
}

const USER: MessageSource = Object.freeze({ kind: "user" });

function invalid(message: string): TurnloopError {
  return new TurnloopError("INVALID_CONTENT", message);
}
