/** The smoke test in workerd, the runtime of Cloudflare Workers. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Miniflare } from "miniflare";
import { root } from "../support/package.ts";

const WORKER = `
import { smoke } from "./test/runtimes/smoke.js";
export default { fetch: async () => new Response(await smoke()) };
`;

export async function smokeInWorkerd(): Promise<string> {
  const files = ["test/runtimes/smoke.js", ...globSync("dist/**/*.js", { cwd: root })];
  const modules = Object.fromEntries(
    files.map((file) => [file, { type: "esm" as const, contents: readFileSync(join(root, file), "utf8") }]),
  );
  const miniflare = new Miniflare({
    port: 0,
    cf: false,
    workers: [
      {
        config: {
          name: "smoke",
          compatibilityDate: "2026-10-01",
          manifest: {
            mainModule: "worker.js",
            modules: { "worker.js": { type: "esm", contents: WORKER }, ...modules },
          },
        },
      },
    ],
  });
  try {
    const response = await miniflare.dispatchFetch("http://smoke/");
    return await response.text();
  } finally {
    await miniflare.dispose();
  }
}
