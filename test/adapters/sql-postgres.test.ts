/** The contract of storages on Postgres, which runs in this process, and replicas that share its sessions. */
import { PGlite } from "@electric-sql/pglite";
import { createHarness, run, TurnloopError } from "turnloop";
import { sqlStorage, type SqlExecutor, type SqlRow } from "turnloop/sql";
import { scriptedModel, storageContract } from "turnloop/testing";
import { afterAll, describe, expect, test, vi } from "vitest";

vi.setConfig({ testTimeout: 120_000 });

/** Postgres takes seconds to start: all tests share one, and each has a schema of its own. */
const starting = PGlite.create();

afterAll(async () => (await starting).close());

/** The recipe of the README. */
function executorOn(database: PGlite): SqlExecutor {
  return {
    dialect: "postgres",
    read: async ({ sql, params }) => (await database.query<SqlRow>(sql, [...params])).rows,
    write: (statements) =>
      database.transaction(async (transaction) => {
        let rows: SqlRow[] = [];
        for (const { sql, params } of statements) ({ rows } = await transaction.query<SqlRow>(sql, [...params]));
        return rows;
      }),
  };
}

/** An empty database. */
async function emptied(): Promise<PGlite> {
  const database = await starting;
  await database.exec("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  return database;
}

describe("Postgres", () => {
  storageContract({ test }, async () => {
    const database = await emptied();
    return { open: async () => sqlStorage(executorOn(database)), destroy: async () => {} };
  });
});

test("replicas share sessions: what one began the other goes on with, and a stale one is told", async () => {
  const database = await emptied();
  const replica = (...answers: string[]) =>
    createHarness({ storage: sqlStorage(executorOn(database)), model: scriptedModel(answers), onDiagnostic() {} });

  const one = await replica("Hello.", "Too late.").agents.open({ id: "chat-1" });
  expect((await run(one.agent, "Hi").result).text).toBe("Hello.");

  const other = await replica("Still here.").agents.open({ id: "chat-1" });
  expect(other.agent.session.deriveMessages()).toHaveLength(2);
  expect((await run(other.agent, "Are you there?").result).text).toBe("Still here.");

  const late = await run(one.agent, "And you?").result.catch((error: unknown) => error);
  expect(TurnloopError.is(late, "SESSION_CONFLICT")).toBe(true);
  expect(one.agent.session.durable).toBe("lost");
  expect(other.agent.session.durable).toBe("stored");
});
