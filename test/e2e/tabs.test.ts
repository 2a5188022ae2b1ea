/** Tabs of one page with one agent, and what happens to tabs: one log, every message answered once, no tool run twice. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import type { SessionEvent } from "turnloop";
import { startSite, type RunningBrowser, type Site, type Tab as AnyTab } from "./indexeddb-site.ts";
import { startCounter, type Counter } from "./tabs-counter.ts";
import type { TabsPage, TabState } from "./tabs-page.ts";

type Tab = AnyTab<TabsPage>;

let site: Site<TabsPage>;
let browser: RunningBrowser<TabsPage>;
let counter: Counter;
let tabs: Tab[] = [];
let session = 0;
beforeAll(async () => {
  site = await startSite<TabsPage>("test/e2e/tabs-page.ts");
  browser = await site.start();
  counter = await startCounter();
});
afterEach(async () => {
  await Promise.all(tabs.map((tab) => tab.page.close()));
  tabs = [];
});
afterAll(async () => {
  counter.close();
  await site.close();
});

const eventually = (holds: () => Promise<void>): Promise<void> => vi.waitFor(holds, { timeout: 30_000, interval: 50 });

async function openTab(id = `s${session}`): Promise<Tab> {
  const tab = await browser.open();
  tabs.push(tab);
  expect(await tab.call("open", { id, counter: counter.url })).toBe("ok");
  return tab;
}

/** The first one leads. */
async function openTwo(): Promise<{ leader: Tab; follower: Tab }> {
  session += 1;
  const leader = await openTab();
  const follower = await openTab();
  expect(await leader.call("state")).toMatchObject({ leads: true });
  expect(await follower.call("state")).toMatchObject({ leads: false, connection: "open" });
  return { leader, follower };
}

const ofType = (log: readonly SessionEvent[], type: string): SessionEvent[] =>
  log.filter((event) => event.type === type);

/** What all tabs show when everything is over: the same log, at rest, with each of the messages answered once. */
async function settled(some: readonly Tab[], messages: readonly string[]): Promise<readonly SessionEvent[]> {
  await eventually(async () => {
    const states = await Promise.all(some.map((tab) => tab.call("state")));
    for (const state of states) {
      expect(state).toMatchObject({ status: "idle", connection: "open", queue: [], error: undefined });
      expect(state!.seq).toBe(states[0]!.seq);
    }
    expect(states.filter((state: TabState | undefined) => state!.leads)).toHaveLength(1);
  });
  const [log, ...others] = await Promise.all(some.map((tab) => tab.call("log")));
  for (const other of others) expect(other).toEqual(log);
  expect(log!.map((event) => event.seq)).toEqual(log!.map((_, i) => i));
  const taken = log!.flatMap((event) => (event.type === "user/message" ? [event.data.id] : []));
  expect(taken.toSorted()).toEqual([...messages].toSorted());
  expect(ofType(log!, "turn/end")).toHaveLength(ofType(log!, "turn/start").length);
  return log!;
}

test("what one tab says every tab hears, and the agent runs in one of them", async () => {
  const { leader, follower } = await openTwo();
  await follower.call("say", "m1", "hello");
  await eventually(async () => expect((await leader.call("state"))!.seq).toBeGreaterThan(3));
  const log = await settled([leader, follower], ["m1"]);
  expect(JSON.stringify(ofType(log, "assistant/message"))).toContain("answer to hello");
});
