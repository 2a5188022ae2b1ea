import { describe, expect, it, vi } from "vitest";
import { createHooks, type Dispatch } from "../../src/hooks/hooks.ts";
import type { ToolSchema } from "../../src/model/types.ts";
import { createPrompt, type PromptLayer } from "../../src/prompt/prompt.ts";
import type { PromptAssembly } from "../../src/prompt/types.ts";

const TOOLS: readonly ToolSchema[] = Object.freeze([
  Object.freeze({ name: "a", description: "A", parameters: Object.freeze({ type: "object" }) }),
  Object.freeze({ name: "b", description: "B", parameters: Object.freeze({ type: "object" }) }),
]);
const tools = { schemas: () => TOOLS };
const code = (name: string): unknown => expect.objectContaining({ code: name });

function layers(): { hooks: Dispatch; root: PromptLayer; agent: PromptLayer; agentHooks: Dispatch } {
  const hooks = createHooks(() => {});
  const agentHooks = createHooks(() => {}, hooks);
  const root = createPrompt({ hooks, tools });
  return { hooks, root, agentHooks, agent: createPrompt({ hooks: agentHooks, tools, parent: root }) };
}
const textOf = async (prompt: PromptLayer): Promise<string> => prompt.render(await prompt.assemble());
const namesOf = ({ sections }: PromptAssembly): string[] => sections.map(({ name }) => name);

describe("sections", () => {
  it("D3 #122 identity and persona exist, in their places, and are empty", async () => {
    const { root } = layers();
    const { sections } = await root.assemble();
    expect(sections.map(({ name, order, text }) => [name, order, text])).toEqual([
      ["identity", -100, ""],
      ["persona", 0, ""],
    ]);
    expect(root.render({ sections, tools: [], variables: {} })).toBe("");
  });

  it("D3 #122 a reserved section is filled in once on each layer, and keeps its place", async () => {
    const { root, agent } = layers();
    root.section({ name: "early", order: -1, text: "early" });
    root.section({ name: "persona", text: "harness" });
    expect(() => root.section({ name: "persona", text: "again" })).toThrow(code("DUPLICATE_SECTION"));
    const off = agent.section({ name: "persona", text: "agent" });
    expect(await textOf(agent)).toBe("early\n\nagent");
    expect(await textOf(root)).toBe("early\n\nharness");
    off();
    expect(await textOf(agent)).toBe("early\n\nharness");
  });

  it("#120 are sorted by order, and equal ones stay as registered, the harness's first", async () => {
    const { root, agent } = layers();
    agent.section({ name: "mine", text: "mine" });
    root.section({ name: "z", text: "z" });
    root.section({ name: "late", order: 100.5, text: "late" });
    root.section({ name: "a", order: 100, text: "a" });
    root.section({ name: "first", order: -1e9, text: "first" });
    expect(await textOf(agent)).toBe("first\n\nz\n\na\n\nmine\n\nlate");
  });

  it("#120 functions are asked for every assembly, with its context", async () => {
    const { root } = layers();
    const text = vi.fn<(context: object) => string>(() => "said");
    root.section({ name: "asked", text });
    const context = {};
    await root.assemble(context);
    await root.assemble(context);
    expect(text.mock.calls).toEqual([[context], [context]]);
    expect(text.mock.calls[0]![0]).toBe(context);
  });

  it("#121 empty and blank ones are left out, others are joined by a blank line", async () => {
    const { root } = layers();
    root.section({ name: "one", text: "one" });
    root.section({ name: "undefined", text: () => undefined });
    root.section({ name: "blank", text: " \n " });
    root.section({ name: "filled with nothing", text: "{{nothing}}" });
    root.section({ name: "two", text: async () => "two" });
    root.variable("nothing", "");
    expect(await textOf(root)).toBe("one\n\ntwo");
  });

  it("literal ones are taken as they are", async () => {
    const { root } = layers();
    root.section({ name: "code", literal: true, text: "{{ not a variable }}" });
    expect(await textOf(root)).toBe("{{ not a variable }}");
  });

  it.each([true, false])(
    "#123 an agent's hides the harness's of the same name (registered first: %s)",
    async (first) => {
      const { root, agent } = layers();
      const inHarness = (): unknown => root.section({ name: "rules", text: "harness" });
      const inAgent = (): unknown => agent.section({ name: "rules", text: "agent" });
      for (const register of first ? [inAgent, inHarness] : [inHarness, inAgent]) register();
      expect(await textOf(agent)).toBe("agent");
      expect(await textOf(root)).toBe("harness");
      agent.unwind();
      expect(await textOf(agent)).toBe("harness");
    },
  );

  it.each([
    ["no object", null],
    ["no name", { name: "", text: "x" }],
    ["an order that is not finite", { name: "x", order: Number.NaN, text: "x" }],
    ["an order that is no number", { name: "x", order: "1", text: "x" }],
    ["no text", { name: "x" }],
    ["a literal that is no boolean", { name: "x", literal: 1, text: "x" }],
  ])("#120 %s is refused, and nothing changes", async (_, section) => {
    const { root } = layers();
    expect(() => root.section(section as never)).toThrow(code("INVALID_SECTION"));
    expect(namesOf(await root.assemble())).toEqual(["identity", "persona"]);
  });

  it("an undo takes back its own section, not a later one of that name", async () => {
    const { root } = layers();
    const off = root.section({ name: "x", text: "one" });
    off();
    root.section({ name: "x", text: "two" });
    off();
    expect(await textOf(root)).toBe("two");
  });
});

