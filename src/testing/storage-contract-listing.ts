/** The port, about the list: its order, its pages, what it says. */
import type { SessionStorage, SessionSummary } from "../core.ts";
import {
  batchOf,
  checkThat,
  checkSame,
  eventsFrom,
  headerOf,
  listAll,
  type Statement,
} from "./storage-contract-kit.ts";

/** Stores a session that was changed at that time. */
async function add(storage: SessionStorage, id: string, updatedAt: number): Promise<void> {
  const summary = { id, createdAt: 1, updatedAt, seq: 1, status: "idle" } as const;
  await storage.append(batchOf(id, eventsFrom(0, 1), { summary }));
}

export const LISTING: readonly Statement[] = [
  {
    sentence: "the list of a new medium is empty, and has no cursor",
    async check({ open }) {
      checkSame(await (await open()).list(), { sessions: [] }, "the list");
    },
  },
  {
    sentence: "the list gives the summary of each session as its last batch brought it",
    async check({ open }) {
      const storage = await open();
      const first: SessionSummary = { id: "s", createdAt: 5, updatedAt: 6, seq: 1, status: "open" };
      await storage.append(
        batchOf("s", eventsFrom(0, 1), { summary: first, header: headerOf("s", { meta: { a: 1 } }) }),
      );
      checkSame((await storage.list()).sessions, [first], "the list");
      const last: SessionSummary = { ...first, updatedAt: 9, seq: 3, status: "waiting", title: "a title", parent: "p" };
      await storage.append(batchOf("s", eventsFrom(1, 2), { summary: last }));
      checkSame((await storage.list()).sessions, [last], "the list");
      checkSame((await (await open()).list()).sessions, [last], "the list of another storage object");
      const without: SessionSummary = { ...first, updatedAt: 10, seq: 4 };
      await storage.append(batchOf("s", eventsFrom(3, 1), { summary: without }));
      checkSame((await storage.list()).sessions, [without], "the list");
    },
  },
  {
    sentence: "the list has the newest first, by `updatedAt`, and what is written moves to its head",
    async check({ open }) {
      const storage = await open();
      const times = { a: 500, b: 1, c: 1_764_000_000_000, d: 60, e: 7000 };
      for (const [id, time] of Object.entries(times)) await add(storage, id, time);
      checkSame((await listAll(storage, 50)).flat(), ["c", "e", "a", "d", "b"], "the list");
      const summary = { id: "d", createdAt: 1, updatedAt: 1_764_000_000_001, seq: 2, status: "idle" } as const;
      await storage.append(batchOf("d", eventsFrom(1, 1), { summary }));
      checkSame((await listAll(storage, 50)).flat(), ["d", "c", "e", "a", "b"], "the list");
    },
  },
  {
    sentence:
      "page by page the list is the same list: each session once, also those of the same time, and no cursor at its end",
    async check({ open }) {
      const storage = await open();
      const ids = Array.from({ length: 23 }, (_, i) => `s${i}`);
      for (const [i, id] of ids.entries()) await add(storage, id, 100 + (i % 3));
      const whole = (await listAll(storage, 100)).flat();
      checkSame(whole.toSorted(), ids.toSorted(), "the ids");
      for (const limit of [1, 2, 5, 22, 23, 24]) {
        const pages = await listAll(storage, limit);
        checkSame(pages.flat(), whole, `the list in pages of ${limit}`);
        checkThat(
          pages.every((page) => page.length <= limit),
          `a page has more than ${limit} sessions`,
        );
        checkSame(pages.length, Math.ceil(23 / limit), `the number of pages of ${limit}`);
      }
    },
  },
  {
    sentence:
      "a page goes on where the last one ended, whatever was added, changed or deleted in between, for any reader",
    async check({ open }) {
      const storage = await open();
      for (const [i, id] of ["f", "e", "d", "c", "b", "a"].entries()) await add(storage, id, 100 + i);
      const first = await storage.list({ limit: 2 });
      checkSame(
        first.sessions.map(({ id }) => id),
        ["a", "b"],
        "the first page",
      );
      checkThat(typeof first.cursor === "string", "a page that is not the last needs a cursor, as text");
      await add(storage, "newer", 998);
      await add(storage, "newest", 999);
      await storage.delete("b");
      await storage.delete("d");
      const reader = await open();
      const second = await reader.list({ limit: 2, cursor: first.cursor! });
      checkSame(
        second.sessions.map(({ id }) => id),
        ["c", "e"],
        "the second page",
      );
      const third = await reader.list({ limit: 2, cursor: second.cursor! });
      checkSame(third, { sessions: third.sessions }, "the last page");
      checkSame(
        third.sessions.map(({ id }) => id),
        ["f"],
        "the last page",
      );
    },
  },
];
