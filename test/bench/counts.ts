/** Counts what code does instead of timing it: what it freezes, how many things it walks over, what it turns into JSON. */

export interface Counts {
  /** Objects frozen. */
  readonly freezes: number;
  /** Names of objects listed. */
  readonly names: number;
  /** Elements of arrays, maps and sets that were walked over, searched or copied. */
  readonly walked: number;
  /** Calls of JSON and of structuredClone. */
  readonly json: number;
}

export interface Counting {
  /** So far. */
  read(): Counts;
  /** Puts everything back. */
  stop(): void;
}

type Callable = (this: unknown, ...args: unknown[]) => unknown;

/** `flatMap` and the like end at once when they find something: what they could have walked over is what counts. */
const WALKS = ["map", "filter", "flatMap", "find", "findLast", "findIndex", "some", "every", "indexOf"] as const;
const MORE_WALKS = ["includes", "forEach", "reduce", "concat", "join", "sort", "toSorted", "splice"] as const;
const COLLECTION_WALKS = ["forEach", "keys", "values", "entries", Symbol.iterator] as const;

/** For the whole process, whoever does it: nothing else should run meanwhile. */
export function startCounting(): Counting {
  const counts = { freezes: 0, names: 0, walked: 0, json: 0 };
  const undo: (() => void)[] = [];

  /** Has `count` told what each call is handed and what it answers. */
  function watch(owner: object, name: PropertyKey, count: (self: unknown, answer: unknown) => void): void {
    const before = Object.getOwnPropertyDescriptor(owner, name)!;
    const original = before.value as Callable;
    const watched: Callable = function (...args) {
      const answer = original.apply(this, args);
      count(this, answer);
      return answer;
    };
    Object.defineProperty(owner, name, { ...before, value: watched });
    undo.push(() => Object.defineProperty(owner, name, before));
  }

  const list = (_self: unknown, names: unknown): void => void (counts.names += (names as unknown[]).length);
  for (const name of ["keys", "values", "entries"]) watch(Object, name, list);
  for (const name of ["parse", "stringify"]) watch(JSON, name, () => (counts.json += 1));
  watch(globalThis, "structuredClone", () => (counts.json += 1));
  watch(Object, "freeze", () => (counts.freezes += 1));
  for (const name of [...WALKS, ...MORE_WALKS, Symbol.iterator, "values", "entries"]) {
    watch(Array.prototype, name, (self) => (counts.walked += (self as unknown[]).length));
  }
  watch(Array.prototype, "slice", (_self, copy) => (counts.walked += (copy as unknown[]).length));
  for (const { prototype } of [Map, Set]) {
    for (const name of COLLECTION_WALKS) {
      watch(prototype, name, (self) => (counts.walked += (self as Set<unknown>).size));
    }
  }

  return {
    read: () => ({ ...counts }),
    stop() {
      while (undo.length > 0) undo.pop()!();
    },
  };
}
