/** A browser with a profile that outlives it, and a site whose page has the storage: to be killed. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type CDPSession, type Page } from "playwright";
import { servePage } from "../engines/serve.ts";
import { browserArgs, ensureBrowser } from "../support/browser.ts";

/** `Api`: what the script of the page sets as the global `page`. */
export interface Site<Api> {
  readonly url: string;
  /** A browser on the profile; the one before must be gone. */
  start(): Promise<RunningBrowser<Api>>;
  close(): Promise<void>;
}

export interface RunningBrowser<Api> {
  open(path?: string): Promise<Tab<Api>>;
  /** SIGKILL for all of its processes. */
  kill(): Promise<void>;
}

export interface Tab<Api> {
  readonly page: Page;
  readonly cdp: CDPSession;
  /** The last seq that the page said is stored. */
  readonly acknowledged: number;
  /** What the page's `Api` answers. */
  call<K extends keyof Api>(name: K, ...args: ArgumentsOf<Api[K]>): Promise<AnswerOf<Api[K]>>;
  /** Resolves when the page has said that so many events are stored. */
  stored(seq: number): Promise<void>;
}

type ArgumentsOf<F> = F extends (...args: infer A) => unknown ? A : never;
type AnswerOf<F> = F extends (...args: never) => infer R ? Awaited<R> : never;

/** `file`: the path of the page's script from the root of the project. */
export async function startSite<Api>(file: string): Promise<Site<Api>> {
  const { url, close } = await servePage(file);
  const profile = mkdtempSync(join(tmpdir(), "turnloop-profile-"));
  const running = new Set<RunningBrowser<Api>>();

  return {
    url,
    async start() {
      const { browser, child } = await launch(profile);
      const self: RunningBrowser<Api> = {
        open: (path = "") => openTab(browser, url + path),
        async kill() {
          running.delete(self);
          const gone = new Promise((resolve) => child.once("exit", resolve));
          process.kill(-child.pid!, "SIGKILL");
          await gone;
        },
      };
      running.add(self);
      return self;
    },
    async close() {
      for (const one of running) await one.kill();
      close();
      rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

/** Playwright's own browsers die with their profile; this one is only driven by it. */
async function launch(profile: string): Promise<{ browser: Browser; child: ChildProcess }> {
  const args = [...browserArgs, "--headless=new", "--remote-debugging-port=0", `--user-data-dir=${profile}`];
  const child = spawn(ensureBrowser(), [...args, "about:blank"], {
    detached: true,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const endpoint = await new Promise<string>((resolve, reject) => {
    let said = "";
    child.stderr.on("data", (data: Buffer) => {
      said += data.toString();
      const found = /DevTools listening on (ws:\S+)/.exec(said);
      if (found) resolve(found[1]!);
    });
    child.once("exit", () => reject(new Error(`the browser did not start: ${said}`)));
  });
  // By default every page is made to believe that it is in front: none would be hidden, and none would freeze.
  return { browser: await chromium.connectOverCDP(endpoint, { noDefaults: true }), child };
}

async function openTab<Api>(browser: Browser, url: string): Promise<Tab<Api>> {
  const [context] = browser.contexts();
  const page = await context!.newPage();
  let acknowledged = 0;
  const waiting = new Set<() => void>();
  page.on("console", (message) => {
    const found = /^stored (\d+)$/.exec(message.text());
    if (found) acknowledged = Number(found[1]);
    for (const look of waiting) look();
  });
  await page.goto(url);
  return {
    page,
    cdp: await context!.newCDPSession(page),
    get acknowledged() {
      return acknowledged;
    },
    call: (name, ...args) =>
      page.evaluate(
        ([method, list]) =>
          (globalThis as never as { page: Record<string, (...all: unknown[]) => never> }).page[method]!(...list),
        [name, args] as [string, unknown[]],
      ),
    stored: (seq) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (acknowledged < seq) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
  };
}
