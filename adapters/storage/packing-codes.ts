/** Rows of small whole numbers as text: a character each that JSON need not escape, less where they repeat. */

/** Numbers below this are one of the characters from `#` to `|`, without the backslash. */
const SINGLE = 89;
const FIRST = 35;
const BACKSLASH = 92;
const TOKEN = /[#-[\]-|]|\}(\d+);|~(\d+);/g;

/** `values` are whole and not negative. `}5000;` is a large number, `~7;` the one before it seven times more. */
export function writeCodes(values: readonly number[]): string {
  let text = "";
  for (let i = 0, end = 0; i < values.length; i = end) {
    const code = codeOf(values[i]!);
    for (end = i + 1; end < values.length && values[end] === values[i]; end += 1);
    const again = code.repeat(end - i - 1);
    const short = `~${end - i - 1};`;
    text += code + (short.length < again.length ? short : again);
  }
  return text;
}

/** Undefined for what `writeCodes` never wrote, and for more numbers than `limit`. */
export function readCodes(text: string, limit: number): number[] | undefined {
  const values: number[] = [];
  let read = 0;
  for (const [token, large, again] of text.matchAll(TOKEN)) {
    const value = again === undefined ? (large === undefined ? valueOf(token) : Number(large)) : values.at(-1);
    const count = again === undefined ? 1 : Number(again);
    if (value === undefined || !Number.isSafeInteger(value) || values.length + count > limit) return undefined;
    for (let i = 0; i < count; i += 1) values.push(value);
    read += token.length;
  }
  return read === text.length ? values : undefined;
}

function codeOf(value: number): string {
  if (value >= SINGLE) return `}${value};`;
  const code = FIRST + value;
  return String.fromCharCode(code < BACKSLASH ? code : code + 1);
}

function valueOf(character: string): number {
  const code = character.charCodeAt(0);
  return code - FIRST - (code > BACKSLASH ? 1 : 0);
}
