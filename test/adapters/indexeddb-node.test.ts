/** The browser's storage where there is no browser: it works, in memory, and says so. */
import { createHarness, run, type Diagnostic } from "turnloop";
import { indexedDBStorage } from "turnloop/indexeddb";
import { scriptedModel, storageContract } from "turnloop/testing";
import { describe, expect, test, vi } from "vitest";

test("without IndexedDB sessions are in memory, `durable` is false, and one diagnostic says so", async () => {
  const told: Diagnostic[] = [];
  const storage = indexedDBStorage({ onDiagnostic: (one) => told.push(one) });
  expect(storage.durable).toBe(false);
  const harness = createHarness({ storage, model: scriptedModel(["hello"]) });
  const { agent } = await harness.agents.open({ id: "chat" });
  await run(agent, "hi").result;
  expect((await storage.list()).sessions).toMatchObject([{ id: "chat", status: "idle" }]);
  await harness.dispose();
  await storage.clear();
  expect(await storage.load("chat")).toBeUndefined();
  expect(told).toMatchObject([{ code: "STORAGE_UNAVAILABLE" }]);
});

test("who does not listen is warned on the console, and a listener that throws does no harm", () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  indexedDBStorage();
  expect(warn.mock.calls).toEqual([[expect.stringContaining("STORAGE_UNAVAILABLE")]]);
  warn.mockRestore();
  indexedDBStorage({
    onDiagnostic() {
      throw new Error("mine");
    },
  });
});

describe("in memory the contract of storages holds too", () => {
  vi.setConfig({ testTimeout: 60_000 });
  storageContract({ test }, async () => {
    const storage = indexedDBStorage({ onDiagnostic() {} });
    return { open: async () => storage, async destroy() {} };
  });
});
