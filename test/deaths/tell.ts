/** Tells those outside over HTTP, and goes on once they have heard it. */
import type { Tell } from "./life.ts";

export function tellTo(address: string): Tell {
  return async (told) => {
    const response = await fetch(address, { method: "POST", body: JSON.stringify(told) });
    await response.body?.cancel();
  };
}
