/** A database in which something else stands than was stored: told with a code, and what is sound is left as it was. */
import { openDB } from "idb";
import type { SessionEvent } from "turnloop";
import { afterEach, expect, test } from "vitest";
import { append, codeOf, events, newName, openStorage, queued, stored } from "./indexeddb-parts.ts";

afterEach(() => localStorage.clear());

const NONE: readonly unknown[] = [undefined, null, "x", 1, Number.NaN, [], {}, { id: "other" }, new Date(0)];

/** Changes the row of a session behind the storage's back. */
async function change(name: string, id: string, fields: object): Promise<void> {
  const database = await openDB(name);
  await database.put("sessions", { ...(await database.get("sessions", id)), ...fields });
  database.close();
}

test("a session whose summary is damaged is listed with what its row knows, and those beside it are untouched", async () => {
  const name = newName();
  const storage = openStorage(name);
  for (const id of ["a", "b", "c"]) await append(storage, id, 0, 3);
  const [a, b, c] = (await storage.list()).sessions;
  for (const wrong of [
    ...NONE,
    { ...b, id: "a" },
    { ...b, status: "?" },
    { ...b, updatedAt: "x" },
    { ...b, seq: -1 },
  ]) {
    await change(name, "b", { summary: wrong });
    const known = { id: "b", createdAt: 1002, updatedAt: 1002, seq: 3, status: "idle" };
    expect((await storage.list()).sessions, JSON.stringify(wrong)).toEqual([a, known, c]);
  }
  await append(storage, "b", 3, 1);
  expect((await storage.list()).sessions[0]).toEqual({ ...b, updatedAt: 1003, seq: 4 });
});

test("a session whose length is damaged is SESSION_CORRUPT, never shorter than it is", async () => {
  const name = newName();
  const storage = openStorage(name);
  await append(storage, "s", 0, 2);
  await append(storage, "s", 2, 2);
  for (const length of [...NONE, 0, -1, 3, 5, 1.5, Infinity]) {
    await change(name, "s", { length });
    expect(await codeOf(stored(storage, "s")), String(length)).toBe("SESSION_CORRUPT");
    expect((await storage.list()).sessions).toHaveLength(1);
  }
  await change(name, "s", { length: 4 });
  expect(await stored(storage, "s")).toEqual(events(0, 4));
});

test("a tail in which anything is damaged is told as TAIL_LOST and goes; the log is read as it was", async () => {
  const name = newName();
  await append(openStorage(name), "s", 0, 2);
  const sound = {
    batch: {
      id: "s",
      from: 2,
      events: [queued(2)],
      summary: { id: "s", createdAt: 1000, updatedAt: 1002, seq: 3, status: "idle" },
    },
    cut: 0,
  };
  const { batch } = sound;
  const [event] = batch.events;
  const withEvent = (fields: object): object => ({ ...sound, batch: { ...batch, events: [{ ...event, ...fields }] } });
  const damaged: readonly object[] = [
    { ...sound, cut: "x" },
    { ...sound, batch: { ...batch, id: 1 } },
    { ...sound, batch: { ...batch, from: "2" } },
    { ...sound, batch: { ...batch, events: "x" } },
    { ...sound, batch: { ...batch, summary: {} } },
    { ...sound, batch: { ...batch, header: { version: 1 } } },
    withEvent({ seq: 3 }),
    withEvent({ time: "x" }),
    withEvent({ type: 1 }),
    withEvent({ data: {} }),
    withEvent({ type: "inbox/dropped", data: { reason: "x" } }),
    withEvent({ surface: "append" }),
    withEvent({ more: true }),
  ];
  for (const [i, tail] of damaged.entries()) {
    localStorage.setItem(`turnloop:tail:${name.length}:${name}:w${i}:s`, JSON.stringify(tail));
    const next = openStorage(name);
    expect(await stored(next, "s"), JSON.stringify(tail)).toEqual(events(0, 2));
    expect(next.told, JSON.stringify(tail)).toMatchObject([{ code: "TAIL_LOST" }]);
    expect(Object.keys(localStorage)).toEqual([]);
    await next.close!();
  }
});

test("a tail with a message that a newer version of the page knows is kept for it", async () => {
  const name = newName();
  const later = { seq: 0, time: 1000, type: "later/message", surface: "append", data: {} } as unknown as SessionEvent;
  const header = { version: 1, id: "s", createdAt: 1000, meta: {} };
  const summary = { id: "s", createdAt: 1000, updatedAt: 1000, seq: 1, status: "idle" };
  const tail = { batch: { id: "s", from: 0, events: [later], header, summary }, cut: 0 };
  localStorage.setItem(`turnloop:tail:${name.length}:${name}:w:s`, JSON.stringify(tail));
  const next = openStorage(name);
  expect(await stored(next, "s")).toEqual([later]);
  expect(next.told).toEqual([]);
});
