/** Texts as every engine keeps them: long ones cut into parts, odd ids escaped. */

/** In characters: at most 900 kB as UTF-8, where a row of the strictest engine holds 2 MB. */
const PART = 300_000;

/** At least one part; none ends in the middle of a surrogate pair. */
export function cut(text: string): string[] {
  const parts: string[] = [];
  let start = 0;
  do {
    let end = start + PART;
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end -= 1;
    parts.push(text.slice(start, end));
    start = end;
  } while (start < text.length);
  return parts;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd8_00 && code < 0xdc_00;
}

/**
 * An id as the tables have it: as it is, but as a JSON string where it begins like one or holds what no engine keeps,
 * which is a NUL or half of a surrogate pair.
 */
export function nameOf(id: string): string {
  return id.isWellFormed() && !id.includes("\0") && !id.startsWith('"') ? id : JSON.stringify(id);
}

/** The id of a name; a name that nobody here has made is one by itself. */
export function idOf(name: string): string {
  const id = name.startsWith('"') ? readJson(name) : name;
  return typeof id === "string" ? id : name;
}

/** Undefined for what is no JSON. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
