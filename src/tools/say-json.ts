/** JSON text of anything: what JSON cannot say is said as a readable placeholder, in its place. */
import { isObject } from "../json.ts";
import { messageOf } from "../errors.ts";

/**
 * As JSON.stringify says it (dates as ISO, undefined fields gone, `toJSON` heard), but a cycle, a BigInt, a
 * function, a symbol, and objects that JSON would empty, such as a Map or an Error, become text like
 * `[Map]`. Undefined where JSON.stringify answers that. Never throws.
 */
export function sayJson(value: unknown): string | undefined {
  // The objects on the way from the root to what is being said.
  const path: unknown[] = [];
  function replace(this: unknown, _key: string, item: unknown): unknown {
    while (path.length > 0 && path.at(-1) !== this) path.pop();
    if (!isObject(item)) return sayLeaf(item);
    if (path.includes(item)) return "[cycle]";
    const said = sayObject(item);
    if (said === item) path.push(item);
    return said;
  }
  try {
    return JSON.stringify(value, replace)?.toWellFormed();
  } catch (cause) {
    return JSON.stringify(`[not readable as JSON: ${messageOf(cause).toWellFormed()}]`);
  }
}

function sayLeaf(item: unknown): unknown {
  switch (typeof item) {
    case "string":
      return item.toWellFormed();
    case "bigint":
      return `[BigInt ${item}]`;
    case "function":
      return "[function]";
    case "symbol":
      return `[${String(item)}]`;
    default:
      return item;
  }
}

/** The object itself where JSON says what it holds. */
function sayObject(item: object): unknown {
  const tag = Object.prototype.toString.call(item).slice("[object ".length, -1);
  if (tag === "Error") return `[Error: ${messageOf(item)}]`;
  if (ArrayBuffer.isView(item)) return `[${tag} of ${item.byteLength} bytes]`;
  if (item instanceof Map || item instanceof Set) return `[${tag} of ${item.size}]`;
  const isPlain = tag === "Object" || tag === "Array" || tag === "Number" || tag === "String" || tag === "Boolean";
  return isPlain || Object.keys(item).length > 0 ? item : `[${tag}]`;
}
