/** Pages that die at random moments in the middle of their work, in every way there is, and what is left of their sessions. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEars, type Ears } from "../deaths/ears.ts";
import type { Examined } from "../deaths/examine.ts";
import { dieOften, ROUNDS_MS } from "../deaths/rounds.ts";
import type { DeathsApi } from "./deaths-page.ts";
import { startSite, type RunningBrowser, type Site, type Tab } from "./indexeddb-site.ts";

let ears: Ears;
let site: Site<DeathsApi>;
let browser: RunningBrowser<DeathsApi>;

beforeAll(async () => {
  ears = await openEars();
  site = await startSite("test/e2e/deaths-page.ts");
  browser = await site.start();
});

afterAll(async () => {
  await site.close();
  ears.close();
});

/** Each answers the tab in which the next life begins. */
const deaths: Readonly<Record<string, (tab: Tab<DeathsApi>) => Promise<Tab<DeathsApi>>>> = {
  async "SIGKILL of the browser"() {
    await browser.kill();
    browser = await site.start();
    return browser.open();
  },
  async "a crash of its process"({ page, cdp }) {
    const crashed = new Promise((resolve) => page.once("crash", resolve));
    void cdp.send("Page.crash").catch(() => {});
    await crashed;
    await page.close();
    return browser.open();
  },
  async "a reload"(tab) {
    await tab.page.reload();
    return tab;
  },
  async "a close of its tab"({ page }) {
    await page.close();
    return browser.open();
  },
};

test.each(Object.entries(deaths))(
  "a page that dies by %s leaves whole sessions, and the next one goes on",
  async (name, die) => {
    let tab = await browser.open();
    const cut = await dieOften(name, {
      async liveAndDie({ moment, hear, end }) {
        const life = tab.call("live", moment, ears.listen(name, hear)).then(
          () => "it ended by itself",
          () => undefined,
        );
        await Promise.race([end, life]);
        tab = await die(tab);
        expect(await life).toBeUndefined();
      },
      async examine({ interrupted, allow }, hear) {
        const found = await tab.call("examine", interrupted, allow, ears.listen(name, hear));
        return JSON.parse(found) as Examined;
      },
    });
    expect(cut, "the deaths in the middle of a turn").toBeGreaterThan(0);
  },
  ROUNDS_MS,
);
