/** Runs the smoke test on the built package in every runtime, or in those that are named. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../support/package.ts";
import { smokeInChromium } from "./chromium.ts";
import { smokeInWorkerd } from "./workerd.ts";

const MAIN = "test/runtimes/main.js";

/** Each answers what the smoke test said. */
const runtimes: Readonly<Record<string, () => string | Promise<string>>> = {
  node22: () => command(installed("node", "22.23.3"), MAIN),
  node24: () => command(process.execPath, MAIN),
  bun: () => command(installed("bun", "1.4.5"), MAIN),
  deno: () => command(installed("deno", "2.9.6"), "run", "--no-prompt", "--no-config", "--no-lock", MAIN),
  chromium: smokeInChromium,
  workerd: smokeInWorkerd,
};

function command(file: string, ...args: readonly string[]): string {
  return execFileSync(file, args, { cwd: root, timeout: 60_000, encoding: "utf8" }).trim();
}

/** The binary of a runtime that npm can install, kept in a folder for temporary files. */
function installed(runtime: string, version: string): string {
  const folder = join(tmpdir(), "turnloop-runtimes", `${runtime}-${version}`);
  const binary = join(folder, "node_modules", ".bin", runtime);
  if (!existsSync(binary)) {
    const options = ["--no-audit", "--no-fund", "--no-package-lock", "--no-save"];
    execFileSync("npm", ["install", "--prefix", folder, ...options, `${runtime}@${version}`], { stdio: "inherit" });
  }
  return binary;
}

const wanted = process.argv.slice(2);
for (const name of wanted.length > 0 ? wanted : Object.keys(runtimes)) {
  const runtime = runtimes[name];
  if (runtime === undefined) throw new Error(`no such runtime: ${name}; there are ${Object.keys(runtimes).join(", ")}`);
  const answer = await runtime();
  console.log(`${name}: ${answer}`);
  if (answer !== "ok") process.exitCode = 1;
}
