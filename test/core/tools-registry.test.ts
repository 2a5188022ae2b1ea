import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { createHooks, type Dispatch } from "../../src/hooks/hooks.ts";
import { compileTool, defineTool } from "../../src/tools/define.ts";
import { createTools, type ToolLayer } from "../../src/tools/registry.ts";
import type { ToolCallContext, ToolDefinition, ToolExecution } from "../../src/tools/types.ts";

const code = (name: string): unknown => expect.objectContaining({ code: name });
const call = {} as ToolCallContext;
const execution = {} as ToolExecution;

function tool(name: string, description = `does ${name}`): ToolDefinition {
  return defineTool({ name, description, inputSchema: { type: "object" }, execute: () => name });
}
function layers(toolOrder?: readonly string[]): {
  hooks: Dispatch;
  root: ToolLayer;
  agent: ToolLayer;
  agentHooks: Dispatch;
} {
  const hooks = createHooks(() => {});
  const agentHooks = createHooks(() => {}, hooks);
  const root = createTools({ hooks, ...(toolOrder && { toolOrder }) });
  return { hooks, agentHooks, root, agent: createTools({ hooks: agentHooks, parent: root }) };
}
const shown = (layer: ToolLayer): string[] => layer.ordered().map(({ name }) => name);

describe("defineTool", () => {
  it("types the body's arguments by the schema", () => {
    const schema = z.object({ city: z.string(), days: z.string().transform(Number) });
    defineTool({
      name: "weather",
      description: "",
      inputSchema: schema,
      needsApproval: ({ days }) => days > 3,
      execute({ city, days }) {
        expectTypeOf(city).toEqualTypeOf<string>();
        expectTypeOf(days).toEqualTypeOf<number>();
      },
    });
    // @ts-expect-error there is no such field
    defineTool({ name: "x", description: "", inputSchema: schema, execute: ({ town }) => town as unknown });
    // @ts-expect-error a body is needed
    expect(() => defineTool({ name: "x", description: "", inputSchema: schema })).toThrow(code("INVALID_TOOL"));
    defineTool({
      name: "x",
      description: "",
      inputSchema: { type: "object" },
      validate: (a) => a as { n: number },
      execute: (a) => a.n,
    });
  });

  it.each([
    ["no name", { name: "" }],
    ["a name with a blank", { name: "a b" }],
    ["a name of 65 letters", { name: "a".repeat(65) }],
    ["a name that is no text", { name: 1 }],
    ["the marker of toolOrder as its name", { name: "*" }],
    ["no description", { description: undefined }],
    ["no body", { execute: undefined }],
    ["a body that is no function", { execute: "x", runsAt: "client" }],
    ["another place to run at", { runsAt: "server" }],
    ["#195 a timeout of 0", { timeoutMs: 0 }],
    ["#195 a timeout that is not finite", { timeoutMs: Number.POSITIVE_INFINITY }],
    ["#195 a timeout that is no number", { timeoutMs: "5" }],
    ["a flag that is no boolean", { readOnly: "yes" }],
    ["an approval that is no function", { needsApproval: "yes" }],
    ["a view that is no object", { present: "x" }],
    ["no schema", { inputSchema: undefined }],
    ["a schema that is no object", { inputSchema: [] }],
    ["a schema with a cycle", { inputSchema: cyclic() }],
    ["a validator that is no function", { validate: 1 }],
    ["a validator beside a schema that validates", { inputSchema: z.object({}), validate: () => ({}) }],
    ["a schema that JSON Schema cannot say", { inputSchema: z.object({ at: z.date() }) }],
  ])("refuses %s", (_, wrong) => {
    const definition = { name: "x", description: "", inputSchema: { type: "object" }, execute: () => 1, ...wrong };
    expect(() => defineTool(definition as never)).toThrow(code("INVALID_TOOL"));
    expect(() => layers().root.register(definition as never)).toThrow(code("INVALID_TOOL"));
  });

  it("says what to do with a schema library that does not speak JSON Schema", () => {
    const inputSchema = {
      "~standard": { version: 1, vendor: "old", validate: (value: unknown) => ({ value }) },
    } as const;
    expect(() => defineTool({ name: "x", description: "", inputSchema, execute: () => 1 })).toThrow(
      /tool "x" inputSchema: .* give inputSchema as JSON Schema, and `validate`/,
    );
  });

  it("gives one compiled tool for one definition, with its traits", () => {
    const plain = tool("plain");
    expect(compileTool(plain)).toBe(compileTool(plain));
    expect(compileTool(plain)).toMatchObject({
      client: false,
      idempotent: false,
      parallel: false,
      needsApproval: false,
    });
    expect(compileTool(plain)).not.toHaveProperty("timeoutMs");
    const reader = defineTool({
      name: "read",
      description: "",
      inputSchema: { type: "object" },
      readOnly: true,
      timeoutMs: 5,
      execute: () => 1,
    });
    expect(compileTool(reader)).toMatchObject({ idempotent: true, parallel: true, timeoutMs: 5 });
    const client = defineTool({ name: "where", description: "", inputSchema: z.object({}), runsAt: "client" });
    expect(compileTool(client)).toMatchObject({ client: true, idempotent: false, parallel: false });
    expect(compileTool(client).execute).toBeUndefined();
  });

  it("calls the functions of a definition with its own `this`", async () => {
    class Counter {
      readonly name = "count";
      readonly description = "counts";
      readonly inputSchema = { type: "object" };
      count = 40;
      execute(args: { by: number }): number {
        return (this.count += args.by);
      }
      needsApproval(): boolean {
        return this.count > 41;
      }
    }
    const compiled = compileTool(defineTool(new Counter()));
    expect(compiled.execute?.({ by: 2 }, call)).toBe(42);
    expect(typeof compiled.needsApproval === "function" && (await compiled.needsApproval({}, call))).toBe(true);
  });
});

