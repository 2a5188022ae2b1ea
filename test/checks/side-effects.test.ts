/** Importing the package does nothing: no timer, no global read or written, nothing left open. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { bundle, everythingOf } from "../support/bundle.ts";
import { readEntries } from "../support/package.ts";

/** Imports a module in a process of its own, and prints which of the watched globals were touched meanwhile. */
const WATCH = `
  const touched = [];
  const watched = ["process", "Buffer", "window", "document", "self", "navigator", "localStorage", "indexedDB",
    "setTimeout", "setInterval", "setImmediate", "queueMicrotask", "fetch", "addEventListener"];
  const { stdout } = process;
  const before = new Set(Object.getOwnPropertyNames(globalThis));
  const kept = watched.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]);
  for (const name of watched) {
    Object.defineProperty(globalThis, name, { configurable: true, get: () => void touched.push(name) });
  }
  await import(ENTRY).catch((error) => touched.push(String(error)));
  for (const [name, descriptor] of kept) {
    if (descriptor) Object.defineProperty(globalThis, name, descriptor);
    else delete globalThis[name];
  }
  const added = Object.getOwnPropertyNames(globalThis).filter((name) => !before.has(name));
  stdout.write(JSON.stringify([...touched, ...added]));
`;

function touchedBy(files: readonly { readonly name: string; readonly code: string }[]): unknown {
  const folder = mkdtempSync(join(tmpdir(), "turnloop-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "package.json"), `{ "type": "module" }`);
  for (const { name, code } of files) writeFileSync(join(folder, name), code);
  const entry = pathToFileURL(join(folder, files[0]!.name)).href;
  const script = WATCH.replace("ENTRY", JSON.stringify(entry));
  // A handle left open keeps the process alive, and the time runs out.
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", script], { timeout: 20_000 });
  return JSON.parse(output.toString());
}

test("importing the package touches no global", async () => {
  const [core] = readEntries();
  expect(touchedBy(await bundle(everythingOf(core!.source)))).toEqual([]);
});

test.for([
  ["reads process", "export const node = typeof process;", ["process"]],
  ["starts a timer", "setTimeout(() => {});", ["setTimeout"]],
  ["adds a global", "globalThis.mine = 1;", ["mine"]],
] as const)("it is told when a module %s", ([, code, touched]) => {
  expect(touchedBy([{ name: "module.js", code }])).toEqual(expect.arrayContaining([...touched]));
});
