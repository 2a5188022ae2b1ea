/** Closes a turn, wherever it stands: the one way for an end, a cancel, a failure, a repair and an import. */
import { assemble } from "../model/assemble.ts";
import type { ContentBlock, ModelChunk, Usage } from "../model/types.ts";
import type { Log } from "./log.ts";
import { openInteractions, unansweredCalls, type CallState } from "./state.ts";
import { addToRuns, citesOf, type Run } from "./surface.ts";
import type { Cite, SessionEventMap, TurnEndReason } from "./types.ts";

/** A result as it goes into the log: the event's data without its place. */
export type ResultData = Pick<SessionEventMap["tool/result"], "content" | "isError" | "error" | "meta">;

/** What a call that was left without a result is answered with. */
export type Answer = (call: CallState) => ResultData;

export interface CloseOptions {
  readonly reason: TurnEndReason;
  readonly answer: Answer;
  /** After a result is in the log. */
  readonly told?: (call: CallState, result: ResultData) => void;
  /** Of the events that are added; default: the clock's. */
  readonly time?: number | undefined;
  /** After all results: what waited for the end of the tool batch. */
  readonly settled?: () => void;
}

/** Leaves no call without a result, no question without an end, no step and no turn open. */
export function closeTurn(log: Log, { reason, answer, told, time, settled }: CloseOptions): void {
  const { open } = log.state;
  if (!open) return;
  const { step } = open;
  if (step && !step.settled) keepPartialAnswer(log, time);
  for (const { id } of openInteractions(log.state)) {
    log.write("interaction/resolved", { id, outcome: "cancelled" }, { time });
  }
  for (const call of unansweredCalls(log.state)) {
    writeCall(log, call, time);
    const result = answer(call);
    writeResult(log, call, result, time);
    told?.(call, result);
  }
  if (step) {
    settled?.();
    log.write("step/end", { turn: open.number, step: step.number }, { time });
  }
  log.write("turn/end", { turn: open.number, reason: Object.freeze(reason) }, { time });
}

/** `tool/call`, unless it stands there already. */
export function writeCall(log: Log, call: CallState, time?: number): void {
  if (call.seq !== undefined) return;
  const { open } = log.state;
  const { callId, name, arguments: args, meta } = call.block;
  const providerCallId = meta?.providerCallId;
  log.write(
    "tool/call",
    {
      turn: open!.number,
      step: call.step,
      callId,
      name,
      arguments: args,
      ...(typeof providerCallId === "string" && { providerCallId }),
    },
    { time },
  );
}

export function writeResult(log: Log, call: CallState, result: ResultData, time?: number): void {
  const { open } = log.state;
  const { content, isError, error, meta } = result;
  const data: SessionEventMap["tool/result"] = {
    turn: open!.number,
    step: call.step,
    callId: call.block.callId,
    content,
    isError,
    ...(error && { error }),
    ...(meta !== undefined && { meta }),
  };
  log.write("tool/result", data, { surface: "append", cites: Object.freeze([call.seq!]), time });
}

/** What the last attempt has streamed of text and reasoning is kept, marked as interrupted. */
function keepPartialAnswer(log: Log, time?: number): void {
  const { open, header } = log.state;
  const { chunks, cites } = chunksOfAttempt(log);
  const { content, usage } = readablePart(chunks);
  if (content.length === 0) return;
  const { number: step } = open!.step!;
  log.write(
    "assistant/message",
    {
      turn: open!.number,
      step,
      model: header?.modelId ?? header?.config.model ?? "",
      content: Object.freeze(content),
      ...(usage && { usage }),
      interrupted: true,
    },
    { surface: "append", cites, time },
  );
}

function readablePart(chunks: readonly ModelChunk[]): { content: readonly ContentBlock[]; usage?: Usage | undefined } {
  try {
    const { blocks, usage } = assemble(chunks);
    return { content: blocks.map((one) => one.block).filter(isKept), usage };
  } catch {
    // Chunks that make no sense are what failed the step: they stay in the log, and out of the history.
    return { content: [] };
  }
}

function isKept(block: ContentBlock): boolean {
  return (block.type === "text" || block.type === "reasoning") && block.text.trim() !== "";
}

/** The chunks of the open step's attempt, and the ranges of seqs in which they stand. */
export function chunksOfAttempt(log: Log): {
  chunks: ModelChunk[];
  cites: readonly Cite[];
} {
  const chunks: ModelChunk[] = [];
  const runs: Run[] = [];
  for (let seq = log.state.open!.step!.attemptSeq; seq < log.seq; seq += 1) {
    const event = log.at(seq)!;
    if (event.type !== "assistant/chunk") continue;
    chunks.push(event.data.chunk);
    addToRuns(runs, seq);
  }
  return { chunks, cites: citesOf(runs) };
}

/** A result that says why there is none. */
export function failedResult(code: string, message: string): ResultData {
  return Object.freeze({
    content: Object.freeze([Object.freeze({ type: "text" as const, text: message })]),
    isError: true,
    error: Object.freeze({ name: "TurnloopError", code }),
  });
}
