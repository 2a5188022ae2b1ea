/** One tool call, from its place in the answer to its result in the log; and on from wherever it was left. */
import { TurnloopError } from "../errors.ts";
import { writeCall, writeResult, failedResult, type ResultData } from "../session/close.ts";
import { openInteractions, type CallState } from "../session/state.ts";
import { isThenable } from "../hooks/hooks.ts";
import type { Tool } from "../tools/define.ts";
import {
  decide,
  guarded,
  parseArguments,
  postExecute,
  validated,
  type Finished,
  type ParsedArguments,
} from "../tools/pipeline.ts";
import { checkOutcome, errorOutcome } from "../tools/result.ts";
import type { PreToolDecision, ToolExecution, ToolOutcome } from "../tools/types.ts";
import { approve, askClient, answeredOnce } from "./asking.ts";
import { write, type Turn } from "./instance.ts";
import { lookingContext, runBody } from "./tool-body.ts";
import { contextId } from "./waiting.ts";

/** Until its result is in the log. Rejects only when the turn is stopped, or must not go on. */
export async function runCall(turn: Turn, call: CallState): Promise<void> {
  const { hooks, log } = turn.instance;
  if (turn.fatal) throw turn.fatal;
  writeCall(log, call);
  turn.activity.check();
  const args = parseArguments(call.block.arguments);
  const execution = executionOf(turn, call, args);
  let finished: Finished;
  // A failure inside is the call's own; a stop is the turn's.
  try {
    const outcome = await perform(turn, call, execution, args);
    finished = { outcome, contexts: [] };
  } catch (thrown) {
    turn.activity.check();
    finished = { outcome: errorOutcome(thrown), contexts: [] };
  }
  if (finished.outcome.additionalContext || hooks.heard("tools/post-execute")) {
    try {
      finished = await turn.activity.wait(postExecute(hooks, execution, finished.outcome));
    } catch (thrown) {
      turn.activity.check();
      finished = { outcome: errorOutcome(thrown), contexts: [] };
    }
  }
  commit(turn, call, execution, finished);
  turn.activity.check();
  if (turn.fatal) throw turn.fatal;
}

/** Look-up, arguments, policies, guards, then the body. */
async function perform(
  turn: Turn,
  call: CallState,
  execution: ToolExecution,
  parsed: ParsedArguments,
): Promise<ToolOutcome> {
  const { activity, instance } = turn;
  const { hooks, tools } = instance;
  const tool = tools.lookup(execution.name);
  if (!tool) throw new TurnloopError("UNKNOWN_TOOL", `there is no tool named ${JSON.stringify(execution.name)}`);
  const valid = activity.wait(validated(tool, parsed));
  const args = isThenable(valid) ? await valid : valid;
  if (call.starts === 0) {
    const refusal = isFree(turn, execution, tool)
      ? guarded(tools.guards(), execution)
      : await refused(turn, call, execution, tool, args);
    if (refusal !== undefined) return errorOutcome(refusal);
  } else if (!tool.client) {
    // A body that waited for an answer when its host died is run again once there is one.
    await answeredOnce(turn, call);
  }
  if (!(await started(turn, call, tool))) {
    turn.fatal = new TurnloopError("STORAGE_UNAVAILABLE", "the storage does not answer, so no tool may start");
    // What waits for a person would hold up the end of the turn.
    instance.desk.cancel();
    return errorOutcome(turn.fatal);
  }
  activity.check();
  if (!hooks.heard("tools/execute")) {
    const outcome = tool.client ? await askClient(turn, execution) : await runBody(turn, tool, args, execution);
    turn.outcomes.set(execution.callId, outcome);
    return outcome;
  }
  const place = { over: false };
  const body = (patch?: { readonly signal: AbortSignal }): Promise<ToolOutcome> => {
    activity.check();
    const narrowed = patch ? { ...execution, signal: patch.signal } : execution;
    return tool.client ? askClient(turn, narrowed) : runBody(turn, tool, args, narrowed, place);
  };
  try {
    const answer = hooks.waterfall("tools/execute", { execution }, body, narrowExecution);
    const outcome = checkOutcome(await activity.wait(answer));
    turn.outcomes.set(execution.callId, outcome);
    return outcome;
  } finally {
    // A policy may have answered for a body that is still at work.
    place.over = true;
  }
}

