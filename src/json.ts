/** Lossless JSON: the only shape in which anything enters the log. */
import { TurnloopError } from "./errors.ts";

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** A JSON Schema document, as data. */
export type JsonSchema = { readonly [key: string]: unknown };

type Container = Record<string, unknown> | unknown[];
interface Frame {
  readonly source: Container;
  readonly copy: Container;
  readonly keys: readonly string[] | undefined;
  readonly parent: Frame | undefined;
  readonly key: string | number;
  next: number;
}

/**
 * A detached, deeply frozen copy of JSON data. Each getter is read once. Strings are made well formed.
 * Throws INVALID_CONTENT, naming the place, for whatever JSON would lose or change: undefined, bigint,
 * functions, symbols, NaN, Infinity, -0, holes, cycles, class instances. What a getter throws passes through.
 */
export function jsonCopy<T>(value: T): T {
  if (typeof value !== "object" || value === null) return leaf(value, undefined, "") as T;
  const root = open(value as Container, undefined, "");
  const path = new Set<Container>([root.source]);
  let frame: Frame | undefined = root;
  while (frame) {
    const { source, copy, keys } = frame;
    if (frame.next === (keys ?? (source as unknown[])).length) {
      Object.freeze(copy);
      path.delete(source);
      frame = frame.parent;
      continue;
    }
    const key: string | number = keys ? keys[frame.next]! : frame.next;
    frame.next += 1;
    if (!keys && !Object.hasOwn(source, key)) refuse("a hole in an array", frame, key);
    const child = (source as Record<string | number, unknown>)[key];
    if (typeof child !== "object" || child === null) {
      put(copy, key, leaf(child, frame, key));
    } else {
      if (path.has(child as Container)) refuse("a cycle", frame, key);
      const inner: Frame = open(child as Container, frame, key);
      put(copy, key, inner.copy);
      path.add(inner.source);
      frame = inner;
    }
  }
  return root.copy as T;
}

function open(source: Container, parent: Frame | undefined, key: string | number): Frame {
  const proto: unknown = Object.getPrototypeOf(source);
  // Plain arrays and objects of any realm: their prototype chain has one certain length.
  if (Array.isArray(source)) {
    if (!proto || !isRootPrototype(Object.getPrototypeOf(proto))) refuse("a subclass of Array", parent, key);
    if (Object.keys(source).length > source.length) refuse("an array with named fields", parent, key);
    return { source, copy: Array.from<unknown>({ length: source.length }), keys: undefined, parent, key, next: 0 };
  }
  if (proto !== null && !isRootPrototype(proto)) refuse("an instance of a class", parent, key);
  if (Object.getOwnPropertySymbols(source).length > 0) refuse("a symbol as a key", parent, key);
  return { source, copy: {}, keys: Object.keys(source), parent, key, next: 0 };
}

function isRootPrototype(proto: unknown): boolean {
  return (
    proto === Object.prototype ||
    (typeof proto === "object" &&
      proto !== null &&
      Object.getPrototypeOf(proto) === null &&
      Object.hasOwn(proto, "hasOwnProperty"))
  );
}

function put(target: Container, key: string | number, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    (target as Record<string | number, unknown>)[key] = value;
  }
}

function leaf(value: unknown, parent: Frame | undefined, key: string | number): unknown {
  switch (typeof value) {
    case "string":
      return value.toWellFormed();
    case "boolean":
      return value;
    case "number":
      if (Number.isFinite(value) && !Object.is(value, -0)) return value;
      return refuse(Object.is(value, -0) ? "-0" : String(value), parent, key);
    case "object":
      return null;
    default:
      return refuse(`a value of type ${typeof value}`, parent, key);
  }
}

function refuse(what: string, parent: Frame | undefined, key: string | number): never {
  const path: (string | number)[] = [];
  for (let frame = parent, at = key; frame; at = frame.key, frame = frame.parent) path.unshift(at);
  const place = path.length === 0 ? "the value itself" : path.join(".");
  const cause = new TypeError(`${what} at ${place}`);
  throw new TurnloopError("INVALID_CONTENT", `${what} cannot be kept as JSON (at ${place}); send plain JSON data`, {
    cause,
  });
}

/** Equal as JSON: same leaves, same items in order, same keys in any order. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  const pairs: [unknown, unknown][] = [[a, b]];
  for (let pair = pairs.pop(); pair; pair = pairs.pop()) {
    const [left, right] = pair;
    if (left === right) continue;
    if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
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
