/** Where a log stands: a fold of its events, kept up as they are appended. */
import type { QueuedMessage } from "../agent/types.ts";
import type { Interaction } from "../interaction/types.ts";
import type { JsonSchema, JsonValue } from "../json.ts";
import type { CallConfig, MessageSource, RequestHeader, ToolCallBlock } from "../model/types.ts";
import type { SessionEvent } from "./types.ts";

/** A call of an answer of the open turn. */
export interface CallState {
  readonly block: ToolCallBlock;
  readonly step: number;
  /** The seq of its `tool/call`. */
  seq: number | undefined;
  /** How often its body was started. */
  starts: number;
  answered: boolean;
}

export interface StepState {
  readonly number: number;
  /** The seq of its `step/start`. */
  readonly seq: number;
  /** Of the model request, from 1. */
  attempt: number;
  /** Where the chunks of this attempt begin. */
  attemptSeq: number;
  /** Whether the model's answer stands in the log. */
  settled: boolean;
}

export interface TurnState {
  readonly number: number;
  readonly seq: number;
  readonly trigger: { readonly kind: string; readonly source: MessageSource };
  /** The number of its last step. */
  steps: number;
  step: StepState | undefined;
  /** Those of the open step, and those that an earlier one has left without a result; in the order of the answers. */
  readonly calls: Map<string, CallState>;
  /** Why it was cancelled: the first reason. */
  cancelled: string | undefined;
  /** How often it was run, from 1: each time that a host died in it, another goes on. */
  attempt: number;
  /** The seq of its last `turn/resumed`. */
  resumed: number | undefined;
  /** The message of this turn that asks for structured output. */
  output: JsonSchema | undefined;
}

/** Accepted, and not yet consumed. */
export interface InboxEntry extends QueuedMessage {
  readonly output?: JsonSchema;
  /** The open turn that took it. */
  takenBy?: number | undefined;
  /** How many turns that took it were cut short. */
  cutShort: number;
}

export interface InteractionState {
  readonly request: Omit<Interaction, "claimedBy">;
  /** Who runs it now. */
  claimedBy: string | undefined;
  /** Whether anybody ever ran it: what came of that may be unknown. */
  claimed: boolean;
  resolved: { readonly outcome: "answered" | "cancelled" | "expired"; readonly value?: JsonValue } | undefined;
}

export interface LogState {
  /** The number of the last turn. */
  turn: number;
  open: TurnState | undefined;
  /** The last header that was logged. */
  header: RequestHeader | undefined;
  /** What `configure` has logged, put together. */
  configured: Partial<CallConfig>;
  title: string | undefined;
  /** By acceptance. */
  readonly inbox: Map<string, InboxEntry>;
  /** Every message id ever accepted here. */
  readonly accepted: Set<string>;
  /** Of the open turn: those open, and those answered. */
  readonly interactions: Map<string, InteractionState>;
  /** The ids of those that were resolved, in any turn. */
  readonly resolved: Map<string, "answered" | "cancelled" | "expired">;
}

export function createState(): LogState {
  return {
    turn: 0,
    open: undefined,
    header: undefined,
    configured: {},
    title: undefined,
    inbox: new Map(),
    accepted: new Set(),
    interactions: new Map(),
    resolved: new Map(),
  };
}

/**
 * Takes one event into the state. `own` is false for the events of a seed: they are history, and neither
 * their queue nor their questions are this session's.
 */
