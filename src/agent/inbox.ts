/** How messages are accepted: durable at once, each id once; what waits is a fold of the log. */
import { sourceOf } from "../model/content.ts";
import type { ContentInput } from "../model/types.ts";
import { outputSchemaOf, sayableOf } from "../model/verbs.ts";
import type { Log } from "../session/log.ts";
import { queuedMessages, unansweredCalls } from "../session/state.ts";
import { APPEND } from "../session/surface.ts";
import type { QueuedMessage, SendOptions } from "./types.ts";

export interface Inbox {
  /** Queues a message, and answers with its id. INVALID_CONTENT. */
  queue(content: ContentInput, options: SendOptions, as: QueuedMessage["as"]): string;
  /** Into the running turn; a message that asks for structured output has a turn of its own. */
  steer(content: ContentInput, options: SendOptions, running: boolean): string;
  /** Context for the next request: into the open turn, behind a tool batch, or as a turn of its own. */
  inject(content: ContentInput, options: SendOptions): string;
  /** False when a turn has it, or it is not there. */
  withdraw(id: string): boolean;
  /** What a cancel drops: all but injections. */
  droppable(): string[];
  /** What the open turn has taken, and not let into the history yet. */
  taken(): string[];
  /** Whether a message waits for a turn. */
  hasMessages(): boolean;
}

export interface InboxDeps {
  readonly log: Log;
  readonly newId: () => string;
  readonly queued: (message: QueuedMessage) => void;
  /** A message waits for a turn. */
  readonly wake: () => void;
  /** An injection was a turn of its own, which is to be stored. */
  readonly injected: () => void;
}

type Read = { readonly [K in keyof SendOptions]?: SendOptions[K] | undefined };

export function createInbox({ log, newId, queued, wake, injected }: InboxDeps): Inbox {
  const { state } = log;
  const waiting = (): readonly QueuedMessage[] => queuedMessages(state);

  function messageOf(content: ContentInput, { id = newId(), source }: Read): Omit<QueuedMessage, "as"> {
    return { id: String(id).toWellFormed(), content: sayableOf(content), source: sourceOf(source) };
  }

  const inbox: Inbox = {
    queue: (content, { id, source, output }, as) => accept(content, { id, source, output }, as),

    steer(content, { id, source, output }, running) {
      return accept(content, { id, source, output }, running && output === undefined ? "steer" : "send");
    },

    inject(content, options) {
      // Between a call and its result nothing may stand: what comes then waits for the end of the batch.
      const waits = unansweredCalls(state).length > 0 || waiting().some((entry) => entry.as === "inject");
      const { id, source } = options;
      if (waits) return accept(content, { id, source }, "inject");
      const message = messageOf(content, { id, source });
      if (state.accepted.has(message.id)) return message.id;
      if (state.open) log.write("context/message", message, APPEND);
      else injectTurn(message);
      return message.id;
    },

    withdraw(id) {
      const entry = state.inbox.get(id);
      if (!entry || entry.takenBy !== undefined) return false;
      log.write("inbox/dropped", { ids: Object.freeze([id]), reason: "withdrawn" });
      return true;
    },

    droppable: () => [...state.inbox.values()].filter((entry) => entry.as !== "inject").map((entry) => entry.id),
    taken: () => [...state.inbox.values()].filter((entry) => entry.takenBy !== undefined).map((entry) => entry.id),
    hasMessages: () => waiting().some((entry) => entry.as !== "inject"),
  };

  /** The options have been read, each once. */
  function accept(content: ContentInput, { output, ...named }: Read, as: QueuedMessage["as"]): string {
    const message: QueuedMessage = { ...messageOf(content, named), as };
    const schema = output === undefined ? undefined : outputSchemaOf(output);
    if (state.accepted.has(message.id)) return message.id;
    log.write("inbox/queued", { ...message, ...(schema && { output: schema }) });
    queued(Object.freeze(message));
    if (as !== "inject") wake();
    return message.id;
  }

  function injectTurn(message: Omit<QueuedMessage, "as">): void {
    const turn = state.turn + 1;
    const trigger = Object.freeze({ kind: "injection" as const, source: message.source });
    log.write("turn/start", { turn, trigger, messages: Object.freeze([message.id]) });
    try {
      log.write("context/message", message, APPEND);
    } finally {
      log.write("turn/end", { turn, reason: Object.freeze({ kind: "completed" as const }) });
    }
    injected();
  }

  return inbox;
}
