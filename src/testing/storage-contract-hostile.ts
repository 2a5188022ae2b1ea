/** The port, about what nobody would store on purpose: odd ids, keys and texts, foreign headers, and sizes. */
import { TurnloopError, type SessionEvent, type SessionMeta } from "../core.ts";
import {
  batchOf,
  broken,
  checkThat,
  checkSame,
  checkStored,
  eventsFrom,
  failureOf,
  frozen,
  headerOf,
  listAll,
  readAll,
  type Statement,
} from "./storage-contract-kit.ts";

const IDS = [
  ..."a A é e\u0301 a/b a\\b ../a . .. a%2Fb a:b a'b a\"b a;b __proto__ constructor 日本 🦉 \ud800 \udc00 \ufffd".split(
    " ",
  ),
  "a b",
  "a\u0000",
  "a\u0000b",
  "a\n",
  "a".repeat(500),
];

const TEXTS = [
  "\ud83d",
  "\ude00",
  "\ud83d\ude00",
  "\u0000",
  "\u2028",
  '"\\',
  "'; --",
  "\ufeff",
  "\ufffe",
  "e\u0301",
  "",
];

function custom(seq: number, json: string): SessionEvent {
  // As it comes from a wire: such keys are the object's own there.
  return { seq, time: 1000, type: "my/event", data: JSON.parse(json) as object } as unknown as SessionEvent;
}

