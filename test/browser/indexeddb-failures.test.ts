/** What a browser does to a database: each failure has a code, and nothing is acknowledged that is not stored. */
import { createHarness, run } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, onTestFinished, test, vi } from "vitest";
import { createDatabase } from "../../adapters/storage/indexeddb-database.ts";
import { append, codeOf, events, newName, openStorage, stored } from "./indexeddb-parts.ts";

/** A connection as another program has it: it closes for nobody. */
function openRaw(name: string, version: number, upgrade?: (db: IDBDatabase) => void): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name, version);
    request.addEventListener("upgradeneeded", () => upgrade?.(request.result));
    request.addEventListener("error", () => reject(request.error!));
    request.addEventListener("success", () => {
      onTestFinished(() => request.result.close());
      resolve(request.result);
    });
  });
}

/** The connections that are opened from here on. */
function connections(): IDBDatabase[] {
  const all: IDBDatabase[] = [];
  const { open } = IDBFactory.prototype;
  const spy = vi.spyOn(IDBFactory.prototype, "open").mockImplementation(function (this: IDBFactory, ...args) {
    const request = open.apply(this, args);
    request.addEventListener("success", () => all.push(request.result));
    return request;
  });
  onTestFinished(() => spy.mockRestore());
  return all;
}

test("a connection that was lost is opened again, once", async () => {
  const opened = connections();
  const storage = openStorage();
  await append(storage, "s", 0, 3);
  opened[0]!.close();
  await append(storage, "s", 3, 3);
  opened[1]!.close();
  expect(await stored(storage, "s")).toEqual(events(0, 6));
  expect(opened).toHaveLength(3);
});

test("a connection that is lost again and again is an error", async () => {
  const storage = openStorage();
  await append(storage, "s", 0, 3);
  const transaction = vi.spyOn(IDBDatabase.prototype, "transaction").mockImplementation(() => {
    throw new DOMException("closing", "InvalidStateError");
  });
  onTestFinished(() => transaction.mockRestore());
  expect(await codeOf(append(storage, "s", 3, 3))).toBe("STORAGE_FAILED");
  expect(transaction).toHaveBeenCalledTimes(2);
  transaction.mockRestore();
  expect(await stored(storage, "s")).toEqual(events(0, 3));
});

test("it gives way to a newer version, and says from then on to reload the page", async () => {
  const name = newName();
  const storage = openStorage(name);
  await append(storage, "s", 0, 3);
  const writing = append(storage, "s", 3, 3);
  await openRaw(name, 2);
  await writing;
  expect(await codeOf(append(storage, "s", 6, 3))).toBe("STORAGE_OUTDATED");
  expect(await codeOf(storage.list())).toBe("STORAGE_OUTDATED");
});

test("it gives way to whoever deletes the database, and does not take the empty one for its session", async () => {
  const name = newName();
  const storage = openStorage(name);
  await append(storage, "s", 0, 3);
  await new Promise((resolve) => indexedDB.deleteDatabase(name).addEventListener("success", resolve));
  expect(await codeOf(append(storage, "s", 3, 3))).toBe("SESSION_CONFLICT");
  expect(await storage.load("s")).toBeUndefined();
});

test("an old tab that keeps an upgrade from happening is told of at once; when it is gone, all is well", async () => {
  const name = newName();
  const old = await openRaw(name, 1);
  const told: string[] = [];
  const report = ({ code }: { code: string }): void => void told.push(code);
  const database = createDatabase({ name, version: 2, report, onUpgrade() {} });
  onTestFinished(() => database.close());
  const read = (): Promise<unknown> => database.read((tx) => tx.objectStore("sessions").getAll());
  expect(await codeOf(read())).toBe("STORAGE_BLOCKED");
  expect(await codeOf(read())).toBe("STORAGE_BLOCKED");
  expect(told).toEqual(["STORAGE_BLOCKED"]);
  old.close();
  await vi.waitFor(async () => expect(await read()).toEqual([]));
});

test("an open that hangs behind another tab's deletion is told of too", async () => {
  const name = newName();
  const old = await openRaw(name, 1);
  const deleting = indexedDB.deleteDatabase(name);
  await new Promise((resolve) => deleting.addEventListener("blocked", resolve));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const storage = openStorage(name);
  const code = codeOf(storage.list());
  await vi.advanceTimersByTimeAsync(5000);
  expect(await code).toBe("STORAGE_BLOCKED");
  expect(storage.told).toMatchObject([{ code: "STORAGE_BLOCKED" }]);
  old.close();
  await new Promise((resolve) => deleting.addEventListener("success", resolve));
  vi.useRealTimers();
  await vi.waitFor(async () => expect(await codeOf(storage.list())).toBe("resolved"));
});

test("a database of the same name that is not ours is left alone", async () => {
  const name = newName();
  (await openRaw(name, 1, (db) => void db.createObjectStore("theirs"))).close();
  expect(await codeOf(openStorage(name).list())).toBe("STORAGE_FOREIGN");
});

test("where the browser refuses a database, sessions are in memory, and everybody can see it", async () => {
  const open = vi.spyOn(IDBFactory.prototype, "open").mockImplementation(() => {
    throw new DOMException("denied", "SecurityError");
  });
  onTestFinished(() => open.mockRestore());
  const storage = openStorage();
  const harness = createHarness({ storage, model: scriptedModel([{ text: "hello" }]) });
  const { agent } = await harness.agents.open({ id: "s" });
  await run(agent, "hi").result;
  expect(storage.durable).toBe(false);
  expect(storage.told).toMatchObject([{ code: "STORAGE_UNAVAILABLE" }]);
  expect((await storage.list()).sessions).toHaveLength(1);
  await harness.dispose();
  await storage.clear();
  expect((await storage.list()).sessions).toEqual([]);
});

test("an append that the browser aborts, for whatever reason, is not acknowledged and can be tried again", async () => {
  const storage = openStorage();
  await append(storage, "s", 0, 3);
  const spy = vi.spyOn(IDBTransaction.prototype, "commit").mockImplementationOnce(function (this: IDBTransaction) {
    this.abort();
  });
  onTestFinished(() => spy.mockRestore());
  expect(await codeOf(append(storage, "s", 3, 3))).toBe("STORAGE_FAILED");
  expect(await stored(storage, "s")).toEqual(events(0, 3));
  await append(storage, "s", 3, 3);
  expect(await stored(storage, "s")).toEqual(events(0, 6));
});

test("a name must be text, and nobody waits for persist()", async () => {
  expect(() => openStorage("")).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
  const persist = vi.spyOn(StorageManager.prototype, "persist").mockReturnValue(new Promise(() => {}));
  onTestFinished(() => persist.mockRestore());
  const storage = openStorage();
  await append(storage, "s", 0, 1);
  await append(storage, "s", 1, 1);
  expect(persist).toHaveBeenCalledTimes(1);
});