export function advance(state: LogState, event: SessionEvent, own: boolean): void {
  switch (event.type) {
    case "assistant/chunk":
      return;
    case "turn/start": {
      const { turn, trigger, messages = [] } = event.data;
      state.turn = turn;
      state.open = {
        number: turn,
        seq: event.seq,
        trigger,
        steps: 0,
        step: undefined,
        calls: new Map(),
        cancelled: undefined,
        attempt: 1,
        resumed: undefined,
        output: undefined,
      };
      for (const [id, entry] of state.inbox) {
        if (!messages.includes(id)) continue;
        entry.takenBy = turn;
        state.open.output ??= entry.output;
      }
      leaveSteering(state);
      return;
    }
    case "turn/resumed":
      if (!state.open) return;
      state.open.attempt = event.data.attempt;
      state.open.resumed = event.seq;
      for (const entry of state.inbox.values()) if (entry.takenBy !== undefined) entry.cutShort += 1;
      return;
    case "turn/end": {
      const { kind } = event.data.reason;
      state.open = undefined;
      state.interactions.clear();
      for (const entry of state.inbox.values()) {
        if (entry.takenBy !== undefined && kind === "interrupted") entry.cutShort += 1;
        entry.takenBy = undefined;
      }
      if (kind === "interrupted" || kind === "aborted") leaveSteering(state);
      return;
    }
    case "session/titled":
      state.title = event.data.title;
      return;
    case "agent/configured":
      state.configured = { ...state.configured, ...event.data.patch };
      return;
    case "request/header":
      state.header = event.data.header;
      return;
    case "inbox/queued":
      if (own) {
        state.inbox.set(event.data.id, { ...event.data, cutShort: 0 });
        state.accepted.add(event.data.id);
      }
      return;
    case "user/message":
    case "steering/message":
    case "context/message":
    case "prompt/blocked":
      state.inbox.delete(event.data.id);
      if (own) state.accepted.add(event.data.id);
      return;
    case "inbox/dropped":
      for (const id of event.data.ids) state.inbox.delete(id);
      return;
    case "agent/cancelled":
      for (const id of event.data.dropped) state.inbox.delete(id);
      if (state.open && state.open.number === event.data.turn) state.open.cancelled ??= event.data.reason;
      return;
    case "interaction/requested":
      if (own)
        state.interactions.set(event.data.id, {
          request: event.data,
          claimedBy: undefined,
          claimed: false,
          resolved: undefined,
        });
      return;
    case "interaction/claimed": {
      const interaction = state.interactions.get(event.data.id);
      if (interaction) {
        interaction.claimedBy = event.data.client;
        interaction.claimed = true;
      }
      return;
    }
    case "interaction/released": {
      const interaction = state.interactions.get(event.data.id);
      if (interaction?.claimedBy === event.data.client) interaction.claimedBy = undefined;
      return;
    }
    case "interaction/resolved": {
      const interaction = state.interactions.get(event.data.id);
      if (interaction) interaction.resolved ??= event.data;
      if (!state.resolved.has(event.data.id)) state.resolved.set(event.data.id, event.data.outcome);
      return;
    }
    default:
      if (state.open) advanceStep(state.open, event);
  }
}

/** Steering that its turn has left behind waits for a turn of its own, in its place. */
function leaveSteering({ inbox }: LogState): void {
  for (const [id, entry] of inbox)
    if (entry.as === "steer" && entry.takenBy === undefined) inbox.set(id, { ...entry, as: "send" });
}

/**
 * Whoever had a log before has let go of it: the clients that had claimed an interaction have gone with their
 * host, and no turn is left that steering could reach but the open one.
 */
export function inherit(state: LogState): void {
  for (const interaction of state.interactions.values()) interaction.claimedBy = undefined;
  if (!state.open) leaveSteering(state);
}

function advanceStep(turn: TurnState, event: SessionEvent): void {
  const { step } = turn;
  switch (event.type) {
    case "step/start":
      turn.steps = event.data.step;
      turn.step = {
        number: event.data.step,
        seq: event.seq,
        attempt: 1,
        attemptSeq: event.seq + 1,
        settled: false,
      };
      return;
    case "step/end":
      turn.step = undefined;
      // What is answered is history: a long turn costs no more per step than a short one.
      for (const [callId, call] of turn.calls) if (call.answered) turn.calls.delete(callId);
      return;
    case "request/failed":
      if (step && event.data.next !== "fail") {
        step.attempt += 1;
        step.attemptSeq = event.seq + 1;
      }
      return;
    case "assistant/message":
      if (!step) return;
      step.settled = true;
      for (const block of event.data.content) {
        if (block.type === "tool-call") {
          turn.calls.set(block.callId, { block, step: step.number, seq: undefined, starts: 0, answered: false });
        }
      }
      return;
    case "tool/call": {
      const call = turn.calls.get(event.data.callId);
      if (call) call.seq = event.seq;
      return;
    }
    case "tool/start": {
      const call = turn.calls.get(event.data.callId);
      if (call) call.starts += 1;
      return;
    }
    case "tool/result": {
      const call = turn.calls.get(event.data.callId);
      if (call) call.answered = true;
    }
  }
}

/** The calls of the open turn that still owe a result. */
export function unansweredCalls({ open }: LogState): CallState[] {
  const owing: CallState[] = [];
  if (open) for (const call of open.calls.values()) if (!call.answered) owing.push(call);
  return owing;
}

/** The interactions that wait for an answer. */
export function openInteractions(state: LogState): readonly Interaction[] {
  if (state.interactions.size === 0) return NOTHING;
  const open: Interaction[] = [];
  for (const { request, claimedBy, resolved } of state.interactions.values()) {
    if (!resolved) open.push(claimedBy === undefined ? request : Object.freeze({ ...request, claimedBy }));
  }
  return open;
}

const NOTHING: readonly never[] = Object.freeze([]);

/** What is queued, by acceptance: all that was accepted and that no open turn has taken. */
export function queuedMessages(state: LogState): readonly InboxEntry[] {
  if (state.inbox.size === 0) return NOTHING;
  return [...state.inbox.values()].filter((entry) => entry.takenBy === undefined);
}
