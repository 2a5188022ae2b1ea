/**
 * Processes that are killed at random moments in the middle of their work, and what is left of their sessions. A few
 * always; many with `--mode soak`. SEED and ROUNDS say which, and how many.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { examine } from "./examine.ts";
import { moments, type Moment, type Told } from "./life.ts";
import { programOf } from "./program.ts";
import { randomOf, type Random } from "./random.ts";
import { rounds, seed } from "./rounds.ts";
import { createWitness, type Witness } from "./verdict.ts";

let folder: string;
let module: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "turnloop-deaths-"));
  module = join(folder, "process.mjs");
  writeFileSync(module, await programOf(join(import.meta.dirname, "process.ts")));
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true }));

/** Lives until some time after it came to the moment for the nth time. */
async function liveAndDie(file: string, moment: Moment, random: Random, witness: Witness): Promise<void> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", module, file, moment], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let left = 1 + random.below(moment === "stream" ? 100 : 10);
  const delay = random.upTo(4);
  const lines = createInterface(child.stdout);
  lines.on("line", (line) => {
    // The last one may have been cut off.
    if (!line.endsWith("}")) return;
    const told = JSON.parse(line) as Told;
    witness.hear(told);
    if (told.kind === "reached" && (left -= 1) === 0) void sleep(delay).then(() => child.kill("SIGKILL"));
  });
  const signal = await new Promise((resolve) => {
    child.once("close", (_, by) => resolve(by));
  });
  expect(signal, "what ended the process").toBe("SIGKILL");
}

test.each(moments)(
  "a process that is killed in the middle of a %s leaves whole sessions, and the next one goes on",
  async (moment) => {
    const random = randomOf(seed + moments.indexOf(moment));
    const witness = createWitness();
    const file = join(folder, `${moment}.db`);
    let cut = 0;
    for (let round = 1; round <= rounds; round += 1) {
      await liveAndDie(file, moment, random, witness);
      const interrupted = random.below(2) === 0 ? "close" : "continue";
      const allow = round === rounds;
      const left = await examine(nodeSqliteStorage(file), { interrupted, allow, tell: witness.hear });
      witness.judge(left);
      expect(witness.runsOf("pay"), "the runs of what a person allows in the end").toBe(
        allow ? left.interactions.length : 0,
      );
      if (left.cut) cut += 1;
    }
    expect(cut, "the deaths in the middle of a turn").toBeGreaterThan(0);
  },
  rounds * 20_000,
);
