import { describe, expect, it } from "vitest";
import { createModels } from "../../src/model/registry.ts";
import type { Model } from "../../src/model/types.ts";

const code = (name: string): unknown => expect.objectContaining({ code: name });
const model = (id: string): Model => ({ id, async *stream() {} });

describe("the models of a harness", () => {
  it("are found by their names, in the order of registration", () => {
    const models = createModels({ fast: model("a/b"), constructor: model("c/d") });
    models.register("late", model("e/f"));
    expect(models.names()).toEqual(["fast", "constructor", "late"]);
    expect(models.get("constructor")?.id).toBe("c/d");
    expect(models.get("toString")).toBeUndefined();
    expect(createModels().get("constructor")).toBeUndefined();
  });

  it("#168 a second one of a name is refused, and leaves everything as it was", () => {
    const first = model("a/b");
    const models = createModels({ fast: first });
    expect(() => models.register("fast", model("c/d"))).toThrow(code("DUPLICATE_ADAPTER"));
    expect(models.get("fast")).toBe(first);
    expect(models.names()).toEqual(["fast"]);
  });

  it("an undo takes back its own registration, not a later one of that name", () => {
    const models = createModels();
    const same = model("a/b");
    const off = models.register("x", same);
    off();
    models.register("x", same);
    off();
    expect(models.get("x")).toBe(same);
  });

  it.each([
    ["nothing", undefined],
    ["a string", "openai/gpt"],
    ["no stream", { id: "a/b" }],
    ["no id", { stream() {} }],
    ["an empty id", { id: "", stream() {} }],
  ])("%s is no model", (_, wrong) => {
    const models = createModels();
    expect(() => models.register("x", wrong as never)).toThrow(code("INVALID_MODEL"));
    expect(() => models.register("", model("a/b"))).toThrow(code("INVALID_MODEL"));
    expect(() => createModels({ x: wrong as never })).toThrow(code("INVALID_MODEL"));
    expect(models.names()).toEqual([]);
  });
});
