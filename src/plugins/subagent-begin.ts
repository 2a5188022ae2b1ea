/** How the session of a helper begins, and how it is found again. */
import {
  TurnloopError,
  type Agent,
  type AgentHandle,
  type AgentScope,
  type Harness,
  type SessionEvent,
  type ToolCallContext,
} from "../core.ts";

export interface HelperOptions {
  /** The name of the tool. */
  readonly kind: string;
  readonly knows: "task" | "conversation";
  readonly model: string | undefined;
  setup(scope: AgentScope): void;
}

/** The helper of this call: a new one, or the one that the call has begun before. Rejects as `agents.open` does. */
export async function beginHelper(
  { agents }: Harness,
  { agent: parent, callId, signal }: ToolCallContext,
  { kind, knows, model = modelOf(parent), setup }: HelperOptions,
): Promise<AgentHandle> {
  const { context } = parent.options;
  const common = {
    id: `${parent.id}.${callId}`,
    owner: parent,
    signal,
    setup,
    ...(model !== undefined && { model }),
    ...(context !== undefined && { context }),
  };
  const handle = await begin();
  const { session } = handle.agent;
  const inherited = lastModel(session.events.slice(0, session.header.seedLength ?? 0));
  const own = lastModel(session.events.slice(session.header.seedLength ?? 0));
  // What its parent was configured with is in its log too, and would be stronger.
  if (model !== undefined && inherited !== undefined && inherited !== model && own === undefined) {
    handle.agent.configure({ model });
  }
  return handle;

  async function begin(): Promise<AgentHandle> {
    const seed = knows === "conversation" ? completedTurns(parent) : [];
    const { cwd } = parent.session.header.meta;
    try {
      return await agents.create({
        ...common,
        ...(seed.length > 0 && { seed }),
        parent: { id: parent.id, seq: seed.length },
        meta: {
          helper: kind,
          depth: depthOf(parent) + 1,
          title: `Helper of ${parent.id}`,
          ...(cwd !== undefined && { cwd }),
        },
      });
    } catch (thrown) {
      if (!TurnloopError.is(thrown, "SESSION_EXISTS")) throw thrown;
      return agents.open({ ...common, interrupted: "continue" });
    }
  }
}

function completedTurns({ session: { events } }: Agent): readonly SessionEvent[] {
  return events.slice(0, events.findLastIndex((event) => event.type === "turn/end") + 1);
}

/** The route that its next request takes, unless that is the harness's own. */
function modelOf({ session, options }: Agent): string | undefined {
  return lastModel(session.events) ?? options.model;
}

function lastModel(events: readonly SessionEvent[]): string | undefined {
  const last = events.findLast((event) => event.type === "agent/configured" && event.data.patch.model !== undefined);
  return last?.type === "agent/configured" ? last.data.patch.model : undefined;
}

/** How many agents stand above it. */
export function depthOf({ session }: Agent): number {
  const { depth } = session.header.meta;
  return typeof depth === "number" ? depth : 0;
}

export function isHelperOf({ session }: Agent, kind: string): boolean {
  return session.header.meta["helper"] === kind;
}
