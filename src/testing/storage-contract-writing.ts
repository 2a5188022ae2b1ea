/** The port, about writing: order, gaps, two writers, atomic batches. */
import {
  batchOf,
  broken,
  checkCode,
  checkThat,
  checkRefused,
  checkSame,
  checkStored,
  eventsFrom,
  failureOf,
  headerOf,
  pause,
  readAll,
  type Statement,
} from "./storage-contract-kit.ts";

/** Looks again and again while a write is under way; resolves when it is done and nothing was found wrong. */
async function lookOn(write: Promise<void>, look: () => Promise<void>): Promise<void> {
  let done = false;
  const settled = failureOf(write).then(() => (done = true));
  try {
    while (!done) {
      await look();
      await pause();
    }
  } finally {
    await settled;
  }
  await write;
}

export const WRITING: readonly Statement[] = [
  {
    sentence: "events come back in the order in which they were appended, whatever the batches were",
    async check({ open }) {
      const storage = await open();
      checkSame(typeof storage.durable, "boolean", "the type of `durable`");
      const events = eventsFrom(0, 60);
      let from = 0;
      for (const size of [1, 2, 30, 1, 9, 17]) {
        await storage.append(batchOf("s", events.slice(from, from + size)));
        from += size;
        await checkStored(storage, "s", events.slice(0, from));
      }
      checkSame((await readAll(storage, "s"))?.header, headerOf("s"), "the header");
    },
  },
  {
    sentence: "a batch that would leave a gap is refused with SESSION_CONFLICT, and changes nothing",
    async check({ open }) {
      const storage = await open();
      await checkRefused(storage.append(batchOf("s", eventsFrom(3, 2))), "a batch for no session", "SESSION_CONFLICT");
      checkSame(await readAll(storage, "s"), undefined, "the session that never began");
      await storage.append(batchOf("s", eventsFrom(0, 5)));
      for (const from of [6, 7, 500]) {
        await checkRefused(
          storage.append(batchOf("s", eventsFrom(from, 2))),
          `a batch from ${from}`,
          "SESSION_CONFLICT",
        );
      }
      await checkStored(storage, "s", eventsFrom(0, 5));
      checkSame(
        (await storage.list()).sessions.map(({ seq }) => seq),
        [5],
        "the list",
      );
    },
  },
  {
    sentence:
      "a batch that begins before the end of what is stored is refused with SESSION_CONFLICT, also the same one again",
    async check({ open }) {
      const storage = await open();
      await storage.append(batchOf("s", eventsFrom(0, 5)));
      await storage.append(batchOf("s", eventsFrom(5, 5)));
      for (const from of [1, 4, 5, 9]) {
        const late = batchOf("s", eventsFrom(from, 5));
        await checkRefused(storage.append(late), `a batch from ${from}`, "SESSION_CONFLICT");
      }
      await checkStored(storage, "s", eventsFrom(0, 10));
    },
  },
  {
    sentence: "a first batch for an id that is stored is refused with SESSION_EXISTS, and changes nothing",
    async check({ open }) {
      const storage = await open();
      await storage.append(batchOf("s", eventsFrom(0, 5)));
      const other = batchOf("s", eventsFrom(0, 9, "another"), {
        header: headerOf("s", { meta: { title: "another" } }),
      });
      await checkRefused(storage.append(other), "a second beginning", "SESSION_EXISTS");
      await checkStored(storage, "s", eventsFrom(0, 5));
      checkSame((await readAll(storage, "s"))?.header, headerOf("s"), "the header");
    },
  },
  {
    sentence: "a first batch without its header is refused, and nothing is stored",
    async check({ open }) {
      const storage = await open();
      const { header: _, ...headless } = batchOf("s", eventsFrom(0, 2));
      await checkRefused(storage.append(headless), "a first batch without its header");
      checkSame(await readAll(storage, "s"), undefined, "the session");
      checkSame((await storage.list()).sessions, [], "the list");
      await storage.append(batchOf("s", eventsFrom(0, 2)));
      await checkStored(storage, "s", eventsFrom(0, 2));
    },
  },
  {
    sentence: "a batch without events is no error and changes nothing",
    async check({ open }) {
      const storage = await open();
      const batch = batchOf("s", eventsFrom(0, 5));
      await storage.append({ ...batch, events: [] });
      checkSame(await readAll(storage, "s"), undefined, "the session");
      await storage.append(batch);
      await storage.append({ ...batchOf("s", eventsFrom(5, 1)), events: [] });
      await checkStored(storage, "s", eventsFrom(0, 5));
    },
  },
  {
    sentence: "a batch counts as it was when it was given, and is never changed",
    async check({ open }) {
      const storage = await open();
      const events = [...eventsFrom(0, 4)];
      const appended = storage.append({ ...batchOf("s", events.slice()), events });
      events.pop();
      await appended;
      events.length = 0;
      await checkStored(storage, "s", eventsFrom(0, 4));
    },
  },
  {
    sentence: "of two writers of the same batch exactly one is taken, and the other one is told SESSION_CONFLICT",
    async check({ open }) {
      const [one, two] = [await open(), await open()];
      await one.append(batchOf("s", eventsFrom(0, 1)));
      const stored = [...eventsFrom(0, 1)];
      for (let round = 0; round < 6; round += 1) {
        const rows = ["one", "two"].map((by) => eventsFrom(stored.length, 3, by));
        const failures = await Promise.all(
          [one, two].map((storage, i) => failureOf(storage.append(batchOf("s", rows[i]!)))),
        );
        const taken = rows.filter((_, i) => !failures[i]);
        checkSame(taken.length, 1, "the number of writers that were taken");
        const lost = failures.find((failure) => failure)!;
        checkCode(lost.thrown, "the other writer", "SESSION_CONFLICT");
        stored.push(...taken[0]!);
        await checkStored(one, "s", stored, "what the first one reads");
        await checkStored(two, "s", stored, "what the second one reads");
      }
    },
  },
  {
    sentence:
      "of two writers that begin the same session exactly one is taken, and the other one is told SESSION_EXISTS",
    async check({ open }) {
      const storages = [await open(), await open()];
      for (let round = 0; round < 4; round += 1) {
        const id = `s${round}`;
        const rows = ["one", "two"].map((by) => eventsFrom(0, 3, by));
        const failures = await Promise.all(
          storages.map((storage, i) => failureOf(storage.append(batchOf(id, rows[i]!)))),
        );
        const taken = rows.filter((_, i) => !failures[i]);
        checkSame(taken.length, 1, "the number of writers that were taken");
        const lost = failures.find((failure) => failure)!;
        checkCode(lost.thrown, "the other writer", "SESSION_EXISTS");
        await checkStored(storages[1]!, id, taken[0]!);
      }
    },
  },
  {
    sentence: "a first write is atomic: whoever looks sees nothing of the session, or its header and all events",
    async check({ open }) {
      const [writer, reader] = [await open(), await open()];
      const events = eventsFrom(0, 3000);
      await lookOn(writer.append(batchOf("s", events)), async () => {
        const listed = (await reader.list()).sessions.length;
        const found = await readAll(reader, "s");
        checkThat(listed === 0 || found !== undefined, "the session was in the list and could not be loaded");
        if (!found) return;
        checkSame(found.header, headerOf("s"), "the header in the middle of the write");
        checkSame([found.length, found.events.length], [3000, 3000], "the number of events in the middle of the write");
      });
      await checkStored(reader, "s", events);
      checkSame(
        (await reader.list()).sessions.map(({ seq }) => seq),
        [3000],
        "the list",
      );
    },
  },
  {
    sentence: "every later write is atomic too",
    async check({ open }) {
      const [writer, reader] = [await open(), await open()];
      const events = eventsFrom(0, 3001);
      await writer.append(batchOf("s", events.slice(0, 1)));
      await lookOn(writer.append(batchOf("s", events.slice(1))), async () => {
        const found = (await readAll(reader, "s"))!;
        checkThat([1, 3001].includes(found.length), `a reader saw ${found.length} events of a batch`);
        checkSame(found.events.length, found.length, "the number of events in the middle of the write");
      });
      await checkStored(reader, "s", events);
    },
  },
  {
    sentence: "a write that was refused does no harm: the right one goes on, in this session and in others",
    async check({ open }) {
      const storage = await open();
      await storage.append(batchOf("s", eventsFrom(0, 2)));
      const [wrong, ...right] = await Promise.all([
        failureOf(storage.append(batchOf("s", eventsFrom(7, 2)))),
        failureOf(storage.append(batchOf("s", eventsFrom(2, 2)))),
        failureOf(storage.append(batchOf("other", eventsFrom(0, 2)))),
      ]);
      if (!wrong) throw broken("a batch that leaves a gap was taken");
      checkCode(wrong.thrown, "a batch that leaves a gap", "SESSION_CONFLICT");
      for (const failed of right)
        if (failed) throw broken(`a good batch failed: ${String(failed.thrown)}`, failed.thrown);
      await storage.append(batchOf("s", eventsFrom(4, 2)));
      await checkStored(storage, "s", eventsFrom(0, 6));
      await checkStored(storage, "other", eventsFrom(0, 2));
    },
  },
  {
    sentence: "sessions that are written at the same time never mix",
    async check({ open }) {
      const storages = [await open(), await open()];
      const ids = Array.from({ length: 12 }, (_, i) => `s${i}`);
      await Promise.all(
        ids.map(async (id, i) => {
          for (let from = 0; from < 12; from += 3) {
            await storages[(i + from) % 2]!.append(batchOf(id, eventsFrom(from, 3, id)));
          }
        }),
      );
      for (const id of ids) await checkStored(storages[0]!, id, eventsFrom(0, 12, id), `the session ${id}`);
    },
  },
];
