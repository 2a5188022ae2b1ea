/** Follows one message through the log: which turn takes it, and how that ends. */
import { TurnloopError } from "../errors.ts";
import type { ModelChunk, Usage } from "../model/types.ts";
import { textIn } from "../model/content.ts";
import { addUsage } from "../model/usage.ts";
import { readPayments } from "../session/payments.ts";
import { createSurface } from "../session/surface.ts";
import type { SessionEvent, TurnEndReason } from "../session/types.ts";
import type { RunResult } from "./run.ts";
import type { Agent } from "./types.ts";

export interface FollowedMessage<T = undefined> {
  readonly result: Promise<RunResult<T>>;
  /** Takes it back, or ends the turn that has it; what others have queued stays. */
  abort(): void;
  /** The events of the turn that takes it: those that were, then those that come. */
  follow(event: (event: SessionEvent) => void, end: () => void): () => void;
}

type Outcome = RunResult["reason"];

/** Follows the message `id`, which entered the log at `from` or later. */
export function followMessage(agent: Agent, id: string, from: number): FollowedMessage {
  const { session } = agent;
  /** The turn that has taken it, while it has. */
  let turn: { readonly number: number; readonly start: number } | undefined;
  let consumed = false;
  let aborted = false;
  let blocked: string | undefined;
  let outcome: Outcome | undefined;
  /** Those that wait for a turn, and those that follow one. */
  const followers = new Set<() => void>();
  const ends = new Set<() => void>();
  const settled = Promise.withResolvers<RunResult>();

  function take(event: SessionEvent): void {
    if (outcome) return;
    if (event.type === "turn/start" && event.data.messages?.includes(id)) {
      turn = { number: event.data.turn, start: event.seq };
      for (const begin of [...followers]) begin();
    } else if (event.type === "user/message") {
      consumed ||= event.data.id === id;
    } else if (event.type === "prompt/blocked" && event.data.id === id) {
      blocked = event.data.reason;
    } else if (isDropped(event)) {
      // A message that its own turn drops is told by the end of that turn.
      if (turn) consumed = true;
      else settle({ kind: "dropped" });
    } else if (event.type === "turn/end" && event.data.turn === turn?.number) {
      if (consumed || blocked !== undefined) settle(endOf(event.data.reason));
      else giveBack();
    }
  }

  /** The turn has ended without it: it is queued again. */
  function giveBack(): void {
    turn = undefined;
    if (aborted) void agent.withdraw(id).catch(() => {});
  }

  function isDropped(event: SessionEvent): boolean {
    if (event.type === "inbox/dropped") return event.data.ids.includes(id);
    return event.type === "agent/cancelled" && event.data.dropped.includes(id);
  }

  function endOf(reason: TurnEndReason): Outcome {
    return blocked === undefined || reason.kind === "aborted" ? reason : { kind: "blocked", reason: blocked };
  }

  function settle(reason: Outcome): void {
    outcome = reason;
    off();
    for (const begin of [...followers]) begin();
    // The result counts once it is stored; a storage that does not answer is not waited for.
    const stored = agent.flush().catch((error: unknown) => {
      if (TurnloopError.is(error, "SESSION_CONFLICT") || TurnloopError.is(error, "SESSION_LOST")) throw error;
    });
    stored.then(() => resultOf(agent, turn, reason)).then(settled.resolve, settled.reject);
  }

  /** Until the log has told, or never will. */
  async function watch(): Promise<void> {
    while (!outcome) {
      await agent.whenIdle();
      const { durable, queue, error } = agent.getSnapshot();
      if (outcome) return;
      // A remote agent knows why its host will have it no more.
      if (error) return fail(error.code, error.message);
      if (agent.status === "disposed")
        return fail("AGENT_DISPOSED", "the agent was disposed; the log keeps the message");
      if (durable === "lost" || !queue.some((entry) => entry.id === id))
        return fail("SESSION_LOST", "the session was lost");
    }
  }

  function fail(code: string, message: string): void {
    outcome = { kind: "dropped" };
    off();
    for (const begin of [...followers]) begin();
    for (const end of [...ends]) end();
    settled.reject(new TurnloopError(code, message));
  }

  let off = (): void => {};
  off = session.subscribe(take, { from });
  if (outcome) off();
  else void watch();

  return {
    result: settled.promise,

    abort() {
      aborted = true;
      const stop = (withdrawn: boolean): void => {
        if (!withdrawn && !outcome) agent.cancel("the run was aborted", { queue: "keep" });
      };
      agent.withdraw(id).then(stop, () => {});
    },

    follow(event, end) {
      let offTurn = (): void => {};
      const finish = (): void => {
        ends.delete(finish);
        offTurn();
        end();
      };
      const begin = (): void => {
        if (!turn) {
          if (outcome) end();
          return;
        }
        followers.delete(begin);
        ends.add(finish);
        const { number, start } = turn;
        let over = false;
        const each = (one: SessionEvent): void => {
          if (over) return;
          event(one);
          if (one.type !== "turn/end" || one.data.turn !== number) return;
          over = true;
          // A message that was given back is followed into the next turn.
          if (consumed || blocked !== undefined || outcome) finish();
          else {
            offTurn();
            followers.add(begin);
          }
        };
        offTurn = session.subscribe(each, { from: start });
        if (over) offTurn();
        else if (outcome) finish();
      };
      followers.add(begin);
      begin();
      return () => {
        followers.delete(begin);
        ends.delete(finish);
        offTurn();
      };
    },
  };
}

function resultOf(
  agent: Agent,
  turn: { readonly number: number; readonly start: number } | undefined,
  reason: Outcome,
): RunResult {
  const surface = createSurface();
  const paymentIn = readPayments();
  let usage: Usage = {};
  let text = "";
  for (let seq = turn?.start ?? agent.session.seq; seq < agent.session.seq; seq += 1) {
    const event = agent.session.at(seq)!;
    // Alone, without what stands before it, a replacement has nothing to replace.
    if (event.surface === undefined || event.surface === "append") surface.add(event);
    usage = addUsage(usage, paymentIn(event)?.usage);
    if (event.type === "assistant/message") {
      text = textIn(event.data.content);
    } else if (event.type === "turn/end") {
      break;
    }
  }
  return { reason, ...(turn && { turn: turn.number }), text, messages: surface.messages(), usage, output: undefined };
}

/** The text of the answers, as it is written. */
export async function* textOf(events: AsyncIterable<SessionEvent>): AsyncGenerator<string> {
  /** What the blocks of the step are, by index; what was not said to be anything else is text. */
  let kinds = new Map<number, string>();
  let written = new Set<number>();
  for await (const event of events) {
    if (event.type === "step/start" || event.type === "request/failed") {
      kinds = new Map();
      written = new Set();
    }
    if (event.type !== "assistant/chunk") continue;
    const text = textOfChunk(event.data.chunk, kinds, written);
    if (text !== "") yield text;
  }
}

function textOfChunk(chunk: ModelChunk, kinds: Map<number, string>, written: Set<number>): string {
  if (chunk.type === "block-start") kinds.set(chunk.index, chunk.block.type);
  if (chunk.type === "block-end" && chunk.block?.type === "text" && !written.has(chunk.index)) return chunk.block.text;
  if (chunk.type !== "delta") return "";
  if (chunk.id || chunk.name) kinds.set(chunk.index, "tool-call");
  if ((kinds.get(chunk.index) ?? "text") !== "text") return "";
  written.add(chunk.index);
  return chunk.text;
}
