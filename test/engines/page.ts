/** What runs in the page of each engine: the contract of storages, and a log that outlives its page. */
import type { SessionBatch } from "turnloop";
import { indexedDBStorage } from "turnloop/indexeddb";
import { storageContract } from "turnloop/testing";

export interface EnginePage {
  /** Runs the contract of storages; answers how many sentences hold, and what the others say. */
  contract(): Promise<{ held: number; broken: readonly string[] }>;
  /** Appends so many messages of a session, in batches of 100; answers how many are acknowledged. */
  write(count: number): Promise<number>;
  /** From here on, the page has so many messages more that it has not stored. */
  hold(count: number): Promise<void>;
  /** How many messages are stored, in their order; what was told about the storage. */
  read(): Promise<{ stored: number; told: readonly string[] }>;
}

const told: string[] = [];
const storage = indexedDBStorage({ name: "engine", onDiagnostic: ({ code }) => told.push(code) });

function batch(from: number, count: number): SessionBatch {
  const seqs = Array.from({ length: count }, (_, i) => from + i);
  return {
    id: "s",
    from,
    events: seqs.map((seq) => ({
      seq,
      time: seq,
      type: "inbox/queued",
      data: { id: `m${seq}`, content: [{ type: "text", text: `${seq}` }], source: { kind: "user" }, as: "send" },
    })),
    summary: { id: "s", createdAt: 1, updatedAt: from + count, seq: from + count, status: "idle" },
    ...(from === 0 && { header: { version: 1, id: "s", createdAt: 1, meta: {} } }),
  };
}

async function read(): Promise<{ stored: number; told: readonly string[] }> {
  const found = await storage.load("s");
  let stored = 0;
  if (!found) return { stored, told };
  for await (const events of found.batches) {
    for (const { seq } of events) {
      if (seq !== stored) throw new Error(`event ${seq} stands at ${stored}`);
      stored += 1;
    }
  }
  return { stored, told };
}

const page: EnginePage = {
  async contract() {
    const tests: { name: string; body: () => Promise<void> }[] = [];
    let databases = 0;
    storageContract({ test: (name, body) => void tests.push({ name, body }) }, async () => {
      databases += 1;
      const name = `contract ${databases}`;
      return {
        open: async () => indexedDBStorage({ name }),
        async destroy() {
          indexedDB.deleteDatabase(name);
        },
      };
    });
    const broken: string[] = [];
    for (const { name, body } of tests) {
      await body().catch((thrown: unknown) => broken.push(`${name}: ${String(thrown)}`));
    }
    return { held: tests.length - broken.length, broken };
  },

  async write(count) {
    let { stored } = await read();
    for (const end = stored + count; stored < end; stored += 100) await storage.append(batch(stored, 100));
    return stored;
  },

  async hold(count) {
    const { stored } = await read();
    storage.watchTail("s", () => batch(stored, count));
  },

  read,
};

Object.assign(globalThis, { page });
