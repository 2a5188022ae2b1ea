/** What the tabs that have one session open say to each other, and the lines on which the leader serves the others. */
import { messagePort } from "../transport/message-port.ts";
import type { Connection } from "../transport/types.ts";

export type Word =
  /** Who leads? Said by a tab that wants to be served, under a name made for this question. */
  | { readonly type: "ask"; readonly from: string }
  /** This one leads, and cannot serve yet: it is to be waited for. */
  | { readonly type: "opening"; readonly leader: string }
  /** From now on this one serves. */
  | { readonly type: "leading"; readonly leader: string }
  /** The answer to `ask`: the leader listens on this line. */
  | { readonly type: "offer"; readonly leader: string; readonly to: string; readonly line: string };

/** Everybody hears what the others say, and not what was said before. */
export interface Channel {
  say(word: Word): void;
  close(): void;
}

export function openChannel(name: string, hear: (word: Word) => void): Channel {
  const channel = new BroadcastChannel(name);
  channel.addEventListener("message", ({ data }) => {
    if (isWord(data)) hear(data);
  });
  return {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no other origin
    say: (word) => channel.postMessage(word),
    close: () => channel.close(),
  };
}

/** Of a line both sides make one; the name is known to the two alone. */
export function openLine(name: string): Connection {
  const channel = new BroadcastChannel(name);
  const connection = messagePort(channel);
  connection.onClose(() => channel.close());
  return connection;
}

/** A page of another version may say something else. */
function isWord(data: unknown): data is Word {
  const word = data as Partial<Record<string, unknown>> | null;
  if (typeof word !== "object" || word === null) return false;
  const has = (...fields: readonly string[]): boolean => fields.every((field) => typeof word[field] === "string");
  switch (word["type"]) {
    case "ask":
      return has("from");
    case "opening":
    case "leading":
      return has("leader");
    case "offer":
      return has("leader", "to", "line");
    default:
      return false;
  }
}