describe("variables", () => {
  it("#125 an agent's hides the harness's, and an undo brings that back", async () => {
    const { root, agent } = layers();
    root.section({ name: "x", text: "{{who}} in {{where}}" });
    root.variable("who", "harness");
    root.variable("where", () => Promise.resolve("Oslo"));
    const off = agent.variable("who", () => "agent");
    expect(await textOf(agent)).toBe("agent in Oslo");
    expect(await textOf(root)).toBe("harness in Oslo");
    off();
    expect(await textOf(agent)).toBe("harness in Oslo");
  });

  it("#125 are unique within a layer, and named [a-z][a-z0-9_]*", () => {
    const { root } = layers();
    root.variable("a_1", "x");
    expect(() => root.variable("a_1", "y")).toThrow(code("DUPLICATE_VARIABLE"));
    for (const name of ["", "A", "1a", "a-b", " a", "__proto__"]) {
      expect(() => root.variable(name, "x")).toThrow(code("INVALID_VARIABLE"));
    }
    expect(() => root.variable("b", 1 as never)).toThrow(code("INVALID_VARIABLE"));
  });

  it("#125 undefined is no value: rendering is refused where it is used, and only there", async () => {
    const { root, agent } = layers();
    root.variable("who", "harness");
    agent.variable("who", () => undefined);
    expect((await agent.assemble()).variables).toEqual({ who: undefined });
    agent.section({ name: "x", text: "{{who}}" });
    await expect(textOf(agent)).rejects.toThrow(code("INVALID_PROMPT"));
  });

  it("#126 a name of Object.prototype may be a variable of one's own", async () => {
    const { root } = layers();
    root.section({ name: "x", text: "{{constructor}}" });
    await expect(textOf(root)).rejects.toThrow(code("INVALID_PROMPT"));
    root.variable("constructor", "mine");
    expect(await textOf(root)).toBe("mine");
  });
});

