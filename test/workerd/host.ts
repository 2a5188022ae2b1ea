/** A program that runs a worker in workerd until it is killed: `node host.ts <module> <folder of the databases>`. */
import { readFileSync } from "node:fs";
import { Miniflare } from "miniflare";

/** The platform wants the worker as a default export. */
const MAIN = `export { worker as default, Sessions } from "./worker.js";`;

const [module, folder] = process.argv.slice(2) as [string, string];
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
        env: { SESSIONS: { type: "durable-object", worker: "sessions", exportName: "Sessions" } },
        exports: { Sessions: { type: "durable-object", storage: "sqlite" } },
      },
    },
  ],
});

console.log(String(await miniflare.ready));
