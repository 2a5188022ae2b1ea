/** Reads who imports whom, and how. */
import { posix } from "node:path";
import { parseSync } from "vite";

export interface Import {
  /** The file that imports, as a path from the root of the project. */
  readonly from: string;
  /** What it imports: a path from the root of the project, or a bare specifier as it is written. */
  readonly to: string;
  readonly bare: boolean;
  /** Gone at run time: `import type` and `export type`, not `import { type X }`, which still loads the file. */
  readonly type: boolean;
}

export interface Reading {
  readonly imports: readonly Import[];
  /** Exports that this project does not write: `export *` and `export default`. */
  readonly refused: readonly string[];
}

/** The imports and re-exports of one file, dynamic ones too. */
export function readImports(file: string, source: string): Reading {
  const { module, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]?.message}`);
  const imports: Import[] = [];
  const refused: string[] = [];
  const add = (specifier: string, type: boolean): void => {
    const bare = !specifier.startsWith(".");
    const to = bare ? specifier : posix.join(posix.dirname(file), specifier);
    imports.push({ from: file, to, bare, type });
  };

  for (const { start, moduleRequest } of module.staticImports) {
    add(moduleRequest.value, source.startsWith("import type ", start));
  }
  for (const { start, entries } of module.staticExports) {
    for (const { exportName, importName, moduleRequest } of entries) {
      if (exportName.kind === "Default") refused.push(`${file} has a default export`);
      if (importName.kind === "AllButDefault" || importName.kind === "All") refused.push(`${file} has an export *`);
      if (moduleRequest) add(moduleRequest.value, source.startsWith("export type ", start));
    }
  }
  for (const { moduleRequest } of module.dynamicImports) {
    const written = source.slice(moduleRequest.start, moduleRequest.end);
    if (/^(["']).*\1$/.test(written)) add(written.slice(1, -1), false);
    else refused.push(`${file} imports ${written}, which no reader can follow`);
  }
  return { imports, refused };
}