/** What the policies further in are shown. */
function narrowExecution(
  { execution }: { readonly execution: ToolExecution },
  { signal }: { readonly signal: AbortSignal },
): { readonly execution: ToolExecution } {
  return { execution: Object.freeze({ ...execution, signal }) };
}

/** Nobody is to be asked about the call. */
function isFree({ instance }: Turn, { callId }: ToolExecution, { needsApproval }: Tool): boolean {
  const { hooks, log } = instance;
  return (
    needsApproval === false && !hooks.heard("tools/pre-execute") && !log.state.interactions.has(`${callId}/approval`)
  );
}

/** Why the call may not run, or undefined. An approval that stands in the log is not asked for again. */
async function refused(
  turn: Turn,
  call: CallState,
  execution: ToolExecution,
  tool: Tool,
  args: unknown,
): Promise<string | undefined> {
  const { activity, instance } = turn;
  const { hooks, log, tools } = instance;
  const { needsApproval } = tool;
  const byDefault = async (): Promise<PreToolDecision> => {
    const asks =
      typeof needsApproval === "function" ? await needsApproval(args, lookingContext(execution)) : needsApproval;
    return { kind: asks ? "ask" : "allow" };
  };
  const asked = log.state.interactions.has(`${execution.callId}/approval`);
  const decision: PreToolDecision = asked ? { kind: "ask" } : await activity.wait(decide(hooks, execution, byDefault));
  if (decision.kind === "deny") return decision.reason;
  if (decision.kind === "ask") {
    const denied = await approve(turn, call, decision);
    if (denied !== undefined) return denied;
  }
  return guarded(tools.guards(), execution);
}

/** Marks that the body runs, before it does. False when that cannot be stored. */
async function started(turn: Turn, call: CallState, tool: Tool): Promise<boolean> {
  const { activity, instance } = turn;
  const { log, recorder } = instance;
  // A client tool that was left waiting goes on waiting: it has been started once.
  if (tool.client && call.starts > 0) return true;
  const { number: step } = log.state.open!.step!;
  write(turn, "tool/start", { turn: turn.number, step, callId: call.block.callId, attempt: call.starts + 1 });
  try {
    await activity.wait(recorder.settle());
    return true;
  } catch {
    activity.check();
    return false;
  }
}

/** The result, the context that it brings, and the word to those who watch, in one synchronous stretch. */
function commit(turn: Turn, call: CallState, execution: ToolExecution, { outcome, contexts }: Finished): void {
  const { hooks, log } = turn.instance;
  const { callId } = execution;
  log.together(() => {
    // A question that its call no longer waits for is answered by nobody.
    for (const { id, callId: asking } of openInteractions(log.state)) {
      if (asking === callId) log.write("interaction/resolved", { id, outcome: "cancelled" });
    }
    writeResult(log, call, outcome);
    for (const { content, source } of contexts) {
      const id = contextId(callId, log.state.accepted);
      log.write("inbox/queued", { id, content, source, as: "inject" });
    }
  });
  turn.outcomes.delete(callId);
  if (hooks.heard("tools/result")) hooks.emit("tools/result", { execution, outcome });
}

function executionOf({ instance, activity }: Turn, { block }: CallState, args: ParsedArguments): ToolExecution {
  const { callId, name } = block;
  return Object.freeze({ callId, name, arguments: args.value, agent: instance.agent, signal: activity.signal });
}

/** The result of a call that a stop has overtaken: its own where its body had finished. */
export function leftOver(turn: Turn, call: CallState): ResultData {
  const finished = turn.outcomes.get(call.block.callId);
  if (finished) return finished;
  const { stopped } = turn.activity;
  const what = stopped?.kind === "stopped" ? `stopped (${stopped.reason})` : "cancelled";
  return call.starts === 0
    ? failedResult("ABORTED_BEFORE_DISPATCH", `The call was ${what} before it started. It has had no effect.`)
    : failedResult(
        "TOOL_ABORTED",
        `The call was ${what} while it ran. It may still finish, and may have had its effect.`,
      );
}

export function tellResult(turn: Turn, call: CallState, outcome: ResultData): void {
  if (!turn.instance.hooks.heard("tools/result")) return;
  turn.instance.hooks.emit("tools/result", {
    execution: executionOf(turn, call, parseArguments(call.block.arguments)),
    outcome,
  });
}
