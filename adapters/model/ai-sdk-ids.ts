/** Ids and names of tool calls as a provider accepts them: the same at a call and at its result. */
import type { Message } from "../../src/core.ts";

const LEGAL = /^[a-zA-Z0-9_-]{1,64}$/;
const MISTRAL = /^[a-zA-Z0-9]{9}$/;

/** Maps the `callId` of the log to the id in this request. */
export type WireIds = (callId: string) => string;

/**
 * A call keeps the id that its provider gave it, where the same provider is asked again and that id is legal
 * and stands once in the request; else it goes by the id of the log, shortened if need be.
 */
export function wireIds(messages: readonly Message[], isOwn: (message: Message) => boolean, family: string): WireIds {
  const legal = family === "mistral" ? MISTRAL : LEGAL;
  const calls = new Map<string, string | undefined>();
  const uses = new Map<string, number>();
  for (const message of messages) {
    if (message.role !== "assistant") continue;
    for (const block of message.content) {
      if (block.type !== "tool-call") continue;
      const given = isOwn(message) ? block.meta?.providerCallId : undefined;
      const candidate = typeof given === "string" && legal.test(given) ? given : undefined;
      calls.set(block.callId, candidate);
      if (candidate !== undefined) uses.set(candidate, (uses.get(candidate) ?? 0) + 1);
    }
  }

  const ids = new Map<string, string>();
  const taken = new Set<string>();
  const give = (callId: string, id: string): string => {
    taken.add(id);
    ids.set(callId, id);
    return id;
  };
  const fromLog = (callId: string): string => {
    let id = legal.test(callId) ? callId : shorten(callId, legal === MISTRAL);
    for (let n = 1; taken.has(id); n += 1) id = shorten(`${callId}#${n}`, legal === MISTRAL);
    return give(callId, id);
  };

  for (const [callId, candidate] of calls) {
    if (candidate !== undefined && uses.get(candidate) === 1 && !calls.has(candidate)) give(callId, candidate);
  }
  for (const callId of calls.keys()) if (!ids.has(callId)) fromLog(callId);
  return (callId) => ids.get(callId) ?? fromLog(callId);
}

/** A name that every provider accepts; never empty. */
export function wireName(name: string): string {
  return LEGAL.test(name) ? name : name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || "unknown_tool";
}

/** Deterministic: the same text gives the same id. Nine letters and digits where that is the rule. */
function shorten(text: string, nine: boolean): string {
  const hash = fnv(text, 0x811c9dc5) + fnv(text, 0x01000193);
  return nine ? hash.slice(0, 9) : `${text.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 40)}_${hash}`;
}

/** FNV-1a over UTF-16 code units, as seven letters and digits. */
function fnv(text: string, seed: number): string {
  let hash = seed;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return hash.toString(36).padStart(7, "0");
}
