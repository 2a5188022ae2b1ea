/** The contract of storages: memory keeps it, and a storage that breaks one sentence of it is caught. */
import { memoryStorage, type SessionStorage } from "turnloop";
import { storageContract } from "turnloop/testing";
import { describe, expect, test, vi } from "vitest";
import { BREAKS } from "../support/broken-storages.ts";
import { claimingMedium } from "../support/claiming-storage.ts";

vi.setConfig({ testTimeout: 60_000 });

describe("memoryStorage", () => {
  storageContract({ test }, async () => {
    const storage = memoryStorage();
    return { open: async () => storage, destroy: async () => {} };
  });
});

describe("a storage with claims", () => {
  storageContract({ test }, async () => ({ ...claimingMedium(), destroy: async () => {} }));
});

/** The tests of the contract by their names, for a storage that differs in this. */
function testsOf(change: (good: SessionStorage) => Partial<SessionStorage>): Map<string, () => Promise<void>> {
  const tests = new Map<string, () => Promise<void>>();
  const add = (name: string, body: () => Promise<void>): void => void tests.set(name, body);
  storageContract({ test: add }, async () => {
    const { open } = claimingMedium();
    const openBroken = async (): Promise<SessionStorage> => {
      const good = await open();
      return { ...good, ...change(good) };
    };
    return { open: openBroken, destroy: async () => {} };
  });
  return tests;
}

describe("a storage is caught when it breaks the sentence", () => {
  for (const [beginning, change] of Object.entries(BREAKS)) {
    test(`${beginning} ...`, async () => {
      const tests = testsOf(change);
      const name = [...tests.keys()].find((one) => one.replace("heavy: ", "").startsWith(beginning))!;
      const error = await tests.get(name)!().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toMatchObject({ code: "CONTRACT_BROKEN" });
      expect((error as Error).message).toContain(name.replace("heavy: ", ""));
    });
  }

  test("and there is no sentence that none of these breaks", () => {
    const sentences = [...testsOf(() => ({})).keys()].map((name) => name.replace("heavy: ", ""));
    const beginnings = Object.keys(BREAKS);
    expect(sentences.filter((one) => !beginnings.some((beginning) => one.startsWith(beginning)))).toEqual([]);
    expect(beginnings.filter((beginning) => !sentences.some((one) => one.startsWith(beginning)))).toEqual([]);
  });
});

describe("the suite", () => {
  test("gives each test a medium of its own, and closes and destroys what a test leaves, also one that fails", async () => {
    const calls: string[] = [];
    const tests: (() => Promise<void>)[] = [];
    let media = 0;
    storageContract({ test: (_, body) => void tests.push(body) }, async () => {
      const medium = (media += 1);
      const good = memoryStorage();
      const append = async (): Promise<void> => {
        throw new Error("full");
      };
      const close = async (): Promise<void> => void calls.push(`close ${medium}`);
      return {
        open: async () => ({ ...good, append, close }),
        destroy: async () => void calls.push(`destroy ${medium}`),
      };
    });
    await expect(tests[0]!()).rejects.toMatchObject({ code: "CONTRACT_BROKEN", cause: { message: "full" } });
    await expect(tests[1]!()).rejects.toMatchObject({ code: "CONTRACT_BROKEN" });
    expect(calls).toEqual(["close 1", "destroy 1", "close 2", "destroy 2"]);
  });
});
