/** `turnloop/tabs`: one agent for all tabs of a page. */
import { messageOf, TurnloopError } from "../../src/core.ts";
import type { AgentHandle, Harness, OpenAgentOptions } from "../../src/core.ts";
import { connectAgent } from "../transport/connect.ts";
import { pageStore, type OutboxStore } from "../transport/outbox.ts";
import type { Connection } from "../transport/types.ts";
import { follow } from "./tabs-follow.ts";
import { lead } from "./tabs-lead.ts";
import { joinRow } from "./tabs-member.ts";
import { callWorker, type WorkerLike } from "./tabs-worker.ts";

export { serveTabs, type WorkerLike } from "./tabs-worker.ts";

export interface OpenInTabsOptions extends Omit<OpenAgentOptions, "claim" | "claimTimeoutMs"> {
  /** Of the tabs that belong together, as their storage does: one for each user. Default `turnloop`. */
  readonly name?: string;
  /** `tail`: begins with the last turns; `session.loadEarlier` brings more. Default: `all`. */
  readonly history?: "all" | "tail";
  /**
   * The agent runs in this worker, whose script calls `serveTabs`, wherever the browser has SharedWorkers. Called
   * for every connection: make a new object of the same script. The other options are then those of its harness.
   */
  worker?(): WorkerLike;
}

/**
 * The agent of this id, whichever tab it runs in. One tab leads: it makes a harness and opens the agent, with its own
 * options; the others follow it. When that tab closes, crashes or freezes the next one takes over, and repairs
 * the session as `interrupted` says: what was cut short is marked, never run again by itself. The handle stays, and
 * `connection` is `connecting` meanwhile; what it has not delivered it delivers to the new leader, once.
 *
 * `harness` is called each time this tab takes the lead, and is not disposed here: keep one for the page. Its
 * storage must be the same for all tabs, and give claims, as `indexedDBStorage` does. Disposing the handle cancels
 * nothing: a leader hands over when its agent rests.
 *
 * Rejects as `agents.open` does, with the signal's reason, and INVALID_OPTIONS. Without Web Locks or BroadcastChannel
 * the agent is opened in this tab alone, and the diagnostic TABS_UNAVAILABLE says so.
 */
export async function openInTabs(harness: () => Harness, options: OpenInTabsOptions): Promise<AgentHandle> {
  const { name = "turnloop", history = "all", worker, signal, ...agent } = options;
  const { id } = agent;
  if (typeof harness !== "function") throw new TurnloopError("INVALID_OPTIONS", "`harness` must be a function");
  if (typeof id !== "string" || id === "") throw new TurnloopError("INVALID_ID", "an agent needs an `id`");
  signal?.throwIfAborted();
  const connecting = { session: id, history, outbox: outboxOf(name), ...(signal && { signal }) };

  if (worker && "SharedWorker" in globalThis)
    return connectAgent({ ...connecting, connect: () => callWorker(worker(), id) });
  if (!(await canShare())) {
    const alone = harness();
    const message = "this page has no Web Locks or no BroadcastChannel: each tab is for itself";
    alone.report({ code: "TABS_UNAVAILABLE", message, sessionId: id });
    return alone.agents.open({ ...agent, ...(signal && { signal }) });
  }
  return openShared(harness, agent, name, connecting);
}

async function openShared(
  harness: () => Harness,
  agent: OpenAgentOptions,
  group: string,
  connecting: Omit<Parameters<typeof connectAgent>[0], "connect">,
): Promise<AgentHandle> {
  const { id } = agent;
  const name = `turnloop:tabs:${group.length}:${group}:${id}`;
  const left = new AbortController();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  let opened = false;
  let mine: Harness | undefined;

  const row = joinRow({
    name,
    lead: async (lease) => {
      mine = harness();
      return lead({ ...lease, name, harness: mine, agent, left: left.signal });
    },
    failed(cause) {
      if (!opened) return failed.reject(cause);
      const message = `this tab could not take the lead, and tries again: ${messageOf(cause)}`;
      mine?.report({ code: "AGENT_NOT_STARTED", message, cause, sessionId: id });
    },
  });
  const following = follow(name, () => row.steal());
  const leave = (): void => {
    left.abort();
    row.leave();
    following.close();
  };
  const given = new AbortController();
  const signals = connecting.signal ? [connecting.signal, given.signal] : [given.signal];
  try {
    const connected = connectAgent({
      ...connecting,
      signal: AbortSignal.any(signals),
      connect: (): Promise<Connection> => following.connect(),
    });
    connected.catch(() => {});
    const handle = await Promise.race([connected, failed.promise]);
    opened = true;
    return {
      agent: handle.agent,
      async dispose() {
        await handle.dispose();
        leave();
      },
    };
  } catch (thrown) {
    given.abort();
    leave();
    throw thrown;
  }
}

/** What a user of the page has not got delivered is not the next one's. */
function outboxOf(name: string): OutboxStore {
  const store = pageStore();
  const keyOf = (session: string): string => `${name.length}:${name}:${session}`;
  return {
    load: (session) => store?.load(keyOf(session)),
    save: (session, outbox) => store?.save(keyOf(session), outbox),
  };
}

/** A sandboxed frame has the objects, and may not use them. */
async function canShare(): Promise<boolean> {
  if (typeof BroadcastChannel !== "function") return false;
  try {
    await navigator.locks.query();
    return true;
  } catch {
    return false;
  }
}
