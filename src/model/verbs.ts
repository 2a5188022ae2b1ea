/** What the verbs of an agent are given besides plain content, checked: the same for one that runs here or elsewhere. */
import { TurnloopError } from "../errors.ts";
import { isRecord, jsonCopy, type JsonSchema } from "../json.ts";
import { contentOf } from "./content.ts";
import type { CallConfig, ContentBlock, ContentInput } from "./types.ts";

/** What a person or a program can say. Throws INVALID_CONTENT for nothing at all, and for what only a loop writes. */
export function sayableOf(input: ContentInput): readonly ContentBlock[] {
  const content = contentOf(input);
  if (content.length === 0) throw invalid("a message needs at least one block");
  const odd = content.find((block) => !SAYABLE.has(block.type));
  if (odd) throw invalid(`a message cannot hold a ${odd.type} block; send text, files or sources`);
  return content;
}

const SAYABLE: ReadonlySet<string> = new Set(["text", "file", "source"]);

/** The schema that a message asks for, detached and frozen. Throws INVALID_CONTENT. */
export function outputSchemaOf(schema: JsonSchema): JsonSchema {
  const copy = jsonCopy(schema);
  if (isRecord(copy)) return copy;
  throw invalid("`output` takes a JSON Schema");
}

/** What `configure` is given, detached and frozen. Throws INVALID_CONTENT. */
export function configPatchOf(patch: Partial<CallConfig>): Partial<CallConfig> {
  const copy = jsonCopy(patch);
  if (!isRecord(copy)) throw invalid("configure takes the fields of a call's configuration");
  if (copy.model !== undefined && (typeof copy.model !== "string" || copy.model === ""))
    throw invalid("`model` must name a route");
  return copy;
}

function invalid(message: string): TurnloopError {
  return new TurnloopError("INVALID_CONTENT", message);
}
