/** The contract of storages on files of SQLite, and what is particular to them. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { storageContract } from "turnloop/testing";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { batchOf, textsOf } from "./batches.ts";

vi.setConfig({ testTimeout: 60_000 });

describe("a file", () => {
  storageContract({ test }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "turnloop-sqlite-"));
    return {
      open: async () => nodeSqliteStorage(join(folder, "sessions.db")),
      destroy: async () => rmSync(folder, { recursive: true }),
    };
  });
});

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnloop-sqlite-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a write waits for that of another process, and blocks nobody here meanwhile", async () => {
  const file = join(folder, "sessions.db");
  const storage = nodeSqliteStorage(file);
  await storage.append(batchOf("s", 0, ["a"]));
  const other = new DatabaseSync(file);
  other.exec("BEGIN IMMEDIATE");
  let done = false;
  const writing = storage.append(batchOf("s", 1, ["b"])).then(() => (done = true));
  // Others have their turns, and readers read.
  for (let i = 0; i < 5; i += 1) await new Promise((resolve) => void setTimeout(resolve));
  expect(await textsOf(storage, "s")).toEqual(["a"]);
  expect(done).toBe(false);
  other.exec("COMMIT");
  await writing;
  expect(await textsOf(storage, "s")).toEqual(["a", "b"]);
  expect(other.prepare("PRAGMA journal_mode").get()).toMatchObject({ journal_mode: "wal" });
  other.close();
  await storage.close?.();
});

test("a file that another process has just begun to make is opened all the same, and used when that is done", async () => {
  const file = join(folder, "sessions.db");
  const other = new DatabaseSync(file);
  other.exec("BEGIN EXCLUSIVE; CREATE TABLE theirs (x)");
  const storage = nodeSqliteStorage(file);
  let done = false;
  const writing = storage.append(batchOf("s", 0, ["a"])).then(() => (done = true));
  for (let i = 0; i < 5; i += 1) await new Promise((resolve) => void setTimeout(resolve));
  expect(done).toBe(false);
  other.exec("COMMIT");
  await writing;
  expect(await textsOf(storage, "s")).toEqual(["a"]);
  other.close();
  const third = new DatabaseSync(file);
  expect(third.prepare("PRAGMA journal_mode").get()).toMatchObject({ journal_mode: "wal" });
  third.close();
  await storage.close?.();
});

test("an append that fails half-way leaves nothing behind", async () => {
  const file = join(folder, "sessions.db");
  const storage = nodeSqliteStorage(file);
  await storage.append(batchOf("s", 0, ["first"]));
  const other = new DatabaseSync(file);
  other.exec("CREATE TRIGGER refuse BEFORE UPDATE ON turnloop_sessions BEGIN SELECT RAISE(ABORT, 'no'); END");
  await expect(storage.append(batchOf("s", 1, ["never stored"]))).rejects.toMatchObject({ code: "STORAGE_FAILED" });
  other.exec("DROP TRIGGER refuse");
  other.close();
  await storage.append(batchOf("s", 1, ["second"]));
  expect(await textsOf(storage, "s")).toEqual(["first", "second"]);
  await storage.close?.();
});

test("a closed storage opens its file again when it is used again", async () => {
  const storage = nodeSqliteStorage(join(folder, "sessions.db"));
  await storage.append(batchOf("s", 0, ["a"]));
  await storage.close?.();
  expect(await textsOf(storage, "s")).toEqual(["a"]);
  await storage.close?.();
});

test("a file that cannot be opened is refused at once", () => {
  const noDatabase = join(folder, "notes.txt");
  writeFileSync(noDatabase, "Dear diary, today I was mistaken for a database.".repeat(100));
  for (const file of [noDatabase, join(folder, "missing", "sessions.db"), folder]) {
    expect(() => nodeSqliteStorage(file)).toThrow(expect.objectContaining({ code: "STORAGE_FAILED" }));
  }
  for (const file of ["", ":memory:", undefined as unknown as string]) {
    expect(() => nodeSqliteStorage(file)).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
  }
});
