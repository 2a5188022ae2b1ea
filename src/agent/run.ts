/** Sends a message, and follows the turn that takes it. */
import { TurnloopError } from "../errors.ts";
import type { JsonSchema } from "../json.ts";
import type { ContentInput, Message, Usage } from "../model/types.ts";
import type { SessionEvent, TurnEndReason } from "../session/types.ts";
import type { StandardSchema } from "../tools/types.ts";
import { createQueue } from "./event-queue.ts";
import { followMessage, textOf, type FollowedMessage } from "./run-fold.ts";
import { outputOf, withRepairs } from "./run-output.ts";
import type { Agent } from "./types.ts";

export interface RunOptions {
  /** Aborting withdraws the message, or cancels the turn that has taken it. */
  signal?: AbortSignal;
}

/** One message on its way. Iterating gives the events of its turn, from `turn/start` to `turn/end`. */
export interface Run<T = undefined> extends AsyncIterable<SessionEvent> {
  /** The message's id. */
  readonly id: string;
  /**
   * Resolves, once it is stored, for every outcome that the log tells; rejects AGENT_DISPOSED, SESSION_LOST
   * or SESSION_CONFLICT when the log will not tell. With `output` it rejects unless there is a valid one.
   */
  readonly result: Promise<RunResult<T>>;
  /** The text as it is written. Throws when the turn ends in an error, or was interrupted. */
  textStream(): AsyncIterable<string>;
}

export interface RunResult<T = undefined> {
  readonly reason: TurnEndReason | { readonly kind: "blocked"; readonly reason: string } | { readonly kind: "dropped" };
  readonly turn?: number;
  /** Of the last assistant message. */
  readonly text: string;
  /** What the turn has added to the history. */
  readonly messages: readonly Message[];
  readonly usage: Usage;
  readonly output: T;
}

/**
 * Sends, and follows the turn that takes the message. Leaving an iteration stops following and nothing else.
 * Two messages that one turn took share its result. Throws what `send` throws, and ABORTED for a signal that has
 * aborted already.
 *
 * With `output` the answer is JSON of that schema: `result.output` is what the schema library makes of it, or the
 * value itself where plain JSON Schema is given. An answer that does not fit is sent back with what is wrong, twice at
 * most, each time in a turn of its own, which the iteration follows too; `usage` and `messages` are of all of them.
 * `result` then rejects OUTPUT_INVALID; and when there is no answer: with the code of the error, TURN_FAILED,
 * TURN_INTERRUPTED, ABORTED, AGENT_DISPOSED, MESSAGE_BLOCKED, MESSAGE_DROPPED. INVALID_SCHEMA is thrown at once.
 */
export function run(agent: Agent, content: ContentInput, options?: RunOptions): Run;
export function run<T>(
  agent: Agent,
  content: ContentInput,
  options: RunOptions & { output: StandardSchema<unknown, T> | JsonSchema },
): Run<T>;
export function run(
  agent: Agent,
  content: ContentInput,
  { signal, output }: RunOptions & { output?: StandardSchema | JsonSchema } = {},
): Run<unknown> {
  if (signal?.aborted)
    throw new TurnloopError("ABORTED", "the run was aborted before it began", { cause: signal.reason });
  const wanted = output === undefined ? undefined : outputOf(output);
  const from = agent.session.seq;
  const id = agent.send(content, wanted ? { output: wanted.schema } : {});
  const sent = followMessage(agent, id, from);
  const message: FollowedMessage<unknown> = wanted ? withRepairs(agent, sent, wanted) : sent;
  signal?.addEventListener("abort", message.abort, { once: true });
  const result = message.result.finally(() => signal?.removeEventListener("abort", message.abort));
  // Whoever only iterates must not be told twice.
  result.catch(() => {});

  async function* events(): AsyncGenerator<SessionEvent> {
    const queue = createQueue<SessionEvent>();
    const off = message.follow(queue.push, queue.end);
    try {
      yield* queue;
    } finally {
      off();
    }
    const { reason } = await result;
    if (reason.kind === "error") throw new TurnloopError(reason.code ?? "TURN_FAILED", reason.message);
    if (reason.kind === "interrupted")
      throw new TurnloopError("TURN_INTERRUPTED", "the turn was interrupted; the log tells how far it came");
  }

  return {
    id,
    result,
    [Symbol.asyncIterator]: () => events(),
    textStream: () => textOf(events()),
  };
}
