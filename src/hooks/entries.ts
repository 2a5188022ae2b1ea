/** What is registered under names: each once, until whoever registered it takes it back. */
import { TurnloopError } from "../errors.ts";
import type { Unregister } from "./types.ts";

/** Enters one, and tells of it, as of its end. A name that is taken throws `code`. */
export function enter<Entry extends object>(
  entries: Map<string, Entry>,
  name: string,
  entry: Entry,
  code: string,
  what: string,
  changed?: () => void,
): Unregister {
  if (entries.has(name)) {
    throw new TurnloopError(
      code,
      `${what} "${name}" is registered already; unregister it first, or choose another name`,
    );
  }
  entries.set(name, entry);
  changed?.();
  return () => {
    // Only what this call has entered: the name may have been taken again since.
    if (entries.get(name) !== entry) return;
    entries.delete(name);
    changed?.();
  };
}
