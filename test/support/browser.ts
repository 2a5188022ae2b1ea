/** Finds a Chromium: Playwright's own, else the system's, else installs one where it may. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium } from "playwright";

/** No sandbox, since containers run as root; nothing that talks to the outside by itself. */
export const browserArgs: readonly string[] = [
  "--no-sandbox",
  "--disable-quic",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
const FOLDERS = ["/usr/bin", "/usr/local/bin", "/snap/bin", "/Applications/Google Chrome.app/Contents/MacOS"];

/** The path of a Chromium on this machine. Looks, and changes nothing. */
export function findBrowser(): string | undefined {
  const own = chromium.executablePath();
  if (existsSync(own)) return own;
  const folders = [...(process.env["PATH"] ?? "").split(delimiter).filter(Boolean), ...FOLDERS];
  return folders.flatMap((folder) => NAMES.map((name) => join(folder, name))).find((file) => existsSync(file));
}

/** The path of a Chromium, installed first if there is none. Throws, saying what to run, where it may not. */
export function ensureBrowser(): string {
  const found = findBrowser();
  if (found !== undefined) return found;
  if (process.getuid?.() === 0 && existsSync("/usr/bin/apt-get")) {
    console.log("No Chromium found: installing Debian's.");
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    execFileSync("apt-get", ["update", "-qq"], { stdio: "inherit", env });
    execFileSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "chromium"], { stdio: "inherit", env });
    const installed = findBrowser();
    if (installed !== undefined) return installed;
  }
  throw new Error(
    "The tests need Chromium. Run `npx playwright install chromium`, or as root " +
      "`apt-get install -y --no-install-recommends chromium`, then try again.",
  );
}
