/** The transport of `useChat` over an agent: what a page sends becomes commands, the log its chunks. */
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";
import { TurnloopError, type Agent, type SessionEvent, type SessionView } from "../../src/core.ts";
import { followMessage, followTurn } from "./ai-sdk-ui-follow.ts";
import { answersIn, contentOfMessage, type Answers } from "./ai-sdk-ui-said.ts";
import { chunkStream } from "./ai-sdk-ui-stream.ts";
import { createTurnFold } from "./ai-sdk-ui-turn.ts";

type SendOptions<M extends UIMessage> = Parameters<ChatTransport<M>["sendMessages"]>[0];

/**
 * For `useChat({ transport })` and for `new Chat({ transport })`. `agent` is asked once for each chat id, and again
 * when its agent was disposed; the caller opens and disposes.
 *
 * The agent's log is the history: of the messages that `useChat` sends only the last is looked at. A new user message
 * is sent, under its own id; answers to approvals, client tools and questions (`addToolApprovalResponse`,
 * `addToolOutput`) go to `respond`. A turn that waits for such an answer ends its stream, and the answer opens the
 * next one: have it sent by `sendAutomaticallyWhen`. `regenerate` takes up a turn that came to no answer.
 *
 * The abort signal takes the message back, or cancels its turn. `useChat` aborts for `stop()`, and when the component
 * that made the chat unmounts: where that must not end a turn, make the `Chat` outside and pass it as `chat`. A
 * reload, a closed page and a cancelled stream cancel nothing; `reconnectToStream` (`resume: true`) gives the open
 * turn from its beginning.
 *
 * Rejects what `send` and `respond` do, and TURN_WAITING (a message while an answer is waited for),
 * EDIT_UNSUPPORTED, REGENERATE_UNSUPPORTED, NOTHING_TO_ANSWER.
 */
export function agentChatTransport<M extends UIMessage = UIMessage>(
  agent: (chatId: string) => Agent | Promise<Agent>,
): ChatTransport<M> {
  const agents = new Map<string, Promise<Agent>>();

  async function agentOf(chatId: string): Promise<Agent> {
    const known = agents.get(chatId);
    if (known) {
      const opened = await known;
      if (opened.status !== "disposed") return opened;
      if (agents.get(chatId) !== known) return agentOf(chatId);
    }
    const opening = (async () => agent(chatId))();
    agents.set(chatId, opening);
    opening.catch(() => {
      if (agents.get(chatId) === opening) agents.delete(chatId);
    });
    return opening;
  }

  return {
    resumeStreamIsReplay: true,

    async sendMessages({ chatId, messages, trigger, messageId, abortSignal }) {
      const target = await agentOf(chatId);
      // Stopped before anything was sent.
      abortSignal?.throwIfAborted();
      const last = messages.at(-1);
      if (!last) throw new TurnloopError("INVALID_CONTENT", "there is no message to send");
      if (trigger === "regenerate-message") return regenerate(target, last, abortSignal);
      if (last.role === "user" && messageId === undefined) return send(target, last, abortSignal);
      const answered = messages.find((message) => message.id === messageId) ?? last;
      if (answered.role !== "assistant") {
        throw new TurnloopError(
          "EDIT_UNSUPPORTED",
          "what was said stays in the log: fork the session before the message, and send the new one there",
        );
      }
      return answer(target, answered, abortSignal);
    },

    async reconnectToStream({ chatId, abortSignal }) {
      const target = await agentOf(chatId);
      if (abortSignal?.aborted) return null;
      const from = openTurnOf(target.session);
      return from === undefined ? null : turnFrom(target, from, abortSignal);
    },
  };
}

function send(agent: Agent, message: UIMessage, signal: SendOptions<UIMessage>["abortSignal"]): Stream {
  const content = contentOfMessage(message);
  if (agent.getSnapshot().waiting) {
    throw new TurnloopError("TURN_WAITING", "the turn waits for an answer: give that first, then send");
  }
  const from = acceptedAt(agent.session, message.id) ?? agent.session.seq;
  agent.send(content, { id: message.id });
  return stoppable(agent, message.id, signal, (over) =>
    chunkStream(createTurnFold(), (sink) => followMessage(agent, message.id, from, sink), over),
  );
}

