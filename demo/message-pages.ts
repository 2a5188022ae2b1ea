/** The messages in pages, so that a long chat is drawn where its reader is and nowhere else. */
import type { TranscriptMessage } from "turnloop";

export interface MessagePage {
  readonly messages: readonly TranscriptMessage[];
  /** The turns of its neighbours, if it has any. */
  readonly before: number | undefined;
  readonly after: number | undefined;
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
      before: messages[from - 1]?.turn,
      after: messages[from + LENGTH]?.turn,
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
