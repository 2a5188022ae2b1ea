/** The rules of who may import whom, and what breaks them. */
import { posix } from "node:path";
import { readImports, type Import } from "./imports.ts";

/** The rows of `src`, from the outside in. A value is imported from a row below, or from one's own part. */
const ROWS: readonly (readonly string[])[] = [
  ["index"],
  ["plugins", "view"],
  ["core"],
  ["harness"],
  ["life"],
  ["loop"],
  ["agent", "tools", "prompt", "interaction", "storage"],
  ["session"],
  ["model"],
  ["hooks", "json", "clock"],
  ["errors"],
];

/** Parts that see the face of the core alone, its types too: a stranger could have written them. */
const STRANGERS: ReadonlySet<string> = new Set(["plugins", "view"]);
const CORE = "src/core.ts";
/** Of the core, and of the whole package. */
const FACES: ReadonlySet<string> = new Set([CORE, "src/index.ts"]);

/** Modules that a platform brings along; the adapters of that platform import them. */
const PLATFORM = /^(node|cloudflare):/;

/**
 * Every broken rule among the files, given as path and text; empty when all is well. `vendors` are the
 * packages that an adapter may import.
 */
export function brokenRules(files: ReadonlyMap<string, string>, vendors: ReadonlySet<string>): readonly string[] {
  const readings = [...files].map(([file, source]) => readImports(file, source));
  const imports = readings.flatMap((reading) => reading.imports);
  return [
    ...readings.flatMap((reading) => reading.refused),
    ...imports.flatMap((one) => {
      const reason = one.bare ? wrongPackage(one, vendors) : wrongFile(one, files);
      return reason === undefined ? [] : `${one.from} imports ${one.to}: ${reason}`;
    }),
    ...circles(imports.filter((one) => !one.type && !one.bare)),
  ];
}

function wrongPackage({ from, to }: Import, vendors: ReadonlySet<string>): string | undefined {
  if (from.startsWith("src/")) return "src imports nothing from outside src";
  if (to === "turnloop" || PLATFORM.test(to)) return undefined;
  const name = to.split("/", to.startsWith("@") ? 2 : 1).join("/");
  return vendors.has(name) ? undefined : "an adapter's vendor must be a dependency or an optional peer";
}

function wrongFile({ from, to, type }: Import, files: ReadonlyMap<string, string>): string | undefined {
  if (!files.has(to)) return "there is no such file";
  if (from.startsWith("adapters/")) {
    return FACES.has(to) || isOwnFolder(from, to) || isHosted(from, to)
      ? undefined
      : "an adapter sees the public faces and its own folder";
  }
  if (!to.startsWith("src/")) return "src imports nothing from outside src";
  const [mine, theirs] = [partOf(from), partOf(to)];
  if (mine === theirs) return undefined;
  if (mine === "testing") return FACES.has(to) ? undefined : "testing sees the public faces";
  if (STRANGERS.has(mine)) return to === CORE ? undefined : `${mine} sees ${CORE} alone`;
  if (mine === "agent" && theirs === "loop") return "agent knows no loop";
  if (type) return undefined;
  const [above, below] = [rowOf(mine), rowOf(theirs)];
  if (above === -1 || below === -1) return `${above === -1 ? mine : theirs} has no place in the order of src`;
  return above < below ? undefined : `a value of ${theirs} is not for ${mine}`;
}

/** `src/loop/turn.ts` is part of `loop`, `src/core.ts` is `core`. */
function partOf(file: string): string {
  return (file.split("/")[1] ?? file).replace(/\.tsx?$/, "");
}

function rowOf(part: string): number {
  return ROWS.findIndex((row) => row.includes(part));
}

function isOwnFolder(from: string, to: string): boolean {
  const folder = posix.dirname(from);
  return posix.dirname(to) === folder || (folder !== "adapters" && to.startsWith(`${folder}/`));
}

/** A host puts agents on a platform: it holds the platform's storage, and the near end of its transports. */
function isHosted(from: string, to: string): boolean {
  return from.startsWith("adapters/host/") && /^adapters\/(storage|transport)\//.test(to);
}

/** Circles of value imports, each told once. */
function circles(imports: readonly Import[]): readonly string[] {
  const next = Map.groupBy(imports, (one) => one.from);
  const found: string[] = [];
  const settled = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) {
      found.push(`a circle: ${[...path.slice(path.indexOf(file)), file].join(" -> ")}`);
      return;
    }
    if (settled.has(file)) return;
    for (const { to } of next.get(file) ?? []) visit(to, [...path, file]);
    settled.add(file);
  };
  for (const file of next.keys()) visit(file, []);
  return found;
}
