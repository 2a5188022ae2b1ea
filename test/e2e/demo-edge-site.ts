/** The demo at the edge: the Worker as `wrangler dev` runs it, in real workerd, which can be killed and begun again. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium, type BrowserContext } from "playwright";
import { browserArgs, ensureBrowser } from "../support/browser.ts";
import { root } from "../support/package.ts";
import { visitTo, type DemoPage } from "./demo-page.ts";

export interface EdgeSite {
  readonly url: string;
  /** A visitor whom the site has not seen before; their other tabs are opened by `join`. */
  open(): Promise<DemoPage>;
  join(visit: DemoPage): Promise<DemoPage>;
  /** SIGKILL of all of it, if it runs. */
  kill(): Promise<void>;
  /** On the same port, with what was stored. */
  start(): Promise<void>;
  close(): Promise<void>;
}

export async function startEdge(): Promise<EdgeSite> {
  const folder = mkdtempSync(join(tmpdir(), "turnloop-edge-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  const browser = await chromium.launch({ executablePath: ensureBrowser(), args: [...browserArgs] });
  const contexts: BrowserContext[] = [];
  let child: ChildProcess | undefined;

  const site: EdgeSite = {
    url,
    async open() {
      const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
      contexts.push(context);
      return visitTo(await context.newPage(), url);
    },
    join: async ({ page }) => visitTo(await page.context().newPage(), page.url()),
    async kill() {
      if (!child || child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child!.once("exit", resolve));
      process.kill(-child.pid!, "SIGKILL");
      await ended;
    },
    async start() {
      const config = join(root, "demo/edge/wrangler.jsonc");
      const where = ["--ip", "127.0.0.1", "--port", `${port}`, "--inspector-port", "0", "--persist-to", folder];
      child = spawn(
        join(root, "node_modules/.bin/wrangler"),
        ["dev", "--config", config, ...where, "--var", "PACE:3", "--show-interactive-dev-session", "false"],
        {
          cwd: root,
          detached: true,
          stdio: ["ignore", "pipe", "pipe"],
          env: { ...process.env, NODE_ENV: "production" },
        },
      );
      const said: string[] = [];
      await new Promise<void>((resolve, reject) => {
        for (const stream of [child!.stdout!, child!.stderr!]) {
          createInterface(stream).on("line", (line) => {
            said.push(line);
            if (line.includes("Ready on")) resolve();
          });
        }
        child!.once("exit", () => reject(new Error(`wrangler has ended: ${said.join("\n")}`)));
      });
    },
    async close() {
      await browser.close();
      await site.kill();
      rmSync(folder, { recursive: true });
    },
  };
  await site.start();
  return site;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
