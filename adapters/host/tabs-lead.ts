/** Leads: opens the agent in this tab and serves it to all, until the session is lost, or another should lead. */
import { TurnloopError } from "../../src/core.ts";
import type { Agent, AgentHandle, Harness, OpenAgentOptions } from "../../src/core.ts";
import { SILENCE_MS } from "../transport/heartbeat.ts";
import { createHostConnection, type HostConnection } from "../transport/host-connection.ts";
import { openHostSession, type HostSession } from "../transport/host-session.ts";
import type { Follower } from "../transport/follower.ts";
import { limitsOf } from "../transport/limits.ts";
import type { Grant, Limits } from "../transport/types.ts";
import { openChannel, openLine } from "./tabs-channel.ts";

export interface LeadOptions {
  readonly name: string;
  readonly harness: Harness;
  readonly agent: OpenAgentOptions;
  /** The lead was taken from a tab that did not answer; so is the session. */
  readonly stolen: boolean;
  /** Somebody else leads now. */
  readonly lost: AbortSignal;
  /** Nobody holds the handle in this tab any more: another takes over when the agent rests. */
  readonly left: AbortSignal;
}

/** The tabs of a page are this program itself: each may do all, and says who speaks. */
export const GRANT: Grant = { identity: null, rights: ["read", "drive", "answer"] };

/** They share one machine: what a stranger may not cost a host is no matter here. */
export const LIMITS: Limits = { commandsPerSecond: 1e6, maxFrameBytes: 2 ** 30 };

/** Keeps the session from resting while this tab leads. */
const PRESENT: Follower = { pump() {}, after() {}, seen() {} };

/** Resolves when it leads no more, and has let go of all. Rejects when the agent cannot be opened. */
export async function lead({ name, harness, agent: options, stolen, lost, left }: LeadOptions): Promise<void> {
  const leader = crypto.randomUUID();
  const connections = new Set<HostConnection>();
  const limits = limitsOf(LIMITS);
  let host: HostSession | undefined;

  const channel = openChannel(name, (word) => {
    if (word.type !== "ask") return;
    if (host) channel.say({ type: "offer", leader, to: word.from, line: serve(host) });
    else channel.say({ type: "opening", leader });
  });

  /** The name of a line that is listened on. */
  function serve(session: HostSession): string {
    const line = `${name}:${crypto.randomUUID()}`;
    const connection: HostConnection = createHostConnection(openLine(line), {
      harness,
      limits,
      session: async () => session,
      closed: () => connections.delete(connection),
    });
    connections.add(connection);
    connection.allow(GRANT, options.id);
    return line;
  }

  try {
    channel.say({ type: "opening", leader });
    let agent: Agent | undefined;
    const opening = async (): Promise<AgentHandle> => {
      const handle = await open(harness, options, stolen, lost);
      ({ agent } = handle);
      return handle;
    };
    const { claimGraceMs } = limits;
    host = await openHostSession(harness, options.id, { mayBegin: true, claimGraceMs, over() {}, open: opening });
    const ended = new Promise<void>((resolve) => void host!.join(leader, PRESENT, () => resolve()));
    channel.say({ type: "leading", leader });
    await Promise.race([ended, aborted(lost), aborted(left).then(() => atRest(agent!))]);
  } catch (thrown) {
    // Whoever has taken the lead opens it.
    if (!lost.aborted) throw thrown;
  } finally {
    channel.close();
    const error = new TurnloopError("SESSION_CLOSED", "this tab leads no more; connect again");
    await host?.end(error);
    for (const connection of connections) connection.end(error, true);
  }
}

/**
 * Waits for a tab that is on its way out. Beyond that the claim is a frozen one's, or of somebody who does not know
 * of the group: the one that leads takes it.
 */
async function open(
  harness: Harness,
  options: OpenAgentOptions,
  stolen: boolean,
  signal: AbortSignal,
): Promise<AgentHandle> {
  const { agents } = harness;
  if (!stolen) {
    try {
      return await agents.open({ ...options, claim: "wait", claimTimeoutMs: 2 * SILENCE_MS, signal });
    } catch (thrown) {
      if (!TurnloopError.is(thrown, "SESSION_CLAIMED")) throw thrown;
    }
  }
  return agents.open({ ...options, claim: "steal", signal });
}

/** No turn is open, or the open one waits for an answer: whoever goes on with it loses nothing. */
function atRest(agent: Agent): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      const { status, waiting } = agent.getSnapshot();
      if (status === "running" && !waiting) return;
      off();
      resolve();
    };
    const off = agent.subscribe(look);
    look();
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
