/** The arrows of the house point one way; and the check that says so can fail. */
import { expect, test } from "vitest";
import { readManifest, readSources } from "../support/package.ts";
import { brokenRules } from "./arrows.ts";

test("src and adapters import along the arrows only", () => {
  const files = readSources();
  expect(files.size).toBeGreaterThan(0);
  const { dependencies = {}, peerDependencies = {} } = readManifest();
  expect(brokenRules(files, new Set(Object.keys({ ...dependencies, ...peerDependencies })))).toEqual([]);
});

/** The smallest house with every part, in which nothing is wrong. */
const HOUSE = {
  "src/index.ts": `export { createHarness } from "./core.ts"; export { retry } from "./plugins/retry.ts";`,
  "src/plugins/retry.ts": `import { createHarness } from "../core.ts"; export const retry = createHarness;`,
  "src/view/usage.ts": `import type { Agent } from "../core.ts"; export type Usage = Agent;`,
  "src/core.ts": `export { createHarness } from "./harness.ts"; export type { Agent } from "./agent/types.ts";`,
  "src/harness.ts": `import { turn } from "./loop/turn.ts"; export const createHarness = turn;`,
  "src/loop/turn.ts": `import { append } from "../session/log.ts"; export const turn = append;`,
  "src/agent/types.ts": `import type { Harness } from "../harness.ts"; export type Agent = Harness;`,
  "src/agent/inbox.ts": `import { append } from "../session/log.ts"; export const inbox = append;`,
  "src/tools/run.ts": `export const call = 1;`,
  "src/session/log.ts": `import { fail } from "../errors.ts"; export const append = fail;`,
  "src/errors.ts": `export const fail = 1;`,
  "src/testing/index.ts": `import { createHarness } from "../index.ts"; export const scripted = createHarness;`,
  "adapters/model/ai.ts": `import type { Model } from "vendor"; import { createHarness } from "../../src/core.ts"; export type M = Model; export const ai = createHarness;`,
  "adapters/ui/react.ts": `export const use = 1;`,
  "adapters/transport/host.ts": `export const serve = 1;`,
  "adapters/host/node.ts": `import { createServer } from "node:http"; import { serve } from "../transport/host.ts"; export const host = [createServer, serve];`,
};

function broken(changes: Readonly<Record<string, string>>): readonly string[] {
  return brokenRules(new Map(Object.entries({ ...HOUSE, ...changes })), new Set(["vendor"]));
}

test("a house in order breaks no rule", () => {
  expect(broken({})).toEqual([]);
});

test.for([
  ["an inner part imports an outer one", "src/session/log.ts", `import { turn } from "../loop/turn.ts";`, "is not for"],
  ["parts of one row import each other", "src/agent/inbox.ts", `import { call } from "../tools/run.ts";`, "is not for"],
  [
    "a value is re-exported against the arrow",
    "src/errors.ts",
    `export { append } from "./session/log.ts";`,
    "is not for",
  ],
  ["a dynamic import goes against the arrow", "src/errors.ts", `await import("./session/log.ts");`, "is not for"],
  [
    "an inline type import still loads the file",
    "src/errors.ts",
    `import { type X } from "./harness.ts";`,
    "is not for",
  ],
  [
    "agent looks at loop, if only at its types",
    "src/agent/types.ts",
    `import type { T } from "../loop/turn.ts";`,
    "no loop",
  ],
  ["a plugin looks behind the core", "src/plugins/retry.ts", `import type { T } from "../session/log.ts";`, "alone"],
  ["a view looks at a plugin", "src/view/usage.ts", `import { retry } from "../plugins/retry.ts";`, "alone"],
  ["testing looks behind the core", "src/testing/index.ts", `import { turn } from "../loop/turn.ts";`, "testing sees"],
  [
    "an adapter looks behind the core",
    "adapters/model/ai.ts",
    `import { turn } from "../../src/loop/turn.ts";`,
    "own folder",
  ],
  ["an adapter looks at another", "adapters/model/ai.ts", `import { use } from "../ui/react.ts";`, "own folder"],
  ["a transport knows a host", "adapters/transport/host.ts", `import { host } from "../host/node.ts";`, "own folder"],
  ["an adapter imports what nobody installs", "adapters/model/ai.ts", `import x from "vendors/deep";`, "optional peer"],
  ["src imports a package", "src/errors.ts", `import type { X } from "vendor";`, "outside src"],
  ["src imports a builtin", "src/errors.ts", `import { join } from "node:path";`, "outside src"],
  ["src imports an adapter", "src/errors.ts", `import type { X } from "../adapters/ui/react.ts";`, "outside src"],
  ["an import leads nowhere", "src/errors.ts", `import type { X } from "./gone.ts";`, "no such file"],
  ["a part has no place", "src/misc/x.ts", `import { fail } from "../errors.ts";`, "no place"],
  ["an import cannot be read", "src/errors.ts", "await import(`./${name}.ts`);", "no reader can follow"],
  ["there is a default export", "src/errors.ts", `export default 1;`, "default export"],
  ["there is an export *", "src/core.ts", `export * from "./harness.ts";`, "export *"],
  ["two files import each other", "src/session/log.ts", `import { b } from "./b.ts";`, "a circle"],
] as const)("it is told when %s", ([, file, source, reason]) => {
  const other = { "src/session/b.ts": `import { append } from "./log.ts"; export const b = append;` };
  expect(broken({ ...other, [file]: source })).toContainEqual(expect.stringContaining(reason));
});
