/** What a page could not store before it went: part of the log at the next open, or told; never silently gone. */
import type { SessionBatch, SessionEvent } from "turnloop";
import { afterEach, expect, test } from "vitest";
import {
  append,
  batchOf,
  codeOf,
  events,
  newName,
  openStorage,
  queued,
  stored,
  type Opened,
} from "./indexeddb-parts.ts";

afterEach(() => localStorage.clear());

/** A page goes: these are what it has not stored of its sessions. It lives on as a stranger to what it has left. */
function leave(page: Opened, ...tails: readonly SessionBatch[]): void {
  for (const tail of tails) page.watchTail(tail.id, () => tail);
  globalThis.dispatchEvent(new PageTransitionEvent("pagehide"));
  void page.close!();
}

test("the next page finds the log with its end", async () => {
  const name = newName();
  const page = openStorage(name);
  await append(page, "s", 0, 10);
  leave(page, batchOf("s", 10, events(10, 5)));
  const next = openStorage(name);
  expect((await next.list()).sessions).toMatchObject([{ id: "s", seq: 15, updatedAt: 1014 }]);
  expect(await stored(next, "s")).toEqual(events(0, 15));
  await append(next, "s", 15, 1);
  expect(next.told).toEqual([]);
  expect(Object.keys(localStorage).filter((key) => key.includes(name))).toEqual([]);
});

test("a session of which nothing was stored is there too", async () => {
  const name = newName();
  const page = openStorage(name);
  await page.list();
  leave(page, batchOf("new", 0, events(0, 3)));
  expect(await stored(openStorage(name), "new")).toEqual(events(0, 3));
});

test("a batch that was stored after all is there once", async () => {
  const name = newName();
  const page = openStorage(name);
  await append(page, "s", 0, 10);
  leave(page, batchOf("s", 5, events(5, 8)));
  const next = openStorage(name);
  expect(await stored(next, "s")).toEqual(events(0, 13));
  expect(next.told).toEqual([]);
});

test("several pages that open at once merge it once", async () => {
  const name = newName();
  const page = openStorage(name);
  await append(page, "s", 0, 10);
  leave(page, batchOf("s", 10, events(10, 5)));
  const pages = Array.from({ length: 4 }, () => openStorage(name));
  await Promise.all(pages.map((one) => one.list()));
  expect(await stored(pages[0]!, "s")).toEqual(events(0, 15));
  expect(pages.flatMap((one) => one.told)).toEqual([]);
});

test("when another writer came between, accepted input is queued again by its id, and the rest is told", async () => {
  const name = newName();
  const [page, other] = [openStorage(name), openStorage(name)];
  await append(page, "s", 0, 10);
  const turn: SessionEvent = {
    seq: 14,
    time: 1,
    type: "turn/start",
    data: { turn: 1, trigger: { kind: "injection", source: { kind: "user" } }, messages: ["injected"] },
  };
  const injected: SessionEvent = {
    seq: 15,
    time: 1,
    type: "context/message",
    data: { id: "injected", content: [{ type: "text", text: "by the way" }], source: { kind: "user" } },
    surface: "append",
  };
  const dropped: SessionEvent = { seq: 16, time: 1, type: "inbox/dropped", data: { ids: ["dropped"], reason: "no" } };
  const tail = [
    ...["mine", "theirs", "dropped", "mine too"].map((id, i) => queued(10 + i, id)),
    turn,
    injected,
    dropped,
  ];
  await other.append(batchOf("s", 10, [queued(10, "theirs"), queued(11, "new")]));
  leave(page, batchOf("s", 10, tail));

  const next = openStorage(name);
  const log = (await stored(next, "s"))!;
  expect(log.slice(12)).toMatchObject([
    { seq: 12, type: "inbox/queued", data: { id: "mine", as: "send" } },
    { seq: 13, type: "inbox/queued", data: { id: "mine too", as: "send" } },
    { seq: 14, type: "inbox/queued", data: { id: "injected", as: "inject" } },
  ]);
  expect(next.told).toMatchObject([{ code: "TAIL_LOST", sessionId: "s", cause: tail }]);
  expect((await next.list()).sessions).toMatchObject([{ seq: 15 }]);
  await next.close?.();
  expect(await stored(openStorage(name), "s")).toEqual(log);
});

test("of a session that was deleted meanwhile nothing comes back, and that is told", async () => {
  const name = newName();
  const [page, other] = [openStorage(name), openStorage(name)];
  for (const id of ["gone", "other"]) await append(page, id, 0, 10);
  await other.delete("gone");
  await other.delete("other");
  await append(other, "other", 0, 10);
  leave(page, batchOf("gone", 10, events(10, 2)), batchOf("other", 10, events(10, 2)));
  const next = openStorage(name);
  expect(await next.load("gone")).toBeUndefined();
  expect((await next.load("other"))?.length).toBe(10);
  expect(next.told.map((one) => [one.code, one.sessionId])).toEqual(
    expect.arrayContaining([
      ["TAIL_LOST", "gone"],
      ["TAIL_LOST", "other"],
    ]),
  );
});

