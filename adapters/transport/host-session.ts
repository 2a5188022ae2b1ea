/** One session at the host, shared by all who follow it: opened when the first comes, let go when it rests alone. */
import { TurnloopError } from "../../src/core.ts";
import type { AgentHandle, Harness, Session } from "../../src/core.ts";
import { createCommands, type Commands } from "./commands.ts";
import type { Follower, FollowerOptions } from "./follower.ts";
import type { HostState, Mark } from "./protocol.ts";
import { createPresence } from "./presence.ts";
import { followStored } from "./stored.ts";

export interface HostSession {
  readonly session: Session;
  readonly source: FollowerOptions["source"];
  readonly commands: Commands;
  readonly options: { readonly model?: string; readonly call?: object };
  /** Whether the stored log has this event: then the other side has a part of the same log. */
  knows(mark: Mark): boolean;
  /** From now on it is told of all that is new, until the undo. `client` names the handle that it is for. */
  join(client: string, follower: Follower, ended: (error: unknown) => void): () => void;
  /** Lets go of the agent; those who follow it are told the reason. */
  end(error: unknown): Promise<void>;
}

export interface HostSessionOptions {
  /** Begins it if it is new; else that is SESSION_NOT_FOUND. */
  readonly mayBegin: boolean;
  /** How long a client may be gone before what it has claimed lapses. */
  readonly claimGraceMs: number;
  /** Called once: it was let go, or the agent has ended. */
  readonly over: () => void;
  /** For a host that opens its agents in another way. */
  readonly open?: () => Promise<AgentHandle>;
}

export async function openHostSession(harness: Harness, id: string, options: HostSessionOptions): Promise<HostSession> {
  const { mayBegin, open = () => harness.agents.open({ id }) } = options;
  if (!mayBegin && !harness.agents.get(id) && !(await harness.sessions.load(id)))
    throw new TurnloopError("SESSION_NOT_FOUND", `there is no session ${id}`);
  const handle = await open();
  try {
    return await host(harness, handle, options);
  } catch (thrown) {
    await handle.dispose();
    throw thrown;
  }
}

async function host(
  harness: Harness,
  handle: AgentHandle,
  { claimGraceMs, over }: HostSessionOptions,
): Promise<HostSession> {
  const { agent } = handle;
  const session = harness.sessions.get(agent.id);
  if (!session)
    throw new TurnloopError("UNSUPPORTED", `the agent ${agent.id} has no session here, and cannot be served`);
  const followers = new Map<Follower, (error: unknown) => void>();
  let ending: Promise<void> | undefined;
  let resting = false;
  let { status } = agent;

  const pump = (): void => {
    for (const follower of [...followers.keys()]) follower.pump();
  };
  const stored = await followStored(session, pump, (error) => void end(error));
  const offAgent = agent.subscribe(() => {
    if (agent.status === "disposed" || agent.getSnapshot().durable === "lost")
      void end(agent.getSnapshot().error ?? new TurnloopError("SESSION_CLOSED", "the agent has ended"));
    else pump();
  });

  const claimsOf = (client: string): string[] =>
    agent.interactions.filter(({ claimedBy }) => claimedBy === client).map(({ id }) => id);
  const presence = createPresence({
    clock: harness.clock,
    graceMs: claimGraceMs,
    isMissed: (client) => claimsOf(client).length > 0,
    lapsed(client) {
      for (const id of claimsOf(client)) session.append("interaction/released", { id, client });
    },
  });

  function state(): HostState {
    const now = agent.getSnapshot();
    // That it is idle is told once all that led to it is.
    if (now.status !== "idle" || stored.seq === session!.seq) ({ status } = now);
    return {
      status: status === "idle" ? "idle" : "running",
      durable: now.durable === "degraded" ? "degraded" : "stored",
    };
  }

  function end(error: unknown): Promise<void> {
    if (!ending) {
      over();
      presence.stop();
      stored.stop();
      offAgent();
      const all = [...followers.values()];
      followers.clear();
      ending = handle.dispose();
      for (const ended of all) ended(error);
    }
    return ending;
  }

  /** Nobody follows it: it is let go once its agent rests. What waits for an answer stays, as it may hold a body. */
  async function rest(): Promise<void> {
    if (resting) return;
    resting = true;
    await agent.whenIdle();
    resting = false;
    if (followers.size === 0) await end(new TurnloopError("SESSION_CLOSED", "nobody follows the session"));
  }

  let last: { readonly from: number; readonly to: number; readonly json: string } | undefined;
  const { model, call } = agent.options;
  return {
    session,
    commands: createCommands(agent, session),
    options: { ...(model !== undefined && { model }), ...(call && { call }) },
    source: {
      get stored() {
        return stored.seq;
      },
      state,
      encode(from, enough) {
        // Those who keep up are sent the same.
        if (last?.from === from && (last.to === stored.seq || last.json.length >= enough)) return last;
        let json = "[";
        let to = from;
        while (to < stored.seq && json.length < enough)
          json += `${to === from ? "" : ","}${JSON.stringify(session.at(to++))}`;
        return (last = { from, to, json: `${json}]` });
      },
    },
    knows({ seq, time, type }) {
      const event = seq < stored.seq ? session.at(seq) : undefined;
      return event?.time === time && event.type === type;
    },
    join(client, follower, ended) {
      if (ending) {
        ended(new TurnloopError("SESSION_CLOSED", "the session was just let go"));
        return () => {};
      }
      followers.set(follower, ended);
      const gone = presence.came(client);
      return () => {
        followers.delete(follower);
        gone();
        if (followers.size === 0 && !ending) rest().catch(() => {});
      };
    },
    end,
  };
}
