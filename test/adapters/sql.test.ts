/** What `sqlStorage` promises beyond the contract of storages, on SQLite. */
import { DatabaseSync } from "node:sqlite";
import { sqlStorage, type SqlExecutor, type SqlRow, type SqlStatement } from "turnloop/sql";
import { expect, test } from "vitest";
import { batchOf, textsOf } from "./batches.ts";

/** `told` hears each statement before it runs. */
function executorOn(database: DatabaseSync, told: (statement: SqlStatement) => void): SqlExecutor {
  const run = (statement: SqlStatement): SqlRow[] => {
    told(statement);
    return database.prepare(statement.sql).all(...statement.params);
  };
  return {
    dialect: "sqlite",
    read: run,
    write(statements) {
      database.exec("BEGIN IMMEDIATE");
      const rows = statements.map(run);
      database.exec("COMMIT");
      return rows.at(-1) ?? [];
    },
  };
}

function opened() {
  const database = new DatabaseSync(":memory:");
  const said: SqlStatement[] = [];
  const open = () => sqlStorage(executorOn(database, (statement) => void said.push(statement)));
  return { database, said, open, storage: open() };
}

test("an append costs the same behind 100,000 events as behind none", async () => {
  const { storage, said } = opened();
  const costs: string[] = [];
  let length = 0;
  const append = async (texts: readonly string[]) => {
    said.length = 0;
    await storage.append(batchOf("s", length, texts));
    length += texts.length;
    return said;
  };
  await append(["first"]);
  for (let i = 0; i < 10; i += 1) {
    const small = await append(["one more"]);
    costs.push(small.map(({ sql }) => sql).join("\n"));
    await append(Array.from({ length: 10_000 }, (_, n) => `text ${n}`));
  }
  expect(length).toBeGreaterThan(100_000);
  expect(new Set(costs).size, "the ways to append").toBe(1);
  expect(costs[0]!.match(/INSERT|UPDATE|SELECT (?!key)/g)).toEqual(["INSERT", "UPDATE"]);

  said.length = 0;
  expect(await textsOf(storage, "s", length - 1)).toHaveLength(1);
  expect(said.length, "the statements that read the end").toBeLessThan(4);

  said.length = 0;
  expect(await textsOf(storage, "s")).toHaveLength(length);
  const rows = 100_000 / 1000 + 12;
  expect(said.length, "the statements that read all").toBeLessThan(3 + rows / 32 + 1);
});

test("no statement but that of the list walks a table", async () => {
  const { storage, said, database } = opened();
  await storage.append(batchOf("s", 0, ["a"]));
  await storage.append(batchOf("s", 1, ["b"]));
  await textsOf(storage, "s", 1);
  await textsOf(storage, "s");
  await storage.delete("s");
  const touching = said.filter(({ sql }) => /turnloop_(sessions|records)/.test(sql) && !sql.startsWith("CREATE"));
  expect(touching.length).toBeGreaterThan(8);
  for (const { sql, params } of touching) {
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...params);
    const steps = plan.map(({ detail }) => String(detail));
    expect(
      steps.filter((step) => /^SCAN|TEMP B-TREE/.test(step)),
      sql,
    ).toEqual([]);
  }
});

