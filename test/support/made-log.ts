/** Logs made by hand: as another process left them, or as they were written elsewhere. */
import {
  memoryStorage,
  type ContentBlock,
  type EventEnvelope,
  type Message,
  type SessionEvent,
  type SessionEventMap,
  type SessionEventType,
  type SessionHeader,
  type SessionStorage,
  type TurnEndReason,
} from "turnloop";

/** An event that has no place yet. */
export type Line = Omit<SessionEvent, "seq" | "time"> & Partial<Pick<EventEnvelope, "time">>;

/** Numbers the lines; event `n` is of the time 1000 + n. */
export function logOf(...lines: readonly (Line | readonly Line[])[]): SessionEvent[] {
  // A line has the fields of its event, all but the two that are added here.
  return lines.flat().map((one, seq) => Object.assign({ seq, time: 1000 + seq }, one) as SessionEvent);
}

export function line<T extends SessionEventType>(
  type: T,
  data: SessionEventMap[T],
  envelope: Pick<EventEnvelope, "surface" | "cites"> = {},
): Line {
  return { type, data, ...envelope };
}

const USER = { kind: "user" };
const APPEND = { surface: "append" } as const;
const text = (value: string): ContentBlock[] => [{ type: "text", text: value }];

export const turnStart = (turn: number, messages?: readonly string[]): Line =>
  line("turn/start", { turn, trigger: { kind: "message", source: USER }, ...(messages && { messages }) });
export const turnEnd = (turn: number, reason: TurnEndReason = { kind: "completed" }): Line =>
  line("turn/end", { turn, reason });
export const stepStart = (turn: number, step: number): Line => line("step/start", { turn, step });
export const stepEnd = (turn: number, step: number): Line => line("step/end", { turn, step });
export const queued = (id: string, as: "send" | "steer" | "inject" = "send"): Line =>
  line("inbox/queued", { id, content: text(id), source: USER, as });
export const user = (id: string): Line => line("user/message", { id, content: text(id), source: USER }, APPEND);
export const context = (id: string, kind = "user"): Line =>
  line("context/message", { id, content: text(id), source: { kind } }, APPEND);

/** An answer: what it says, and the ids of its calls of the tool `work`. */
export const assistant = (turn: number, step: number, says: string, ...calls: string[]): Line =>
  line(
    "assistant/message",
    {
      turn,
      step,
      model: "scripted/model",
      content: [
        ...(says === "" ? [] : text(says)),
        ...calls.map((callId) => ({ type: "tool-call" as const, callId, name: "work", arguments: "{}" })),
      ],
    },
    APPEND,
  );
export const called = (turn: number, step: number, callId: string): Line =>
  line("tool/call", { turn, step, callId, name: "work", arguments: "{}" });
export const started = (turn: number, step: number, callId: string): Line =>
  line("tool/start", { turn, step, callId, attempt: 1 });
export const result = (turn: number, step: number, callId: string, says = `${callId} is done`): Line =>
  line("tool/result", { turn, step, callId, content: text(says), isError: false }, APPEND);

/** A turn of one step in which nothing remarkable happens. */
export const plainTurn = (turn: number, asks = `question ${turn}`, says = `answer ${turn}`): Line[] => [
  turnStart(turn),
  user(asks),
  stepStart(turn, 1),
  assistant(turn, 1, says),
  stepEnd(turn, 1),
  turnEnd(turn),
];

export function headerOf(id: string, more: Partial<SessionHeader> = {}): SessionHeader {
  return { version: 1, id, createdAt: 1000, meta: {}, ...more };
}

/** Puts a log into a storage, as some earlier process did. */
export async function store(
  storage: SessionStorage,
  id: string,
  events: readonly SessionEvent[],
  header: SessionHeader = headerOf(id),
): Promise<void> {
  const { createdAt } = header;
  const summary = { id, createdAt, updatedAt: events.at(-1)?.time ?? createdAt, seq: events.length, status: "idle" };
  await storage.append({ id, from: 0, events, header, summary: summary as never });
}

/** A storage that holds one session. */
export async function storageOf(
  events: readonly SessionEvent[],
  id = "s",
  header?: SessionHeader,
): Promise<SessionStorage> {
  const storage = memoryStorage();
  await store(storage, id, events, header);
  return storage;
}

/** A history in short: who says what, `calls` and `results` by the id of the call. */
export function said(messages: readonly Message[]): string[] {
  return messages.map(({ role, content }) => {
    const words = content.map((block) => {
      if (block.type === "tool-call") return `calls ${block.callId}`;
      if (block.type === "tool-result") return `${block.isError ? "fails" : "answers"} ${block.callId}`;
      return "text" in block ? block.text : block.type;
    });
    return `${role}: ${words.join(" ")}`;
  });
}
