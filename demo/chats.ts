/** The chats, and what can be done with them beside talking. */
import { TurnloopError, type SessionSummary } from "turnloop";
import { place } from "./place.ts";

/** The chat that the address names: each tab has its own, and a reload comes back to it. */
export function chatInAddress(): string {
  const id = decodeURIComponent(location.hash.slice(1));
  return id === "" ? place.newId() : id;
}

/** As a file to keep, or to open elsewhere. */
export async function exportChat({ id, title }: Pick<SessionSummary, "id" | "title">): Promise<void> {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([...(await place.export(id))], { type: "application/x-ndjson" }));
  link.download = `${(title ?? id).replaceAll(/[^\p{L}\p{N} -]/gu, "").trim() || "chat"}.ndjson`;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** Answers with its id: a new one where the chat is there already. */
export async function importChat(file: File): Promise<string> {
  const lines = [await file.text()];
  try {
    return await place.import(lines);
  } catch (error) {
    if (!TurnloopError.is(error, "SESSION_EXISTS")) throw error;
    return place.import(lines, place.newId());
  }
}
