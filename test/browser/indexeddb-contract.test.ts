/** The contract of storages, kept by the browser's database, in a browser. */
import { indexedDBStorage } from "turnloop/indexeddb";
import { storageContract } from "turnloop/testing";
import { test, vi } from "vitest";
import { newName } from "./indexeddb-parts.ts";

vi.setConfig({ testTimeout: 60_000 });

storageContract({ test }, async () => {
  const name = newName();
  return {
    open: async () => indexedDBStorage({ name }),
    async destroy() {
      indexedDB.deleteDatabase(name);
    },
  };
});
