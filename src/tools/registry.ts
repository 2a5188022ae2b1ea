/** A layer of tools: what is registered and visible on it, in the order in which the model sees it. */
import { TurnloopError } from "../errors.ts";
import { defined } from "../json.ts";
import { enter } from "../hooks/entries.ts";
import type { Dispatch } from "../hooks/hooks.ts";
import type { Unregister } from "../hooks/types.ts";
import type { ToolSchema } from "../model/types.ts";
import { compileTool, type Tool } from "./define.ts";
import { sortSchemas, toolOrderOf, type ToolOrder } from "./order.ts";
import type { ToolExecution, ToolRegistry } from "./types.ts";

export type Guard = (execution: ToolExecution) => string | undefined;

export interface ToolLayer extends ToolRegistry {
  readonly inside: Inside;
  /** One that is visible here. */
  lookup(name: string): Tool | undefined;
  /** Whether a visible tool of this name may be run again after a crash. */
  idempotent(name: string): boolean;
  /** Whether any layer has it, hidden or not. */
  knows(name: string): boolean;
  /** Those of the harness first. */
  guards(): readonly Guard[];
  /** What the model is shown, frozen; the same array until something changes. INVALID_TOOL_ORDER. */
  ordered(): readonly ToolSchema[];
  /** Removes everything of this layer, without telling `tools/change`. */
  unwind(): void;
}

export interface ToolDeps {
  readonly hooks: Dispatch;
  /** Of the harness's layer: the layers above it go by the same. INVALID_TOOL_ORDER. */
  readonly toolOrder?: readonly string[] | undefined;
  readonly parent?: ToolLayer;
}

interface Restriction {
  readonly allow?: ReadonlySet<string>;
  readonly deny?: ReadonlySet<string>;
}

/** What a layer shows to the one above it. */
export interface Inside {
  readonly order: ToolOrder | undefined;
  /** Grows with every change, here or below. */
  version(): number;
  visible(): ReadonlyMap<string, Tool>;
}

/** A layer of tools above `parent`, whose tools of the same names it hides. */
export function createTools({ hooks, toolOrder, parent }: ToolDeps): ToolLayer {
  const below = parent && parent.inside;
  const tools = new Map<string, { readonly tool: Tool }>();
  let guards: readonly Guard[] = [];
  let restrictions: readonly Restriction[] = [];
  let version = 0;
  let sorted: { readonly version: number; readonly schemas: readonly ToolSchema[] } | undefined;

  const inside: Inside = {
    order: toolOrder ? toolOrderOf(toolOrder) : below?.order,
    version: () => version + (below?.version() ?? 0),
    visible() {
      const seen = new Map([...(below?.visible() ?? [])].filter(([name]) => !hidden(name)));
      for (const [name, { tool }] of tools) seen.set(name, tool);
      return seen;
    },
  };

  /** Whether a tool of a layer below may not be seen from here. */
  function hidden(name: string): boolean {
    return restrictions.some(({ allow, deny }) => (allow && !allow.has(name)) || deny?.has(name));
  }

  function changed(): void {
    version += 1;
    hooks.emit("tools/change", {});
  }

  const layer: ToolLayer = {
    inside,

    register(definition): Unregister {
      hooks.checkOpen();
      const tool = compileTool(definition);
      return enter(tools, tool.name, { tool }, "DUPLICATE_TOOL", "tool", changed);
    },

    guard(guard): Unregister {
      hooks.checkOpen();
      if (typeof guard !== "function") throw new TurnloopError("INVALID_GUARD", "a guard must be a function");
      // A wrapper of its own, so that one function registered twice is removed once at a time.
      const entry: Guard = (execution) => guard(execution);
      guards = [...guards, entry];
      return () => {
        guards = guards.filter((other) => other !== entry);
      };
    },

    restrict(filter): Unregister {
      hooks.checkOpen();
      if (!parent) {
        throw invalidRestriction("is for the layer of an agent; what no agent should have, do not register");
      }
      const entry = restrictionOf(filter, (name) => layer.knows(name));
      restrictions = [...restrictions, entry];
      changed();
      return () => {
        if (!restrictions.includes(entry)) return;
        restrictions = restrictions.filter((other) => other !== entry);
        changed();
      };
    },

    get: (name) => layer.lookup(name)?.definition,
    lookup: (name) => tools.get(name)?.tool ?? (hidden(name) ? undefined : parent?.lookup(name)),
    idempotent: (name) => layer.lookup(name)?.idempotent === true,
    knows: (name) => tools.has(name) || (parent?.knows(name) ?? false),
    guards: () => (guards.length === 0 && parent ? parent.guards() : [...(parent?.guards() ?? []), ...guards]),
    schemas: () => structuredClone(layer.ordered()) as ToolSchema[],

    ordered() {
      // A layer with nothing of its own shows what is below.
      if (parent && tools.size === 0 && restrictions.length === 0) return parent.ordered();
      const now = inside.version();
      if (sorted?.version !== now) {
        const schemas = [...inside.visible().values()].map(({ schema }) => schema);
        sorted = { version: now, schemas: sortSchemas(schemas, (name) => layer.knows(name), inside.order) };
      }
      return sorted.schemas;
    },

    unwind() {
      tools.clear();
      guards = [];
      restrictions = [];
      version += 1;
    },
  };
  return layer;
}

function restrictionOf(filter: Parameters<ToolRegistry["restrict"]>[0], knows: (name: string) => boolean): Restriction {
  const { allow, deny } = filter ?? {};
  for (const names of [allow ?? [], deny ?? []]) {
    if (!Array.isArray(names)) throw invalidRestriction("takes { allow?, deny? }, each an array of tool names");
    for (const name of names as unknown[]) {
      if (typeof name !== "string" || !knows(name)) {
        throw invalidRestriction(`names "${String(name)}", but there is no such tool; register it first`);
      }
    }
  }
  // An empty `allow` says something, nothing at all is allowed; an empty `deny` does not.
  if (!allow && !deny?.length) throw invalidRestriction("names no tool; say which to allow, or which to deny");
  return defined({ allow: allow && new Set(allow), deny: deny && new Set(deny) });
}

function invalidRestriction(what: string): TurnloopError {
  return new TurnloopError("INVALID_RESTRICTION", `restrict ${what}`);
}
