/** T #220: lossless JSON, the only shape in which anything enters the log. */
import { createHarness, jsonCopy, jsonEqual, TurnloopError, type Session } from "turnloop";
import { runInNewContext } from "node:vm";
import { describe, expect } from "vitest";
import { local } from "../support/fixture.ts";

function aSession(): Promise<Session> {
  return createHarness().sessions.create({ id: "s" });
}

/** Anything at all, as data of an event that may hold anything. */
function keep(session: Session, value: unknown): unknown {
  const { data } = session.append("agent/configured", { patch: { providerOptions: { value } } as never });
  return (data.patch.providerOptions as { value: unknown }).value;
}

/** Objects and arrays in turn, so many levels deep. */
function nested(levels: number): unknown {
  let value: unknown = "the bottom";
  for (let i = 0; i < levels; i += 1) value = i % 2 === 0 ? [value] : { in: value };
  return value;
}

class Point {
  x = 1;
}
class List extends Array {}
const cyclic: { self?: unknown } = {};
cyclic.self = cyclic;
const sparse = [1, 2, 3];
// oxlint-disable-next-line typescript/no-array-delete
delete sparse[1];
const named = Object.assign([1], { note: "lost" });

describe("what is kept", () => {
  const kept: readonly (readonly [string, unknown])[] = [
    ["null", null],
    ["booleans", [true, false]],
    ["text", ["", "text", "ünïcödé 🦉", "\0\n\u2028"]],
    ["numbers", [0, 1, -1, 1.5, 1e308, 5e-324, Number.MAX_SAFE_INTEGER]],
    ["empty containers", [[], {}]],
    ["nesting", { a: [{ b: { c: [[]] } }] }],
    ["names of the prototype", { constructor: 1, toString: 2, hasOwnProperty: 3, prototype: 4 }],
    ["the same object twice, which is no cycle", ((one) => [one, one])({ a: 1 })],
  ];
  for (const [what, value] of kept) {
    local(`#220 ${what}`, async () => {
      const session = await aSession();
      const copy = keep(session, value);
      expect(copy).toEqual(value);
      expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
    });
  }

  local("#220 an object without a prototype is plain data", async () => {
    const bare = Object.assign(Object.create(null) as object, { a: 1 });
    expect(keep(await aSession(), bare)).toEqual({ a: 1 });
  });

  local("#220 plain objects and arrays of another realm are plain data", async () => {
    const foreign: unknown = runInNewContext("({ list: [1, { a: 2 }] })");
    expect(keep(await aSession(), foreign)).toEqual({ list: [1, { a: 2 }] });
  });

  local("#220 a key __proto__ is data, and changes no prototype", async () => {
    const copy = keep(await aSession(), JSON.parse('{"__proto__":{"polluted":true},"a":1}')) as object;
    expect(Object.keys(copy)).toEqual(["__proto__", "a"]);
    expect(JSON.stringify(copy)).toBe('{"__proto__":{"polluted":true},"a":1}');
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect("polluted" in copy).toBe(false);
    expect(Object.isFrozen(Object.getOwnPropertyDescriptor(copy, "__proto__")!.value)).toBe(true);
  });

  local("#220 each getter is read once", async () => {
    let reads = 0;
    const value = {
      get text() {
        reads += 1;
        return `read ${reads}`;
      },
    };
    const copy = keep(await aSession(), value);
    expect([copy, reads]).toEqual([{ text: "read 1" }, 1]);
  });

  local("#220 a proxy is copied by what it shows, and each field is read once", async () => {
    const reads: string[] = [];
    const proxy = new Proxy<Record<string, unknown>>(
      { a: 1, b: [2] },
      {
        get(target, key) {
          reads.push(String(key));
          return target[String(key)];
        },
      },
    );
    expect(keep(await aSession(), proxy)).toEqual({ a: 1, b: [2] });
    expect(reads).toEqual(["a", "b"]);
  });

  local("#220 what a throwing getter throws passes through, whatever it is, and the log is as it was", async () => {
    const session = await aSession();
    for (const thrown of [new Error("no"), "text", undefined]) {
      const value = {
        get trap(): never {
          // oxlint-disable-next-line no-throw-literal, typescript/only-throw-error
          throw thrown;
        },
      };
      let caught: unknown = "nothing";
      try {
        keep(session, value);
      } catch (error) {
        caught = error;
      }
      expect(caught).toBe(thrown);
    }
    expect(session.seq).toBe(0);
  });

  local("#220 half a surrogate pair is made well formed, so that every storage keeps the same text", async () => {
    expect(keep(await aSession(), ["a\ud800b", "\udc00"])).toEqual(["a\ufffdb", "\ufffd"]);
  });

  local("#220 data may be nested 900 levels deep", async () => {
    const deep = nested(900);
    const copy = keep(await aSession(), deep);
    expect(JSON.stringify(copy)).toBe(JSON.stringify(deep));
  });

  local("#220 #241 whatever depth an event was accepted with, its log can be read again", async () => {
    const { agents, sessions } = createHarness();
    for (let depth = 980; depth <= 1000; depth += 1) {
      const id = `deep-${depth}`;
      const { agent, dispose } = await agents.open({ id });
      try {
        agent.inject([{ type: "text", text: "deep", meta: { value: nested(depth) as never } }]);
      } catch (error) {
        expect(TurnloopError.is(error, "INVALID_CONTENT")).toBe(true);
        break;
      }
      await agent.flush();
      const before = JSON.stringify(agent.session.events);
      await dispose();
      expect(JSON.stringify((await sessions.load(id))?.events), `nested ${depth} deep`).toBe(before);
    }
  });
});

