/** Follows one message through the log: which turn takes it, and how that ends. */
import { TurnloopError } from "../errors.ts";
import type { Message, ModelChunk, Usage } from "../model/types.ts";
import { addUsage } from "../model/usage.ts";
import type { SessionEvent, TurnEndReason } from "../session/types.ts";
import type { RunResult } from "./run.ts";
import type { Agent } from "./types.ts";

export interface FollowedTurn {
  /** Of the turn that has taken the message. */
  readonly number: number | undefined;
  readonly ended: boolean;
  readonly result: Promise<RunResult>;
  /** The events of the turn: those that were, then those that come. */
  follow(event: (event: SessionEvent) => void, end: () => void): () => void;
}

type Outcome = RunResult["reason"];

/** Follows the message `id`, which entered the log at `from` or later. */
export function foldTurn(agent: Agent, id: string, from: number): FollowedTurn {
  const { session } = agent;
  let number: number | undefined;
  let start: number | undefined;
  let blocked: string | undefined;
  let outcome: Outcome | undefined;
  const followers = new Set<{ event(event: SessionEvent): void; end(): void }>();
  const settled = Promise.withResolvers<RunResult>();

  function settle(reason: Outcome): void {
    outcome = reason;
    off();
    for (const follower of followers) follower.end();
    followers.clear();
    // The result counts once it is stored; a storage that does not answer is not waited for.
    const stored = agent.flush().catch((error: unknown) => {
      if (TurnloopError.is(error, "SESSION_CONFLICT") || TurnloopError.is(error, "SESSION_EXISTS")) throw error;
    });
    stored.then(
      () => settled.resolve(resultOf(agent, number === undefined ? undefined : { number, start: start! }, reason)),
      settled.reject,
    );
  }

  function take(event: SessionEvent): void {
    if (outcome) return;
    if (event.type === "turn/start" && event.data.messages?.includes(id)) {
      number = event.data.turn;
      start = event.seq;
    }
    if (number !== undefined) for (const follower of followers) follower.event(event);
    if (event.type === "prompt/blocked" && event.data.id === id) blocked = event.data.reason;
    else if (event.type === "turn/end" && event.data.turn === number) settle(endOf(event.data.reason));
    else if (isDropped(event)) {
      // A message that fails its own turn's hooks is told by the end of that turn.
      if (number === undefined) settle({ kind: "dropped" });
    }
  }

  function isDropped(event: SessionEvent): boolean {
    if (event.type === "inbox/dropped") return event.data.ids.includes(id);
    return event.type === "agent/cancelled" && event.data.dropped.includes(id);
  }

  function endOf(reason: TurnEndReason): Outcome {
    return blocked === undefined || reason.kind === "aborted" ? reason : { kind: "blocked", reason: blocked };
  }

  /** Until the log has told, or never will. */
  async function watch(): Promise<void> {
    while (!outcome) {
      await agent.whenIdle();
      const { durable, queue } = agent.getSnapshot();
      if (outcome) return;
      if (agent.status === "disposed")
        return fail("AGENT_DISPOSED", "the agent was disposed; the log keeps the message");
      if (durable === "lost" || !queue.some((entry) => entry.id === id))
        return fail("SESSION_LOST", "the session was lost");
    }
  }

  function fail(code: string, message: string): void {
    outcome = { kind: "dropped" };
    off();
    for (const follower of followers) follower.end();
    settled.reject(new TurnloopError(code, message));
  }

  let off = (): void => {};
  off = session.subscribe(take, { from });
  if (outcome) off();
  else void watch();

  return {
    get number() {
      return number;
    },
    get ended() {
      return outcome !== undefined;
    },
    result: settled.promise,
    follow(event, end) {
      if (start !== undefined) {
        for (let seq = start; seq < session.seq; seq += 1) {
          const past = session.at(seq)!;
          event(past);
          if (past.type === "turn/end") break;
        }
      }
      if (outcome) end();
      const follower = { event, end };
      if (!outcome) followers.add(follower);
      return () => void followers.delete(follower);
    },
  };
}

function resultOf(
  agent: Agent,
  turn: { readonly number: number; readonly start: number } | undefined,
  reason: Outcome,
): RunResult {
  const messages: Message[] = [];
  const names = new Map<string, string>();
  let usage: Usage = {};
  let text = "";
  for (let seq = turn?.start ?? agent.session.seq; seq < agent.session.seq; seq += 1) {
    const event = agent.session.at(seq)!;
    switch (event.type) {
      case "user/message":
      case "steering/message":
      case "context/message":
        messages.push({ role: "user", content: event.data.content, source: event.data.source });
        break;
      case "assistant/message": {
        const { content, model } = event.data;
        if (content.length > 0) messages.push({ role: "assistant", content, model });
        text = content.map((block) => (block.type === "text" ? block.text : "")).join("");
        usage = addUsage(usage, event.data.usage);
        break;
      }
      case "tool/call":
        names.set(event.data.callId, event.data.name);
        break;
      case "tool/result": {
        const { callId, content, isError } = event.data;
        messages.push({
          role: "tool",
          content: [{ type: "tool-result", callId, name: names.get(callId) ?? "", content, isError }],
        });
        break;
      }
      case "request/failed":
      case "model/aux":
        usage = addUsage(usage, event.data.usage);
        break;
      case "turn/end":
        seq = agent.session.seq;
        break;
      default:
    }
  }
  return { reason, ...(turn && { turn: turn.number }), text, messages, usage, output: undefined };
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
