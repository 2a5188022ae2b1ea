/** Several registrations of a plugin, as the one that it returns: taken back last first. */
import type { Unregister } from "../core.ts";

export function together(...registrations: readonly Unregister[]): Unregister {
  return () => {
    for (const off of registrations.toReversed()) off();
  };
}
