/** Plain text: of what a message holds, and of what went wrong. */
import type { ContentBlock, TranscriptPart } from "turnloop";

export function textOf(parts: readonly (TranscriptPart | ContentBlock)[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}

export function problemOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
