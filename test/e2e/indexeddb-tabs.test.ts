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

async function thaw({ cdp }: Tab<PageApi>): Promise<void> {
  await cdp.send("Page.setWebLifecycleState", { state: "active" });
}

/**
 * Freezes the page in its next append: before its transaction has read anything, or before it has written anything.
 */
async function freezeInAppend(tab: Tab<PageApi>, method: "get" | "put"): Promise<void> {
  const appending = tab.page.waitForEvent("console", { predicate: (message) => message.text() === "appending" });
  await tab.page.evaluate((name) => {
    document.addEventListener("freeze", () => document.documentElement.setAttribute("frozen", ""));
    const { prototype } = IDBObjectStore;
    const real = prototype[name] as (...args: unknown[]) => IDBRequest;
    prototype[name] = function (this: IDBObjectStore, ...args: unknown[]) {
      if (this.transaction.mode === "readwrite") {
        prototype[name] = real;
        console.log("appending");
        // As long as it takes to be frozen behind this task.
        for (const end = performance.now() + 500; performance.now() < end;);
      }
      return real.apply(this, args);
    };
  }, method);
  await appending;
  await tab.cdp.send("Page.setWebLifecycleState", { state: "frozen" });
  const isFrozen = await tab.page.evaluate(() => document.documentElement.hasAttribute("frozen"));
  expect(isFrozen, "whether it is frozen").toBe(true);
}

/** The session is the thief's; the one that was frozen is told when it is thawed, and nothing was lost or written twice. */
async function takeOver(thief: Tab<PageApi>, frozen: Tab<PageApi>): Promise<void> {
  expect(await thief.call("talk", "mine now", "steal")).toBe("ok");
  await thief.stored(frozen.acknowledged + 50);
  const before = (await thief.call("read"))!;
  await thaw(frozen);
  await eventually(async () => expect((await frozen.call("state")).durable).toBe("lost"));
  await thief.stored(thief.acknowledged + 50);
  expect((await thief.call("state")).durable).not.toBe("lost");
  expect((await queuedIds(thief)).filter((id) => id === "said before")).toHaveLength(1);
  expect((await thief.call("read"))!.slice(0, before.length)).toEqual(before);
}

test("a frozen tab is stolen from, also in the middle of an append that the browser has; thawed, it is told, and the log is the thief's", async () => {
  const frozen = await talking(100);
  await frozen.call("say", "said before");
  await freezeInAppend(frozen, "put");
  const thief = await browser.open();
  await takeOver(thief, frozen);
  expect(await thief.call("told")).toEqual([]);
});

test("a tab that is frozen in the middle of a transaction gives it up: others write at once, and it is told when it is thawed", async () => {
  const frozen = await talking(100);
  await frozen.call("say", "said before");
  await freezeInAppend(frozen, "get");
  const thief = await browser.open();
  await takeOver(thief, frozen);
  expect(await thief.call("told")).toEqual([]);
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
