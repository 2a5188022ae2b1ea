/** Which agents are live, and who owns whom. */
import { TurnloopError } from "../errors.ts";
import type { Dispatch } from "../hooks/hooks.ts";
import type { Unregister } from "../hooks/types.ts";
import type { Agent } from "./types.ts";

export interface AgentRegistry {
  get(id: string): Agent | undefined;
  /** A fresh array, in the order in which they came. */
  list(): Agent[];
  roots(): Agent[];
  isOwnedBy(id: string, owner: Agent): boolean;
  /** Enters, and tells; the undo tells too. SESSION_LIVE. */
  register(agent: Agent): Unregister;
  /** Enters without a word. The undo removes exactly this one. SESSION_LIVE. */
  enter(agent: Agent, owner?: Agent): Unregister;
}

export function createRegistry(hooks: Dispatch): AgentRegistry {
  const live = new Map<string, { readonly agent: Agent; readonly owner: Agent | undefined }>();

  const registry: AgentRegistry = {
    get: (id) => live.get(id)?.agent,
    list: () => [...live.values()].map((entry) => entry.agent),
    roots: () => [...live.values()].filter((entry) => !entry.owner).map((entry) => entry.agent),
    isOwnedBy(id, owner) {
      for (let entry = live.get(id); entry?.owner; entry = live.get(entry.owner.id))
        if (entry.owner === owner) return true;
      return false;
    },
    register(agent) {
      if (agent?.id !== agent?.session?.id || typeof agent?.id !== "string") {
        throw new TurnloopError("INVALID_AGENT", "an agent has the id of its session");
      }
      const leave = registry.enter(agent);
      hooks.emit("agent/created", { agent });
      let left = false;
      return () => {
        if (left) return;
        left = true;
        leave();
        hooks.emit("agent/disposed", { agent });
      };
    },
    enter(agent, owner) {
      if (live.has(agent.id))
        throw new TurnloopError("SESSION_LIVE", `the session ${agent.id} is live already; \`open\` joins it`);
      const entry = { agent, owner };
      live.set(agent.id, entry);
      return () => {
        if (live.get(agent.id) === entry) live.delete(agent.id);
      };
    },
  };
  return registry;
}
