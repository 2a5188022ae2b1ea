/** Lossless JSON: the only shape in which anything enters the log. */
import { TurnloopError } from "./errors.ts";

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** A JSON Schema document, as data. */
export type JsonSchema = { readonly [key: string]: unknown };

/** An object or an array. */
export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** An object, and no array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return isObject(value) && !Array.isArray(value);
}

/** Fields that may be undefined, as fields that may be absent. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** A copy without the fields that are undefined: JSON has none. */
export function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}

/** A place in a row, or how many there are. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Deeper than this no storage could take it. */
const DEPTH = 1000;

type Place = (string | number)[];

/**
 * A detached, deeply frozen copy of JSON data. Each getter is read once. Strings are made well formed.
 * Throws INVALID_CONTENT, naming the place, for whatever JSON would lose or change: undefined, bigint,
 * functions, symbols, NaN, Infinity, -0, holes, cycles, class instances, data nested deeper than 1000 levels.
 * What a getter throws passes through.
 */
export function jsonCopy<T>(value: T): T {
  return copyOf(value, [], DEPTH) as T;
}

/** The same for what holds such copies itself, and so is a few levels deeper. */
export function jsonCopyOfWhole<T>(value: T): T {
  return copyOf(value, [], DEPTH + 10) as T;
}

function copyOf(value: unknown, place: Place, depth: number): unknown {
  switch (typeof value) {
    case "string":
      return value.isWellFormed() ? value : value.toWellFormed();
    case "boolean":
      return value;
    case "number":
      if (Number.isFinite(value) && !Object.is(value, -0)) return value;
      return refuse(Object.is(value, -0) ? "-0" : String(value), place);
    case "object":
      if (value === null) return null;
      if (place.length === depth) return refuse("a cycle, or more than 1000 levels of nesting,", place);
      return Object.freeze(Array.isArray(value) ? arrayOf(value, place, depth) : objectOf(value, place, depth));
    default:
      return refuse(`a value of type ${typeof value}`, place);
  }
}

function arrayOf(source: readonly unknown[], place: Place, depth: number): unknown[] {
  const proto: unknown = Object.getPrototypeOf(source);
  // An array of any realm: its prototype chain has one certain length.
  if (proto !== Array.prototype && (!proto || !isRootPrototype(Object.getPrototypeOf(proto))))
    refuse("a subclass of Array", place);
  const { length } = source;
  if (Object.keys(source).length > length) refuse("an array with named fields", place);
  const copy: unknown[] = [];
  for (let i = 0; i < length; i += 1) {
    place.push(i);
    if (!Object.hasOwn(source, i)) refuse("a hole in an array", place);
    copy.push(copyOf(source[i], place, depth));
    place.pop();
  }
  return copy;
}

function objectOf(source: object, place: Place, depth: number): Record<string, unknown> {
  const proto: unknown = Object.getPrototypeOf(source);
  if (proto !== null && !isRootPrototype(proto)) refuse("an instance of a class", place);
  if (Object.getOwnPropertySymbols(source).length > 0) refuse("a symbol as a key", place);
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(source)) {
    place.push(key);
    const value = copyOf((source as Record<string, unknown>)[key], place, depth);
    place.pop();
    if (key === "__proto__") Object.defineProperty(copy, key, { value, enumerable: true });
    else copy[key] = value;
  }
  return copy;
}

/** `Object.prototype` of this realm or another. */
function isRootPrototype(proto: unknown): boolean {
  if (proto === Object.prototype) return true;
  return isObject(proto) && Object.getPrototypeOf(proto) === null && Object.hasOwn(proto, "hasOwnProperty");
}

function refuse(what: string, place: Place): never {
  // A cycle's place would be a thousand steps long.
  const path = place.length === 0 ? "the value itself" : place.slice(0, 10).join(".");
  const cause = new TypeError(`${what} at ${path}`);
  throw new TurnloopError("INVALID_CONTENT", `${what} cannot be kept as JSON (at ${path}); send plain JSON data`, {
    cause,
  });
}

/** Equal as JSON: same leaves, same items in order, same keys in any order. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  const pairs: [unknown, unknown][] = [[a, b]];
  for (let pair = pairs.pop(); pair; pair = pairs.pop()) {
    const [left, right] = pair;
    if (left === right) continue;
    if (!isObject(left) || !isObject(right)) return false;
    if (Array.isArray(left) !== Array.isArray(right)) return false;
    const keys = Object.keys(left);
    if (keys.length !== Object.keys(right).length) return false;
    for (const key of keys) {
      if (!Object.hasOwn(right, key)) return false;
      pairs.push([(left as Record<string, unknown>)[key], (right as Record<string, unknown>)[key]]);
    }
  }
  return true;
}
