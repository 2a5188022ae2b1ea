/** A history that was kept elsewhere, as the beginning of a session. */
import {
  type ContentBlock,
  type Message,
  type MessageSource,
  type SessionEvent,
  type SessionEventMap,
  type SessionEventType,
  type ToolCallBlock,
  type ToolResultBlock,
  TurnloopError,
} from "../core.ts";
import { pairCalls } from "./pairing.ts";

const USER: MessageSource = Object.freeze({ kind: "user" });
const UNKNOWN_MODEL = "unknown";
const UNKNOWN_TOOL = "unknown";

/**
 * Session events for `create({ seed })`: user messages open turns, each assistant message is a step, and
 * every tool call has exactly one result behind it. What a history may lack is put right: a call without a
 * result is answered with the error TOOL_OUTCOME_UNKNOWN; a result without a call and an empty message are
 * left out. Call ids are given anew, since those of providers repeat; theirs are kept as `providerCallId`.
 * Sources are kept. Throws INVALID_CONTENT for what is no message.
 */
export function eventsFromMessages(messages: readonly Message[]): SessionEvent[] {
  messages.forEach(checkMessage);
  const results = pairCalls(messages);
  const log = createSeedLog();
  let turn = 0;
  /** Steps of the open turn; -1 when none is open. */
  let steps = -1;
  let users = 0;

  const openTurn = (kind: "message" | "continue", source: MessageSource): void => {
    closeTurn();
    turn += 1;
    steps = 0;
    log.push("turn/start", { turn, trigger: { kind, source } });
  };
  const closeTurn = (): void => {
    if (steps >= 0) log.push("turn/end", { turn, reason: { kind: "completed" } });
    steps = -1;
  };
  const say = (content: readonly ContentBlock[], source: MessageSource): void => {
    if (steps !== 0) openTurn("message", source);
    log.pushMessage("user/message", { id: `seed_${(users += 1)}`, content, source });
  };
  const answer = (message: Message): void => {
    if (steps < 0) openTurn("continue", USER);
    steps += 1;
    const place = { turn, step: steps };
    const calls = new Map<ToolCallBlock, ToolCallBlock>();
    const content = message.content.filter(isSaid).map((block, index) => {
      if (block.type !== "tool-call") return block;
      const renamed = renameCall(block, `call_${turn}_${steps}_1_${index}`);
      calls.set(block, renamed);
      return renamed;
    });
    log.push("step/start", place);
    log.pushMessage("assistant/message", { ...place, model: message.model ?? UNKNOWN_MODEL, content });
    for (const [original, { callId, name, arguments: args }] of calls) {
      const providerCallId = providerIdOf(original);
      const seq = log.push("tool/call", { ...place, callId, name, arguments: args, providerCallId });
      log.pushMessage("tool/result", { ...place, callId, ...outcomeOf(results.get(original)) }, seq);
    }
    log.push("step/end", place);
  };

  for (const message of messages) {
    const content = message.content.filter(message.role === "user" ? isUsers : isSaid);
    if (content.length === 0) continue;
    if (message.role === "user") say(content, message.source ?? USER);
    else if (message.role === "assistant") answer(message);
  }
  closeTurn();
  return log.events;
}

/** Results are placed behind their calls, wherever they stood. */
function isSaid(block: ContentBlock): boolean {
  return block.type !== "tool-result";
}

function isUsers(block: ContentBlock): boolean {
  return block.type === "text" || block.type === "file" || block.type === "source";
}

function renameCall(block: ToolCallBlock, callId: string): ToolCallBlock {
  const meta = { ...block.meta, providerCallId: providerIdOf(block) };
  return { ...block, callId, name: block.name || UNKNOWN_TOOL, meta };
}

/** Of a call that was logged here before, its `callId` is not the provider's. */
function providerIdOf({ callId, meta }: ToolCallBlock): string {
  const own = meta?.["providerCallId"];
  return typeof own === "string" ? own : callId;
}

function outcomeOf(
  result: ToolResultBlock | undefined,
): Pick<SessionEventMap["tool/result"], "content" | "isError" | "error"> {
  if (result) return { content: result.content, isError: result.isError };
  const text = "The history from which this call was taken holds no result; whether it took effect is not known.";
  return {
    content: [{ type: "text", text }],
    isError: true,
    error: { name: "TurnloopError", code: "TOOL_OUTCOME_UNKNOWN" },
  };
}

interface SeedLog {
  readonly events: SessionEvent[];
  push<T extends SessionEventType>(type: T, data: SessionEventMap[T]): number;
  pushMessage<T extends SessionEventType>(type: T, data: SessionEventMap[T], cites?: number): number;
}

function createSeedLog(): SeedLog {
  const events: SessionEvent[] = [];
  const time = Date.now();
  const add = (type: SessionEventType, data: unknown, more?: object): number => {
    const seq = events.length;
    // `push` and `pushMessage` tie the data to the type, which a union of all types cannot.
    events.push({ seq, time, type, data, ...more } as SessionEvent);
    return seq;
  };
  return {
    events,
    push: (type, data) => add(type, data),
    pushMessage: (type, data, cites) =>
      add(type, data, { surface: "append", ...(cites !== undefined && { cites: [cites] }) }),
  };
}

function checkMessage(message: Message, place: number): void {
  const { role, content } = (message ?? {}) as Partial<Message>;
  const isRole = role === "user" || role === "assistant" || role === "tool";
  if (!isRole || !Array.isArray(content) || !content.every((block) => typeof block?.type === "string")) {
    throw new TurnloopError(
      "INVALID_CONTENT",
      `message ${place} of the history needs a role (user, assistant or tool) and an array of content blocks`,
    );
  }
}
