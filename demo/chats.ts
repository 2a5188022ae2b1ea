/** The chats that this browser keeps, and what can be done with them beside talking. */
import { TurnloopError, type SessionSummary } from "turnloop";
import { draftOf, nameOf } from "./draft.ts";
import { harness } from "./harness.ts";

const TITLE_LENGTH = 60;

/** A chat is called by the first thing that was said in it, until somebody renames it. */
harness.hooks.on("session/event", ({ session, event }) => {
  if (event.type !== "user/message") return;
  const isNamed = session.events.some(({ type }) => type === "session/titled");
  const { text, files } = draftOf(event.data.content);
  const title = text.replaceAll(/\s+/g, " ").trim() || files.map(nameOf).join(", ");
  if (isNamed || title === "") return;
  session.append("session/titled", {
    title: title.length > TITLE_LENGTH ? `${title.slice(0, TITLE_LENGTH).toWellFormed()}…` : title,
  });
});

/** The newest ones. */
export async function listChats(): Promise<readonly SessionSummary[]> {
  return (await harness.sessions.list({ limit: 100 })).sessions;
}

/** The chat that the address names: each tab has its own, and a reload comes back to it. */
export function chatInAddress(): string {
  const id = decodeURIComponent(location.hash.slice(1));
  return id === "" ? newChat() : id;
}

export function newChat(): string {
  return `chat-${crypto.randomUUID()}`;
}

/** As a file to keep, or to open elsewhere. */
export async function exportChat({ id, title }: Pick<SessionSummary, "id" | "title">): Promise<void> {
  const lines: string[] = [];
  for await (const line of harness.sessions.export(id)) lines.push(line);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
  link.download = `${(title ?? id).replaceAll(/[^\p{L}\p{N} -]/gu, "").trim() || "chat"}.ndjson`;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Answers with its id: a new one where this browser has the chat already. */
export async function importChat(file: File): Promise<string> {
  const lines = [await file.text()];
  try {
    return (await harness.sessions.import(lines)).id;
  } catch (error) {
    if (!TurnloopError.is(error, "SESSION_EXISTS")) throw error;
    return (await harness.sessions.import(lines, { id: newChat() })).id;
  }
}