describe("the input of a tool", () => {
  it("is shown as frozen JSON Schema of what the model shall write", () => {
    const { schema } = compileTool(
      defineTool({
        name: "w",
        description: "lone \ud83d",
        inputSchema: z.object({ city: z.string(), days: z.number().default(1) }),
        execute: () => 1,
      }),
    );
    expect(schema).toEqual({
      name: "w",
      description: "lone \ufffd",
      parameters: {
        type: "object",
        properties: { city: { type: "string" }, days: { type: "number", default: 1 } },
        required: ["city"],
      },
    });
    expect(Object.isFrozen((schema.parameters.properties as { city: object }).city)).toBe(true);
  });

  it("is validated by the schema library, whose output the body gets", async () => {
    const { validate } = compileTool(
      defineTool({
        name: "w",
        description: "",
        inputSchema: z.object({
          city: z.string(),
          days: z.number().default(1),
          tags: z.array(z.object({ id: z.string() })).optional(),
        }),
        execute: () => 1,
      }),
    );
    expect(validate({ city: "Oslo", more: 1 })).toEqual({ ok: true, value: { city: "Oslo", days: 1 } });
    expect(validate({ city: 1, tags: [{ id: "a" }, {}] })).toEqual({
      ok: false,
      message: expect.stringMatching(/^city: .*expected string.*; tags\[1\]\.id: .*expected string/) as unknown,
    });
    expect(validate("not JSON")).toEqual({ ok: false, message: expect.stringContaining("expected object") as unknown });
    expect(validate({ city: "Oslo", tags: Array.from({ length: 50 }, () => ({})) })).toEqual({
      ok: false,
      message: expect.stringMatching(/; and 40 more$/) as unknown,
    });
  });

  it("may be validated late", async () => {
    const inputSchema = z.object({ n: z.number().refine(async (n) => n > 1, "too small") });
    const { validate } = compileTool(defineTool({ name: "w", description: "", inputSchema, execute: () => 1 }));
    expect(await validate({ n: 2 })).toEqual({ ok: true, value: { n: 2 } });
    expect(await validate({ n: 1 })).toEqual({ ok: false, message: "n: too small" });
  });

  it("as plain JSON Schema is not validated, unless `validate` is given", () => {
    const define = (validate?: (args: unknown) => unknown): ToolDefinition =>
      defineTool({
        name: "w",
        description: "",
        inputSchema: { $schema: "x", type: "object", title: undefined, [Symbol("kind")]: 1 },
        ...(validate && { validate }),
        execute: () => 1,
      });
    expect(compileTool(define()).schema.parameters).toEqual({ type: "object" });
    expect(compileTool(define()).validate("anything")).toEqual({ ok: true, value: "anything" });
    expect(compileTool(define((args) => ({ args }))).validate(1)).toEqual({ ok: true, value: { args: 1 } });
    const throwing = define(() => {
      throw new Error("city is missing");
    });
    expect(compileTool(throwing).validate({})).toEqual({ ok: false, message: "city is missing" });
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("broken");
      },
      "broken",
    ],
    [
      "throws null",
      () => {
        throw null;
      },
      "null was thrown",
    ],
    ["rejects", () => Promise.reject(new Error("late")), "late"],
    ["answers nothing", () => undefined, expect.any(String)],
    ["answers with no issues in words", () => ({ issues: [{}] }), "is not valid"],
    ["answers with an empty list of issues", () => ({ issues: [] }), expect.any(String)],
    ["names its places as segments", () => ({ issues: [{ path: [{ key: "a" }, 0], message: "no" }] }), "a[0]: no"],
  ])("is refused, not thrown, where the schema library %s", async (_, validate, message) => {
    const inputSchema = {
      "~standard": { version: 1, vendor: "x", validate, jsonSchema: { input: () => ({ type: "object" }) } },
    } as const;
    const compiled = compileTool(defineTool({ name: "w", description: "", inputSchema, execute: () => 1 }));
    expect(await compiled.validate({})).toEqual({ ok: false, message });
  });

  it("may be described by a function that is a schema, as some libraries have it", () => {
    const inputSchema = Object.assign(() => {}, {
      "~standard": {
        version: 1,
        vendor: "x",
        validate: (value: unknown) => ({ value }),
        jsonSchema: { input: ({ target }: { target: string }) => ({ type: "object", title: target }) },
      },
    } as const);
    const compiled = compileTool(defineTool({ name: "w", description: "", inputSchema, execute: () => 1 }));
    expect(compiled.schema.parameters).toEqual({ type: "object", title: "draft-2020-12" });
  });
});

