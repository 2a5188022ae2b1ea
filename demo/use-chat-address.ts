/** The chat of this tab, in its address. */
import { useEffect, useState } from "react";
import { chatInAddress } from "./chats.ts";

export function useChatAddress(): readonly [id: string, open: (id: string) => void] {
  const [id, setId] = useState(chatInAddress);
  useEffect(() => {
    const hash = `#${encodeURIComponent(id)}`;
    // The first one replaces what the visitor typed; those that follow can be gone back from.
    if (location.hash === "") history.replaceState(null, "", hash);
    else if (location.hash !== hash) history.pushState(null, "", hash);
    const follow = (): void => setId(chatInAddress());
    addEventListener("popstate", follow);
    return () => removeEventListener("popstate", follow);
  }, [id]);
  return [id, setId];
}
