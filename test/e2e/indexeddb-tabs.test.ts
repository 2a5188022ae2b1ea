/** Two tabs with one session, and a browser that takes its database away: told by code, and nothing acknowledged falsely. */
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

const eventually = (holds: () => Promise<void>): Promise<void> => vi.waitFor(holds, { timeout: 20_000, interval: 100 });

async function talking(stored: number): Promise<Tab<PageApi>> {
  const tab = await browser.open();
  expect(await tab.call("talk", "go")).toBe("ok");
  await tab.stored(stored);
  return tab;
}

async function queuedIds(tab: Tab<PageApi>): Promise<string[]> {
  const log = (await tab.call("read"))!;
  expect(log.map((event) => event.seq)).toEqual(log.map((_, i) => i));
  return log.flatMap((event) => (event.type === "inbox/queued" ? [event.data.id] : []));
}

test("a second tab is refused while the first one writes; when that is closed, it goes on with all of it", async () => {
  const first = await talking(100);
  const second = await browser.open();
  expect(await second.call("talk", "me too", "fail")).toBe("SESSION_CLAIMED");
  const waiting = second.call("talk", "me then");
  await first.call("say", "said before");
  await first.stored(first.acknowledged + 50);
  const { acknowledged } = first;
  await first.page.close();
  expect(await waiting).toBe("ok");
  await second.stored(acknowledged + 20);
  expect(await queuedIds(second)).toContain("said before");
});

test("a frozen tab is stolen from; thawed, it is told, and the log is the thief's", async () => {
  const frozen = await talking(100);
  await frozen.call("say", "said before");
  // Only what nobody looks at is frozen.
  const thief = await browser.open();
  await eventually(async () => expect(await frozen.page.evaluate(() => document.hidden)).toBe(true));
  await frozen.cdp.send("Page.setWebLifecycleState", { state: "frozen" });
  expect(await thief.call("talk", "mine now", "steal")).toBe("ok");
  await thief.stored(frozen.acknowledged + 50);
  await frozen.cdp.send("Page.setWebLifecycleState", { state: "active" });
  await eventually(async () => expect((await frozen.call("state")).durable).toBe("lost"));
  const { acknowledged } = thief;
  await thief.stored(acknowledged + 50);
  expect((await thief.call("state")).durable).not.toBe("lost");
  const ids = await queuedIds(thief);
  expect(ids.filter((id) => id === "said before")).toHaveLength(1);
});

test("without space the session is degraded, keeps its tail, and catches up when there is space again", async () => {
  const tab = await browser.open();
  const origin = new URL(site.url).origin;
  // Before the first write: the browser looks again only when what it remembers is used up.
  await tab.cdp.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 3_000_000 });
  await tab.call("talk", "go");
  await tab.stored(100);
  for (const size of [300_000, 30_000])
    await eventually(async () => expect(await tab.call("fill", size)).toBe("STORAGE_QUOTA"));
  await eventually(async () => expect((await tab.call("state")).durable).toBe("degraded"));
  await tab.call("say", "in need");
  const { acknowledged } = tab;
  const log = (await tab.call("read"))!;
  const { seq } = await tab.call("state");
  expect(log.length).toBeGreaterThanOrEqual(acknowledged);
  expect(seq).toBeGreaterThan(log.length);
  expect((await tab.call("told")).map((one) => one.code)).toContain("SESSION_DEGRADED");
  await tab.cdp.send("Storage.overrideQuotaForOrigin", { origin });
  await tab.stored(seq);
  expect(await queuedIds(tab)).toContain("in need");
});

test("when the user clears the site's data in mid turn, the session is lost, and nothing is acknowledged any more", async () => {
  const tab = await talking(100);
  await tab.cdp.send("Storage.clearDataForOrigin", { origin: new URL(site.url).origin, storageTypes: "all" });
  await eventually(async () => expect((await tab.call("state")).durable).toBe("lost"));
  const { acknowledged } = tab;
  expect(await tab.call("read")).toBeUndefined();
  const next = await browser.open();
  expect(await next.call("list")).toEqual([]);
  expect(await next.call("talk", "anew")).toBe("ok");
  await next.stored(50);
  expect(tab.acknowledged).toBe(acknowledged);
});

test("a sandboxed frame, which gets no database, talks all the same and says that nothing lasts", async () => {
  const tab = await browser.open("sandboxed");
  const frame = tab.page.frames()[1]!;
  await eventually(async () => expect(await frame.evaluate("typeof page")).toBe("object"));
  expect(await frame.evaluate("page.talk('hello')")).toBe("ok");
  expect(await frame.evaluate("page.durable()")).toBe(false);
  expect(await frame.evaluate("page.told()")).toEqual([{ code: "STORAGE_UNAVAILABLE" }]);
});
