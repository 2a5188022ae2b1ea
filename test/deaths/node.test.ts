/** Processes that are killed at random moments in the middle of their work, and what is left of their sessions. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { examine, type ExamineOptions } from "./examine.ts";
import { moments, type Tell, type Told } from "./life.ts";
import { programOf } from "./program.ts";
import { dieOften, ROUNDS_MS, type Life } from "./rounds.ts";

let folder: string;
let module: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "turnloop-deaths-"));
  module = join(folder, "process.mjs");
  writeFileSync(module, await programOf(join(import.meta.dirname, "process.ts")));
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true }));

async function liveAndDie(file: string, { moment, hear, end }: Life): Promise<void> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", module, file, moment], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  createInterface(child.stdout).on("line", (line) => {
    // The last one may have been cut off.
    if (line.endsWith("}")) hear(JSON.parse(line) as Told);
  });
  void end.then(() => child.kill("SIGKILL"));
  const signal = await new Promise((resolve) => {
    child.once("close", (_, by) => resolve(by));
  });
  expect(signal, "what ended the process").toBe("SIGKILL");
}

test.each(moments)(
  "a process that is killed in the middle of a %s leaves whole sessions, and the next one goes on",
  async (moment) => {
    const file = join(folder, `${moment}.db`);
    const mortal = {
      liveAndDie: (life: Life) => liveAndDie(file, life),
      examine: (options: Omit<ExamineOptions, "tell">, tell: Tell) =>
        examine(nodeSqliteStorage(file), { ...options, tell }),
    };
    const cut = await dieOften(`SIGKILL of Node in a ${moment}`, mortal, moment);
    expect(cut, "the deaths in the middle of a turn").toBeGreaterThan(0);
  },
  ROUNDS_MS,
);
