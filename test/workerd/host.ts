/**
 * A program that runs a worker in workerd until it is killed: `node host.ts <module> <folder of the databases> <class of
 * its objects> <its OUTSIDE>`. Prints its address.
 */
import { readFileSync } from "node:fs";
import { Miniflare } from "miniflare";

// The platform wants the worker as a default export.
const [module, folder, name = "Sessions", outside = ""] = process.argv.slice(2) as [string, string, string?, string?];
const MAIN = `export { worker as default, ${name} } from "./worker.js";`;

process.env["WRANGLER_SEND_METRICS"] = "false";

const miniflare = new Miniflare({
  port: 0,
  cf: false,
  resourcePersistencePath: folder,
  workers: [
    {
      config: {
        name: "sessions",
        compatibilityDate: "2026-10-01",
        compatibilityFlags: ["unsafe_module"],
        manifest: {
          mainModule: "main.js",
          modules: {
            "main.js": { type: "esm", contents: MAIN },
            "worker.js": { type: "esm", contents: readFileSync(module, "utf8") },
          },
        },
        env: {
          [name.toUpperCase()]: { type: "durable-object", worker: "sessions", exportName: name },
          OUTSIDE: { type: "text", value: outside },
        },
        exports: { [name]: { type: "durable-object", storage: "sqlite" } },
      },
    },
  ],
});

console.log(String(await miniflare.ready));
