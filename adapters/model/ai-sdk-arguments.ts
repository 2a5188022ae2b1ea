/** Tool arguments: from the raw text that the log keeps to the object that a provider is sent. */

/** The one field of the stand-in for arguments that are not a JSON object. */
export const MALFORMED_ARGUMENTS = "malformed_arguments";

/** Deeper JSON cannot be written again by every JSON.stringify. */
const MAX_DEPTH = 200;

/** What JSON.parse may lose: long numbers, exponents, halves of surrogate pairs written as escapes. */
const MAY_LOSE = /\d{16}|\d[eE]|\\u[dD]/;

/**
 * The arguments as an object. Blank text and `null` mean none. Text that is not a JSON object, or is nested
 * beyond reason, becomes `{ malformed_arguments: text }`: legal for every provider, and the model sees what
 * it wrote.
 */
export function argumentsOf(text: string): Readonly<Record<string, unknown>> {
  const source = text.toWellFormed();
  const trimmed = source.trim();
  if (trimmed === "" || trimmed === "null") return {};
  const value = parseLossless(trimmed);
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  // An object by the line above; its values are whatever JSON holds.
  return isObject ? (value as Record<string, unknown>) : { [MALFORMED_ARGUMENTS]: source };
}

/**
 * JSON whose numbers are written again exactly as they stand in the text, where the platform has
 * `JSON.rawJSON`, and whose strings are well formed. Undefined for text that is not JSON.
 */
export function parseLossless(text: string): unknown {
  try {
    const value: unknown = MAY_LOSE.test(text) ? JSON.parse(text, keep) : JSON.parse(text);
    return text.length > 2 * MAX_DEPTH && isDeeperThan(value, MAX_DEPTH) ? undefined : value;
  } catch {
    return undefined;
  }
}

function keep(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value === "number") return String(value) === context?.source ? value : rawNumber(value, context?.source);
  return isRecord(value) ? withWellFormedKeys(value) : value;
}

function rawNumber(value: number, source: string | undefined): unknown {
  // Newer than the `lib` of this project, and missing on older platforms: there the number is rounded.
  const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown };
  return rawJSON && source !== undefined ? rawJSON(source) : value;
}

function withWellFormedKeys(value: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(value);
  if (entries.every(([key]) => key.isWellFormed())) return value;
  return Object.fromEntries(entries.map(([key, child]) => [key.toWellFormed(), child]));
}

function isDeeperThan(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((child) => isDeeperThan(child, depth - 1));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
