/** Whether this page is at work: a browser freezes pages that nobody looks at, and keeps those that were left for a way back. */
import type { Unregister } from "../../src/core.ts";

export interface PresenceListener {
  /** From now on nothing that takes time gets done here; what is posted in this moment still goes out. */
  leaves?(): void;
  /** It is as it was; its peers may have given it up. */
  returns(): void;
}

/** A page that hangs leaves without a word. */
export function watchPresence({ leaves, returns }: PresenceListener): Unregister {
  const over = new AbortController();
  const { signal } = over;
  const kept =
    (listener: (() => void) | undefined) =>
    ({ persisted }: PageTransitionEvent): void => {
      if (persisted) listener?.();
    };
  if (leaves) globalThis.document?.addEventListener("freeze", leaves, { signal });
  globalThis.document?.addEventListener("resume", returns, { signal });
  globalThis.addEventListener?.("pagehide", kept(leaves), { signal });
  globalThis.addEventListener?.("pageshow", kept(returns), { signal });
  return () => over.abort();
}
