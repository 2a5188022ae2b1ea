/** The demo as it is built for visitors, served on loopback. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build, preview } from "vite";
import { root } from "../support/package.ts";

export async function serveDemo(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const outDir = mkdtempSync(join(tmpdir(), "turnloop-demo-"));
  const config = { mode: "demo", configFile: join(root, "vite.config.ts"), logLevel: "error" } as const;
  // Tests run under another name: what is tested is what visitors get.
  process.env["NODE_ENV"] = "production";
  await build({ ...config, build: { outDir, emptyOutDir: true } });
  const server = await preview({ ...config, build: { outDir }, preview: { host: "127.0.0.1", port: 0 } });
  return {
    url: server.resolvedUrls!.local[0]!,
    async close() {
      await server.close();
      rmSync(outDir, { recursive: true });
    },
  };
}
