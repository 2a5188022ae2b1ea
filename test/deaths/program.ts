/** A program of the tests as one module, which a bare runtime can run: the package is its sources. */
import { build, type Rolldown } from "vite";
import { readEntries, root } from "../support/package.ts";

/** The code of the file at `entry`, an absolute path; what a runtime brings along stays an import. */
export async function programOf(entry: string): Promise<string> {
  const result = await build({
    root,
    configFile: false,
    logLevel: "error",
    resolve: {
      alias: readEntries().map(({ specifier, source }) => ({
        find: new RegExp(`^${specifier}$`),
        replacement: source,
      })),
    },
    build: {
      write: false,
      target: "es2022",
      minify: false,
      lib: { entry, formats: ["es"], fileName: "program" },
      rolldownOptions: { external: /^(node|cloudflare|workerd):/, output: { codeSplitting: false } },
    },
  });
  const [output] = (Array.isArray(result) ? result : [result]) as readonly Rolldown.RolldownOutput[];
  return output!.output[0].code;
}
