/** The fold behind a transcript: one session event after the other, at a cost that does not grow with the session. */
import type { ContentBlock, ErrorData, SessionEvent, SessionEventMap, TurnEndReason } from "../core.ts";
import { createAnswer, nextAttempt, settle, stopWriting, writeChunk, type Answer } from "./answer.ts";
import { createCards } from "./cards.ts";
import { createMessages, type Draft } from "./messages.ts";
import { partsOf } from "./parts.ts";
import type { Presenter } from "./present.ts";
import type { Transcript, TranscriptMark } from "./types.ts";

export interface TranscriptFold {
  apply(event: SessionEvent): void;
  /** The same object until something in it changes. */
  snapshot(): Transcript;
}

type Said = Pick<SessionEventMap["user/message"], "id" | "content" | "source">;

/** The reason with which a message leaves the queue because its sender took it back. */
const WITHDRAWN = "withdrawn";

export function createTranscriptFold(presenter: Presenter): TranscriptFold {
  const messages = createMessages();
  const cards = createCards(messages, presenter);
  /** Accepted, and not yet in the conversation. */
  const waiting = new Map<string, readonly ContentBlock[]>();
  let turn: NonNullable<Transcript["turn"]> | undefined;
  /** The step that is written, or was written last, in the open turn. */
  let answer: Answer | undefined;
  let built: Transcript = Object.freeze({ messages: messages.snapshot() });

  function apply(event: SessionEvent): void {
    switch (event.type) {
      case "assistant/chunk":
        return chunk(event.data);
      case "turn/start":
        turn = Object.freeze({ number: event.data.turn, startedAt: event.time });
        answer = undefined;
        return;
      case "turn/end":
        return endTurn(event.seq, event.data.reason);
      case "step/start":
        return startStep(event.data.turn, event.data.step);
      case "step/end":
        return endStep();
      case "user/message":
      case "steering/message":
        return said("user", event.data);
      case "context/message":
        if (event.surface === "append") return said("context", event.data);
        return mark(event.data.id, { kind: "compacted" }, "done", event.data.content);
      case "prompt/blocked":
        waiting.delete(event.data.id);
        return mark(event.data.id, { kind: "blocked", reason: event.data.reason }, "blocked", event.data.content);
      case "inbox/queued":
        waiting.set(event.data.id, event.data.content);
        return;
      case "inbox/dropped":
        return dropped(event.data.ids, event.data.reason);
      case "agent/cancelled":
        return dropped(event.data.dropped, event.data.reason);
      case "request/failed":
        return failAttempt(event.data);
      case "assistant/message":
        return settleAnswer(event.data);
      default:
        cards.apply(event);
    }
  }

  function said(role: "user" | "context", { id, content, source }: Said): void {
    waiting.delete(id);
    messages.add({ id, role, turn: turn?.number ?? 0, parts: partsOf(content, id), state: "done", source });
  }

  function mark(id: string, what: TranscriptMark, state: Draft["state"], content: readonly ContentBlock[]): void {
    messages.add({ id, role: "mark", turn: turn?.number ?? 0, parts: partsOf(content, id), state, mark: what });
  }

  function dropped(ids: readonly string[], reason: string): void {
    for (const id of ids) {
      const content = waiting.get(id);
      waiting.delete(id);
      if (content && reason !== WITHDRAWN) mark(id, { kind: "dropped", reason }, "interrupted", content);
    }
  }

  function startStep(number: number, step: number): void {
    const next = createAnswer(number, step);
    // A step that came to nothing, and after which the turn went on, makes room for the next one.
    if (answer && !answer.settled) messages.replace(answer.draft, next.draft);
    else messages.add(next.draft);
    answer = next;
    cards.follow(next.draft);
  }

  /** The step of an event. A log of which only the tail is here may begin in the middle of one. */
  function stepOf(data: { readonly turn: number; readonly step: number }): Answer {
    if (answer?.draft.turn !== data.turn || answer.step !== data.step) startStep(data.turn, data.step);
    return answer!;
  }

  function chunk(data: SessionEventMap["assistant/chunk"]): void {
    let at = stepOf(data);
    if (at.failed) answer = at = nextAttempt(at);
    if (writeChunk(at, data.chunk)) messages.changed(at.draft);
  }

  function failAttempt(data: SessionEventMap["request/failed"]): void {
    const at = stepOf(data);
    stopWriting(at);
    at.failed = data.next !== "fail";
    at.draft.error = data.error;
    messages.changed(at.draft);
  }

  function settleAnswer(data: SessionEventMap["assistant/message"]): void {
    const at = stepOf(data);
    settle(at, data.content);
    if (data.usage) at.draft.usage = data.usage;
    if (data.interrupted) at.draft.state = "interrupted";
    else delete at.draft.error;
    messages.changed(at.draft);
  }

  function endStep(): void {
    if (!answer) return;
    stopWriting(answer);
    if (answer.settled && answer.draft.state === "streaming") answer.draft.state = "done";
    messages.changed(answer.draft);
  }

  function endTurn(seq: number, reason: TurnEndReason): void {
    cards.endTurn();
    if (answer) endAnswer(answer, reason);
    // An error stands on its message, a rejection on the messages that were blocked.
    const told = reason.kind === "completed" || reason.kind === "rejected" || (reason.kind === "error" && answer);
    if (!told) {
      const draft: Draft = {
        id: `end_${seq}`,
        role: "mark",
        turn: turn?.number ?? 0,
        parts: [],
        state: stateAfter(reason),
        mark: { kind: "turn-end", reason },
        ...(reason.kind === "error" && { error: errorOf(reason, undefined) }),
      };
      // In place of an answer that was cut short before its first word.
      if (answer?.draft.parts.length === 0) messages.replace(answer.draft, draft);
      else messages.add(draft);
    }
    turn = undefined;
    answer = undefined;
  }

  /** Puts the end of a turn on its last message. */
  function endAnswer(last: Answer, reason: TurnEndReason): void {
    const { draft } = last;
    const after = stateAfter(reason);
    stopWriting(last);
    // A hook took the whole answer away: it is not in the history.
    if (after === "done" && !last.settled) draft.parts.length = 0;
    if (after !== "done" || draft.state === "streaming") draft.state = after;
    if (reason.kind === "error") draft.error = errorOf(reason, draft.error);
    else delete draft.error;
    messages.changed(draft);
  }

  return {
    apply,
    snapshot() {
      const list = messages.snapshot();
      if (list !== built.messages || turn !== built.turn)
        built = Object.freeze({ messages: list, ...(turn && { turn }) });
      return built;
    },
  };
}

/** The state of the last message of a turn that ended so. */
function stateAfter({ kind }: TurnEndReason): Draft["state"] {
  // A log may come from a version that knows more kinds.
  return Object.hasOwn(STATE_AFTER, kind) ? STATE_AFTER[kind] : "done";
}

const STATE_AFTER: Readonly<Record<TurnEndReason["kind"], Draft["state"]>> = {
  disposed: "interrupted",
  aborted: "interrupted",
  interrupted: "interrupted",
  error: "failed",
  completed: "done",
  rejected: "done",
  stopped: "done",
  "max-tokens": "done",
  "content-filter": "done",
};

/** The end's own words; where they are those of the failed request, what that knew besides. */
function errorOf(reason: TurnEndReason & { kind: "error" }, failed: ErrorData | undefined): ErrorData {
  const { message, code } = reason;
  return { ...(failed?.message === message && failed), message, ...(code !== undefined && { code }) };
}
