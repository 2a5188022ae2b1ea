/** A model's answer to one step: the request, its attempts, and the message that stands in the log at the end. */
import { isDuration } from "../clock.ts";
import { errorData, TurnloopError } from "../errors.ts";
import type { RequestErrorDecision } from "../hooks/map.ts";
import { defined, jsonCopy, jsonEqual } from "../json.ts";
import { assemble, type AssembledBlock } from "../model/assemble.ts";
import { answerBlocksOf } from "../model/content.ts";
import { requireModel } from "../model/registry.ts";
import type { CallConfig, ContentBlock, FinishReason, Message, RequestHeader, ToolSchema } from "../model/types.ts";
import { chunksOfAttempt } from "../session/close.ts";
import type { Log } from "../session/log.ts";
import { makeRequest } from "../session/rebuild.ts";
import { at, write, type Turn } from "./instance.ts";
import { failing, RequestFailure, streamAnswer } from "./stream.ts";

/** What a request holds besides its configuration and the history. */
export interface RequestParts {
  readonly system?: string;
  readonly tools?: readonly ToolSchema[];
  readonly prefix?: readonly Message[];
}

/** This many steps in a row may end in a failed request before the turn does. */
const FAILED_STEPS = 3;

/** Until an answer stands in the log. False when the policies want a new step instead; throws to fail the turn. */
export async function requestAnswer(turn: Turn, parts: RequestParts, history: readonly Message[]): Promise<boolean> {
  const { instance, activity } = turn;
  const { hooks, clock } = instance;
  const base = baseConfig(turn);
  let config = hooks.heard("agent/request")
    ? await activity.wait(hooks.waterfall("agent/request", { ...at(turn), config: base }, () => base))
    : base;
  for (;;) {
    const header = writeHeader(turn, { ...parts, config: config === base ? base : jsonCopy(config) });
    let failure: RequestFailure;
    try {
      await streamAnswer(turn, makeRequest(header, history));
      await writeAnswer(turn, header);
      turn.failedSteps = 0;
      return true;
    } catch (thrown) {
      if (!(thrown instanceof RequestFailure)) throw thrown;
      failure = thrown;
    }
    activity.check();
    const decision = await decide(turn, failure, config);
    if (decision.kind === "fail") throw failure.cause;
    if (decision.kind === "new-step") return false;
    await activity.wait(clock.sleep(decision.afterMs ?? 0, activity.signal));
    config = decision.config ?? config;
  }
}

/** The options of the agent, what `configure` has logged, and what the message of this turn asks for. */
function baseConfig({ instance }: Turn): CallConfig {
  const { configured, open } = instance.log.state;
  const output = open!.output;
  let { base } = instance;
  if (base?.configured !== configured || base.output !== output) {
    const config = { ...instance.config, ...configured };
    if (output) config.responseFormat = Object.freeze({ type: "json", schema: output });
    base = instance.base = { configured, output, config: Object.freeze(config) };
  }
  return base.config;
}

/** Logs the header when it is new to this instance or differs from the last one. */
function writeHeader(turn: Turn, parts: RequestParts & { readonly config: CallConfig }): RequestHeader {
  const { agent, log, models } = turn.instance;
  const { config, ...rest } = parts;
  if (typeof config?.model !== "string" || config.model === "") {
    throw new TurnloopError(
      "NO_MODEL",
      `the agent ${agent.id} has no model; give one to createHarness or to the agent`,
    );
  }
  const modelId = requireModel(models, config.model).id;
  const last = log.state.header;
  const { requested } = turn.instance;
  if (requested && last && isSame(last, { config, modelId, ...rest })) return last;
  const header: RequestHeader = Object.freeze({ config, modelId, ...rest });
  const reason = !last ? "initial" : requested ? "change" : "resume";
  turn.instance.requested = true;
  write(turn, "request/header", { header, reason });
  return header;
}

/** From one step to the next the parts are mostly the same objects. */
function isSame(a: RequestHeader, b: RequestHeader): boolean {
  return (
    a.modelId === b.modelId &&
    a.system === b.system &&
    (["config", "tools", "prefix"] as const).every((part) => a[part] === b[part] || jsonEqual(a[part], b[part]))
  );
}

async function decide(turn: Turn, failure: RequestFailure, config: CallConfig): Promise<RequestErrorDecision> {
  const { instance, activity } = turn;
  const { hooks, log } = instance;
  const { attempt } = log.state.open!.step!;
  const { chunks } = chunksOfAttempt(log);
  const error = Object.freeze(failure.data);
  const committed = chunks.some(
    (chunk) => chunk.type === "delta" || (chunk.type === "block-end" && chunk.block !== undefined),
  );
  const usage = chunks.findLast((chunk) => chunk.type === "usage")?.usage;
  const close = (decision: RequestErrorDecision): void => {
    const afterMs = decision.kind === "retry" ? decision.afterMs : undefined;
    const { number: step } = log.state.open!.step!;
    write(
      turn,
      "request/failed",
      defined({ turn: turn.number, step, attempt, error, usage, next: decision.kind, afterMs }),
    );
  };
  let decision: RequestErrorDecision;
  try {
    const payload = { ...at(turn), config, attempt, error, committed };
    decision = checkDecision(await activity.wait(hooks.waterfall("agent/request-error", payload, () => FAIL)));
  } catch (thrown) {
    // The attempt has failed, whatever becomes of the question what to do about it.
    if (!activity.stopped) close(FAIL);
    throw thrown;
  }
  if (decision.kind === "new-step" && (turn.failedSteps += 1) >= FAILED_STEPS) decision = FAIL;
  close(decision);
  return decision;
}

