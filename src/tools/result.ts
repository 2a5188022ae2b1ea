/** What came of a call, as the model reads it: whatever a body answers or throws becomes frozen content. */
import { messageOf, TurnloopError } from "../errors.ts";
import { defined, isObject, jsonCopy, type JsonValue } from "../json.ts";
import { contentOf, sourceOf } from "../model/content.ts";
import type { ContentBlock, ContentInput } from "../model/types.ts";
import { sayJson } from "./say-json.ts";
import type { CheckedContext, HookContext, ToolOutcome } from "./types.ts";

/** Recognised across duplicate installs of the package. */
const MARK = Symbol.for("turnloop.tool-result");

interface ToolResult {
  readonly content: ContentInput;
  readonly meta?: JsonValue;
}

/** Outcomes made here, which need no second look. */
const checked = new WeakSet<ToolOutcome>();

/**
 * A tool's answer in blocks: images, files, several texts. `meta` is for programs and never shown to the
 * model. A block that is none is told to the model as a placeholder: the body has run.
 */
export function toolResult(content: string | readonly ContentBlock[], meta?: JsonValue): unknown {
  return { [MARK]: true, content, meta };
}

/**
 * What a body answered. Text stays text; all else is said as JSON.stringify would, and undefined as "done";
 * what JSON cannot say becomes a placeholder. Never throws: the side effect has happened.
 */
export function outcomeOf(value: unknown): ToolOutcome {
  if (!isToolResult(value)) return outcome({ content: textContent(textOf(value)), isError: false });
  const { content, meta } = value;
  return outcome({
    content: typeof content === "string" ? textContent(content) : blocksOf(content),
    isError: false,
    ...(meta !== undefined && { meta: jsonCopy<JsonValue>(JSON.parse(sayJson(meta) ?? "null")) }),
  });
}

/**
 * A call that failed or was refused, by the reason or by what was thrown. Errors of this package keep their
 * name and code; `error` says others. Never throws.
 */
export function errorOutcome(reason: unknown, error = structureOf(reason)): ToolOutcome {
  return outcome({
    content: textContent(`Error: ${messageOf(reason)}`),
    isError: true,
    ...(error && { error: Object.freeze({ name: error.name, code: error.code }) }),
  });
}

/** An outcome that a hook answered, detached and frozen. Throws INVALID_OUTCOME. */
export function checkOutcome(value: unknown): ToolOutcome {
  if (isObject(value) && checked.has(value as ToolOutcome)) return value as ToolOutcome;
  return refusing(() => outcome(copyOutcome(value)));
}

/** The context that comes with one, detached and frozen. Throws INVALID_OUTCOME. */
export function checkContext(value: HookContext): CheckedContext {
  return refusing(() => copyContext(value));
}

function refusing<T>(copy: () => T): T {
  try {
    return copy();
  } catch (cause) {
    throw new TurnloopError(
      "INVALID_OUTCOME",
      `a tool outcome is { content, isError, error?, meta?, additionalContext? }: ${messageOf(cause)}`,
      { cause },
    );
  }
}

function copyOutcome(value: unknown): ToolOutcome {
  if (!isObject(value)) throw new TypeError("it must be an object");
  const { content, isError, error, meta, additionalContext } = value as Partial<ToolOutcome>;
  if (!Array.isArray(content)) throw new TypeError("content must be an array of blocks");
  if (typeof isError !== "boolean") throw new TypeError("isError must be a boolean");
  return defined({
    content: contentOf(content as readonly ContentBlock[]),
    isError,
    error: error === undefined ? error : copyError(error),
    meta: meta === undefined ? meta : jsonCopy(meta),
    additionalContext: additionalContext === undefined ? additionalContext : copyContext(additionalContext),
  });
}

function copyError(error: unknown): NonNullable<ToolOutcome["error"]> {
  const { name, code } = (error ?? {}) as { name?: unknown; code?: unknown };
  if (typeof name !== "string" || typeof code !== "string") throw new TypeError("error needs a name and a code");
  return jsonCopy({ name, code });
}

function copyContext({ content, source }: HookContext): CheckedContext {
  if (source === undefined) throw new TypeError("additionalContext needs a source: say who speaks");
  return Object.freeze({ content: contentOf(content), source: sourceOf(source) });
}

function outcome(value: ToolOutcome): ToolOutcome {
  checked.add(Object.freeze(value));
  return value;
}

function isToolResult(value: unknown): value is ToolResult {
  try {
    return isObject(value) && (value as { [MARK]?: unknown })[MARK] === true;
  } catch {
    // A proxy that will not answer is no result of ours.
    return false;
  }
}

function textContent(text: string): readonly ContentBlock[] {
  return contentOf(text);
}

/** A date or a placeholder, which JSON says as a string, is text as a string is: without quotes. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  const said = sayJson(value) ?? "done";
  return said.startsWith('"') ? (JSON.parse(said) as string) : said;
}

function blocksOf(content: readonly unknown[]): readonly ContentBlock[] {
  if (!Array.isArray(content)) return textContent(textOf(content));
  return Object.freeze(
    Array.from(content, (block) => {
      try {
        return contentOf([block as ContentBlock])[0]!;
      } catch {
        return textContent(`[not a content block: ${textOf(block)}]`)[0]!;
      }
    }),
  );
}

/** Of an error of this package. What was thrown may be anything, and hostile. */
function structureOf(thrown: unknown): ToolOutcome["error"] {
  try {
    if (!TurnloopError.is(thrown)) return undefined;
    const { name, code } = thrown;
    return typeof name === "string" && typeof code === "string" ? { name, code } : undefined;
  } catch {
    return undefined;
  }
}