describe("a registry of tools", () => {
  it("finds what is registered until it is taken back", () => {
    const { root } = layers();
    const off = root.register(tool("a"));
    expect(root.get("a")).toMatchObject({ name: "a" });
    expect(() => root.register(tool("a"))).toThrow(code("DUPLICATE_TOOL"));
    off();
    expect(root.get("a")).toBeUndefined();
    root.register(tool("a"));
    off();
    expect(root.knows("a")).toBe(true);
  });

  it.each(["constructor", "__proto__", "toString", "nope"])("#182 does not know %s", (name) => {
    const { agent } = layers();
    expect([agent.get(name), agent.lookup(name), agent.knows(name)]).toEqual([undefined, undefined, false]);
  });

  it("may hold a tool with the name of a prototype's member", () => {
    const { root } = layers();
    root.register(tool("__proto__"));
    root.register(tool("constructor"));
    expect(shown(root)).toEqual(["__proto__", "constructor"]);
  });

  it("#123 #194 lets an agent's tool hide the harness's of the same name", () => {
    const { root, agent } = layers();
    agent.register(tool("a", "mine"));
    root.register(tool("a", "harness's"));
    expect(agent.ordered()).toMatchObject([{ description: "mine" }]);
    expect(root.ordered()).toMatchObject([{ description: "harness's" }]);
    agent.unwind();
    expect(agent.ordered()).toMatchObject([{ description: "harness's" }]);
  });

  it("D4 #131 tells tools/change of every registration and its undo; a listener cannot refuse", () => {
    const { hooks, root, agent, agentHooks } = layers();
    const heard: string[] = [];
    hooks.on("tools/change", () => {
      heard.push("harness");
      throw new Error("no");
    });
    agentHooks.on("tools/change", () => void heard.push("agent"));
    const off = root.register(tool("a"));
    const shownAgain = agent.restrict({ deny: ["a"] });
    shownAgain();
    shownAgain();
    off();
    off();
    expect(heard).toEqual(["harness", "harness", "agent", "harness", "agent", "harness"]);
  });

  it("#195 shows name, description and parameters, as fresh copies", () => {
    const { root } = layers();
    root.register({ ...tool("a"), timeoutMs: 5, secret: "x" });
    const [schema] = root.schemas();
    expect(schema).toEqual({ name: "a", description: "does a", parameters: { type: "object" } });
    (schema as { parameters: Record<string, unknown> }).parameters.type = "changed";
    root.schemas().pop();
    expect(root.schemas()).toEqual([{ name: "a", description: "does a", parameters: { type: "object" } }]);
  });

  it("asks the harness's guards, then the agent's, each until it is taken back", () => {
    const { root, agent } = layers();
    const guard = (by: string) => () => by;
    const mine = guard("agent");
    const off = agent.guard(mine);
    agent.guard(mine);
    root.guard(guard("harness"));
    const answers = (): unknown[] => agent.guards().map((each) => each(execution));
    expect(answers()).toEqual(["harness", "agent", "agent"]);
    off();
    off();
    expect(answers()).toEqual(["harness", "agent"]);
    expect(root.guards()).toHaveLength(1);
    expect(() => root.guard("no" as never)).toThrow(code("INVALID_GUARD"));
  });
});

