/** What a tool call asks outside the loop: for an approval, a person's answer, or a client's work. */
import { TurnloopError } from "../errors.ts";
import type { Question, Resolution } from "../interaction/desk.ts";
import type { ApprovalAnswer, ClientToolAnswer } from "../interaction/types.ts";
import { defined, type JsonValue } from "../json.ts";
import { failedResult } from "../session/close.ts";
import type { CallState } from "../session/state.ts";
import { OUTCOME_UNKNOWN } from "../session/surface.ts";
import { errorOutcome, outcomeOf } from "../tools/result.ts";
import type { PreToolDecision, ToolExecution, ToolOutcome } from "../tools/types.ts";
import type { Turn } from "./instance.ts";

async function ask({ instance, activity }: Turn, question: Question): Promise<Resolution> {
  activity.check();
  return activity.wait(instance.desk.ask(question));
}

/** Asks for leave to run the call as it stands in the log. Answers with why not, or undefined. */
export async function approve(
  turn: Turn,
  { block }: CallState,
  { reason, expiresInMs }: PreToolDecision & { kind: "ask" },
): Promise<string | undefined> {
  const { callId, name: tool, arguments: args } = block;
  if (!turn.instance.interactive) return `${reason ?? "the call needs an approval"}, and there is nobody to ask`;
  const said = reason === undefined ? reason : String(reason).toWellFormed();
  const payload = Object.freeze(defined({ tool, arguments: args, reason: said }));
  const { outcome, value } = await ask(turn, {
    id: `${callId}/approval`,
    kind: "approval",
    payload,
    callId,
    expiresInMs,
  });
  switch (outcome) {
    case "answered": {
      const answer = value as ApprovalAnswer;
      return answer.decision === "allow" ? undefined : (answer.reason ?? "the person has rejected the call");
    }
    case "expired":
      return "nobody has approved the call in time";
    // Whatever else a log may say, it is no leave to run.
    default:
      return "the request for an approval was cancelled";
  }
}

/** Asks a person, on behalf of a body. */
export async function askPerson(
  turn: Turn,
  callId: string,
  n: number,
  payload: JsonValue,
  expiresInMs: number | undefined,
): Promise<JsonValue> {
  if (!turn.instance.interactive) throw new TurnloopError("INTERACTION_UNAVAILABLE", "there is nobody to ask");
  const id = `${callId}/${n}`;
  const { outcome, value } = await ask(turn, { id, kind: "question", payload, callId, expiresInMs });
  if (outcome === "answered") return value!;
  throw new TurnloopError(
    outcome === "expired" ? "INTERACTION_EXPIRED" : "INTERACTION_CANCELLED",
    outcome === "expired" ? "nobody has answered in time" : "the question was cancelled",
  );
}

/** Has a client run the call. */
export async function askClient(
  turn: Turn,
  { callId, name: tool, arguments: args }: ToolExecution,
): Promise<ToolOutcome> {
  if (!turn.instance.interactive)
    return errorOutcome(new TurnloopError("INTERACTION_UNAVAILABLE", "there is no client that could run it"));
  const payload = Object.freeze({ tool, arguments: args as JsonValue });
  const id = `${callId}/client`;
  const { outcome, value } = await ask(turn, { id, kind: "client-tool", payload, callId });
  if (outcome === "cancelled" && turn.instance.log.state.interactions.get(id)?.claimed)
    return failedResult("TOOL_OUTCOME_UNKNOWN", OUTCOME_UNKNOWN);
  if (outcome !== "answered")
    return errorOutcome(outcome === "expired" ? "no client has run it in time" : "the call was cancelled");
  const answer = value as ClientToolAnswer;
  return "error" in answer ? errorOutcome(answer.error) : outcomeOf(answer.value);
}

/** Resolves once one of the questions that the call has open is answered. */
export async function answeredOnce(turn: Turn, { block }: CallState): Promise<void> {
  const { log } = turn.instance;
  const asked = [...log.state.interactions.values()].filter((one) => one.request.callId === block.callId);
  const open = asked.filter((one) => !one.resolved);
  if (open.length === 0) return;
  await Promise.race(open.map(({ request }) => ask(turn, { ...request, callId: block.callId })));
}
