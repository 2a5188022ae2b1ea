/** The messages in pages, so that a long chat is drawn where its reader is and nowhere else. */
import type { TranscriptMessage } from "turnloop";

export interface MessagePage {
  readonly messages: readonly TranscriptMessage[];
  /** The message before it, and the one behind it, if there are any. */
  readonly before: TranscriptMessage | undefined;
  readonly after: TranscriptMessage | undefined;
}

/** Messages of a page. */
const LENGTH = 24;

/** The page that began with this message when it was last looked at. */
const known = new WeakMap<TranscriptMessage, MessagePage>();

/** A page that did not change is the same object again. */
export function toPages(messages: readonly TranscriptMessage[]): readonly MessagePage[] {
  const pages: MessagePage[] = [];
  for (let from = 0; from < messages.length; from += LENGTH) {
    const first = messages[from]!;
    const page: MessagePage = {
      messages: messages.slice(from, from + LENGTH),
      before: messages[from - 1],
      after: messages[from + LENGTH],
    };
    const last = known.get(first);
    const current = last && isSame(last, page) ? last : page;
    known.set(first, current);
    pages.push(current);
  }
  return pages;
}

function isSame(a: MessagePage, b: MessagePage): boolean {
  const isEqual = (message: TranscriptMessage, at: number): boolean => message === b.messages[at];
  return (
    a.before === b.before && a.after === b.after && a.messages.length === b.messages.length && a.messages.every(isEqual)
  );
}

/** Whether the message at this place is the first of its turn. */
export function isFirstOfTurn({ messages, before }: MessagePage, at: number): boolean {
  return (at === 0 ? before : messages[at - 1])?.turn !== messages[at]?.turn;
}

/** Whether it is the last of its turn, but for marks that say how the turn ended. */
export function isLastOfTurn({ messages, after }: MessagePage, at: number): boolean {
  const next = at === messages.length - 1 ? after : messages[at + 1];
  return next?.turn !== messages[at]?.turn || next?.role === "mark";
}
