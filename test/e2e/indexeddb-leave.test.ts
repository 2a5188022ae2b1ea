/** A page that is left in mid stream: what it had accepted in its last moment is there, once. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { PageApi } from "./indexeddb-page.ts";
import { startSite, type RunningBrowser, type Site } from "./indexeddb-site.ts";

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
    const log = (await next.call("read"))!;
    expect(log.map((event) => event.seq)).toEqual(log.map((_, i) => i));
    expect((await next.call("state")).ends[0]).toEqual({ kind: "interrupted" });
    expect(await next.call("told")).toEqual([]);
    const accepted = log.flatMap((event) => (event.type === "inbox/queued" ? [event.data.id] : []));
    expect(accepted.filter((id) => id === "last")).toHaveLength(1);
  },
);
