/** The contract of storages on Postgres, which runs in this process, and replicas that share its sessions. */
import { PGlite } from "@electric-sql/pglite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createHarness,
  defineTool,
  memoryStorage,
  rebuildRequest,
  run,
  TurnloopError,
  type ModelRequest,
} from "turnloop";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { sqlStorage, type SqlExecutor, type SqlRow } from "turnloop/sql";
import { scriptedModel, storageContract } from "turnloop/testing";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";

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

test("a session moves from memory into a file and on into Postgres: each request that was sent is rebuilt from each", async () => {
  const folder = mkdtempSync(join(tmpdir(), "turnloop-move-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const places = [
    memoryStorage(),
    nodeSqliteStorage(join(folder, "sessions.db")),
    sqlStorage(executorOn(await emptied())),
  ];
  const look = defineTool({
    name: "look",
    description: "Looks",
    inputSchema: { type: "object" },
    execute: () => ({ __proto__: null, found: "\ud800" }),
  });
  const sent: { readonly turn: number; readonly step: number; readonly request: ModelRequest }[] = [];
  let carried: string[] | undefined;
  for (const [place, storage] of places.entries()) {
    const model = scriptedModel([{ text: "Let me see.", toolCalls: [{ name: "look", args: {} }] }, `Answer ${place}.`]);
    const harness = createHarness({ storage, model, tools: [look], system: "Be brief." });
    if (carried) await harness.sessions.import(carried, { move: true });
    const { agent } = await harness.agents.open({ id: "traveller" });
    // What was queued where it came from is answered here.
    if (place === 0) agent.send("Question 0");
    await agent.whenIdle();
    expect(agent.session.events.filter(({ type }) => type === "user/message")).toHaveLength(place + 1);
    const turn = agent.session.events.filter(({ type }) => type === "turn/start").length;
    sent.push(...model.requests.map((request, step) => ({ turn, step: step + 1, request })));
    for (const { request, ...at } of sent) expect(rebuildRequest(agent.session.events, at)).toEqual(request);
    agent.scope!.hooks.on("agent/prompt-submit", () => new Promise(() => {}));
    agent.send(`Question ${place + 1}`);
    await agent.flush();
    carried = [];
    for await (const line of harness.sessions.export("traveller")) carried.push(line);
    await harness.dispose();
  }
  expect(sent).toHaveLength(6);
});
