/** Puts a text on the clipboard, and says for a moment that it did. */
import { useEffect, useState } from "react";

/** Milliseconds. */
const SHOWN = 2000;

export function useCopy(): { readonly isCopied: boolean; copy(text: string): void } {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), SHOWN);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return {
    isCopied,
    copy(text) {
      navigator.clipboard.writeText(text).then(
        () => setCopied(true),
        // The browser may refuse; the text can still be selected.
        () => setCopied(false),
      );
    },
  };
}
