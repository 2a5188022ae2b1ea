/** The port, about reading and deleting: tails, what is loaded stays as it was, reopening. */
import type { SessionEvent } from "../core.ts";
import {
  batchOf,
  checkThat,
  checkRefused,
  checkSame,
  checkStored,
  eventsFrom,
  headerOf,
  listAll,
  readAll,
  type Statement,
} from "./storage-contract-kit.ts";
import { streamedTurn } from "./storage-contract-stream.ts";

export const READING: readonly Statement[] = [
  {
    sentence: "a session that is not stored is undefined, and not an error",
    async check({ open }) {
      const storage = await open();
      await storage.append(batchOf("s", eventsFrom(0, 1)));
      for (const id of ["t", "S", "s ", "", "constructor", "__proto__", "toString"]) {
        checkSame(await storage.load(id), undefined, `the session ${JSON.stringify(id)}`);
      }
    },
  },
  {
    sentence: "a session can be read from any event on, and its header and its length are those of the whole",
    async check({ open }) {
      const storage = await open();
      const events = eventsFrom(0, 20);
      for (const [from, to] of [
        [0, 7],
        [7, 8],
        [8, 20],
      ])
        await storage.append(batchOf("s", events.slice(from, to)));
      for (let from = 0; from <= 20; from += 1) {
        const found = await readAll(storage, "s", from);
        checkSame(found?.events, events.slice(from), `the events from ${from} on`);
        checkSame([found?.header, found?.length], [headerOf("s"), 20], "the header and the length");
      }
    },
  },
  {
    sentence: "what is loaded does not grow, and its length is the number of its events",
    async check({ open }) {
      const [storage, other] = [await open(), await open()];
      await storage.append(batchOf("s", eventsFrom(0, 5)));
      const loaded = await storage.load("s");
      await storage.append(batchOf("s", eventsFrom(5, 5)));
      await other.append(batchOf("s", eventsFrom(10, 5)));
      const events: SessionEvent[] = [];
      for await (const batch of loaded!.batches) events.push(...batch);
      checkSame([loaded!.length, events], [5, eventsFrom(0, 5)], "what was loaded before");
      await checkStored(storage, "s", eventsFrom(0, 15));
    },
  },
  {
    sentence: "who reads may stop in the middle, or read twice at once; the storage goes on",
    async check({ open }) {
      const storage = await open();
      const events = eventsFrom(0, 2500);
      await storage.append(batchOf("s", events.slice(0, 1000)));
      await storage.append(batchOf("s", events.slice(1000)));
      const left = await storage.load("s");
      for await (const _ of left!.batches) break;
      const both = await Promise.all([readAll(storage, "s"), readAll(storage, "s", 990)]);
      checkSame(both[0]?.events, events, "the first reading");
      checkSame(both[1]?.events, events.slice(990), "the second reading");
      await storage.append(batchOf("s", eventsFrom(2500, 1)));
      await checkStored(storage, "s", eventsFrom(0, 2501));
    },
  },
  {
    sentence: "a streamed answer comes back identical, from any event on, whatever the batches and whoever wrote them",
    async check({ open }) {
      const events = streamedTurn();
      for (const size of [1, 7, 25, events.length]) {
        const id = `in ${size}`;
        let storage = await open();
        for (let from = 0; from < events.length; from += size) {
          // Half way through, another storage object goes on.
          if (from <= events.length / 2 && from + size > events.length / 2) storage = await open();
          await storage.append(batchOf(id, events.slice(from, from + size)));
        }
        await checkStored(storage, id, events, `an answer in batches of ${size}`);
        for (let from = 0; from < events.length; from += 9) {
          checkSame(
            (await readAll(storage, id, from))?.events,
            events.slice(from),
            `batches of ${size}, from ${from} on`,
          );
        }
      }
    },
  },
  {
    sentence: "a write is durable when it returns: who opens the medium next finds it, and can go on",
    async check({ open }) {
      const first = await open();
      await first.append(batchOf("s", eventsFrom(0, 5)));
      await first.append(batchOf("s", eventsFrom(5, 5)));
      // As after a crash: nobody has closed the first one.
      const second = await open();
      await checkStored(second, "s", eventsFrom(0, 10));
      await checkRefused(second.append(batchOf("s", eventsFrom(5, 1))), "an old batch", "SESSION_CONFLICT");
      await second.append(batchOf("s", eventsFrom(10, 5)));
      await first.close?.();
      await second.close?.();
      const third = await open();
      await checkStored(third, "s", eventsFrom(0, 15));
      checkSame((await readAll(third, "s"))?.header, headerOf("s"), "the header");
      checkSame((await third.list()).sessions, [batchOf("s", eventsFrom(10, 5)).summary], "the list");
      await third.append(batchOf("s", eventsFrom(15, 5)));
      await checkStored(third, "s", eventsFrom(0, 20));
    },
  },
  {
    sentence: "a session that was deleted is gone, for every reader and after reopening; the others stay",
    async check({ open }) {
      const [storage, other] = [await open(), await open()];
      for (const id of ["s", "s/", "s0"]) await storage.append(batchOf(id, eventsFrom(0, 5)));
      await other.delete("s");
      for (const one of [storage, other, await open()]) {
        checkSame(await one.load("s"), undefined, "the session that was deleted");
        checkSame((await listAll(one, 10)).flat().toSorted(), ["s/", "s0"], "the list");
        await checkStored(one, "s/", eventsFrom(0, 5));
      }
    },
  },
  {
    sentence: "deleting a session that is not stored is no error",
    async check({ open }) {
      const storage = await open();
      await storage.delete("s");
      await storage.append(batchOf("s", eventsFrom(0, 5)));
      await storage.delete("s");
      await storage.delete("s");
      checkSame(await storage.load("s"), undefined, "the session");
    },
  },
  {
    sentence: "the id of a deleted session is free, nothing of the old one comes back, and its late writer is refused",
    async check({ open }) {
      const [storage, other] = [await open(), await open()];
      for (let from = 0; from < 40; from += 10) await storage.append(batchOf("s", eventsFrom(from, 10, "old")));
      await other.delete("s");
      await checkRefused(storage.append(batchOf("s", eventsFrom(40, 5, "old"))), "a late batch", "SESSION_CONFLICT");
      const header = headerOf("s", { meta: { title: "new" } });
      await other.append(batchOf("s", eventsFrom(0, 3, "new"), { header }));
      await checkRefused(storage.append(batchOf("s", eventsFrom(40, 5, "old"))), "a late batch", "SESSION_CONFLICT");
      await checkStored(storage, "s", eventsFrom(0, 3, "new"));
      await storage.append(batchOf("s", eventsFrom(3, 30, "new")));
      await checkStored(storage, "s", eventsFrom(0, 33, "new"));
      const found = await readAll(storage, "s", 15);
      checkSame(found?.events, eventsFrom(15, 18, "new"), "the events from 15 on");
      checkSame(found?.header, header, "the header");
    },
  },
  {
    sentence: "closing in mid write leaves all of the batch or nothing of it, and a session that can go on",
    async check({ open }) {
      const stored = [...eventsFrom(0, 2)];
      const first = await open();
      await first.append(batchOf("s", eventsFrom(0, 2)));
      await first.close?.();
      for (let round = 0; round < 4; round += 1) {
        const storage = await open();
        const rows = [eventsFrom(stored.length, 400), eventsFrom(0, 400)];
        const writes = [storage.append(batchOf("s", rows[0]!)), storage.append(batchOf(`new ${round}`, rows[1]!))];
        const settled = Promise.allSettled(writes);
        await storage.close?.();
        const [known, fresh] = (await settled).map(({ status }) => status === "fulfilled");
        const later = await open();
        const { length } = (await readAll(later, "s"))!;
        const isWhole = length === stored.length + 400;
        checkThat(isWhole || length === stored.length, `${length - stored.length} of 400 events were stored`);
        checkThat(isWhole || !known, "a write said that it was done, and is not there");
        if (isWhole) stored.push(...rows[0]!);
        await checkStored(later, "s", stored);
        const begun = await readAll(later, `new ${round}`);
        checkThat(begun !== undefined || !fresh, "a first write said that it was done, and is not there");
        if (begun) checkSame(begun.events, rows[1], "the new session");
        await later.append(batchOf("s", eventsFrom(stored.length, 1)));
        stored.push(...eventsFrom(stored.length, 1));
        await later.close?.();
        // Twice is no error.
        await later.close?.();
      }
    },
  },
];