describe("#194 a restriction", () => {
  it("hides the harness's tools from one agent, and leaves its own", () => {
    const { root, agent } = layers();
    for (const name of ["read", "write", "run"]) root.register(tool(name));
    agent.register(tool("own"));
    const off = agent.restrict({ deny: ["run"] });
    expect(shown(agent)).toEqual(["own", "read", "write"]);
    expect([agent.get("run"), agent.lookup("run"), agent.knows("run")]).toEqual([undefined, undefined, true]);
    const offToo = agent.restrict({ allow: ["read", "run"] });
    expect(shown(agent)).toEqual(["own", "read"]);
    off();
    expect(shown(agent)).toEqual(["own", "read", "run"]);
    offToo();
    expect(shown(agent)).toEqual(["own", "read", "run", "write"]);
    expect(shown(root)).toEqual(["read", "run", "write"]);
  });

  it("goes by the live registry", () => {
    const { root, agent } = layers();
    root.register(tool("read"));
    const off = root.register(tool("run"));
    agent.restrict({ allow: ["read"] });
    root.register(tool("late"));
    expect(shown(agent)).toEqual(["read"]);
    off();
    root.register(tool("run"));
    expect(shown(agent)).toEqual(["read"]);
  });

  it("does not hide a tool of the agent that has the name of a hidden one", () => {
    const { root, agent } = layers();
    root.register(tool("run", "harness's"));
    agent.restrict({ deny: ["run"] });
    agent.register(tool("run", "mine"));
    expect(agent.get("run")).toMatchObject({ description: "mine" });
  });

  it("that allows nothing hides all of them", () => {
    const { root, agent } = layers();
    root.register(tool("read"));
    agent.restrict({ allow: [] });
    expect(shown(agent)).toEqual([]);
  });

  it("is refused on the harness's layer, without a name, and for an unknown one", () => {
    const { root, agent } = layers();
    root.register(tool("read"));
    expect(() => root.restrict({ deny: ["read"] })).toThrow(code("INVALID_RESTRICTION"));
    for (const filter of [
      {},
      { deny: [] },
      { deny: ["nope"] },
      { allow: ["read", "nope"] },
      { allow: "read" },
      undefined,
    ]) {
      expect(() => agent.restrict(filter as never)).toThrow(code("INVALID_RESTRICTION"));
    }
    expect(shown(agent)).toEqual(["read"]);
  });
});

describe("#129 the order of the tools", () => {
  it("is by name in code units", () => {
    const { root } = layers();
    for (const name of ["b", "a", "B", "_", "a1", "A"]) root.register(tool(name));
    expect(shown(root)).toEqual(["A", "B", "_", "a", "a1", "b"]);
  });

  it("is the same frozen array until something changes", () => {
    const { root, agent } = layers();
    root.register(tool("a"));
    const before = agent.ordered();
    expect(agent.ordered()).toBe(before);
    expect(Object.isFrozen(before)).toBe(true);
    agent.guard(() => undefined);
    expect(agent.ordered()).toBe(before);
    const off = root.register(tool("b"));
    expect(agent.ordered()).not.toBe(before);
    expect(agent.ordered()[0]).toBe(before[0]);
    off();
    expect(agent.ordered()).toEqual(before);
  });

  it("goes by toolOrder, the rest by name at its marker, for agents too", () => {
    const { root, agent } = layers(["z", "*", "a"]);
    for (const name of ["a", "c", "b", "z"]) root.register(tool(name));
    expect(shown(root)).toEqual(["z", "b", "c", "a"]);
    agent.register(tool("d"));
    agent.restrict({ deny: ["z"] });
    expect(shown(agent)).toEqual(["b", "c", "d", "a"]);
  });

  it.each([[[]], [["a"]], [["*", "*"]], [["a", "*", "a"]], ["*"], [["*", 1]]])(
    "refuses %j as toolOrder",
    (toolOrder) => {
      expect(() => layers(toolOrder as never)).toThrow(code("INVALID_TOOL_ORDER"));
    },
  );

  it("refuses to list as long as toolOrder names a tool that no layer has", () => {
    const { root, agent } = layers(["a", "*"]);
    expect(() => root.ordered()).toThrow(code("INVALID_TOOL_ORDER"));
    expect(() => root.ordered()).toThrow(/names "a", but there is no such tool/);
    agent.register(tool("a"));
    expect(shown(agent)).toEqual(["a"]);
    expect(() => root.ordered()).toThrow(code("INVALID_TOOL_ORDER"));
  });
});

function cyclic(): object {
  const schema: Record<string, unknown> = { type: "object" };
  schema.properties = schema;
  return schema;
}
