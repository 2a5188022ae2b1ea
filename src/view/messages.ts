/** The messages of a transcript while they grow: what changed is rebuilt when somebody looks, the rest is shared. */
import type { TranscriptMessage, TranscriptPart } from "./types.ts";

/** One message that may still change. Whoever changes it calls `changed`. */
export type Draft = { -readonly [K in keyof Omit<TranscriptMessage, "parts">]: TranscriptMessage[K] } & {
  readonly parts: TranscriptPart[];
};

export interface Messages {
  add(draft: Draft): Draft;
  /** Puts another message in the place of one. */
  replace(old: Draft, draft: Draft): Draft;
  changed(draft: Draft): void;
  /** The same array until something changed. Costs one shallow copy of it, however much changed since. */
  snapshot(): readonly TranscriptMessage[];
}

export function createMessages(): Messages {
  const places = new Map<Draft, number>();
  const dirty = new Set<Draft>();
  let built: readonly TranscriptMessage[] = [];
  let count = 0;

  function put(draft: Draft, place: number): Draft {
    places.set(draft, place);
    dirty.add(draft);
    return draft;
  }

  return {
    add: (draft) => put(draft, count++),

    replace(old, draft) {
      const place = places.get(old);
      if (place === undefined) return put(draft, count++);
      places.delete(old);
      dirty.delete(old);
      return put(draft, place);
    },

    changed(draft) {
      if (places.has(draft)) dirty.add(draft);
    },

    snapshot() {
      if (dirty.size === 0) return built;
      const next = built.slice();
      for (const draft of dirty)
        next[places.get(draft)!] = Object.freeze({ ...draft, parts: Object.freeze(draft.parts.slice()) });
      dirty.clear();
      built = next;
      return built;
    },
  };
}
