/** A turn: takes what is queued, and runs steps until nothing wants another. */
import type { Activity } from "../agent/activity.ts";
import { errorData, toError, TurnloopError } from "../errors.ts";
import type { PromptDecision } from "../hooks/map.ts";
import { contentOf } from "../model/content.ts";
import type { MessageSource } from "../model/types.ts";
import { closeTurn } from "../session/close.ts";
import { isParked, queuedMessages, type InboxEntry } from "../session/state.ts";
import { APPEND } from "../session/surface.ts";
import type { TurnEndReason } from "../session/types.ts";
import type { CheckedContext } from "../tools/types.ts";
import { cutOfTurn } from "./request.ts";
import { at, write, type Instance, type Turn } from "./instance.ts";
import { runStep } from "./step.ts";
import { leftOver, tellResult } from "./tool-call.ts";
import { contextOf, writeWaiting } from "./waiting.ts";

/** Runs the open turn on, or a new one. Never rejects; answers whether a policy stopped it for good. */
export async function runTurn(instance: Instance, activity: Activity): Promise<boolean> {
  const { log } = instance;
  const turn: Turn = {
    instance,
    activity,
    number: log.state.open?.number ?? log.state.turn + 1,
    cut: cutOfTurn(log),
    terminal: false,
    reasons: [],
    failedSteps: 0,
    outcomes: new Map(),
    fatal: undefined,
  };
  let reason: TurnEndReason;
  try {
    reason = (log.state.open ? undefined : await begin(turn)) ?? (await runSteps(turn));
    activity.check();
  } catch (thrown) {
    reason = endOf(turn, thrown);
  }
  const parked = reason.kind === "disposed" && isParked(log.state, instance.tools.idempotent);
  if (!parked) close(turn, reason);
  return turn.terminal;
}

async function runSteps(turn: Turn): Promise<TurnEndReason> {
  for (;;) {
    const end = await runStep(turn);
    if (end) return end;
  }
}

/** Opens the turn, and puts what it took before the hooks. Answers with an end when all of it was blocked. */
async function begin(turn: Turn): Promise<TurnEndReason | undefined> {
  const { log, core } = turn.instance;
  const taken = nextBatch(queuedMessages(log.state));
  const [first] = taken;
  core.continuing = false;
  write(turn, "turn/start", {
    turn: turn.number,
    trigger: Object.freeze(first ? { kind: "message", source: first.source } : { kind: "continue", source: SELF }),
    messages: Object.freeze(taken.map((entry) => entry.id)),
  });
  let blocked: string | undefined;
  let allowed = taken.length === 0;
  for (const entry of taken) {
    const decision = await submit(turn, entry);
    if (decision.kind === "block") blocked = decision.reason;
    else allowed = true;
  }
  return allowed ? undefined : { kind: "rejected", reason: blocked! };
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

/** How a turn that threw has ended: a disposal beats a cancel, and both beat what the hooks then threw. */
function endOf(turn: Turn, thrown: unknown): TurnEndReason {
  const { stopped } = turn.activity;
  if (stopped?.kind === "disposed") return { kind: "disposed" };
  if (stopped?.kind === "aborted") return stopped;
  const error = toError(stopped?.error ?? thrown);
  const { message, code } = errorData(error);
  const { step } = at(turn);
  const reason: TurnEndReason = { kind: "error", step, message, ...(code !== undefined && { code }) };
  turn.instance.hooks.emit("agent/error", { agent: turn.instance.agent, turn: turn.number, step, error });
  return reason;
}

function close(turn: Turn, reason: TurnEndReason): void {
  const { log, report, agent, core } = turn.instance;
  // From here on a cancel has nothing to stop.
  core.activity = undefined;
  try {
    closeTurn(log, {
      reason,
      answer: (call) => leftOver(turn, call),
      told: (call, result) => tellResult(turn, call, result),
      settled: () => writeWaiting(log),
    });
  } catch (cause) {
    const error = new TurnloopError("TURN_NOT_CLOSED", `turn ${turn.number} could not be closed`, { cause });
    // Nothing may follow a turn that has no end: the next opening repairs it.
    log.close(() => error);
    report({ code: "TURN_NOT_CLOSED", message: `turn ${turn.number} could not be closed`, cause, sessionId: agent.id });
  }
}
