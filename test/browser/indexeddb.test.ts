/** The browser's storage, in a real one: what is written is there, and only once. */
import { openDB } from "idb";
import { createHarness, run } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { append, batchOf, codeOf, events, newName, openStorage, queued, stored } from "./indexeddb-parts.ts";

test("an agent goes on in a new harness where it ended in the one before", async () => {
  const name = newName();
  for (const turn of [1, 2]) {
    const harness = createHarness({
      storage: openStorage(name),
      model: scriptedModel([{ text: `answer ${turn}` }]),
    });
    const { agent } = await harness.agents.open({ id: "chat" });
    await run(agent, `question ${turn}`).result;
    const messages = agent.session.deriveMessages();
    expect(messages).toHaveLength(turn * 2);
    expect(agent.session.durable).toBe("stored");
    await harness.dispose();
  }
});

test("what is stored is there again, whole, from any seq on, and in batches as they were written", async () => {
  const name = newName();
  const writer = openStorage(name);
  const sizes = [1, 3, 50, 7, 39];
  let from = 0;
  for (const size of sizes) {
    await append(writer, "s", from, size);
    from += size;
  }
  await append(writer, "s2", 0, 5);
  const reader = openStorage(name);
  expect(await stored(reader, "s")).toEqual(events(0, 100));
  for (const at of [1, 4, 53, 60, 99, 100, 200])
    expect(await stored(reader, "s", at)).toEqual(events(0, 100).slice(at));
  expect((await reader.load("s"))?.length).toBe(100);
  expect((await reader.load("s"))?.header.id).toBe("s");
  expect(await reader.load("unknown")).toBeUndefined();
});

test("hostile texts and keys come back as they were", async () => {
  const storage = openStorage();
  const text = "\ud800 lone \udc00 \0 \u2028 " + "🎉".repeat(1000);
  const value = JSON.parse('{"__proto__": {"x": 1}, "constructor": null, "": -0.5e-7}') as never;
  const odd = [
    { seq: 0, time: 1, type: "tool/progress", data: { callId: text, value } },
    queued(1, "__proto__"),
  ] as const;
  for (const id of ["__proto__", "constructor", "a/b:c d", "🎉", "\ud800"]) {
    await storage.append(batchOf(id, 0, odd));
    expect(JSON.stringify(await stored(storage, id))).toBe(JSON.stringify(odd));
  }
});

test.for([undefined, null, 7, "text", [], {}, { id: 1, createdAt: "x", seq: -1, status: "asleep", title: {} }])(
  "a session whose summary is damaged, as %j, is listed by what is known of it, and deleted",
  async (summary) => {
    const name = newName();
    const storage = openStorage(name);
    await append(storage, "damaged", 0, 5);
    await append(storage, "whole", 0, 6);
    const database = await openDB(name);
    const row = (await database.get("sessions", "damaged")) as object;
    await database.put("sessions", { ...row, summary });
    database.close();
    const { sessions } = await storage.list();
    expect(sessions).toEqual([
      { id: "whole", createdAt: 1000, updatedAt: 1005, seq: 6, status: "idle" },
      { id: "damaged", createdAt: 1004, updatedAt: 1004, seq: 5, status: "idle" },
    ]);
    await storage.delete("damaged");
    expect((await storage.list()).sessions.map(({ id }) => id)).toEqual(["whole"]);
  },
);

test("an append that does not begin at the stored length changes nothing and is a conflict", async () => {
  const name = newName();
  const [one, other] = [openStorage(name), openStorage(name)];
  await append(one, "s", 0, 5);
  expect(await codeOf(append(other, "s", 0, 5))).toBe("SESSION_EXISTS");
  expect(await codeOf(append(other, "s", 4, 5))).toBe("SESSION_CONFLICT");
  expect(await codeOf(append(other, "s", 6, 5))).toBe("SESSION_CONFLICT");
  expect(await codeOf(append(other, "new", 3, 5))).toBe("SESSION_CONFLICT");
  expect(await codeOf(other.append({ ...batchOf("new", 0, events(0, 1)), header: undefined } as never))).toBe(
    "INVALID_BATCH",
  );
  expect(await stored(other, "s")).toEqual(events(0, 5));
  expect(await other.load("new")).toBeUndefined();
});

