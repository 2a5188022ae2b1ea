/** Several processes that want the same session at the same time. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createHarness } from "turnloop";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { brokenPromises } from "../support/invariants.ts";
import { programOf } from "./program.ts";
import type { Heard } from "./sharing.ts";

let folder: string;
let module: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "turnloop-sharing-"));
  module = join(folder, "sharing.mjs");
  writeFileSync(module, await programOf(join(import.meta.dirname, "sharing.ts")));
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true }));

async function lifeOf(file: string, name: string, messages: number): Promise<Heard[]> {
  const child = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", module, file, name, String(messages)],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const lines = await text(child.stdout);
  return lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Heard);
}

test("two processes that write one session make one log: no answered turn is lost, and who loses is told", async () => {
  const file = join(folder, "sessions.db");
  const heard = (await Promise.all(["Ann", "Bob"].map((name) => lifeOf(file, name, 10)))).flat();

  const answered = heard.flatMap((one) => (one.kind === "answered" ? one.message : []));
  expect(answered).toHaveLength(20);
  const refused = heard.filter((one) => one.kind === "refused");
  expect(refused.length, "the times that one of them lost").toBeGreaterThan(0);
  for (const { code, durable } of refused) {
    expect(["SESSION_CONFLICT", "SESSION_LOST"]).toContain(code);
    expect(durable).toBe("lost");
  }
  const codes = heard.flatMap((one) => (one.kind === "diagnostic" ? one.code : []));
  expect(codes, "what went wrong beside that").not.toContain("STORAGE_FAILED");

  const storage = nodeSqliteStorage(file);
  const harness = createHarness({ storage, onDiagnostic() {} });
  const { agent } = await harness.agents.open({ id: "shared" });
  const { events } = agent.session;
  expect(brokenPromises(agent.session, [])).toEqual([]);
  for (const message of answered) {
    const taken = events.findIndex((event) => event.type === "user/message" && event.data.id === message);
    const end = events.slice(taken).find((event) => event.type === "turn/end");
    expect(taken, `the message ${message}`).toBeGreaterThan(-1);
    expect(end?.data).toMatchObject({ reason: { kind: "completed" } });
  }
  await harness.dispose();
}, 60_000);
