/** The programs of README.md and of the documents in demo/docs, in a folder of their own where `turnloop` is the sources. */
import { globSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { readEntries, root } from "./package.ts";

export interface Program {
  /** What its first line calls it: `// weather.ts`. */
  readonly name: string;
  readonly code: string;
  /** What it prints, where the document says that. */
  readonly output: string | undefined;
}

export const readme: string = readFileSync(join(root, "README.md"), "utf8");

/** Every block of TypeScript of every document. Throws for one that does not say its name, or has another one's. */
export function readPrograms(): readonly Program[] {
  const documents = ["README.md", ...globSync("demo/docs/*.md", { cwd: root })];
  const programs = documents.flatMap((file) => programsOf(file, readFileSync(join(root, file), "utf8")));
  const twice = programs.find(({ name }, i) => programs.findIndex((other) => other.name === name) !== i);
  if (twice) throw new Error(`two programs are called ${twice.name}`);
  return programs;
}

function programsOf(file: string, text: string): readonly Program[] {
  const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", code = ""]) => ({
    language,
    code,
  }));
  return blocks.flatMap(({ language, code }, index) => {
    if (language !== "ts" && language !== "tsx") return [];
    const name = /^\/\/ ([\w.-]+)/.exec(code)?.[1];
    if (name === undefined) throw new Error(`this block of ${file} does not begin with its name:\n${code}`);
    const next = blocks[index + 1];
    return [{ name, code, output: next?.language === "text" ? next.code : undefined }];
  });
}

const VENDORS = [
  "@ai-sdk",
  "@electric-sql",
  "@opentelemetry",
  "@types",
  "ai",
  "csstype",
  "react",
  "svelte",
  "undici-types",
  "vue",
  "ws",
  "zod",
];

/** Writes the programs down as somebody would who has installed the package and its vendors. Answers with the folder. */
export function writePrograms(programs: readonly Program[]): string {
  const folder = mkdtempSync(join(tmpdir(), "turnloop-readme-"));
  for (const { name, code } of programs) writeFileSync(join(folder, name), code);

  const modules = join(folder, "node_modules");
  const turnloop = join(modules, "turnloop");
  mkdirSync(turnloop, { recursive: true });
  for (const vendor of VENDORS) symlinkSync(join(root, "node_modules", vendor), join(modules, vendor));
  for (const part of ["src", "adapters"]) symlinkSync(join(root, part), join(turnloop, part));

  const entries = readEntries().map(({ specifier, source }) => ({ specifier, path: `./${relative(root, source)}` }));
  const exports = Object.fromEntries(
    entries.map(({ specifier, path }) => [specifier.replace("turnloop", "."), path.replaceAll("\\", "/")]),
  );
  writeJson(join(turnloop, "package.json"), { name: "turnloop", type: "module", exports });
  writeJson(join(folder, "package.json"), { type: "module", private: true });
  writeJson(join(folder, "tsconfig.json"), {
    compilerOptions: {
      strict: true,
      target: "es2022",
      lib: ["es2024", "dom", "dom.iterable"],
      // The sources stand in for the package here; how its declarations resolve, the consumer test sees.
      module: "preserve",
      moduleResolution: "bundler",
      jsx: "react-jsx",
      types: ["node"],
      noEmit: true,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
      // An adapter names the package that it is part of.
      paths: Object.fromEntries(entries.map(({ specifier, path }) => [specifier, [join(root, path)]])),
    },
    // The sources of the one module that only a Worker has.
    files: [...programs.map(({ name }) => name), join(root, "adapters/host/durable-object-workers.d.ts")],
  });
  return folder;
}

function writeJson(file: string, value: unknown): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(value));
}
