/** A page that dies in mid stream, in every way there is: what was acknowledged is stored, and the log goes on. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startSite, type RunningBrowser, type Site, type Tab } from "./indexeddb-site.ts";

let site: Site;
let browser: RunningBrowser;
beforeEach(async () => {
  site = await startSite();
  browser = await site.start();
});
afterEach(() => site.close());

interface Afterlife {
  /** How many events the next page finds. */
  readonly found: number;
  /** Whether its log has no gap, when it has gone on for a while. */
  readonly whole: boolean;
  /** How the turn ended that was cut short. */
  readonly end: unknown;
  /** The ids of all input that was ever accepted. */
  readonly accepted: readonly string[];
  readonly told: readonly unknown[];
}

/** The next page opens the session, and runs another turn. */
async function lookAfter(tab: Tab): Promise<Afterlife> {
  const found = (await tab.call("read"))?.length ?? 0;
  expect(await tab.call("talk", "and now?")).toBe("ok");
  await tab.stored(found + 50);
  const log = (await tab.call("read"))!;
  const { ends } = await tab.call("state");
  return {
    found,
    whole: log.every((event, i) => event.seq === i),
    end: ends[0],
    accepted: log.flatMap((event) => (event.type === "inbox/queued" ? [event.data.id] : [])),
    told: await tab.call("told"),
  };
}

const heldLocks = async (): Promise<number> => (await navigator.locks.query()).held!.length;

const interrupted = { whole: true, end: { kind: "interrupted" }, told: [] };

test("SIGKILL of the whole browser", async () => {
  const tab = await browser.open();
  await tab.call("talk", "go");
  await tab.stored(500);
  await browser.kill();
  browser = await site.start();
  const after = await lookAfter(await browser.open());
  expect(after).toMatchObject(interrupted);
  expect(after.found).toBeGreaterThanOrEqual(tab.acknowledged);
});

test("a crash of the page's process", async () => {
  const tab = await browser.open();
  await tab.call("talk", "go");
  await tab.stored(300);
  const crashed = new Promise((resolve) => tab.page.once("crash", resolve));
  void tab.cdp.send("Page.crash").catch(() => {});
  await crashed;
  const after = await lookAfter(await browser.open());
  expect(after).toMatchObject(interrupted);
  expect(after.found).toBeGreaterThanOrEqual(tab.acknowledged);
});

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
    const after = await lookAfter(await browser.open());
    expect(after).toMatchObject(interrupted);
    expect(after.found).toBeGreaterThanOrEqual(tab.acknowledged);
    expect(after.accepted.filter((id) => id === "last")).toHaveLength(1);
  },
);
