/** The contract of storages, as tests for any runner: what `SessionStorage` promises, sentence by sentence. */
import type { SessionStorage } from "../core.ts";
import { CLAIMING } from "./storage-contract-claiming.ts";
import { HOSTILE } from "./storage-contract-hostile.ts";
import { broken, type Statement } from "./storage-contract-kit.ts";
import { LISTING } from "./storage-contract-listing.ts";
import { READING } from "./storage-contract-reading.ts";
import { WRITING } from "./storage-contract-writing.ts";

const STATEMENTS: readonly Statement[] = [...WRITING, ...READING, ...LISTING, ...HOSTILE, ...CLAIMING];

/**
 * Hands one test for each sentence of the port to `runner.test`. `make` gives each test a new, empty medium, such
 * as a file; `open` gives storage objects on it, two at the same time too, and `destroy` removes it when the test
 * is over and its storages are closed.
 *
 * The names of tests that take seconds (100,000 events, one of 5 MB) begin with `heavy: `: give these a longer
 * timeout. A test fails with a TurnloopError coded CONTRACT_BROKEN that says which sentence does not hold, and why.
 */
export function storageContract(
  runner: { test(name: string, body: () => Promise<void>): void },
  make: () => Promise<{ open(): Promise<SessionStorage>; destroy(): Promise<void> }>,
): void {
  for (const { sentence, heavy, check } of STATEMENTS) {
    runner.test(heavy ? `heavy: ${sentence}` : sentence, async () => {
      const medium = await make();
      const opened: SessionStorage[] = [];
      const open = async (): Promise<SessionStorage> => {
        const storage = await medium.open();
        opened.push(storage);
        return storage;
      };
      try {
        await check({ open });
      } catch (cause) {
        const what = cause instanceof Error ? cause.message : String(cause);
        throw broken(`this storage does not keep the sentence "${sentence}": ${what}`, cause);
      } finally {
        await Promise.allSettled(opened.map(async (storage) => storage.close?.()));
        await medium.destroy();
      }
    });
  }
}
