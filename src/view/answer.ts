/** The message of one step: what the model streams becomes its parts, attempt by attempt. */
import type { ContentBlock, ModelChunk } from "../core.ts";
import { card, partOf, partsOf, providerCallId } from "./parts.ts";
import type { Draft } from "./messages.ts";
import type { ToolPart, TranscriptPart } from "./types.ts";

export interface Answer {
  readonly draft: Draft;
  readonly step: number;
  /** From 1. */
  readonly attempt: number;
  /** Where in the parts each block of this attempt is. */
  readonly places: Map<number, number>;
  /** Blocks that have ended: nothing adds to them. */
  readonly closed: Set<number>;
  /** This attempt failed; its parts go when the next one streams. */
  failed: boolean;
  /** The `assistant/message` is there: chunks no longer matter. */
  settled: boolean;
}

export function createAnswer(turn: number, step: number): Answer {
  const draft: Draft = { id: `assistant_${turn}_${step}`, role: "assistant", turn, parts: [], state: "streaming" };
  return { draft, step, attempt: 1, places: new Map(), closed: new Set(), failed: false, settled: false };
}

/** The next attempt at the same step, in the same message. */
export function nextAttempt(answer: Answer): Answer {
  answer.draft.parts.length = 0;
  delete answer.draft.error;
  return { ...answer, attempt: answer.attempt + 1, places: new Map(), closed: new Set(), failed: false };
}

/** Takes one chunk, at a cost that does not grow with the answer. True if it can be seen. */
export function writeChunk(answer: Answer, chunk: ModelChunk): boolean {
  if (answer.settled) return false;
  switch (chunk.type) {
    case "block-start": {
      if (answer.places.has(chunk.index)) return false;
      open(answer, chunk.index, chunk.block);
      return true;
    }
    case "delta": {
      if (answer.closed.has(chunk.index)) return false;
      const type = chunk.id === undefined && chunk.name === undefined ? "text" : "tool-call";
      const place = answer.places.get(chunk.index) ?? open(answer, chunk.index, { type });
      const part = answer.draft.parts[place]!;
      if (part.type === "tool") {
        answer.draft.parts[place] = {
          ...part,
          name: part.name || (chunk.name ?? ""),
          arguments: part.arguments + chunk.text,
        };
      } else if (part.type === "text" || part.type === "reasoning") {
        answer.draft.parts[place] = { ...part, text: part.text + chunk.text };
      }
      return true;
    }
    case "block-end":
      return close(answer, chunk.index, chunk.block);
    default:
      return false;
  }
}

function open(answer: Answer, index: number, block: OpenedBlock): number {
  const part: TranscriptPart =
    block.type === "tool-call"
      ? card(callIdAt(answer, index), block.name ?? "", "")
      : { type: block.type === "reasoning" ? "reasoning" : "text", text: "", streaming: true };
  const place = answer.draft.parts.push(part) - 1;
  answer.places.set(index, place);
  return place;
}

type OpenedBlock = (ModelChunk & { type: "block-start" })["block"];

function close(answer: Answer, index: number, block: ContentBlock | undefined): boolean {
  if (answer.closed.has(index)) return false;
  answer.closed.add(index);
  const { parts } = answer.draft;
  const place = answer.places.get(index) ?? parts.length;
  const before = parts[place];
  const part = block ? ended(answer, index, block, place) : before && stopped(before);
  if (!part) return false;
  answer.places.set(index, place);
  parts[place] = part;
  return true;
}

/** The block as it was sent whole. Its `callId` is the provider's here; the loop's is known by the index. */
function ended(answer: Answer, index: number, block: ContentBlock, place: number): TranscriptPart | undefined {
  if (block.type === "tool-call") {
    const written = answer.draft.parts[place];
    const name = block.name || (written?.type === "tool" ? written.name : "");
    return card(callIdAt(answer, index), name, block.arguments);
  }
  return partOf(block, providerCallId(answer.draft.id, place));
}

/** The id that the loop gives the call whose block has this index. */
function callIdAt({ draft, step, attempt }: Answer, index: number): string {
  return `call_${draft.turn}_${step}_${attempt}_${index}`;
}

/** The message as it entered the history: authoritative over the chunks; cards that stay keep what they know. */
export function settle(answer: Answer, content: readonly ContentBlock[]): void {
  const cards = new Map<string, ToolPart>();
  for (const part of answer.draft.parts) if (part.type === "tool") cards.set(part.callId, part);
  const parts = partsOf(content, answer.draft.id);
  answer.draft.parts.length = 0;
  for (const part of parts)
    answer.draft.parts.push(part.type === "tool" ? { ...cards.get(part.callId), ...part } : part);
  answer.settled = true;
  answer.failed = false;
}

/** Nothing is being written any more. */
export function stopWriting(answer: Answer): void {
  const { parts } = answer.draft;
  for (let place = 0; place < parts.length; place += 1) parts[place] = stopped(parts[place]!);
}

function stopped(part: TranscriptPart): TranscriptPart {
  return "streaming" in part && part.streaming ? { ...part, streaming: false } : part;
}
