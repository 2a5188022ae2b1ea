/** Tabs whose agent lives in a SharedWorker: it outlives them, and they outlive it. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { accidents, answers, endsOf, eventually, settled, startTabs, type Tab, type TabsSite } from "./tabs-site.ts";

let site: TabsSite;
beforeAll(async () => {
  const made = await startTabs();
  site = { ...made, open: () => made.open({ worker: true }), reopen: (tab) => made.reopen(tab, { worker: true }) };
});
beforeEach(() => site.next());
afterEach(() => site.closeTabs());
afterAll(() => site.close());

/** The agent runs in none of them. */
const NOWHERE = 0;

test("the agent runs in the worker, and all tabs have it", async () => {
  const tabs = [await site.open(), await site.open()] as const;
  await tabs[0].call("say", "m1", "hello");
  await eventually(async () => expect(answers(await tabs[1].call("log"), "answer to hello")).toBe(1));
  await settled(tabs, ["m1"], NOWHERE);
});

describe.for(Object.entries(accidents))("a tab that %s, the one that started the worker", ([how, befall]) => {
  test("in mid tool", async () => {
    const starter = await site.open();
    const other = await site.open();
    const id = `worker-${how.replaceAll(" ", "-")}`;
    await starter.call("say", "m1", `charge ${id}`);
    await site.counter.started(id);
    const back = await befall(starter, site, async () => {
      site.counter.release(id);
      await other.call("say", "m2", "hello");
      await eventually(async () => expect(answers(await other.call("log"), "answer to hello")).toBe(1));
    });
    const log = await settled([other, back], ["m1", "m2"], NOWHERE);
    expect(site.counter.runs(id)).toBe(1);
    // The browser runs the worker in the process of the tab that started it.
    expect(endsOf(log)[0]).toBe(how === "crashes" ? "interrupted" : "completed");
    expect(endsOf(log).slice(1)).toEqual(["completed"]);
  });
});

test.for(["talk", "charge dead-worker"])(
  "a worker that dies at `%s` is started again, and says what it cut short",
  async (work) => {
    const tabs: readonly Tab[] = [await site.open(), await site.open()];
    const [one, other] = tabs as [Tab, Tab];
    await one.call("say", "m1", work);
    if (work === "talk") await other.call("heard", 100);
    else await site.counter.started("dead-worker");
    await one.call("endWorker");
    await other.call("say", "m2", "hello");
    const log = await settled(tabs, ["m1", "m2"], NOWHERE);
    expect(endsOf(log)).toEqual(["interrupted", "completed"]);
    expect(answers(log, "answer to hello")).toBe(1);
    expect(site.counter.runs("dead-worker")).toBeLessThanOrEqual(1);
  },
);

test("the only tab is reloaded in mid stream: its worker may go with it, the log does not", async () => {
  const tab = await site.open();
  await tab.call("say", "m1", "talk");
  await tab.call("heard", 100);
  await accidents["is reloaded"]!(tab, site, async () => {});
  await tab.call("cancel");
  await tab.call("say", "m2", "hello");
  await eventually(async () => expect(answers(await tab.call("log"), "answer to hello")).toBe(1));
});
