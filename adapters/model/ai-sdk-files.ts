/** File data: as the log keeps it, as a model streams it, and as a prompt carries it. */
import type { SharedV4FileDataData, SharedV4FileDataUrl } from "@ai-sdk/provider";
import type { FileBlock } from "../../src/core.ts";

export type KeptFile = FileBlock["data"];

/** From a stream part: bytes or base64 (V2, V3), or either or a URL behind a tag (V4). */
export function keptFile(data: unknown): KeptFile | undefined {
  if (typeof data === "string") return { base64: data };
  if (data instanceof Uint8Array) return { base64: base64Of(data) };
  if (typeof data !== "object" || data === null) return undefined;
  const { type, data: inner, url } = data as { type?: unknown; data?: unknown; url?: unknown };
  if (type === "url") return { url: String(url) };
  return type === "data" ? keptFile(inner) : undefined;
}

/** For a prompt. `data:` URLs are unpacked; undefined for a URL that is none. */
export function sentFile(data: KeptFile): SharedV4FileDataData | SharedV4FileDataUrl | undefined {
  if ("base64" in data) return { type: "data", data: data.base64 };
  const inline = /^data:[^,]*;base64,(.*)$/s.exec(data.url)?.[1];
  if (inline !== undefined) return { type: "data", data: inline };
  return URL.canParse(data.url) ? { type: "url", url: new URL(data.url) } : undefined;
}

/** In pieces: a call takes only so many arguments. */
function base64Of(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 8192) binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(binary);
}
