/** A page that is left in mid stream, for good or to come back to: what it had accepted in its last moment is there, once. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { PageApi } from "./indexeddb-page.ts";
import { startSite, type RunningBrowser, type Site, type Tab } from "./indexeddb-site.ts";

let site: Site<PageApi>;
let browser: RunningBrowser<PageApi>;
beforeEach(async () => {
  site = await startSite("test/e2e/indexeddb-page.ts");
  browser = await site.start();
});
afterEach(() => site.close());

const heldLocks = async (): Promise<number> => (await navigator.locks.query()).held!.length;

test.for(["a reload", "a navigation", "closing it"] as const)(
  "a page that is left by %s, and what was accepted in its last moment",
  async (how) => {
    const witness = await browser.open();
    const tab = await browser.open();
    await tab.call("talk", "go");
    await tab.stored(300);
    await tab.call("sayLast", "last");
    if (how === "a reload") await tab.page.reload();
    if (how === "a navigation") await tab.page.goto("about:blank");
    if (how === "closing it") await tab.page.close({ runBeforeUnload: false });
    // A closed page is still seen off when `close` resolves; then its lock is free.
    await vi.waitFor(async () => expect(await witness.page.evaluate(heldLocks)).toBe(0), { timeout: 10_000 });

    const next = await browser.open();
    const found = (await next.call("read"))!.length;
    expect(found).toBeGreaterThanOrEqual(tab.acknowledged);
    expect(await next.call("talk", "and now?")).toBe("ok");
    await next.stored(found + 50);
    expect((await next.call("state")).ends[0]).toEqual({ kind: "interrupted" });
    expect(await next.call("told")).toEqual([]);
    expect((await acceptedIds(next)).filter((id) => id === "last")).toHaveLength(1);
  },
);

/** Talks, accepts a message in its last moment, and waits in the browser's cache for somebody to go back. */
async function leftForAWhile(): Promise<Tab<PageApi>> {
  const tab = await browser.open();
  await tab.page.evaluate(() => document.documentElement.setAttribute("first", ""));
  await tab.call("talk", "go");
  await tab.stored(100);
  await tab.call("sayLast", "last");
  await tab.page.goto("about:blank");
  return tab;
}

/** Answers whether the page is still the one that was left. */
async function goBack({ page, cdp }: Tab<PageApi>): Promise<boolean> {
  const { currentIndex, entries } = await cdp.send("Page.getNavigationHistory");
  await cdp.send("Page.navigateToHistoryEntry", { entryId: entries[currentIndex - 1]!.id });
  await vi.waitFor(async () => expect(await page.evaluate("typeof page")).toBe("object"), { timeout: 10_000 });
  return (await page.locator("html[first]").count()) === 1;
}

async function acceptedIds(tab: Tab<PageApi>): Promise<string[]> {
  const log = (await tab.call("read"))!;
  expect(log.map((event) => event.seq)).toEqual(log.map((_, i) => i));
  return log.flatMap((event) => (event.type === "inbox/queued" ? [event.data.id] : []));
}

test("a page that comes back from the browser's cache goes on with its turn, and leaves no tail behind", async () => {
  const tab = await leftForAWhile();
  const { acknowledged } = tab;
  expect(await goBack(tab)).toBe(true);
  await tab.stored(acknowledged + 500);
  expect((await acceptedIds(tab)).filter((id) => id === "last")).toHaveLength(1);
  expect((await tab.call("state")).ends).toEqual([]);
  expect(await tab.call("told")).toEqual([]);
  expect(await tab.page.evaluate(() => Object.keys(localStorage))).toEqual([]);
});

test("a page in the browser's cache gives way to a tab that opens its session; who goes back begins anew", async () => {
  const tab = await leftForAWhile();
  const other = await browser.open();
  expect(await other.call("talk", "me then", "wait")).toBe("ok");
  await other.stored(tab.acknowledged + 200);
  expect(await goBack(tab)).toBe(false);
  expect(await tab.call("talk", "me again", "fail")).toBe("SESSION_CLAIMED");
  expect((await acceptedIds(other)).filter((id) => id === "last")).toHaveLength(1);
  expect((await other.call("state")).ends[0]).toEqual({ kind: "interrupted" });
  expect(await other.call("told")).toEqual([]);
});
