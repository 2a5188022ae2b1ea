/** Keeps the history within the model's window: cuts results that are too large, prunes old ones, sums up the rest. */
import {
  messageOf,
  TurnloopError,
  type Agent,
  type AtTurn,
  type Harness,
  type Plugin,
  type Session,
  type SessionEvent,
} from "../core.ts";
import { auxRequest } from "./aux-request.ts";
import { cutOf, replaceWith, shortenResults } from "./compaction-cut.ts";
import { conversationOf, SUMMARY_SYSTEM } from "./compaction-summary.ts";
import { historyOf } from "./history.ts";
import { tokensIn, tokensOf } from "./tokens.ts";

export interface CompactionOptions {
  /** Of the window: from here on the history is compacted before a step. Above 0, at most 1. Default 0.8. */
  readonly atFraction?: number;
  /** In tokens. Default: what the model says of itself; without either only an overflow sets it off. */
  readonly contextWindow?: number;
  /** The route of the model that sums up. Default: the agent's own. */
  readonly model?: string;
}

/** Of the room for the history: how much stays as it is, and how much a compaction must free to be worth it. */
const KEEP = 0.3;
const WORTH = 0.1;
/** Pruning alone will do when it brings the history below this. */
const PRUNED = 0.6;
/** What stays of an old result, in tokens. */
const OLD_RESULT = 100;
/** So many compactions of a turn may fail. */
const FAILURES = 3;

/**
 * Acts before a step, when what the last answer measured comes near the window, and when a request fails with
 * CONTEXT_OVERFLOW: then in a new step the shorter history is sent. Cuts never part a call from its result; the log
 * and people's transcript keep everything. When nothing can be made shorter, or a summary fails (COMPACTION_FAILED is
 * reported, three times a turn at most), the request goes out as it is, and an overflow fails as it came.
 * Requests for summaries are logged as `model/aux`. INVALID_OPTIONS.
 */
export function compaction({ atFraction = 0.8, contextWindow, model }: CompactionOptions = {}): Plugin {
  const bad = (what: string): never => {
    throw new TurnloopError("INVALID_OPTIONS", what);
  };
  if (!(atFraction > 0 && atFraction <= 1)) bad("`atFraction` must be above 0 and at most 1");
  if (contextWindow !== undefined && !(Number.isFinite(contextWindow) && contextWindow > 0))
    bad("`contextWindow` must be a number of tokens");

  return ({ hooks, harness }) => {
    const failures = new WeakMap<Agent, { readonly turn: number; readonly count: number }>();
    const end = new AbortController();
    const { signal } = end;

    const routeOf = (agent: Agent, session: Session): string | undefined =>
      historyOf(session).route ?? agent.options.model;
    const windowOf = (route: string | undefined): number | undefined =>
      route === undefined ? undefined : harness.models.get(route)?.contextWindow;
    /** What the window leaves for the history. */
    const roomOf = (agent: Agent, session: Session, beside: number): number | undefined => {
      const window = contextWindow ?? windowOf(routeOf(agent, session));
      return window === undefined ? undefined : window * atFraction - (historyOf(session).beside ?? beside);
    };

    /** Whether the history is shorter now. */
    async function tried({ agent, turn, signal: stopped }: AtTurn, session: Session, room: number): Promise<boolean> {
      const known = failures.get(agent);
      const count = known?.turn === turn ? known.count : 0;
      if (count >= FAILURES) return false;
      const route = model ?? routeOf(agent, session);
      const before = historyOf(session).total;
      try {
        return await compact({ harness, session, room, route, window: windowOf(route), signal: stopped });
      } catch (cause) {
        if (stopped.aborted) return false;
        failures.set(agent, { turn, count: count + 1 });
        const message = `the history could not be compacted: ${messageOf(cause)}`;
        harness.report({ code: "COMPACTION_FAILED", message, cause, sessionId: session.id });
        return historyOf(session).total < before;
      }
    }

    hooks.on(
      "agent/pre-step",
      async (at) => {
        const session = harness.sessions.get(at.agent.id);
        if (!session) return;
        const beside = at.prefix.reduce((sum, message) => sum + tokensIn(message.content), tokensOf(at.system));
        const room = roomOf(at.agent, session, beside);
        if (room === undefined || room <= 0) return;
        if (historyOf(session).total > room) await tried(at, session, room);
      },
      { signal },
    );

    hooks.on(
      "agent/request-error",
      async ({ error, ...at }, next) => {
        const session = harness.sessions.get(at.agent.id);
        if (error.code !== "CONTEXT_OVERFLOW" || !session) return next();
        // It was too long, whatever was measured; how much too long nobody says.
        const known = roomOf(at.agent, session, 0) ?? Infinity;
        const room = Math.min(known > 0 ? known : Infinity, historyOf(session).total * 0.9);
        return (await tried(at, session, room)) ? { kind: "new-step" } : next();
      },
      { signal },
    );
    return () => end.abort();
  };
}

interface Compaction {
  readonly harness: Harness;
  readonly session: Session;
  /** For the history, in tokens. */
  readonly room: number;
  readonly route: string | undefined;
  /** Of the model that sums up. */
  readonly window: number | undefined;
  readonly signal: AbortSignal;
}

/** Whether it made the history shorter. Appends nothing once the signal has aborted. */
async function compact({ harness, session, room, route, window = Infinity, signal }: Compaction): Promise<boolean> {
  const history = historyOf(session);
  const cut = cutOf(history, room * KEEP);
  const [old, kept] = [history.nodes.slice(0, cut), history.nodes.slice(cut)];
  const [oldSize, keptSize] = [history.size(0, cut), history.size(cut)];
  let shorter = false;
  if (keptSize > room * PRUNED) {
    const results = kept.filter((node) => node.type === "tool/result").length;
    shorter = shortenResults(session, kept, (room * KEEP) / Math.max(results, 1));
  }
  if (oldSize < room * WORTH * 2) return shorter;
  const freed = prunable(old);
  if (freed >= room * WORTH && historyOf(session).total - freed <= room * PRUNED)
    return shortenResults(session, old, OLD_RESULT);

  if (route === undefined) throw new TurnloopError("NO_MODEL", "there is no model to sum the history up");
  const prompt = conversationOf(old, Math.min(room, window) * PRUNED);
  const summary = { purpose: "compaction", system: SUMMARY_SYSTEM, prompt };
  const text = await auxRequest({ ...summary, harness, session, route, signal });
  signal.throwIfAborted();
  const content = [{ type: "text" as const, text: `Summary of the conversation so far:\n\n${text}` }];
  if (oldSize - tokensIn(content) < room * WORTH)
    throw new TurnloopError("SUMMARY_TOO_LONG", "the summary is about as long as what it sums up");
  replaceWith(harness, session, old, content);
  return true;
}

/** What pruning these results would free. */
function prunable(nodes: readonly SessionEvent[]): number {
  let freed = 0;
  for (const node of nodes)
    if (node.type === "tool/result") freed += Math.max(0, tokensIn(node.data.content) - OLD_RESULT);
  return freed;
}