test("pages of records are found by their place, not counted off", async () => {
  const { storage, said, database } = opened();
  await storage.append(batchOf("s", 0, ["first"]));
  for (let i = 1; i < 100; i += 1) await storage.append(batchOf("s", i, [`text ${i}`]));
  said.length = 0;
  expect(await textsOf(storage, "s")).toHaveLength(100);
  const page = said.findLast(({ sql }) => sql.includes("(seq, part) >"))!;
  const [plan] = database.prepare(`EXPLAIN QUERY PLAN ${page.sql}`).all(...page.params);
  expect(plan?.["detail"]).toMatch(/USING PRIMARY KEY \(session=\? AND \(seq,part\)>\(\?,\?\)/);
});

test("no row is larger than 1 MB, whatever an event holds, and none is cut within a character", async () => {
  const { storage, database } = opened();
  const texts = ["日".repeat(700_000), `a${"\ud83d\ude00".repeat(700_000)}`, "\ud83d".repeat(300_000)];
  await storage.append(batchOf("s", 0, texts));
  const sizes = database.prepare("SELECT length(CAST(text AS BLOB)) AS size FROM turnloop_records").all();
  expect(sizes.length).toBeGreaterThan(6);
  for (const { size } of sizes) expect(size).toBeLessThan(1_000_000);
  expect((await textsOf(storage, "s")).map((text, i) => text === texts[i])).toEqual([true, true, true]);
});

test("who wrote a session that was deleted does not go on in its namesake, even if that is as long", async () => {
  const { open } = opened();
  const [stale, other] = [open(), open()];
  await stale.append(batchOf("s", 0, ["a", "b"]));
  await other.delete("s");
  await other.append(batchOf("s", 0, ["c", "d"]));
  await expect(stale.append(batchOf("s", 2, ["e"]))).rejects.toMatchObject({ code: "SESSION_CONFLICT" });
  await other.append(batchOf("s", 2, ["f"]));
  expect(await textsOf(stale, "s")).toEqual(["c", "d", "f"]);
});

test("tables of a newer version are refused with STORAGE_VERSION, and left alone", async () => {
  const { database, open, storage, said } = opened();
  await storage.append(batchOf("s", 0, ["a"]));
  database.exec("UPDATE turnloop_schema SET version = 2");
  said.length = 0;
  const late = open();
  const refused = { code: "STORAGE_VERSION", message: expect.stringContaining("update") as string };
  await expect(late.load("s")).rejects.toMatchObject(refused);
  await expect(late.append(batchOf("t", 0, ["a"]))).rejects.toMatchObject(refused);
  await expect(late.delete("s")).rejects.toMatchObject(refused);
  expect(said.filter(({ sql }) => !sql.startsWith("SELECT"))).toEqual([]);
});

test("what an engine throws is the cause of STORAGE_FAILED, and the next try may succeed", async () => {
  const { database } = opened();
  const full = new Error("disk full");
  let fails = true;
  const storage = sqlStorage(
    executorOn(database, () => {
      if (fails) throw full;
    }),
  );
  await expect(storage.load("s")).rejects.toMatchObject({ code: "STORAGE_FAILED", cause: full });
  fails = false;
  database.exec("ROLLBACK");
  await storage.append(batchOf("s", 0, ["a"]));
  expect(await textsOf(storage, "s")).toEqual(["a"]);
});

test("records that are missing are told as SESSION_CORRUPT, a session deleted meanwhile as SESSION_CONFLICT", async () => {
  const { database, storage } = opened();
  for (let i = 0; i < 3; i += 1) await storage.append(batchOf("s", i, [`text ${i}`]));
  const read = (await storage.load("s"))!.batches;
  database.exec("DELETE FROM turnloop_records WHERE seq = 2");
  await expect(textsOf(storage, "s")).rejects.toMatchObject({ code: "SESSION_CORRUPT" });
  database.exec("DELETE FROM turnloop_records WHERE seq = 0");
  await expect(textsOf(storage, "s")).rejects.toMatchObject({ code: "SESSION_CORRUPT" });
  await storage.delete("s");
  await expect(read[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "SESSION_CONFLICT" });
});

test("a cursor that is none is refused with INVALID_OPTIONS", async () => {
  const { storage } = opened();
  await expect(storage.list({ cursor: "the next page" })).rejects.toMatchObject({ code: "INVALID_OPTIONS" });
});

const NO_SUMMARIES = ["", "x", "null", "1", "[]", "{}", '{"id":"other"}', '{"id":"b","createdAt":1000}', '"__proto__"'];

test("a session whose summary is damaged is listed with what its row knows, and those beside it are untouched", async () => {
  const { database, storage } = opened();
  const ids = ["a", "b", "\0 odd", '"c'];
  for (const id of ids) await storage.append(batchOf(id, 0, ["one", "two"]));
  const { sessions } = await storage.list();
  for (const name of ["b", JSON.stringify("\0 odd"), JSON.stringify('"c')]) {
    const id = name === "b" ? name : (JSON.parse(name) as string);
    for (const wrong of NO_SUMMARIES) {
      database.prepare("UPDATE turnloop_sessions SET summary = ? WHERE id = ?").run(wrong, name);
      const found = (await storage.list()).sessions;
      const known = { id, createdAt: 1002, updatedAt: 1002, seq: 2, status: "idle" };
      expect(found, wrong).toEqual(sessions.map((one) => (one.id === id ? known : one)));
    }
    await storage.append(batchOf(id, 2, ["three"]));
    expect((await storage.list()).sessions[0], "mended by the next append").toEqual(batchOf(id, 2, ["three"]).summary);
    await storage.delete(id);
    sessions.splice(
      sessions.findIndex((one) => one.id === id),
      1,
    );
  }
});

test("a session whose row or header is damaged is SESSION_CORRUPT: neither shorter than it is, nor absent", async () => {
  const { database, storage } = opened();
  await storage.append(batchOf("s", 0, ["one", "two"]));
  await storage.append(batchOf("s", 2, ["three", "four"]));
  const setLength = database.prepare("UPDATE turnloop_sessions SET length = ?");
  for (const length of [0, -1, 1, 3, 5, 1.5, 1e300, "", "x", "null"]) {
    setLength.run(length);
    await expect(textsOf(storage, "s"), `length ${length}`).rejects.toMatchObject({ code: "SESSION_CORRUPT" });
    expect((await storage.list()).sessions.map(({ id }) => id)).toEqual(["s"]);
  }
  setLength.run(4);
  expect(await textsOf(storage, "s")).toEqual(["one", "two", "three", "four"]);
  database.exec("DELETE FROM turnloop_records WHERE seq = -1");
  await expect(storage.load("s")).rejects.toMatchObject({ code: "SESSION_CORRUPT" });
  await storage.delete("s");
  expect(await storage.load("s")).toBeUndefined();
});