describe("assembling", () => {
  it("names the part that failed, and keeps what was thrown as the cause", async () => {
    const { root } = layers();
    const cause = new Error("no file");
    const off = root.section({
      name: "notes",
      text: () => {
        throw cause;
      },
    });
    await expect(root.assemble()).rejects.toMatchObject({
      code: "INVALID_PROMPT",
      message: expect.stringMatching(/section "notes" failed: no file/) as unknown,
      cause,
    });
    off();
    root.variable("v", () => Promise.reject(cause));
    await expect(root.assemble()).rejects.toMatchObject({ code: "INVALID_PROMPT", cause });
  });

  it("refuses a function that answers with something else than text", async () => {
    const { root } = layers();
    root.section({ name: "x", text: (() => 3) as never });
    await expect(root.assemble()).rejects.toThrow(code("INVALID_PROMPT"));
  });

  it("hands the tools out as they are, the same array every time", async () => {
    const { root, hooks } = layers();
    expect((await root.assemble()).tools).toBe(TOOLS);
    hooks.on("prompt/assemble", async (_, next) => {
      const assembly = await next();
      return { ...assembly, tools: [...assembly.tools] };
    });
    expect((await root.assemble()).tools).toBe(TOOLS);
  });

  it("#130 what a listener answers is the assembly, in its order", async () => {
    const { root, hooks } = layers();
    const extra = { name: "c", description: "C", parameters: { type: "object", properties: {} } };
    hooks.on("prompt/assemble", async (_, next) => {
      const {
        tools: [a],
        variables,
      } = await next();
      return {
        sections: [
          { name: "z", order: 9, text: "{{who}}" },
          { name: "y", order: 1, literal: true, text: "{{who}}" },
        ],
        tools: [extra, a!],
        variables: { ...variables, who: "me" },
      };
    });
    const assembly = await root.assemble();
    expect(root.render(assembly)).toBe("me\n\n{{who}}");
    expect(assembly.tools).toEqual([extra, TOOLS[0]]);
    expect(assembly.tools[1]).toBe(TOOLS[0]);
    expect(assembly.tools[0]).not.toBe(extra);
    expect(Object.isFrozen(assembly.tools[0]!.parameters.properties)).toBe(true);
  });

  it("#130 what a listener changes in place stays within that assembly", async () => {
    const { root, hooks } = layers();
    root.section({ name: "x", text: "x" });
    root.variable("v", "v");
    const off = hooks.on("prompt/assemble", ({ assembly }, next) => {
      (assembly.sections as unknown[]).length = 0;
      (assembly.variables as Record<string, string>).v = "changed";
      return next();
    });
    expect(await root.assemble()).toMatchObject({ sections: [], variables: { v: "changed" } });
    off();
    const { sections, variables } = await root.assemble();
    expect(sections.map(({ name }) => name)).toContain("x");
    expect(variables).toEqual({ v: "v" });
  });

  it.each([
    ["nothing", () => undefined],
    ["no sections", (a: PromptAssembly) => ({ ...a, sections: undefined })],
    ["a section without text", (a: PromptAssembly) => ({ ...a, sections: [{ name: "x", order: 1 }] })],
    ["a section without an order", (a: PromptAssembly) => ({ ...a, sections: [{ name: "x", text: "x" }] })],
    ["no tools", (a: PromptAssembly) => ({ ...a, tools: null })],
    ["a tool without parameters", (a: PromptAssembly) => ({ ...a, tools: [{ name: "x", description: "" }] })],
    [
      "a tool that is no JSON",
      (a: PromptAssembly) => ({ ...a, tools: [{ name: "x", description: "", parameters: { f() {} } }] }),
    ],
    ["a variable that is no text", (a: PromptAssembly) => ({ ...a, variables: { v: 1 } })],
  ])("#130 an answer with %s is refused", async (_, answer) => {
    const { root, hooks } = layers();
    hooks.on("prompt/assemble", async (_payload, next) => answer(await next()) as never);
    await expect(root.assemble()).rejects.toThrow(code("INVALID_PROMPT"));
  });

  it("#132 needs no agent, and tells the hook of its context", async () => {
    const { root, hooks } = layers();
    const heard: unknown[] = [];
    hooks.on("prompt/assemble", ({ context }, next) => {
      heard.push(context);
      return next();
    });
    await root.assemble();
    expect(heard).toEqual([{}]);
  });

  it("rejects when the tools cannot be listed", async () => {
    const prompt = createPrompt({
      hooks: createHooks(() => {}),
      tools: {
        schemas: () => {
          throw new Error("toolOrder");
        },
      },
    });
    await expect(prompt.assemble()).rejects.toThrow("toolOrder");
  });
});

describe("prompt/change", () => {
  it("#131 D4 is told of every registration and its undo, once, and cannot refuse", async () => {
    const { hooks, root } = layers();
    let told = 0;
    hooks.on("prompt/change", () => {
      told += 1;
      throw new Error("no");
    });
    const off = [root.section({ name: "x", text: "x" }), root.variable("v", "v")];
    expect(told).toBe(2);
    expect(await textOf(root)).toBe("x");
    for (const undo of [...off, ...off]) undo();
    expect(told).toBe(4);
  });

  it("of an agent's layer is heard by that agent and the harness, not by others", () => {
    const { hooks, root, agent, agentHooks } = layers();
    const heard: string[] = [];
    hooks.on("prompt/change", () => void heard.push("harness"));
    agentHooks.on("prompt/change", () => void heard.push("agent"));
    agent.variable("v", "v");
    root.variable("v", "v");
    expect(heard).toEqual(["harness", "agent", "harness"]);
  });
});