test("nobody writes behind the back of a tab that has the session; when it is gone, the tail is merged", async () => {
  const name = newName();
  const [page, holder] = [openStorage(name), openStorage(name)];
  await append(page, "s", 0, 10);
  const claim = await holder.claim!("s", { mode: "fail" });
  leave(page, batchOf("s", 10, events(10, 5)));
  const reader = openStorage(name);
  expect(await stored(reader, "s")).toEqual(events(0, 10));
  await claim.release();
  expect(await stored(reader, "s")).toEqual(events(0, 15));
});

test("who has claimed the session merges it when it loads", async () => {
  const name = newName();
  const page = openStorage(name);
  await append(page, "s", 0, 10);
  leave(page, batchOf("s", 10, events(10, 5)));
  const next = openStorage(name);
  const claim = await next.claim!("s", { mode: "fail" });
  expect(await stored(next, "s")).toEqual(events(0, 15));
  await append(next, "s", 15, 1);
  await claim.release();
});

test("a page that comes back from the browser's cache goes on, also when another has merged its tail", async () => {
  for (const isMerged of [false, true]) {
    const name = newName();
    const page = openStorage(name);
    await append(page, "s", 0, 10);
    page.watchTail("s", () => batchOf("s", 10, events(10, 5)));
    globalThis.dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true }));
    const other = openStorage(name);
    if (isMerged) await other.list();
    globalThis.dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
    for (const [from, count] of [
      [10, 2],
      [12, 3],
      [15, 1],
    ] as const)
      await append(page, "s", from, count);
    expect(await stored(other, "s")).toEqual(events(0, 16));
    expect(await codeOf(append(page, "s", 15, 2))).toBe("SESSION_CONFLICT");
  }
});

test("a frozen page that goes on by itself leaves nothing behind, also when nobody says that it was thawed", async () => {
  const name = newName();
  const page = openStorage(name);
  await append(page, "s", 0, 10);
  let tail: SessionBatch | undefined = batchOf("s", 10, events(10, 5));
  page.watchTail("s", () => tail);
  document.dispatchEvent(new Event("freeze"));
  expect(Object.keys(localStorage)).toHaveLength(1);
  tail = undefined;
  await append(page, "s", 10, 5);
  expect(Object.keys(localStorage)).toEqual([]);
});

test("what a recorder is left with when it stops is merged by the next load in the same page", async () => {
  const name = newName();
  const page = openStorage(name);
  await append(page, "s", 0, 10);
  page.watchTail("s", () => batchOf("s", 10, events(10, 5)))();
  expect(await stored(page, "s")).toEqual(events(0, 15));
  page.watchTail("s", () => undefined)();
});

test("a batch that failed is kept when the page goes, without anybody's help", async () => {
  const name = newName();
  const page = openStorage(name);
  await append(page, "s", 0, 10);
  const { transaction } = IDBDatabase.prototype;
  IDBDatabase.prototype.transaction = () => {
    throw new DOMException("full", "QuotaExceededError");
  };
  expect(await codeOf(append(page, "s", 10, 5))).toBe("STORAGE_QUOTA");
  IDBDatabase.prototype.transaction = transaction;
  globalThis.dispatchEvent(new PageTransitionEvent("pagehide"));
  expect(await stored(openStorage(name), "s")).toEqual(events(0, 15));
});

test("a tail that is too long is cut, which is told by the page that goes and by the one that comes", async () => {
  const name = newName();
  const page = openStorage(name);
  await append(page, "s", 0, 10);
  leave(page, batchOf("s", 10, events(10, 5000)));
  expect(page.told).toMatchObject([{ code: "TAIL_NOT_KEPT" }]);
  const next = openStorage(name);
  const log = (await stored(next, "s"))!;
  expect(log.length).toBeGreaterThan(500);
  expect(log).toEqual(events(0, log.length));
  expect(next.told).toMatchObject([{ code: "TAIL_LOST", sessionId: "s" }]);
  expect((await next.list()).sessions[0]?.seq).toBe(log.length);
});

test("clear and delete remove what was left, and garbage is removed without harm", async () => {
  const name = newName();
  const page = openStorage(name);
  await append(page, "s", 0, 10);
  leave(page, batchOf("s", 10, events(10, 5)));
  await openStorage(name).clear();
  expect(Object.keys(localStorage)).toEqual([]);
  for (const [i, text] of ["", "{", "null", '{"batch":{"id":"s"}}', '{"batch":1}'].entries())
    localStorage.setItem(`turnloop:tail:${name.length}:${name}:w${i}:s`, text);
  const next = openStorage(name);
  expect((await next.list()).sessions).toEqual([]);
  expect(Object.keys(localStorage)).toEqual([]);
});
