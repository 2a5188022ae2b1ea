/** Lists the tests of each statement of the contract, and fails where one is missing: `npm run contract`. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { statements } from "../contract/statements.ts";
import { root } from "./package.ts";

/** A string that begins with numbers of the contract, as the names of its tests do. */
const NAME = /(["'`])((?:(?:#|D)\d+[ ,:]+)+(?:(?!\1)[^\\\n]|\\.)*)\1/g;
const NUMBERS = /^(?:(?:#|D)\d+[ ,:]+)+/;

const tests = new Map<string, { readonly name: string; readonly file: string }[]>();
let count = 0;
for (const file of globSync("test/{contract,property}/**/*.test.ts", { cwd: root }).toSorted()) {
  for (const [, , name = ""] of readFileSync(join(root, file), "utf8").matchAll(NAME)) {
    count += 1;
    for (const [id] of name.match(NUMBERS)?.[0].matchAll(/(?:#|D)\d+/g) ?? []) {
      tests.set(id, [...(tests.get(id) ?? []), { name, file }]);
    }
  }
}

for (const { id, tags, needsTest } of statements) {
  const found = tests.get(id) ?? [];
  const owes = found.length > 0 ? "" : needsTest ? "  MISSING" : "  none, and none is owed";
  console.log(`${id} ${tags.map((tag) => `[${tag}]`).join("")}${owes}`);
  for (const { name, file } of found) console.log(`    ${file}: ${name}`);
}

const known = new Set(statements.map(({ id }) => id));
const missing = statements.filter(({ id, needsTest }) => needsTest && !tests.has(id)).map(({ id }) => id);
const unknown = [...tests.keys()].filter((id) => !known.has(id));
console.log(`\n${count} tests name ${tests.size} of ${statements.length} statements.`);
if (missing.length > 0) console.log(`Without a test: ${missing.join(", ")}`);
if (unknown.length > 0) console.log(`Not in the contract: ${unknown.join(", ")}`);
process.exitCode = missing.length + unknown.length > 0 ? 1 : 0;
