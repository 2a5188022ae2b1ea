/** Tabs with one agent, what may happen to a tab, and what must hold when all is over. */
import { expect, vi } from "vitest";
import type { SessionEvent, SessionEventType } from "turnloop";
import { startSite, type Tab as AnyTab } from "./indexeddb-site.ts";
import { startCounter, type Counter } from "./tabs-counter.ts";
import type { OpenOptions, TabsPage } from "./tabs-page.ts";

export type Tab = AnyTab<TabsPage>;

export interface TabsSite {
  readonly counter: Counter;
  /** A session of its own for each test. */
  next(): void;
  open(options?: Partial<OpenOptions>): Promise<Tab>;
  /** Opens the agent in a page that was loaded again. */
  reopen(tab: Tab, options?: Partial<OpenOptions>): Promise<void>;
  closeTabs(): Promise<void>;
  close(): Promise<void>;
}

export async function startTabs(): Promise<TabsSite> {
  const site = await startSite<TabsPage>("test/e2e/tabs-page.ts");
  const browser = await site.start();
  const counter = await startCounter();
  let session = 0;
  let tabs: Tab[] = [];
  const self: TabsSite = {
    counter,
    next: () => void (session += 1),
    async open(options) {
      const tab = await browser.open();
      tabs.push(tab);
      await self.reopen(tab, options);
      return tab;
    },
    async reopen(tab, options) {
      expect(await tab.call("open", { id: `s${session}`, counter: counter.url, ...options })).toBe("ok");
    },
    async closeTabs() {
      await Promise.all(tabs.map((tab) => tab.page.close()));
      tabs = [];
    },
    async close() {
      counter.close();
      await site.close();
    },
  };
  return self;
}

export const eventually = (holds: () => Promise<void>): Promise<void> =>
  vi.waitFor(holds, { timeout: 40_000, interval: 50 });

/** What befalls a tab; `meanwhile` runs while it is away. Answers the tabs that there are in the end. */
export type Accident = (tab: Tab, site: TabsSite, meanwhile: () => Promise<void>) => Promise<Tab>;

export const accidents: Readonly<Record<string, Accident>> = {
  async crashes(tab, site, meanwhile) {
    const crashed = new Promise((resolve) => tab.page.once("crash", resolve));
    void tab.cdp.send("Page.crash").catch(() => {});
    await crashed;
    await meanwhile();
    return site.open();
  },
  async "is closed"(tab, site, meanwhile) {
    await tab.page.close();
    await meanwhile();
    return site.open();
  },
  async "is reloaded"(tab, site, meanwhile) {
    await tab.page.reload();
    await site.reopen(tab);
    await meanwhile();
    return tab;
  },
  async "goes elsewhere and comes back"(tab, site, meanwhile) {
    await tab.page.goto("about:blank");
    await meanwhile();
    // A page from the browser's cache had its `load` long ago.
    await tab.page.goBack({ waitUntil: "commit" });
    await tab.page.waitForFunction(() => document.readyState === "complete");
    // Unless the browser has kept it as it was.
    if (!(await tab.call("state"))) await site.reopen(tab);
    return tab;
  },
  async "freezes and thaws"(tab, _site, meanwhile) {
    // Only what nobody looks at is frozen.
    const cover = await tab.page.context().newPage();
    await eventually(async () => expect(await tab.call("state")).toMatchObject({ hidden: true }));
    await tab.cdp.send("Page.setWebLifecycleState", { state: "frozen" });
    expect(await tab.call("state")).toMatchObject({ frozen: true });
    await meanwhile();
    expect(await tab.call("state")).toMatchObject({ frozen: true });
    await tab.cdp.send("Page.setWebLifecycleState", { state: "active" });
    await cover.close();
    return tab;
  },
};

export function ofType<T extends SessionEventType>(
  log: readonly SessionEvent[],
  type: T,
): Extract<SessionEvent, { type: T }>[] {
  return log.filter((event): event is Extract<SessionEvent, { type: T }> => event.type === type);
}

export const endsOf = (log: readonly SessionEvent[]): string[] =>
  ofType(log, "turn/end").map(({ data }) => data.reason.kind);

/**
 * What all tabs show when everything is over: the same log, at rest, and every message taken once. Answers the log.
 * `leaders`: in how many of the tabs the agent runs.
 */
export async function settled(
  tabs: readonly Tab[],
  messages: readonly string[],
  leaders = 1,
): Promise<readonly SessionEvent[]> {
  await eventually(async () => {
    const states = await Promise.all(tabs.map((tab) => tab.call("state")));
    for (const state of states) {
      expect(state).toMatchObject({ status: "idle", connection: "open", queue: [], error: undefined });
      expect(state!.seq).toBe(states[0]!.seq);
    }
    expect(states.filter((state) => state!.leads)).toHaveLength(leaders);
  });
  const [log, ...others] = await Promise.all(tabs.map((tab) => tab.call("log")));
  for (const other of others) expect(other).toEqual(log);
  expect(log!.map((event) => event.seq)).toEqual(log!.map((_, i) => i));
  const taken = ofType(log!, "user/message").map(({ data }) => data.id);
  expect(taken.toSorted()).toEqual([...messages].toSorted());
  expect(ofType(log!, "turn/end")).toHaveLength(ofType(log!, "turn/start").length);
  return log!;
}

/** How often the model has answered just this. */
export function answers(log: readonly SessionEvent[], text: string): number {
  return ofType(log, "assistant/message").filter(({ data }) =>
    data.content.some((block) => block.type === "text" && block.text === text),
  ).length;
}