test("of two that append at once, one wins, and the other is told", async () => {
  const name = newName();
  const tabs = Array.from({ length: 4 }, () => openStorage(name));
  await append(tabs[0]!, "s", 0, 10);
  const codes = await Promise.all(tabs.map((tab) => codeOf(append(tab, "s", 10, 5))));
  expect(codes.filter((code) => code === "resolved")).toHaveLength(1);
  expect(codes.filter((code) => code === "SESSION_CONFLICT")).toHaveLength(3);
  expect(await stored(tabs[1]!, "s")).toEqual(events(0, 15));
});

test("a session that another tab deleted is a conflict, also when its id and length are taken again", async () => {
  const name = newName();
  const [writer, other] = [openStorage(name), openStorage(name)];
  await append(writer, "s", 0, 5);
  await other.delete("s");
  expect(await codeOf(append(writer, "s", 5, 1))).toBe("SESSION_CONFLICT");
  expect(await writer.load("s")).toBeUndefined();

  await append(writer, "t", 0, 5);
  await other.delete("t");
  await append(other, "t", 0, 5);
  expect(await codeOf(append(writer, "t", 5, 1))).toBe("SESSION_CONFLICT");
  await append(other, "t", 5, 1);
});

test("a session that is deleted while it is read is no shorter session", async () => {
  const name = newName();
  const [reader, other] = [openStorage(name), openStorage(name)];
  for (let from = 0; from < 200; from += 2) await append(other, "s", from, 2);
  const found = await reader.load("s");
  const read = (async () => {
    for await (const _ of found!.batches) await other.delete("s");
  })();
  expect(await codeOf(read)).toBe("SESSION_CONFLICT");
});

test("the list is paged, newest first, and survives what is written meanwhile", async () => {
  const storage = openStorage();
  for (let i = 0; i < 12; i += 1) {
    const batch = batchOf(`s${i}`, 0, events(0, 1));
    await storage.append({ ...batch, summary: { ...batch.summary, updatedAt: 1000 + (i % 6) } });
  }
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await storage.list({ limit: 5, ...(cursor !== undefined && { cursor }) });
    seen.push(...page.sessions.map((one) => one.id));
    cursor = page.cursor;
    const batch = batchOf(`late${seen.length}`, 0, events(0, 1));
    await storage.append({ ...batch, summary: { ...batch.summary, updatedAt: 5000 } });
  } while (cursor !== undefined);
  expect(seen).toEqual(["s11", "s5", "s10", "s4", "s3", "s9", "s2", "s8", "s1", "s7", "s0", "s6"]);
  expect((await storage.list({ limit: 1 })).sessions[0]?.id).toBe("late10");
  expect(await codeOf(storage.list({ cursor: "nonsense" }))).toBe("INVALID_OPTIONS");
});

test("names keep users apart, and clear removes everything of one", async () => {
  const [mine, yours] = [openStorage(), openStorage()];
  await append(mine, "s", 0, 3);
  await append(yours, "s", 0, 4);
  await mine.clear();
  expect(await mine.load("s")).toBeUndefined();
  expect((await mine.list()).sessions).toEqual([]);
  expect(await codeOf(append(mine, "s", 3, 1))).toBe("SESSION_CONFLICT");
  expect(await stored(yours, "s")).toEqual(events(0, 4));
});

test("after close it opens again when it is used", async () => {
  const storage = openStorage();
  await append(storage, "s", 0, 3);
  await storage.close?.();
  await append(storage, "s", 3, 3);
  expect(await stored(storage, "s")).toEqual(events(0, 6));
});

test("a load can be called off", async () => {
  const storage = openStorage();
  await append(storage, "s", 0, 3);
  const reason = new Error("enough");
  await expect(storage.load("s", { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
});