function checkDecision(decision: RequestErrorDecision): RequestErrorDecision {
  const invalid = (what: string): TurnloopError => new TurnloopError("INVALID_DECISION", what);
  if (!["fail", "retry", "new-step"].includes(decision?.kind)) {
    throw invalid("agent/request-error must answer fail, retry or new-step");
  }
  const afterMs = decision.kind === "retry" ? decision.afterMs : undefined;
  if (afterMs !== undefined && !isDuration(afterMs)) {
    throw invalid("`afterMs` of a retry must be a number of milliseconds");
  }
  return decision;
}

const FAIL: RequestErrorDecision = Object.freeze({ kind: "fail" });

/** Puts the chunks of this attempt together, asks the policies, and writes what is left. */
async function writeAnswer(turn: Turn, header: RequestHeader): Promise<void> {
  const { instance, activity } = turn;
  const { hooks, log } = instance;
  const { chunks, cites } = chunksOfAttempt(log);
  const { blocks, usage, finish } = failing(() => assemble(chunks));
  checkFinish(finish);
  const cut = cutOf(finish);
  if (cut !== undefined && turn.cut !== "max-tokens") turn.cut = cut;
  const whole = (content: readonly ContentBlock[]): readonly ContentBlock[] =>
    cut === undefined ? content : Object.freeze(content.filter((block) => block.type !== "tool-call"));

  const naming = nameCalls(turn);
  const model = header.modelId ?? header.config.model;
  const message: Message = Object.freeze({ role: "assistant", content: whole(naming.own(blocks)), model });
  const answer = hooks.heard("agent/step-result")
    ? await activity.wait(hooks.waterfall("agent/step-result", { ...at(turn), message }, () => message))
    : message;
  const content = answer === message ? message.content : whole(naming.added(answerBlocksOf(jsonCopy(answer?.content))));

  if (finish?.kind === "stop" && content.length === 0) {
    throw new RequestFailure(new TurnloopError("EMPTY_RESPONSE", "the model has answered nothing at all"));
  }
  if (content.length === 0 && !usage) return;
  write(
    turn,
    "assistant/message",
    { turn: turn.number, step: log.state.open!.step!.number, model, content, ...(usage && { usage }) },
    { surface: "append", ...(cites.length > 0 && { cites }) },
  );
}

function checkFinish(finish: FinishReason | undefined): void {
  if (finish === undefined)
    throw new RequestFailure(new TurnloopError("STREAM_INCOMPLETE", "the model's answer broke off before its end"));
  if (finish.kind === "aborted")
    throw new RequestFailure(new TurnloopError("ABORTED", "the model has broken off its answer"));
  if (finish.kind === "error") {
    const code = typeof finish.code === "string" ? finish.code : "MODEL_ERROR";
    throw new RequestFailure(finish, { ...errorData(finish), code });
  }
}

/** Gives each call its id in the log, from the place of its block; ids that a hook made up get the next places. */
function nameCalls({ instance, number }: Turn): {
  own(blocks: readonly AssembledBlock[]): readonly ContentBlock[];
  added(content: readonly ContentBlock[]): readonly ContentBlock[];
} {
  const { number: step, attempt } = instance.log.state.open!.step!;
  const given = new Set<string>();
  let next = 0;
  const name = (index: number): string => {
    const callId = `call_${number}_${step}_${attempt}_${index}`;
    given.add(callId);
    return callId;
  };
  return {
    own: (blocks) =>
      Object.freeze(
        blocks.map(({ index, block, providerCallId }) => {
          next = Math.max(next, index + 1);
          if (block.type !== "tool-call") return block;
          const meta = providerCallId === undefined ? block.meta : Object.freeze({ ...block.meta, providerCallId });
          return Object.freeze({ ...block, callId: name(index), ...(meta && { meta }) });
        }),
      ),
    added(content) {
      const used = new Set<string>();
      return Object.freeze(
        content.map((block) => {
          if (block.type !== "tool-call") return block;
          const callId = given.has(block.callId) && !used.has(block.callId) ? block.callId : name(next++);
          used.add(callId);
          return callId === block.callId ? block : Object.freeze({ ...block, callId });
        }),
      );
    },
  };
}

function cutOf(finish: FinishReason | undefined): Turn["cut"] {
  return finish?.kind === "max-tokens" || finish?.kind === "content-filter" ? finish.kind : undefined;
}

/** Whether an answer of the open turn was cut short already: for one that is taken up. An answer that died counts for nothing. */
export function cutOfTurn(log: Log): Turn["cut"] {
  let cut: Turn["cut"];
  let found: Turn["cut"];
  for (let seq = log.state.open?.seq ?? log.seq; seq < log.seq; seq += 1) {
    const event = log.at(seq)!;
    if (event.type === "assistant/chunk" && event.data.chunk.type === "finish") found = cutOf(event.data.chunk.reason);
    else if (event.type === "turn/resumed") found = undefined;
    else if ((event.type === "assistant/message" || event.type === "step/end") && found) {
      if (cut !== "max-tokens") cut = found;
      found = undefined;
    }
  }
  return cut;
}