describe("what is refused", () => {
  const refused: readonly (readonly [string, unknown])[] = [
    ["undefined", undefined],
    ["a bigint", 1n],
    ["a function", () => 1],
    ["a symbol", Symbol("s")],
    ["NaN", Number.NaN],
    ["Infinity", Number.POSITIVE_INFINITY],
    ["-Infinity", Number.NEGATIVE_INFINITY],
    ["-0", -0],
    ["a hole", sparse],
    ["a cycle", cyclic],
    ["an instance of a class", new Point()],
    ["a date", new Date(0)],
    ["a map", new Map()],
    ["bytes", new Uint8Array(2)],
    ["an error", new Error("e")],
    ["a boxed string", new String("s")],
    ["a subclass of Array", List.from([1])],
    ["an array with named fields", named],
    ["a symbol as a key", { [Symbol("key")]: 1 }],
    ["an object that inherits its fields", Object.create({ a: 1 })],
    ["a promise", Promise.resolve(1)],
  ];
  for (const [what, value] of refused) {
    local(`#220 ${what}: INVALID_CONTENT with its cause, and the log is as it was`, async () => {
      const session = await aSession();
      for (const place of [value, [1, value], { a: { b: value } }]) {
        let error: unknown;
        try {
          keep(session, place);
        } catch (thrown) {
          error = thrown;
        }
        expect(TurnloopError.is(error, "INVALID_CONTENT")).toBe(true);
        expect((error as TurnloopError).cause).toBeInstanceOf(Error);
      }
      expect(session.seq).toBe(0);
    });
  }

  local("#220 the message names the place", async () => {
    const session = await aSession();
    expect(() => keep(session, [{ a: [0, Number.NaN] }])).toThrow(/patch\.providerOptions\.value\.0\.a\.1/);
  });

  // The ancestor's newest code takes any depth. No storage does: what is as deep as this is refused.
  local("#220 a nesting of 100000 levels is refused, without a stack overflow", async () => {
    const session = await aSession();
    expect(() => keep(session, nested(100_000))).toThrow(expect.objectContaining({ code: "INVALID_CONTENT" }));
    expect(session.seq).toBe(0);
  });

  local("#220 a cycle that is far down is found", async () => {
    const session = await aSession();
    const bottom: unknown[] = [];
    const root = { in: [[[{ bottom }]]] };
    bottom.push(root);
    expect(() => keep(session, root)).toThrow(expect.objectContaining({ code: "INVALID_CONTENT" }));
  });

  local("#220 a getter that changes the array under it cannot smuggle anything in", async () => {
    const session = await aSession();
    const list: unknown[] = [0, 1];
    Object.defineProperty(list, 0, {
      enumerable: true,
      get() {
        list.length = 1;
        return "shrinks";
      },
    });
    let kept: unknown;
    try {
      kept = keep(session, list);
    } catch (error) {
      expect(TurnloopError.is(error, "INVALID_CONTENT")).toBe(true);
      return;
    }
    expect(JSON.parse(JSON.stringify(kept))).toEqual(kept);
  });

  local("#220 hostile content is refused by every verb before anything changes", async () => {
    const { agents } = createHarness();
    const { agent } = await agents.open({ id: "s" });
    const bad = [{ type: "text", text: "a", meta: { at: new Date(0) } }] as never;
    const invalid = expect.objectContaining({ code: "INVALID_CONTENT" });
    expect(() => agent.send(bad)).toThrow(invalid);
    expect(() => agent.steer(bad)).toThrow(invalid);
    expect(() => agent.inject(bad)).toThrow(invalid);
    expect(() => agent.send("a", { source: { kind: "user", at: undefined as never } })).toThrow(invalid);
    expect(() => agent.configure({ temperature: Number.NaN })).toThrow(invalid);
    expect(agent.session.seq).toBe(0);
  });
});

describe("jsonCopy and jsonEqual", () => {
  local("#220 a copy is detached and deeply frozen, and leaves its source as it was", () => {
    const source = { list: [{ a: 1 }] };
    const copy = jsonCopy(source);
    source.list[0]!.a = 2;
    expect(copy).toEqual({ list: [{ a: 1 }] });
    expect([copy, copy.list, copy.list[0]].every(Object.isFrozen)).toBe(true);
    expect(Object.isFrozen(source.list[0])).toBe(false);
  });

  local("#220 leaves are copied and refused as well", () => {
    expect([jsonCopy("a"), jsonCopy(1), jsonCopy(null), jsonCopy(false)]).toEqual(["a", 1, null, false]);
    expect(() => jsonCopy(undefined)).toThrow(expect.objectContaining({ code: "INVALID_CONTENT" }));
    expect(() => jsonCopy(-0)).toThrow(expect.objectContaining({ code: "INVALID_CONTENT" }));
  });

  local("#220 jsonEqual takes keys in any order, and tells arrays, objects and missing fields apart", () => {
    expect(jsonEqual({ a: 1, b: [2, { c: null }] }, { b: [2, { c: null }], a: 1 })).toBe(true);
    const unequal: readonly (readonly [unknown, unknown])[] = [
      [
        [1, 2],
        [2, 1],
      ],
      [[], {}],
      [{ a: 1 }, { b: 1 }],
      [{ a: 1 }, { a: 1, b: 2 }],
      [null, {}],
      ["1", 1],
      [JSON.parse('{"__proto__":{"a":1}}'), JSON.parse('{"__proto__":{"a":2}}')],
      [JSON.parse('{"__proto__":1}'), {}],
      [JSON.parse('{"__proto__":{}}'), { a: 1 }],
      [{ toString: 1 }, { a: 1 }],
    ];
    expect(unequal.map(([a, b]) => jsonEqual(a, b) || jsonEqual(b, a))).toEqual(unequal.map(() => false));
  });
});
