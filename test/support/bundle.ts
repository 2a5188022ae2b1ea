/** Bundles entries in memory, as an application's bundler would, and weighs them. */
import { readFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build, minify, type Rolldown } from "vite";
import { readEntries, root } from "./package.ts";

export interface Chunk {
  readonly name: string;
  /** Minified. */
  readonly code: string;
  /** Needed to run the program, not just loaded on demand. */
  readonly initial: boolean;
  /** What it imports from outside the bundle. */
  readonly imports: readonly string[];
}

/** The chunks of a program, the entry first; `external` says which imports stay as they are. */
export async function bundle(program: string, external: (id: string) => boolean = isBare): Promise<readonly Chunk[]> {
  const id = join(root, "program.ts"); // a file that is never written
  const result = await build({
    root,
    configFile: false,
    logLevel: "error",
    // As it is built for people, also in tests.
    oxc: { jsx: { runtime: "automatic", development: false } },
    plugins: [
      {
        name: "program",
        resolveId: (source) => (source === id ? id : undefined),
        load: (source) => (source === id ? program : undefined),
      },
    ],
    build: {
      write: false,
      target: "es2022",
      lib: { entry: id, formats: ["es"], fileName: "program" },
      // As in an application: what is loaded on demand may use what the program has.
      rolldownOptions: { external, preserveEntrySignatures: "allow-extension" },
    },
  });
  const outputs = (Array.isArray(result) ? result : [result]) as readonly Rolldown.RolldownOutput[];
  const chunks = new Map(
    outputs.flatMap(({ output }) => output.flatMap((one) => (one.type === "chunk" ? [[one.fileName, one]] : []))),
  );
  const initial = new Set<string>();
  const reach = (name: string): void => {
    if (initial.has(name)) return;
    initial.add(name);
    for (const next of chunks.get(name)?.imports ?? []) reach(next);
  };
  for (const chunk of chunks.values()) if (chunk.isEntry) reach(chunk.fileName);
  return Promise.all(
    [...chunks.values()].map(async ({ fileName, code, imports, dynamicImports }) => ({
      name: fileName,
      // The library mode leaves the white space in; an application's bundler does not.
      code: (await minify(fileName, code, { module: true })).code,
      initial: initial.has(fileName),
      imports: [...imports, ...dynamicImports].filter((to) => !chunks.has(to)),
    })),
  );
}

/** A program that uses everything of a source. */
export function everythingOf(source: string): string {
  return `export * from ${JSON.stringify(source)};`;
}

function isBare(id: string): boolean {
  return !id.startsWith(".") && !isAbsolute(id);
}

export interface Weight {
  readonly what: string;
  /** Bytes. */
  readonly minified: number;
  readonly gzipped: number;
}

/** The loop alone, the whole core entry, and each other entry without the core and its vendor. */
export async function weigh(): Promise<readonly Weight[]> {
  const [core, ...others] = readEntries();
  if (core === undefined) throw new Error("package.json lists no entries");
  return [
    await weighOne("createHarness", `export { createHarness } from ${JSON.stringify(core.source)};`, isBare),
    await weighOne(core.specifier, everythingOf(core.source), isBare),
    ...(await Promise.all(
      others.map(({ specifier, source }) =>
        weighOne(
          specifier,
          everythingOf(source),
          (id) => isBare(id) || /src\/(core|index)\.ts$|^\.\.\/(core|index)\.ts$/.test(id),
        ),
      ),
    )),
  ];
}

/** Each policy of the core entry on top of the loop alone: what it makes a program heavier by. */
export async function weighPolicies(): Promise<readonly Weight[]> {
  const [core] = readEntries();
  const source = JSON.stringify(core!.source);
  const loop = await weighOne("createHarness", `export { createHarness } from ${source};`, isBare);
  const both = await Promise.all(
    policies().map((name) => weighOne(name, `export { createHarness, ${name} } from ${source};`, isBare)),
  );
  return both.map(({ what, minified, gzipped }) => ({
    what,
    minified: minified - loop.minified,
    gzipped: gzipped - loop.gzipped,
  }));
}

/** The functions that the core entry has from its plugins, by name. */
export function policies(): readonly string[] {
  const index = readFileSync(join(root, "src/index.ts"), "utf8");
  return [...index.matchAll(/^export \{ (\w+)[^}]*\} from "\.\/plugins\//gm)].map(([, name = ""]) => name);
}

async function weighOne(what: string, program: string, external: (id: string) => boolean): Promise<Weight> {
  const codes = (await bundle(program, external)).filter((chunk) => chunk.initial).map((chunk) => chunk.code);
  const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0);
  return {
    what,
    minified: sum(codes.map((code) => Buffer.byteLength(code))),
    gzipped: sum(codes.map((code) => gzipSync(code, { level: 9 }).length)),
  };
}
