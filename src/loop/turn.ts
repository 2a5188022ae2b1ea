/** A turn: takes what is queued, and runs steps until nothing wants another. */
import type { Activity } from "../agent/activity.ts";
import { errorData, toError, TurnloopError } from "../errors.ts";
import { defined } from "../json.ts";
import { closeTurn } from "../session/close.ts";
import { isParked } from "../session/parking.ts";
import type { TurnEndReason } from "../session/types.ts";
import { cutOfTurn } from "./request.ts";
import { at, type Instance, type Turn } from "./instance.ts";
import { beginTurn } from "./prompts.ts";
import { runStep } from "./step.ts";
import { takeUp } from "./take-up.ts";
import { leftOver, tellResult } from "./tool-call.ts";
import { writeWaiting } from "./waiting.ts";

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
    reason = (await (log.state.open ? takeUp(turn) : beginTurn(turn))) ?? (await runSteps(turn));
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

/**
 * How a turn that threw has ended: a disposal beats a cancel, and both beat what the hooks then threw. A policy's stop
 * beats only what is thrown because of it.
 */
function endOf(turn: Turn, thrown: unknown): TurnEndReason {
  const { stopped, failure } = turn.activity;
  if (stopped?.kind === "disposed") return { kind: "disposed" };
  if (stopped?.kind === "aborted") return stopped;
  if (stopped?.kind === "stopped") turn.terminal = true;
  if (stopped?.kind === "stopped" && thrown === failure!.error) return turn.cut ? { kind: turn.cut } : stopped;
  const error = toError(stopped?.kind === "failed" ? stopped.error : thrown);
  const { message, code } = errorData(error);
  const { step } = at(turn);
  const reason: TurnEndReason = defined({ kind: "error" as const, step, message, code });
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
