/** The smoke test in a page of Chromium, which loads the built package as plain modules. */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join, normalize } from "node:path";
import type { AddressInfo } from "node:net";
import { chromium } from "playwright";
import { browserArgs, ensureBrowser } from "../support/browser.ts";
import { root } from "../support/package.ts";

export async function smokeInChromium(): Promise<string> {
  const server = createServer(async ({ url = "/" }, response) => {
    if (url === "/") {
      response.setHeader("content-type", "text/html").end("<!doctype html><title>smoke</title>");
      return;
    }
    try {
      const code = await readFile(join(root, normalize(url)));
      response.setHeader("content-type", "text/javascript").end(code);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const browser = await chromium.launch({ executablePath: ensureBrowser(), args: [...browserArgs] });
  try {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    return await page.evaluate(`import("/test/runtimes/smoke.js").then(({ smoke }) => smoke())`);
  } finally {
    await browser.close();
    server.close();
  }
}
