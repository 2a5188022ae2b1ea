/** What a request says otherwise than the one before it. */
import { jsonEqual, type ModelRequest } from "../core.ts";

export interface RequestChanges {
  /** The fields of `config` that differ, those that are gone included. */
  readonly config: readonly string[];
  readonly system: boolean;
  /** By name. */
  readonly tools: {
    readonly added: readonly string[];
    readonly removed: readonly string[];
    readonly changed: readonly string[];
  };
  /** The messages from the first on that are the same; behind them, how many went and how many came. */
  readonly messages: { readonly kept: number; readonly removed: number; readonly added: number };
}

/** Both as `rebuildRequest` gives them. Requests of one session share messages, so that this is quick. */
export function requestChanges(before: ModelRequest, after: ModelRequest): RequestChanges {
  const kept = keptMessages(before, after);
  return {
    config: Object.values(differing(fieldsOf(before.config), fieldsOf(after.config))).flat(),
    system: before.system !== after.system,
    tools: differing(toolsOf(before), toolsOf(after)),
    messages: { kept, removed: before.messages.length - kept, added: after.messages.length - kept },
  };
}

function keptMessages(before: ModelRequest, after: ModelRequest): number {
  const common = Math.min(before.messages.length, after.messages.length);
  for (let place = 0; place < common; place += 1) {
    if (!jsonEqual(before.messages[place], after.messages[place])) return place;
  }
  return common;
}

type Named = ReadonlyMap<string, unknown>;

function fieldsOf(value: object): Named {
  return new Map(Object.entries(value));
}

function toolsOf({ tools = [] }: ModelRequest): Named {
  return new Map(tools.map((tool) => [tool.name, tool]));
}

function differing(before: Named, after: Named): RequestChanges["tools"] {
  const added = [...after.keys()].filter((name) => !before.has(name));
  const removed = [...before.keys()].filter((name) => !after.has(name));
  const changed = [...after.keys()].filter((name) => before.has(name) && !jsonEqual(before.get(name), after.get(name)));
  return { added, removed, changed };
}
