/** The models that a harness can route to, by name. */
import { TurnloopError } from "../errors.ts";
import { enter } from "../hooks/entries.ts";
import { isObject } from "../json.ts";
import type { Model, ModelRegistry } from "./types.ts";

/** Throws INVALID_MODEL for an entry that is no model. */
export function createModels(initial: Readonly<Record<string, Model>> = {}): ModelRegistry {
  const routes = new Map<string, { readonly model: Model }>();

  const registry: ModelRegistry = {
    register(name, model) {
      checkModel(name, model);
      return enter(routes, name, { model }, "DUPLICATE_ADAPTER", "a model");
    },
    get: (name) => routes.get(name)?.model,
    names: () => [...routes.keys()],
  };

  for (const [name, model] of Object.entries(initial)) registry.register(name, model);
  return registry;
}

function checkModel(name: unknown, model: unknown): void {
  if (typeof name !== "string" || name === "") {
    throw new TurnloopError("INVALID_MODEL", "the name of a model must be text that is not empty");
  }
  const { id, stream } = (isObject(model) ? model : {}) as Partial<Model>;
  if (typeof id !== "string" || id === "" || typeof stream !== "function") {
    throw new TurnloopError(
      "INVALID_MODEL",
      `"${name}" is no model: it needs an id and a stream function, as aiSdkModel() makes`,
    );
  }
}

/** The model of a route. Throws NO_ADAPTER, naming those that there are. */
export function requireModel(models: ModelRegistry, name: string): Model {
  const model = models.get(name);
  if (model) return model;
  const known = models.names().join(", ") || "none";
  throw new TurnloopError("NO_ADAPTER", `there is no model named ${name}; the harness knows ${known}`);
}