export const HOSTILE: readonly Statement[] = [
  {
    sentence: "any text is an id of its own",
    async check({ open }) {
      const storage = await open();
      for (const id of IDS) await storage.append(batchOf(id, eventsFrom(0, 2, id)));
      const reader = await open();
      for (const id of IDS) {
        await checkStored(reader, id, eventsFrom(0, 2, id), `the session ${JSON.stringify(id)}`);
        checkSame((await readAll(reader, id))?.header.id, id, "the id of the header");
      }
      checkSame((await listAll(reader, 7)).flat().toSorted(), IDS.toSorted(), "the ids of the list");
      for (const id of IDS) await storage.delete(id);
      checkSame((await storage.list()).sessions, [], "the list");
    },
  },
  {
    sentence: "`__proto__` and its like are keys as any other",
    async check({ open }) {
      const storage = await open();
      const json = [
        '{"__proto__":{"polluted":1}}',
        '{"constructor":{"prototype":{"polluted":1}}}',
        '{"a":[{"__proto__":null}]}',
      ];
      const more = [
        '{"toJSON":1,"then":2,"hasOwnProperty":3,"length":4,"seq":5,"0":6,"":7,"$type":8}',
        '{"\\ud800":1,"\\udc00":2}',
      ];
      const events = frozen([...json, ...more].map((text, seq) => custom(seq, text)));
      const header = headerOf("s", { meta: JSON.parse('{"__proto__":{"polluted":1},"toJSON":1}') as SessionMeta });
      await storage.append(batchOf("s", events, { header }));
      await checkStored(await open(), "s", events);
      checkSame((await readAll(storage, "s"))?.header, header, "the header");
      checkThat(!("polluted" in {}), "a stored key has changed Object.prototype");
    },
  },
  {
    sentence: "texts come back as they were, lone surrogates and all, and so do numbers",
    async check({ open }) {
      const storage = await open();
      const chunks = TEXTS.map((text, seq): SessionEvent => {
        const chunk = { type: "delta", index: 0, text } as const;
        return { seq, time: 1000, type: "assistant/chunk", data: { turn: 1, step: 1, chunk } };
      });
      const numbers = custom(TEXTS.length, "[0,-1,1.5,1e300,5e-324,9007199254740993,-0.1,true,false,null,[],{}]");
      const events = frozen([...chunks, numbers]);
      await storage.append(batchOf("s", events));
      await checkStored(await open(), "s", events);
    },
  },
  {
    sentence:
      "a header of an unknown format is given back as it is, or refused with UNKNOWN_VERSION, and hides no other session",
    async check({ open }) {
      const storage = await open();
      await storage.append(batchOf("s", eventsFrom(0, 2)));
      const header = headerOf("newer", { version: 99, more: [1] } as object);
      await storage.append(batchOf("newer", eventsFrom(0, 2), { header }));
      const reader = await open();
      const failed = await failureOf(reader.load("newer"));
      if (failed && !TurnloopError.is(failed.thrown, "UNKNOWN_VERSION")) {
        throw broken(
          `the load must give the header, or fail UNKNOWN_VERSION, not ${String(failed.thrown)}`,
          failed.thrown,
        );
      }
      if (!failed) checkSame((await reader.load("newer"))?.header, header, "the header");
      checkSame((await listAll(reader, 10)).flat().toSorted(), ["newer", "s"], "the list");
      await checkStored(reader, "s", eventsFrom(0, 2));
    },
  },
  {
    sentence: "a header with another id is refused or given back as it is: never under that id, never mended",
    async check({ open }) {
      const storage = await open();
      const header = headerOf("another");
      const taken = !(await failureOf(storage.append(batchOf("s", eventsFrom(0, 2), { header }))));
      const reader = await open();
      checkSame(await reader.load("another"), undefined, "the session of the other id");
      const failed = await failureOf(reader.load("s"));
      if (failed) {
        checkThat(taken && TurnloopError.is(failed.thrown), `the load failed with ${String(failed.thrown)}`);
        return;
      }
      const found = await reader.load("s");
      checkSame(found?.header.id, taken ? "another" : undefined, "the id of the header");
    },
  },
  {
    sentence: "an event may be large, and so may a batch",
    async check({ open }) {
      const storage = await open();
      const large = custom(0, JSON.stringify({ text: "\ud83d\ude00é-".repeat(60_000) }));
      const events = frozen([large, ...eventsFrom(1, 4000)]);
      await storage.append(batchOf("s", events));
      await checkStored(await open(), "s", events);
    },
  },
  {
    sentence: "an event of 5 MB is stored, and read again",
    heavy: true,
    async check({ open }) {
      const storage = await open();
      // Letters, then characters of three and four bytes: 8 MB as UTF-8.
      const text = "abcdefgh".repeat(250_000) + "日\ud83d\ude00".repeat(1_000_000);
      const events = frozen([...eventsFrom(0, 1), custom(1, JSON.stringify({ text })), ...eventsFrom(2, 1)]);
      await storage.append(batchOf("s", events.slice(0, 1)));
      await storage.append(batchOf("s", events.slice(1)));
      await checkStored(await open(), "s", events);
      checkSame((await readAll(storage, "s", 2))?.events, events.slice(2), "the events behind it");
    },
  },
  {
    sentence: "a batch of 100,000 events is stored, and read again from any of them on",
    heavy: true,
    async check({ open }) {
      const storage = await open();
      const events = eventsFrom(0, 100_000);
      await storage.append(batchOf("s", events));
      const reader = await open();
      await checkStored(reader, "s", events);
      for (const from of [1, 50_123, 99_999]) {
        checkSame((await readAll(reader, "s", from))?.events, events.slice(from), `the events from ${from} on`);
      }
      await reader.delete("s");
      await reader.append(batchOf("s", eventsFrom(0, 1, "new")));
      await checkStored(storage, "s", eventsFrom(0, 1, "new"));
    },
  },
  {
    sentence: "100,000 events in batches of 1,000 are stored, and read again from any of them on",
    heavy: true,
    async check({ open }) {
      const storage = await open();
      const events = eventsFrom(0, 100_000);
      for (let from = 0; from < events.length; from += 1000) {
        await storage.append(batchOf("s", events.slice(from, from + 1000)));
      }
      const reader = await open();
      await checkStored(reader, "s", events);
      checkSame((await readAll(reader, "s", 98_765))?.events, events.slice(98_765), "the events from 98,765 on");
    },
  },
];
