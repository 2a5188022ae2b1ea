/** The models that a harness can route to, by name. */
import { TurnloopError } from "../errors.ts";
import type { Model, ModelRegistry } from "./types.ts";

/** Throws INVALID_MODEL for an entry that is no model. */
export function createModels(initial: Readonly<Record<string, Model>> = {}): ModelRegistry {
  const routes = new Map<string, { readonly model: Model }>();

  const registry: ModelRegistry = {
    register(name, model) {
      checkModel(name, model);
      if (routes.has(name)) {
        throw new TurnloopError(
          "DUPLICATE_ADAPTER",
          `a model is already registered as "${name}"; unregister it first, or choose another name`,
        );
      }
      const entry = { model };
      routes.set(name, entry);
      return () => {
        // Only what this call has entered: the name may have been taken again since.
        if (routes.get(name) === entry) routes.delete(name);
      };
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
  const { id, stream } = (typeof model === "object" && model !== null ? model : {}) as Partial<Model>;
  if (typeof id !== "string" || id === "" || typeof stream !== "function") {
    throw new TurnloopError(
      "INVALID_MODEL",
      `"${name}" is no model: it needs an id and a stream function; wrap a model of the AI SDK with aiSdkModel()`,
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
