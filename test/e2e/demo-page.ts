/** The built demo, served on loopback and opened in Chromium. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type Locator, type Page } from "playwright";
import { browserArgs, ensureBrowser } from "../support/browser.ts";
import { serveDemo } from "./demo-serve.ts";

export interface Demo {
  /** A page of its own, with nothing stored. `pace`: milliseconds for a piece of the scripted text. */
  open(options?: OpenOptions): Promise<DemoPage>;
  /** Another tab on the same chat. */
  join(visit: DemoPage): Promise<DemoPage>;
  /** Where screenshots go; kept after the tests, for people. */
  readonly screenshots: string;
  readonly url: string;
  close(): Promise<void>;
}

export interface OpenOptions {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: "light" | "dark";
  readonly pace?: number;
  /** A script that runs in the page before its own. */
  readonly before?: string;
}

export interface DemoPage {
  readonly page: Page;
  readonly input: Locator;
  /** What the page has logged as errors and warnings. */
  readonly errors: readonly string[];
  /** Types, and presses Enter, or another key. */
  say(text: string, key?: string): Promise<void>;
  card(title: string): Locator;
}

export async function startDemo(): Promise<Demo> {
  const screenshots = join(tmpdir(), "turnloop-screenshots");
  const site = await serveDemo();
  const browser: Browser = await chromium.launch({ executablePath: ensureBrowser(), args: [...browserArgs] });
  const { url } = site;

  return {
    url,
    screenshots,
    async open({ width = 1280, height = 860, scheme = "light", pace = 3, before } = {}) {
      const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
      if (before !== undefined) await context.addInitScript(before);
      return visitTo(await context.newPage(), `${url}?pace=${pace}`);
    },
    join: async ({ page }) => visitTo(await page.context().newPage(), page.url()),
    async close() {
      await browser.close();
      await site.close();
    },
  };
}

export async function visitTo(page: Page, url: string): Promise<DemoPage> {
  const errors: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(url);
  const input = page.getByRole("textbox", { name: "Message" });
  return {
    page,
    input,
    errors,
    async say(text, key = "Enter") {
      await input.fill(text);
      await input.press(key);
    },
    card: (title) => page.getByRole("region", { name: `Tool: ${title}` }),
  };
}

/** Points the page at a model over the network, in its settings. */
export async function connect(
  { page }: DemoPage,
  baseUrl: string,
  { api = "Chat Completions", prices = {} }: { api?: string; prices?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  await page.getByRole("button", { name: "Settings", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(api).check();
  await dialog.getByLabel("Base URL").fill(baseUrl);
  await dialog.getByLabel("Model", { exact: true }).fill("lab-1");
  await dialog.getByLabel("API key").fill("sk-secret");
  for (const [kind, price] of Object.entries(prices)) await dialog.getByLabel(kind, { exact: true }).fill(price);
  await dialog.getByRole("button", { name: "Connect" }).click();
  await dialog.waitFor({ state: "detached" });
}

export const button = ({ page }: DemoPage, name: string): Locator => page.getByRole("button", { name, exact: true });
export const answers = ({ page }: DemoPage): Locator => page.getByRole("article").filter({ hasText: "Assistant" });
