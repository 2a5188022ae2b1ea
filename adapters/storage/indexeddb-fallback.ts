/** Sessions in memory where a page gets no database: it works, and everybody can see that nothing will last. */
import { memoryStorage, TurnloopError, type Diagnostic, type SessionStorage } from "../../src/core.ts";
import type { IndexedDBStorage } from "./indexeddb.ts";

/** `real`, until the browser turns out to refuse it; without one, memory from the start. */
export function orMemory(
  real: IndexedDBStorage | undefined,
  report: (diagnostic: Diagnostic) => void,
): IndexedDBStorage {
  let current: SessionStorage = real ?? fallBack();

  function fallBack(cause?: unknown): SessionStorage {
    report({
      code: "STORAGE_UNAVAILABLE",
      message: "there is no IndexedDB here: sessions are kept in memory, and are gone with the page",
      ...(cause !== undefined && { cause }),
    });
    return memoryStorage();
  }

  /** A refusal shows at the first use; what was asked then is asked of the memory. */
  async function asked<T>(work: (storage: SessionStorage) => Promise<T>): Promise<T> {
    const mine = current;
    try {
      return await work(mine);
    } catch (thrown) {
      if (!TurnloopError.is(thrown, "STORAGE_UNAVAILABLE")) throw thrown;
      if (current === mine) current = fallBack(thrown);
      return work(current);
    }
  }

  return {
    get durable() {
      return current.durable;
    },
    append: (batch) => asked((storage) => storage.append(batch)),
    load: (id, options) => asked((storage) => storage.load(id, options)),
    list: (options) => asked((storage) => storage.list(options)),
    delete: (id) => asked((storage) => storage.delete(id)),
    ...(real?.claim && { claim: real.claim }),
    watchTail: (id, tail) => real?.watchTail(id, tail) ?? (() => {}),
    async clear() {
      await asked(async (storage) => {
        if (storage === real) await real.clear();
        else current = memoryStorage();
      });
    },
    close: async () => real?.close?.(),
  };
}
