/** A step: one request, the tool calls of its answer, and the question whether there is another. */
import { TurnloopError } from "../errors.ts";
import { isThenable } from "../hooks/hooks.ts";
import type { ContinuationDecision } from "../hooks/map.ts";
import type { Awaitable } from "../hooks/types.ts";
import { jsonCopy } from "../json.ts";
import { blocksOf } from "../model/content.ts";
import type { Message } from "../model/types.ts";
import type { Composed } from "../prompt/prompt.ts";
import { lastStep } from "../session/last-step.ts";
import type { TurnEndReason } from "../session/types.ts";
import { requestAnswer, type RequestParts } from "./request.ts";
import { at, write, type Instance, type Turn } from "./instance.ts";
import { runTools } from "./tool-batch.ts";
import { contextOf, isSteered, writeSteering, writeWaiting } from "./waiting.ts";

/** Runs the open step on, or a new one. Answers with how the turn ends, or undefined when it goes on. */
export async function runStep(turn: Turn): Promise<TurnEndReason | undefined> {
  const { log } = turn.instance;
  let steered = false;
  // An open step is one that was parked among its tool calls, or whose host has died behind its answer.
  if (log.state.open!.step) steered = lastStep(log)!.steered;
  else if (!(await openStep(turn))) return undefined;
  const called = await runTools(turn);
  writeWaiting(log);
  steered = writeSteering(turn) || steered;
  endStep(turn);
  return conclude(turn, called || steered);
}

/** Up to the model's answer in the log. False when the step was given up for a new one. */
async function openStep(turn: Turn): Promise<boolean> {
  const { instance, activity } = turn;
  const { hooks, log } = instance;
  writeSteering(turn);
  const step = log.state.open!.steps + 1;
  const assembling = assemble(turn);
  const parts = isThenable(assembling) ? await assembling : assembling;
  if (hooks.heard("agent/pre-step")) {
    const { system = "", prefix = [] } = parts;
    await activity.wait(hooks.serial("agent/pre-step", { ...at(turn, step), system, prefix }));
  }
  const history = log.session.deriveMessages();
  write(turn, "step/start", { turn: turn.number, step });
  const answered = await requestAnswer(turn, parts, history);
  if (!answered) endStep(turn);
  return answered;
}

function endStep(turn: Turn): void {
  const { number: step } = turn.instance.log.state.open!.step!;
  write(turn, "step/end", { turn: turn.number, step });
}

/** The system prompt, the tools and the prefix. */
function assemble(turn: Turn): Awaitable<RequestParts> {
  const { instance, activity } = turn;
  const { agent, prompt, prefix } = instance;
  const composed = activity.wait(prompt.compose({ agent, session: agent.session }));
  if (prefix && !isThenable(composed)) return partsOf(instance, composed, prefix);
  return (async () => {
    const whole = await composed;
    instance.prefix ??= await composePrefix(turn);
    return partsOf(instance, whole, instance.prefix);
  })();
}

/** What is empty is absent. */
function partsOf({ tools: layer }: Instance, composed: Composed, prefix: readonly Message[]): RequestParts {
  const { system } = composed;
  const tools = composed.tools === layer.ordered() ? composed.tools : jsonCopy(composed.tools);
  return {
    ...(system !== "" && { system }),
    ...(tools.length > 0 && { tools }),
    ...(prefix.length > 0 && { prefix }),
  };
}

const NOTHING: readonly Message[] = Object.freeze([]);

async function composePrefix({ instance, activity }: Turn): Promise<readonly Message[]> {
  const { agent, hooks } = instance;
  const { signal } = activity;
  const answer = await activity.wait(hooks.waterfall("agent/session-prefix", { agent, signal }, () => NOTHING));
  if (answer === NOTHING) return NOTHING;
  const prefix = jsonCopy(answer);
  if (!Array.isArray(prefix))
    throw new TurnloopError("INVALID_CONTENT", "agent/session-prefix must answer an array of messages");
  for (const message of prefix as Message[]) {
    if (!["user", "assistant", "tool"].includes(message?.role))
      throw new TurnloopError("INVALID_CONTENT", "a message of the prefix needs a role");
    blocksOf(message.content);
  }
  return prefix;
}

/** Asks the policies. A stop is final; else a reason to go on, or steering that waits, makes another step. */
export async function conclude(turn: Turn, goesOn: boolean): Promise<TurnEndReason | undefined> {
  const { instance, activity } = turn;
  const { hooks } = instance;
  const proposed: ContinuationDecision = { action: goesOn ? "continue" : "stop" };
  const decision = hooks.heard("agent/turn-continuation")
    ? await activity.wait(
        hooks.waterfall("agent/turn-continuation", { ...at(turn), decision: proposed }, () => proposed),
      )
    : proposed;
  if (decision?.action !== "continue" && decision?.action !== "stop") {
    throw new TurnloopError(
      "INVALID_DECISION",
      'agent/turn-continuation must answer { action: "continue" } or { action: "stop" }',
    );
  }
  if (decision.action === "continue" && decision.reason) turn.reasons.push(contextOf(decision.reason));

  const wantsMore = (): boolean => decision.action === "continue" || isSteered(turn);
  const answer = hooks.heard("agent/turn-stop")
    ? await activity.wait(
        hooks.serial("agent/turn-stop", { ...at(turn), goesOn: wantsMore() }, (given) => given !== undefined),
      )
    : undefined;
  if (answer !== undefined) {
    const { by, reason } = (answer as typeof answer | null)?.stop ?? {};
    if (typeof by !== "string" || typeof reason !== "string") {
      throw new TurnloopError("INVALID_DECISION", "agent/turn-stop must answer { stop: { by, reason } }, or undefined");
    }
    turn.terminal = true;
    return turn.cut ? { kind: turn.cut } : { kind: "stopped", by, reason };
  }
  if (wantsMore()) return undefined;
  return { kind: turn.cut ?? "completed" };
}
