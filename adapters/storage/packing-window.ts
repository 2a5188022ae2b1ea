/** What was streamed lately: an answer that says the same again is stored as a reference to it. */
import type { SessionEvent } from "../../src/core.ts";

/** The deltas of the step under way. A value: it is replaced, never changed. */
export interface Window {
  /** Nothing before this seq is in it, everything from it up to `end` is. */
  readonly start: number;
  readonly end: number;
  readonly last: Piece | undefined;
}

interface Piece {
  readonly seq: number;
  readonly index: number;
  readonly text: string;
  readonly before: Piece | undefined;
}

export function windowAt(seq: number): Window {
  return { start: seq, end: seq, last: undefined };
}

/** The window behind the next event. It is empty behind an answer and where steps and turns begin and end. */
export function advance(window: Window, event: SessionEvent): Window {
  const { seq, type } = event;
  if (seq !== window.end) return windowAt(seq + 1);
  if (type === "assistant/message" || type.startsWith("step/") || type.startsWith("turn/")) return windowAt(seq + 1);
  const end = seq + 1;
  if (type !== "assistant/chunk") return { ...window, end };
  const chunk: unknown = event.data?.chunk;
  if (!isObject(chunk) || chunk["type"] !== "delta") return { ...window, end };
  const { index, text } = chunk;
  if (typeof index !== "number" || typeof text !== "string") return { ...window, end };
  return { start: window.start, end, last: { seq, index, text, before: window.last } };
}

/** Two windows, the second of which begins where the first one ends, as one. */
export function joinWindows(first: Window, second: Window): Window {
  let { last } = first;
  for (const { seq, index, text } of piecesFrom(second, second.start)) last = { seq, index, text, before: last };
  return { start: first.start, end: second.end, last };
}

function piecesFrom(window: Window, first: number): Piece[] {
  const pieces: Piece[] = [];
  for (let piece = window.last; piece && piece.seq >= first; piece = piece.before) pieces.push(piece);
  return pieces.toReversed();
}

/** The fields of a block that may hold much text. A reference in their place is `[index, length]`. */
const TEXTS = ["text", "arguments"] as const;

/** The message with references in place of all that its cited chunks say; undefined when that is nothing. */
export function refer(event: SessionEvent, window: Window): SessionEvent | undefined {
  const first = firstCited(event);
  if (first === undefined || first < window.start || event.seq !== window.end) return undefined;
  const { content } = (event as SessionEvent<"assistant/message">).data;
  const said = textsFrom(window, first);
  let found = false;
  let foreign = false;
  const short = replaceTexts(content, (text) => {
    if (Array.isArray(text)) foreign = true;
    if (typeof text !== "string") return text;
    for (const [index, whole] of said) {
      if (whole !== text) continue;
      found = true;
      return [index, text.length];
    }
    return text;
  });
  return found && !foreign ? withContent(event, short) : undefined;
}

/** The message as it was; undefined when the window does not hold what it refers to. */
export function recall(event: SessionEvent, window: Window): SessionEvent | undefined {
  const first = firstCited(event);
  if (first === undefined || first < window.start || event.seq !== window.end) return undefined;
  const said = textsFrom(window, first);
  let missing = false;
  const content = replaceTexts((event as SessionEvent<"assistant/message">).data.content, (reference) => {
    if (!Array.isArray(reference)) return reference;
    const [index, length] = reference as unknown[];
    const text = said.get(index as number);
    if (text === undefined || text.length !== length) missing = true;
    return text;
  });
  return missing ? undefined : withContent(event, content);
}

/** The first chunk that an answer cites; undefined when it is none, or holds something else than blocks. */
export function firstCited(event: SessionEvent): number | undefined {
  const { type, cites, data } = event;
  if (type !== "assistant/message" || !Array.isArray(cites)) return undefined;
  if (!isObject(data) || !Array.isArray(data.content) || !data.content.every(isObject)) return undefined;
  const cite: unknown = cites[0];
  const first: unknown = Array.isArray(cite) ? cite[0] : cite;
  return Number.isSafeInteger(first) ? (first as number) : undefined;
}

/** What each block said, from a seq on. */
function textsFrom(window: Window, first: number): Map<number, string> {
  const texts = new Map<number, string>();
  for (const { index, text } of piecesFrom(window, first)) texts.set(index, (texts.get(index) ?? "") + text);
  // A block of an answer is well formed, even where its stream was not.
  return new Map([...texts].map(([index, text]) => [index, text.toWellFormed()]));
}

function replaceTexts(content: readonly object[], replace: (value: unknown) => unknown): object[] {
  return content.map((block) => {
    const copy = { ...block } as Record<string, unknown>;
    for (const field of TEXTS) if (Object.hasOwn(copy, field)) copy[field] = replace(copy[field]);
    return copy;
  });
}

function withContent(event: SessionEvent, content: readonly object[]): SessionEvent {
  // The blocks are those of the message, with nothing but their texts exchanged.
  return { ...event, data: { ...event.data, content } } as SessionEvent;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
