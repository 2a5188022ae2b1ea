/** Lossless JSON, for any value: what is kept is kept exactly, what JSON would lose is refused by its place. */
import * as fc from "fast-check";
import { jsonCopy, jsonEqual, TurnloopError } from "turnloop";
import { expect, test } from "vitest";

/** Plain data as JSON says it, names of prototypes among its keys. */
const key = fc.oneof(fc.string(), fc.constantFrom("__proto__", "constructor", "toString", "length", "0"));
const { value: json } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(null, true, false, 0, "", 1.5, -1),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (n === 0 ? 0 : n)),
    fc.string({ unit: "grapheme" }),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }).map((fields) => objectOf(fields)),
  ),
}));

function objectOf(fields: readonly (readonly [string, unknown])[]): object {
  const object = {};
  for (const [name, value] of fields) {
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return object;
}

/** Every object and array in it. */
function containersOf(value: unknown): object[] {
  if (typeof value !== "object" || value === null) return [];
  return [value, ...Object.values(value).flatMap(containersOf)];
}

/** Text that is the same for the same data, whatever the order of its keys. */
function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  const fields = Object.keys(value).toSorted();
  return `{${fields.map((name) => `${JSON.stringify(name)}:${canonical(valueAt(value, name))}`).join()}}`;
}

function valueAt(object: object, name: string): unknown {
  return Object.getOwnPropertyDescriptor(object, name)!.value;
}

test("a copy says the same, shares nothing with its source, and is frozen throughout", () => {
  fc.assert(
    fc.property(json, (value) => {
      const before = JSON.stringify(value);
      const copy = jsonCopy(value);
      expect(JSON.stringify(copy)).toBe(before);
      expect(JSON.stringify(value)).toBe(before);
      const own = new Set(containersOf(value));
      for (const container of containersOf(copy)) {
        expect(own.has(container)).toBe(false);
        expect(Object.isFrozen(container)).toBe(true);
        expect([Object.prototype, Array.prototype]).toContain(Object.getPrototypeOf(container));
      }
    }),
  );
});

test("a copy is what is read back after it was written as text", () => {
  fc.assert(
    fc.property(json, (value) => {
      const copy = jsonCopy(value);
      expect(jsonEqual(JSON.parse(JSON.stringify(copy)), copy)).toBe(true);
      expect(canonical(jsonCopy(JSON.parse(JSON.stringify(value))))).toBe(canonical(copy));
    }),
  );
});

class Instance {
  field = 1;
}
const hostile: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  bigint: () => 1n,
  function: () => () => 1,
  symbol: () => Symbol("s"),
  NaN: () => Number.NaN,
  Infinity: () => Number.POSITIVE_INFINITY,
  "-0": () => -0,
  hole: () => Array(2),
  instance: () => new Instance(),
  date: () => new Date(0),
  subclass: () => new (class extends Array<number> {})(),
  named: () => Object.assign([1], { named: 1 }),
  symbolKey: () => ({ [Symbol("key")]: 1 }),
};

test("whatever JSON would lose is refused wherever it stands, and the refusal names the place", () => {
  const places = fc.array(fc.oneof(fc.nat({ max: 3 }), fc.constantFrom("a", "b", "__proto__")), { maxLength: 6 });
  fc.assert(
    fc.property(json, places, fc.constantFrom(...Object.keys(hostile)), (sibling, path, kind) => {
      let value = hostile[kind]!();
      for (const step of path.toReversed()) {
        value = typeof step === "number" ? [...Array<unknown>(step).fill(sibling), value] : objectOf([[step, value]]);
      }
      let error: unknown;
      try {
        jsonCopy(value);
      } catch (thrown) {
        error = thrown;
      }
      expect(TurnloopError.is(error, "INVALID_CONTENT"), kind).toBe(true);
      expect((error as TurnloopError).message).toContain(path.join("."));
    }),
  );
});

test("each getter is read exactly once, and what it gave is what is kept", () => {
  fc.assert(
    fc.property(json, (value) => {
      const reads: number[] = [];
      const copy = jsonCopy(behindGetters(value, reads));
      expect(canonical(copy)).toBe(canonical(value));
      expect(reads).toEqual(reads.map(() => 1));
    }),
  );
});

/** The same data, every field of which counts how often it is read. */
function behindGetters(value: unknown, reads: number[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  const made: object = Array.isArray(value) ? [] : {};
  for (const name of Object.keys(value)) {
    const inner = behindGetters(valueAt(value, name), reads);
    const at = reads.push(0) - 1;
    Object.defineProperty(made, name, {
      enumerable: true,
      configurable: true,
      get() {
        reads[at]! += 1;
        return inner;
      },
    });
  }
  return made;
}

test("what a getter throws passes through unchanged, wherever it stands", () => {
  fc.assert(
    fc.property(json, fc.anything(), (sibling, thrown) => {
      const trap = Object.defineProperty({ sibling }, "trap", {
        enumerable: true,
        get() {
          throw thrown;
        },
      });
      let caught: unknown = "nothing was thrown";
      try {
        jsonCopy([sibling, { trap }]);
      } catch (error) {
        caught = error;
      }
      expect(Object.is(caught, thrown)).toBe(true);
    }),
  );
});

test("jsonEqual is equality of what both say, whatever the order of their keys", () => {
  fc.assert(
    fc.property(json, json, (a, b) => {
      expect(jsonEqual(a, b)).toBe(canonical(a) === canonical(b));
      expect(jsonEqual(a, reordered(a))).toBe(true);
      expect(jsonEqual([a, b], [b, a])).toBe(jsonEqual(a, b));
    }),
  );
});

function reordered(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(reordered);
  return objectOf(
    Object.keys(value)
      .toReversed()
      .map((name) => [name, reordered(valueAt(value, name))] as const),
  );
}

test("no nesting overflows the stack: it is kept, or refused as too deep", () => {
  const copied = (deep: unknown): string => {
    try {
      return jsonEqual(jsonCopy(deep), deep) ? "kept" : "changed";
    } catch (error) {
      return TurnloopError.is(error) ? error.code : String(error);
    }
  };
  fc.assert(
    fc.property(fc.constantFrom(1, 100, 900, 5000, 100_000), fc.boolean(), (levels, arrays) => {
      let deep: unknown = 0;
      for (let i = 0; i < levels; i += 1) deep = arrays ? [deep] : { in: deep };
      expect(copied(deep)).toBe(levels <= 900 ? "kept" : "INVALID_CONTENT");
      expect(jsonEqual(deep, deep)).toBe(true);
    }),
    { numRuns: 20 },
  );
});
