/** A session that is opened, left, and opened again on the same storage. */
import {
  createHarness,
  type Agent,
  type AgentHandle,
  type HarnessOptions,
  type SessionStorage,
  type SessionView,
} from "turnloop";
import { mortal, storedEvents } from "./mortal.ts";

export interface Life {
  readonly agent: Agent;
  readonly handle: AgentHandle;
  /** The ids of the interactions that the hook has told of. */
  readonly requested: readonly string[];
  /** The codes of what was reported. */
  readonly diagnostics: readonly string[];
}

/** The types of what was appended from `seq` on, without chunks. */
export function typesFrom({ events }: SessionView, seq: number): string[] {
  return events.slice(seq).flatMap(({ type }) => (type === "assistant/chunk" ? [] : [type]));
}

/** Opens the session on a storage. */
export async function liveOn(storage: SessionStorage, options: HarnessOptions): Promise<Life> {
  const requested: string[] = [];
  const diagnostics: string[] = [];
  const harness = createHarness({ storage, onDiagnostic: ({ code }) => diagnostics.push(code), ...options });
  harness.hooks.on("interaction/requested", ({ interaction }) => void requested.push(interaction.id));
  const handle = await harness.agents.open({ id: "session" });
  return { agent: handle.agent, handle, requested, diagnostics };
}

/** The two ways in which a life ends early: it is disposed, or its process dies. */
export const endings = ["disposed", "killed"] as const;

export interface FirstLife extends Life {
  readonly disk: SessionStorage;
  /** Ends it, once all of it is stored; answers with how many events are. */
  end(how: (typeof endings)[number]): Promise<number>;
}

/** A first life that can end either way. */
export async function firstLife(options: HarnessOptions): Promise<FirstLife> {
  const { storage, disk, kill } = mortal();
  const life = await liveOn(storage, options);
  return {
    ...life,
    disk,
    async end(how) {
      await life.agent.flush();
      if (how === "killed") kill();
      else await life.handle.dispose();
      return (await storedEvents(disk)).length;
    },
  };
}
