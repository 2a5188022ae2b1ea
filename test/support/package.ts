/** The package as its tools read it: its entries, its peers, its sources. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export interface Entry {
  /** The file in dist/, without its ending: `index`, `ai-sdk`. */
  readonly name: string;
  /** What a user imports: `turnloop`, `turnloop/ai-sdk`. */
  readonly specifier: string;
  /** The absolute path of its source. */
  readonly source: string;
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** The folder of the project. */
export const root: string = resolve(import.meta.dirname, "../..");

export function readManifest(): Manifest {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as Manifest;
}

/**
 * The entries, from "exports" in package.json, the one place that lists them: each names its code and its
 * declarations, and the declarations lie in dist/ where the source lies in the project.
 */
export function readEntries(): readonly Entry[] {
  const { name, exports } = readManifest();
  return Object.entries(exports).flatMap(([subpath, target]) => {
    if (typeof target === "string") return [];
    const source = join(root, target.types.replace(/^\.\/dist\//, "").replace(/\.d\.ts$/, ".ts"));
    return {
      name: target.default.replace(/^\.\/dist\/|\.js$/g, ""),
      specifier: name + subpath.slice(1),
      source: existsSync(source) ? source : `${source}x`,
    };
  });
}

/** Every source of src/ and adapters/: its path from the root of the project, and its text. */
export function readSources(): ReadonlyMap<string, string> {
  const files = globSync("{src,adapters}/**/*.{ts,tsx}", { cwd: root });
  return new Map(files.map((file) => [file.replaceAll("\\", "/"), readFileSync(join(root, file), "utf8")]));
}
