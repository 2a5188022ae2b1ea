/** The fold of a turn's events into the chunks of one UI message. */
import type { UIMessageChunk } from "ai";
import type { ContentBlock, SessionEvent, TurnEndReason } from "../../src/core.ts";
import { createWriting, type Writing } from "./ai-sdk-ui-answer.ts";
import { chunksOfBlock, urlOf } from "./ai-sdk-ui-blocks.ts";
import { createCalls } from "./ai-sdk-ui-calls.ts";

export interface TurnFold {
  apply(event: SessionEvent): UIMessageChunk[];
  /** The turn waits for an answer of the page, as things stand. */
  isWaiting(): boolean;
  /** The last chunks: of a turn that has ended, or of one that waits. */
  finish(): UIMessageChunk[];
}

/** The id of the UI message that a turn is. */
export function messageIdOf(turn: number): string {
  return `turn_${turn}`;
}

/**
 * Without `shown` the events begin with a turn. With it they begin with the answer of a step that the page has got,
 * and its calls: the page goes on in the message that it has.
 */
export function createTurnFold(shown?: ReadonlySet<string>): TurnFold {
  const calls = new Set(shown);
  const tools = createCalls(calls);
  let begun = false;
  /** The page has the content of the step's answer, but for what follows. */
  let isHad = shown !== undefined;
  let attempt = 1;
  let place = "";
  let writing: Writing | undefined;
  /** Of the step whose answer is in the log: all chunks that make up its part of the message. */
  let settled: UIMessageChunk[] | undefined;
  let end: TurnEndReason | undefined;
  let blocked: string | undefined;

  function start(turn: number): UIMessageChunk[] {
    end = undefined;
    if (begun) return [];
    begun = true;
    return [shown ? { type: "start" } : { type: "start", messageId: messageIdOf(turn) }];
  }

  function settle(content: readonly ContentBlock[]): UIMessageChunk[] {
    const before = writing;
    writing = undefined;
    tools.begin(content);
    const whole = content.flatMap((block, index) => chunksOfBlock(block, `block_${place}_${index}`));
    settled = [...whole];
    if (isHad) {
      isHad = false;
      return [];
    }
    if (before?.is(content)) return before.close();
    // A hook has changed it, or it comes without its chunks.
    if (!before) return whole;
    for (const callId of before.calls) calls.delete(callId);
    return [{ type: "reset-step" }, ...whole];
  }

  function giveUpAttempt(): UIMessageChunk[] {
    attempt += 1;
    for (const callId of writing?.calls ?? []) calls.delete(callId);
    writing = undefined;
    return [{ type: "reset-step" }];
  }

  function ofTools(event: SessionEvent): UIMessageChunk[] {
    const had = event.type === "tool/call" && shown?.has(event.data.callId);
    const chunks = tools.apply(event);
    settled?.push(...chunks);
    return had ? [] : chunks;
  }

  return {
    apply(event) {
      switch (event.type) {
        case "turn/start":
          return start(event.data.turn);
        case "step/start":
          attempt = 1;
          settled = undefined;
          place = `${event.data.turn}_${event.data.step}`;
          return [{ type: "start-step" }];
        case "assistant/chunk":
          writing ??= createWriting(`${place}_${attempt}`);
          return writing.write(event.data.chunk);
        case "request/failed":
          return event.data.next === "fail" ? [] : giveUpAttempt();
        case "assistant/message": {
          place = `${event.data.turn}_${event.data.step}`;
          return [...(begun ? [] : start(event.data.turn)), ...settle(event.data.content)];
        }
        case "step/end": {
          const rest = writing?.close() ?? [];
          writing = undefined;
          settled = undefined;
          tools.begin([]);
          return [...rest, { type: "finish-step" }];
        }
        case "steering/message":
          return [{ type: "steering-message", id: event.data.id, parts: event.data.content.flatMap(saidPart) }];
        case "prompt/blocked":
          blocked = event.data.reason;
          return [];
        case "turn/end":
          end = event.data.reason;
          return writing?.close() ?? [];
        default:
          return ofTools(event);
      }
    },

    isWaiting: () => tools.isWaiting(),

    finish() {
      if (end) return blocked === undefined || end.kind === "aborted" ? endOf(end) : failure(blocked);
      if (!begun) return [{ type: "start" }, { type: "abort", reason: "the message was dropped" }];
      return [...withoutHeldUp(), { type: "finish-step" }, { type: "finish", finishReason: "tool-calls" }];
    },
  };

  /** A call that can do nothing yet would keep the page from sending the answer that it waits for. */
  function withoutHeldUp(): UIMessageChunk[] {
    const held = tools.heldUp();
    if (held.size === 0 || !settled) return [];
    return [
      { type: "reset-step" },
      ...settled.filter((chunk) => !("toolCallId" in chunk && held.has(chunk.toolCallId))),
    ];
  }
}

function endOf(reason: TurnEndReason): UIMessageChunk[] {
  switch (reason.kind) {
    case "error":
      return failure(reason.message);
    case "rejected":
      return failure(reason.reason);
    case "aborted":
      return [{ type: "abort", reason: reason.reason }];
    case "completed":
      return [{ type: "finish", finishReason: "stop" }];
    case "max-tokens":
      return [{ type: "finish", finishReason: "length" }];
    case "content-filter":
      return [{ type: "finish", finishReason: "content-filter" }];
    case "interrupted":
    case "disposed":
      return [{ type: "finish", finishReason: "interrupted" }];
    default:
      return [{ type: "finish", finishReason: "other" }];
  }
}

function failure(errorText: string): UIMessageChunk[] {
  return [{ type: "error", errorText }];
}

type SaidPart = Extract<UIMessageChunk, { type: "steering-message" }>["parts"][number];

function saidPart(block: ContentBlock): SaidPart[] {
  if (block.type === "text") return [{ type: "text", text: block.text }];
  if (block.type !== "file") return [];
  return [{ type: "file", mediaType: block.mediaType, url: urlOf(block), ...(block.name && { filename: block.name }) }];
}
