/**
 * Measures the built package beside the floor: `npm run bench`, or `npm run bench -- stream tools` for a part of it.
 * `--json` prints the results as JSON and nothing else.
 */
import { execFileSync } from "node:child_process";
import { cpus } from "node:os";
import { join } from "node:path";
import { readManifest } from "../support/package.ts";
import { rowsOf, type Pair, type Told } from "./rows.ts";
import { scenarios } from "./scenarios.ts";
import type { Side } from "./side.ts";
import { tableOf } from "./table.ts";

const ROUNDS = 3;
/** A process that takes longer than this hangs. */
const LIMIT_MS = 60_000;

const options = process.argv.slice(2);
const wanted = options.filter((one) => one !== "--json");
const unknown = wanted.filter((one) => !Object.hasOwn(scenarios, one));
if (unknown.length > 0) {
  throw new Error(`no such scenario: ${unknown.join(", ")}; there are ${Object.keys(scenarios).join(", ")}`);
}
const chosen = Object.keys(scenarios).filter((name) => wanted.length === 0 || wanted.includes(name));

/** In a process of its own, so that nobody meets a heap or an optimiser that another has worn in. */
function measure(scenario: string, side: Side): Told[] {
  const program = join(import.meta.dirname, "measure.ts");
  const answer = execFileSync(process.execPath, ["--expose-gc", program, scenario, side], {
    encoding: "utf8",
    timeout: LIMIT_MS,
    stdio: ["ignore", "pipe", "inherit"],
  });
  return JSON.parse(answer) as Told[];
}

const began = performance.now();
const pairs: Pair[] = [];
for (let round = 1; round <= ROUNDS; round += 1) {
  for (const scenario of chosen) {
    process.stderr.write(`round ${round} of ${ROUNDS}: ${scenario}\n`);
    for (const setting of scenarios[scenario]!.settings) {
      // Side by side, so that a slow minute of the machine hits both.
      const floor = measure(scenario, "floor");
      pairs.push({ scenario, setting, floor, ours: measure(scenario, setting) });
    }
  }
}

const rows = rowsOf(pairs);
const about = {
  turnloop: readManifest().version,
  node: process.version,
  cpu: `${cpus().length} x ${cpus()[0]?.model}`,
  date: new Date().toISOString().slice(0, 10),
  rounds: ROUNDS,
  seconds: Math.round((performance.now() - began) / 1000),
};
if (options.includes("--json")) console.log(JSON.stringify({ ...about, rows }, null, 2));
else {
  console.log(tableOf(rows));
  console.log(
    `\n${about.date}, turnloop ${about.turnloop}, Node ${about.node}, ${about.cpu}, ${ROUNDS} rounds in ${about.seconds} s.`,
  );
}
