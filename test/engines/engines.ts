/** The three engines behind one handle: a page that can be reloaded, and a browser that can be killed. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import puppeteer, { type Browser, type LaunchOptions } from "puppeteer-core";
import { browserArgs, ensureBrowser } from "../support/browser.ts";
import { FIREFOX, miniBrowser, WEBKIT_DRIVER } from "./install.ts";
import type { EnginePage } from "./page.ts";
import { connectWebDriver } from "./webdriver.ts";

/** One more tab, whose script makes an `Api` of `page`. */
export interface EngineTab<Api> {
  call<K extends keyof Api>(
    method: K,
    ...args: unknown[]
  ): Promise<Api[K] extends (...all: never[]) => infer R ? Awaited<R> : never>;
  go(url: string): Promise<void>;
  back(): Promise<void>;
  reload(): Promise<void>;
  close(): Promise<void>;
}

export interface Engine {
  open(url: string): Promise<void>;
  call<K extends keyof EnginePage>(
    method: K,
    ...args: Parameters<EnginePage[K]>
  ): Promise<Awaited<ReturnType<EnginePage[K]>>>;
  /** An expression in the page; a promise that it makes is awaited. */
  evaluate<T>(expression: string): Promise<T>;
  reload(): Promise<void>;
  /** SIGKILL, then a new browser on the same profile; undefined where the driver keeps no profile. */
  readonly killAndReopen: ((url: string) => Promise<void>) | undefined;
  /** Undefined where the driver has one page alone. */
  readonly openTab: (<Api>(url: string) => Promise<EngineTab<Api>>) | undefined;
  close(): Promise<void>;
}

/** What a page is asked, as text: every driver takes that. */
function callOf(method: string, args: readonly unknown[]): string {
  return `page[${JSON.stringify(method)}](...${JSON.stringify(args)})`;
}

async function byPuppeteer(options: LaunchOptions): Promise<Engine> {
  const userDataDir = mkdtempSync(join(tmpdir(), "turnloop-engine-"));
  const launch = (): Promise<Browser> =>
    puppeteer.launch({ ...options, headless: true, userDataDir, protocolTimeout: 300_000 });
  let browser = await launch();
  let page = await browser.newPage();
  return {
    open: async (url) => void (await page.goto(url)),
    call: (method, ...args) => page.evaluate(callOf(method, args)) as never,
    evaluate: (expression) => page.evaluate(expression) as never,
    reload: async () => void (await page.reload()),
    async killAndReopen(url) {
      const child = browser.process()!;
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await gone;
      browser = await launch();
      page = await browser.newPage();
      await page.goto(url);
    },
    async openTab(address) {
      const tab = await browser.newPage();
      await tab.goto(address);
      return {
        call: (method, ...args) => tab.evaluate(callOf(String(method), args)) as never,
        go: async (elsewhere) => void (await tab.goto(elsewhere)),
        back: async () => void (await tab.goBack()),
        reload: async () => void (await tab.reload()),
        close: () => tab.close(),
      };
    },
    async close() {
      await browser.close();
      rmSync(userDataDir, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

export function openChromium(): Promise<Engine> {
  return byPuppeteer({ executablePath: ensureBrowser(), args: [...browserArgs] });
}

export function openFirefox(): Promise<Engine> {
  return byPuppeteer({ browser: "firefox", protocol: "webDriverBiDi", executablePath: FIREFOX });
}

export async function openWebKit(): Promise<Engine> {
  const port = await freePort();
  const server = spawn("xvfb-run", ["-a", WEBKIT_DRIVER, `--port=${port}`], { detached: true, stdio: "ignore" });
  const stop = (): boolean => process.kill(-server.pid!, "SIGTERM");
  try {
    const driver = await connectWebDriver(`http://127.0.0.1:${port}`, {
      browserName: "MiniBrowser",
      "webkitgtk:browserOptions": { binary: miniBrowser(), args: ["--automation"] },
    });
    return {
      open: driver.go,
      call: (method, ...args) => driver.execute(`return ${callOf(method, args)}`) as never,
      evaluate: (expression) => driver.execute(`return ${expression}`) as never,
      reload: driver.reload,
      killAndReopen: undefined,
      openTab: undefined,
      async close() {
        await driver.quit();
        stop();
      },
    };
  } catch (thrown) {
    stop();
    throw thrown;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