async function answer(agent: Agent, message: UIMessage, signal: Signal): Promise<Stream> {
  const said = answersIn(message, agent);
  const from = said && stepOf(agent.session, said);
  if (said === undefined || from === undefined) {
    throw new TurnloopError("NOTHING_TO_ANSWER", "nothing that the message answers is waited for");
  }
  await Promise.all(
    said.answers.map(async ({ id, value }) => {
      try {
        await agent.respond(id, value);
      } catch (thrown) {
        // Another client was first: its answer counts, and is shown.
        if (!TurnloopError.is(thrown, "INTERACTION_RESOLVED")) throw thrown;
      }
    }),
  );
  return turnFrom(agent, from, signal, said.shown);
}

/** A turn that came to no answer is taken up; an answer stays, since the log is the history. */
async function regenerate(agent: Agent, last: UIMessage, signal: Signal): Promise<Stream> {
  const { session } = agent;
  if (last.role === "user" && acceptedAt(session, last.id) === undefined && session.start === 0)
    return send(agent, last, signal);
  // The log has said that the turn is over before the loop has come to rest.
  if (openTurnOf(session) === undefined) await agent.whenIdle();
  signal?.throwIfAborted();
  if (agent.status !== "idle" || session.deriveMessages().at(-1)?.role === "assistant") {
    throw new TurnloopError(
      "REGENERATE_UNSUPPORTED",
      "an answer stays in the log: fork the session before it, and ask there; or send another message",
    );
  }
  const from = session.seq;
  agent.continue();
  return turnFrom(agent, from, signal);
}

type Stream = ReadableStream<UIMessageChunk>;
type Signal = AbortSignal | undefined;

function turnFrom(agent: Agent, from: number, signal: Signal, shown?: ReadonlySet<string>): Stream {
  return stoppable(agent, undefined, signal, (over) =>
    chunkStream(createTurnFold(shown), (sink) => followTurn(agent, from, sink), over),
  );
}

/** While the stream lasts, the signal stops what it shows. */
function stoppable(
  agent: Agent,
  messageId: string | undefined,
  signal: Signal,
  open: (over: () => void) => Stream,
): Stream {
  const cancel = (): void => agent.cancel("stopped by the user", { queue: "keep" });
  const stop = (): void => {
    if (messageId === undefined) return cancel();
    agent.withdraw(messageId).then(
      (withdrawn) => {
        if (!withdrawn) cancel();
      },
      () => {},
    );
  };
  signal?.addEventListener("abort", stop, { once: true });
  return open(() => signal?.removeEventListener("abort", stop));
}

/** Where the log has accepted the message. */
function acceptedAt(session: SessionView, id: string): number | undefined {
  return lastSeq(session, (event) => event.type === "inbox/queued" && event.data.id === id);
}

/** Where the open turn begins. */
function openTurnOf(session: SessionView): number | undefined {
  const seq = lastSeq(session, ({ type }) => type === "turn/start" || type === "turn/end");
  return seq !== undefined && session.at(seq)?.type === "turn/start" ? seq : undefined;
}

/** Where the answer is that made the call. */
function stepOf(session: SessionView, { callId }: Answers): number | undefined {
  const makesCall = (event: SessionEvent): boolean =>
    event.type === "assistant/message" &&
    event.data.content.some((block) => block.type === "tool-call" && block.callId === callId);
  return lastSeq(session, makesCall);
}

function lastSeq(session: SessionView, fits: (event: SessionEvent) => boolean): number | undefined {
  for (let seq = session.seq - 1; seq >= session.start; seq -= 1) {
    const event = session.at(seq);
    if (event && fits(event)) return seq;
  }
  return undefined;
}
