/** The beginning of a turn: what it takes from the queue, put before the hooks. */
import { TurnloopError } from "../errors.ts";
import type { PromptDecision } from "../hooks/map.ts";
import { contentOf } from "../model/content.ts";
import type { MessageSource } from "../model/types.ts";
import { queuedMessages, type InboxEntry } from "../session/state.ts";
import { APPEND } from "../session/surface.ts";
import type { TurnEndReason } from "../session/types.ts";
import type { CheckedContext } from "../tools/types.ts";
import { prepare, write, type Turn } from "./instance.ts";
import { contextOf } from "./waiting.ts";

/** Opens the turn, and puts what it took before the hooks. Answers with an end when all of it was blocked. */
export async function beginTurn(turn: Turn): Promise<TurnEndReason | undefined> {
  const { log, core } = turn.instance;
  const taken = nextBatch(queuedMessages(log.state));
  const [first] = taken;
  const command = core.continuing?.id;
  core.continuing = undefined;
  write(turn, "turn/start", {
    turn: turn.number,
    trigger: Object.freeze(first ? { kind: "message", source: first.source } : { kind: "continue", source: SELF }),
    messages: Object.freeze(taken.map((entry) => entry.id)),
    ...(command !== undefined && { command: String(command).toWellFormed() }),
  });
  if (turn.instance.hooks.heard("agent/turn-start")) await prepare(turn);
  let blocked: string | undefined;
  let allowed = taken.length === 0;
  for (const entry of taken) {
    const decision = await submit(turn, entry);
    if (decision.kind === "block") blocked = decision.reason;
    else allowed = true;
  }
  return allowed ? undefined : { kind: "rejected", reason: blocked! };
}

/** The same for a turn that is open already: what it took and has not put before the hooks yet. */
export async function takenMessages(turn: Turn): Promise<TurnEndReason | undefined> {
  const { log } = turn.instance;
  const taken = [...log.state.inbox.values()].filter((entry) => entry.takenBy === turn.number);
  for (const entry of taken) await submit(turn, entry);
  let blocked: string | undefined;
  const { seq: start, trigger } = log.state.open!;
  for (const event of log.slice(start, log.seq)) {
    if (event.type === "user/message") return undefined;
    if (event.type === "prompt/blocked") blocked = event.data.reason;
  }
  if (trigger.kind === "continue") return undefined;
  return { kind: "rejected", reason: blocked ?? "none of its messages was accepted" };
}

const SELF: MessageSource = Object.freeze({ kind: "user" });

/** All that is queued; a message that asks for structured output has a turn of its own. */
function nextBatch(queue: readonly InboxEntry[]): InboxEntry[] {
  const messages = queue.filter((entry) => entry.as !== "inject");
  const apart = messages.findIndex((entry) => entry.output !== undefined);
  return apart < 0 ? messages : messages.slice(0, Math.max(apart, 1));
}

async function submit(turn: Turn, { id, content, source }: InboxEntry): Promise<PromptDecision> {
  const { agent, hooks, log, newId } = turn.instance;
  const { signal } = turn.activity;
  let decision: PromptDecision;
  let replaced = content;
  let added: CheckedContext | undefined;
  try {
    decision = await turn.activity.wait(
      hooks.waterfall("agent/prompt-submit", { agent, id, content, source, signal }, () => ALLOW),
    );
    if (decision?.kind === "allow") {
      if (decision.content !== undefined) replaced = contentOf(decision.content);
      added = decision.additionalContext && contextOf(decision.additionalContext);
    } else if (decision?.kind !== "block" || typeof decision.reason !== "string") {
      throw new TurnloopError(
        "INVALID_DECISION",
        'agent/prompt-submit must answer { kind: "allow" } or { kind: "block", reason }',
      );
    }
  } catch (thrown) {
    if (!turn.activity.stopped) log.write("inbox/dropped", { ids: Object.freeze([id]), reason: "error" });
    throw thrown;
  }
  if (decision.kind === "block") {
    write(turn, "prompt/blocked", { id, content, source, reason: decision.reason });
    return decision;
  }
  write(turn, "user/message", { id, content: replaced, source }, APPEND);
  if (added) write(turn, "context/message", { id: newId(), ...added }, APPEND);
  return decision;
}

const ALLOW: PromptDecision = Object.freeze({ kind: "allow" });
