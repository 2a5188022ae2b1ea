/** Plain text of what a message holds. */
import type { ContentBlock, TranscriptPart } from "turnloop";

export function textOf(parts: readonly (TranscriptPart | ContentBlock)[]): string {
  return parts.map((part) => (part.type === "text" ? part.text : "")).join("");
}
