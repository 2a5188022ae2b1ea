/** Session logs written by hand, through the public `append`. */
import { createHarness, type Session, type SessionEventMap, type SessionEventType } from "turnloop";

const MESSAGES = new Set(["user/message", "assistant/message", "tool/result", "context/message", "steering/message"]);

export interface HandWritten {
  readonly session: Session;
  add<T extends SessionEventType>(type: T, data: SessionEventMap[T]): void;
  /** Chunks of the step that is open. */
  stream(...chunks: readonly SessionEventMap["assistant/chunk"]["chunk"][]): void;
}

export async function handWritten(): Promise<HandWritten> {
  const session = await createHarness().sessions.create();
  let place = { turn: 0, step: 0 };
  const add: HandWritten["add"] = (type, data) => {
    if (type === "step/start") place = data as SessionEventMap["step/start"];
    session.append(type, data, MESSAGES.has(type) ? { surface: "append" } : {});
  };
  return {
    session,
    add,
    stream: (...chunks) => chunks.forEach((chunk) => add("assistant/chunk", { ...place, chunk })),
  };
}

export const USER = { kind: "user" };
export const text = (words: string): { type: "text"; text: string }[] => [{ type: "text", text: words }];
export const delta = (words: string, index = 0): { type: "delta"; index: number; text: string } => ({
  type: "delta",
  index,
  text: words,
});

/** Opens turn 1 with a message, and its first step. */
export function openStep({ add }: HandWritten): void {
  add("turn/start", { turn: 1, trigger: { kind: "message", source: USER } });
  add("user/message", { id: "u1", content: text("hello"), source: USER });
  add("step/start", { turn: 1, step: 1 });
}
