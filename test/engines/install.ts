/** The browsers of the other engines: Debian's, installed where they are missing and may be. */
import { execFileSync } from "node:child_process";
import { existsSync, globSync } from "node:fs";

export const FIREFOX = "/usr/bin/firefox-esr";
export const WEBKIT_DRIVER = "/usr/bin/WebKitWebDriver";
const XVFB = "/usr/bin/xvfb-run";

/** Throws, saying what to run, where it may not install. */
export function ensureEngines(): void {
  const missing = [
    ...(existsSync(FIREFOX) ? [] : ["firefox-esr"]),
    ...(existsSync(WEBKIT_DRIVER) ? [] : ["webkit2gtk-driver"]),
    ...(existsSync(XVFB) ? [] : ["xvfb", "xauth", "dbus"]),
  ];
  if (missing.length === 0) return;
  const install = ["install", "-y", "-qq", "--no-install-recommends", ...missing];
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) {
    throw new Error(`These tests need more browsers. Run as root: apt-get ${install.join(" ")}`);
  }
  console.log(`Installing ${missing.join(", ")}.`);
  const options = { stdio: "inherit", env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } } as const;
  execFileSync("apt-get", ["update", "-qq"], options);
  execFileSync("apt-get", install, options);
}

/** WebKitGTK's smallest browser. */
export function miniBrowser(): string {
  const [found] = globSync("/usr/lib/*/webkit2gtk-4.1/MiniBrowser");
  if (found === undefined) throw new Error("There is no MiniBrowser; install webkit2gtk-driver.");
  return found;
}
