/** Leads: opens the agent in this tab and serves it to all, until the session is lost, or another should lead. */
import { TurnloopError } from "../../src/core.ts";
import type { Agent, AgentHandle, Harness, OpenAgentOptions } from "../../src/core.ts";
import { createHostConnection, type HostConnection } from "../transport/host-connection.ts";
import { openHostSession, type HostSession } from "../transport/host-session.ts";
import type { Follower } from "../transport/follower.ts";
import { limitsOf } from "../transport/limits.ts";
import type { Grant, Limits } from "../transport/types.ts";
import { openChannel, openLine } from "./tabs-channel.ts";

/** The right to lead, and what it is worth. */
export interface Lease {
  /** The lead was taken from a tab that did not answer; so is the session. */
  readonly stolen: boolean;
  /** Somebody else leads now. */
  readonly lost: AbortSignal;
  /** Resolves when the page is at work: a frozen one clears away when it is back. */
  present(): Promise<void>;
}

export interface LeadOptions extends Lease {
  readonly name: string;
  readonly harness: Harness;
  readonly agent: OpenAgentOptions;
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
export async function lead({ name, harness, agent: options, stolen, lost, left, present }: LeadOptions): Promise<void> {
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

  const gone = new TurnloopError("SESSION_CLOSED", "this tab leads no more; connect again");
  const fallSilent = (): void => {
    channel.close();
    for (const connection of connections) connection.end(gone, true);
  };
  // In that very moment: a frozen page still answers on its lines, and does nothing of what it is asked.
  lost.addEventListener("abort", fallSilent, { once: true });

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
    if (lost.aborted) return;
    const ended = new Promise<void>((resolve) => void host!.join(leader, PRESENT, () => resolve()));
    channel.say({ type: "leading", leader });
    await Promise.race([ended, aborted(lost), aborted(left).then(() => atRest(agent!))]);
  } catch (thrown) {
    // Whoever has taken the lead opens it.
    if (!lost.aborted) throw thrown;
  } finally {
    lost.removeEventListener("abort", fallSilent);
    fallSilent();
    await present();
    await host?.end(gone);
  }
}

/** How long a tab that is on its way out may keep the session. */
const LEAVING_MS = 1000;

/** Beyond its time the claim is a frozen tab's, or of somebody who does not know of the group: the leader takes it. */
async function open(
  harness: Harness,
  options: OpenAgentOptions,
  stolen: boolean,
  signal: AbortSignal,
): Promise<AgentHandle> {
  const { agents } = harness;
  if (!stolen) {
    try {
      return await agents.open({ ...options, claim: "wait", claimTimeoutMs: LEAVING_MS, signal });
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

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
