/** A file of SQLite in which somebody or something has changed what was stored: one session is damaged, no other. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { createHarness, TurnloopError } from "turnloop";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { scriptedModel } from "turnloop/testing";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnloop-damaged-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const HOSTILE: readonly SQLInputValue[] = [
  "",
  "null",
  "[]",
  "{}",
  "7",
  '"text"',
  "{",
  '{"__proto__":{"polluted":1}}',
  '{"id":7,"createdAt":"x","updatedAt":null,"seq":-1,"status":"asleep","title":[]}',
  "\u0000",
  new Uint8Array([255, 0, 1]),
  -1,
  1.5,
  2 ** 52,
];

/** Two sessions of one turn each; `damage` is done to what is stored of the first. */
async function damaged(damage: (database: DatabaseSync) => void) {
  const file = join(folder, "sessions.db");
  const harness = createHarness({ storage: nodeSqliteStorage(file), model: scriptedModel(["one", "two"]) });
  for (const id of ["damaged", "whole"]) {
    const { agent } = await harness.agents.open({ id });
    agent.send("hi");
    await agent.whenIdle();
  }
  await harness.dispose();
  const database = new DatabaseSync(file);
  damage(database);
  database.close();
  const again = createHarness({ storage: nodeSqliteStorage(file), model: scriptedModel(["again"]), onDiagnostic() {} });
  onTestFinished(() => again.dispose());
  return again;
}

/** Either it works, or it fails with an error of this package. */
async function settled<T>(work: Promise<T>): Promise<T | TurnloopError> {
  try {
    return await work;
  } catch (thrown) {
    if (TurnloopError.is(thrown)) return thrown;
    throw thrown;
  }
}

async function linesOf(lines: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const line of lines) all.push(line);
  return all;
}

const KEY = "(SELECT key FROM turnloop_sessions WHERE id = 'damaged')";
const PLACES = {
  "its summary": "UPDATE turnloop_sessions SET summary = ? WHERE id = 'damaged'",
  "its length": "UPDATE turnloop_sessions SET length = ? WHERE id = 'damaged'",
  "its header": `UPDATE turnloop_records SET text = ? WHERE session = ${KEY} AND seq < 0`,
  "its events": `UPDATE turnloop_records SET text = ? WHERE session = ${KEY} AND seq >= 0`,
  "where its events stand": `UPDATE turnloop_records SET seq = ? WHERE session = ${KEY} AND seq = 0`,
};

describe.for(Object.entries(PLACES))("of a session, %s is damaged", ([, statement]) => {
  test.for(HOSTILE.map((value) => [inspect(value), value] as const))(
    "as %s: it is listed, deleted, and read whole or refused; the other goes on",
    async ([, value]) => {
      const { sessions, agents } = await damaged((database) => {
        try {
          database.prepare(statement).run(value);
        } catch {
          // What the tables do not take cannot be stored there either.
        }
      });
      const listed = await sessions.list();
      expect(listed.sessions.map(({ id }) => id).toSorted()).toEqual(["damaged", "whole"]);
      for (const { updatedAt, createdAt, seq, status } of listed.sessions) {
        expect([typeof updatedAt, typeof createdAt, typeof seq]).toEqual(["number", "number", "number"]);
        expect(["idle", "open", "waiting"]).toContain(status);
      }
      await settled(sessions.load("damaged"));
      await settled(linesOf(sessions.export("damaged")));
      const handle = await settled(agents.open({ id: "damaged" }));
      const code = TurnloopError.is(handle) ? handle.code : "opened";
      expect(code).toMatch(/^(opened|SESSION_CORRUPT|INVALID_LOG|INVALID_HEADER|UNKNOWN_VERSION|STORAGE_FAILED)$/);
      if (!TurnloopError.is(handle)) await handle.dispose();
      await sessions.delete("damaged");
      expect((await sessions.list()).sessions.map(({ id }) => id)).toEqual(["whole"]);
      const { agent } = await agents.open({ id: "whole" });
      agent.send("still there?");
      await agent.whenIdle();
      expect(agent.session.deriveMessages()).toHaveLength(4);
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    },
  );
});
