/** Everything that `npm test` runs, step by step; `npm test -- lint node` runs just these steps. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureBrowser } from "./browser.ts";
import { readManifest, root } from "./package.ts";

interface Step {
  readonly name: string;
  /** Run by the shell, in the folder of the project. */
  readonly command: string;
  /** Where vitest leaves its report; a step without one counts as a test of its own. */
  readonly report?: string;
  readonly needsBrowser?: boolean;
}

interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const temp = mkdtempSync(join(tmpdir(), "turnloop-test-"));
const { name, version } = readManifest();
const tarball = join(temp, `${name}-${version}.tgz`);

const steps: readonly Step[] = [
  { name: "types", command: "npm run --silent types" },
  { name: "lint", command: "npm run --silent lint" },
  { name: "format", command: "npm run --silent format -- --check" },
  { name: "contract", command: "npm run --silent contract" },
  { name: "build", command: "npm run --silent build" },
  { name: "pack", command: `npm pack --ignore-scripts --pack-destination ${temp}` },
  { name: "publint", command: `publint run ${tarball} --strict` },
  { name: "attw", command: `attw ${tarball} --profile esm-only` },
  { name: "consumer", command: `node test/consumer/run.ts ${tarball}` },
  { name: "demo-build", command: "npm run --silent demo:build" },
  vitest("node"),
  vitest("type-tests", "types"),
  { ...vitest("browser"), needsBrowser: true },
  { ...vitest("e2e"), needsBrowser: true },
  ...["node24", "chromium", "workerd"].map((one) => ({ name: one, command: `node test/runtimes/run.ts ${one}` })),
];

function vitest(step: string, project = step): Step {
  const report = join(temp, `${project}.json`);
  const reporters = `--reporter=default --reporter=json --outputFile.json=${report}`;
  return { name: step, command: `vitest run --project ${project} ${reporters}`, report };
}

function runStep(step: Step): Tally {
  console.log(`\n== ${step.name}: ${step.command.replaceAll(`${temp}/`, "")}`);
  const { status } = spawnSync(step.command, { cwd: root, shell: true, stdio: ["ignore", "inherit", "inherit"] });
  const tally = step.report === undefined ? { passed: 1, failed: 0, skipped: 0 } : readReport(step.report);
  // A failure that no test tells of: a command, an unhandled error, a file that does not load, a project without tests.
  if (tally.failed === 0 && (status !== 0 || tally.passed === 0)) {
    return { ...tally, passed: step.report === undefined ? 0 : tally.passed, failed: 1 };
  }
  return tally;
}

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly {
    readonly status: string;
    readonly assertionResults: readonly { status: string }[];
  }[];
}

/** A file that failed although none of its tests did counts as one failed test. */
function readReport(file: string): Tally {
  if (!existsSync(file)) return { passed: 0, failed: 0, skipped: 0 };
  const report = JSON.parse(readFileSync(file, "utf8")) as Report;
  const broken = report.testResults.filter(
    (result) => result.status === "failed" && result.assertionResults.every((test) => test.status !== "failed"),
  );
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + broken.length,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((one) => steps.every((step) => step.name !== one));
if (unknown.length > 0) {
  throw new Error(`no such step: ${unknown.join(", ")}; there are ${steps.map((step) => step.name).join(", ")}`);
}

const chosen = steps.filter((step) => wanted.length === 0 || wanted.includes(step.name));
if (chosen.some((step) => step.needsBrowser)) ensureBrowser();
const results = chosen.map((step) => ({ step, tally: runStep(step) }));
rmSync(temp, { recursive: true });

console.log("");
for (const { step, tally } of results) {
  const skipped = tally.skipped > 0 ? `, ${tally.skipped} skipped` : "";
  console.log(`${step.name.padEnd(12)}${tally.passed} passed, ${tally.failed} failed${skipped}`);
}
const passed = results.reduce((sum, { tally }) => sum + tally.passed, 0);
const failed = results.reduce((sum, { tally }) => sum + tally.failed, 0);
console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
