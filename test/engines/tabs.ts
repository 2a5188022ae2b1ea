/** One agent among the tabs of an engine: its leader is closed, reloaded, left and returned to, in mid tool. */
import assert from "node:assert/strict";
import { startCounter } from "../e2e/tabs-counter.ts";
import type { TabsPage } from "../e2e/tabs-page.ts";
import type { EngineTab } from "./engines.ts";

type Tab = EngineTab<TabsPage>;

const ACCIDENTS: Readonly<Record<string, (tab: Tab) => Promise<void>>> = {
  closed: (tab) => tab.close(),
  reloaded: (tab) => tab.reload(),
  async "left and returned to"(tab) {
    await tab.go("about:blank");
    await tab.back();
  },
};

/** Answers what it has seen to hold. `url`: of a page whose script is `test/e2e/tabs-page.ts`. */
export async function checkTabs(openTab: () => Promise<Tab>): Promise<string> {
  const counter = await startCounter();
  try {
    for (const [how, befall] of Object.entries(ACCIDENTS)) {
      const id = how.replaceAll(" ", "-");
      const open = async (tab: Tab): Promise<void> =>
        assert.equal(await tab.call("open", { id, counter: counter.url }), "ok");
      const leader = await openTab();
      await open(leader);
      const follower = await openTab();
      await open(follower);
      await leader.call("say", "m1", `charge ${id}`);
      await counter.started(id);
      await befall(leader);
      await follower.call("say", "m2", "hello");
      const back = how === "closed" ? await openTab() : leader;
      // Unless the browser has kept it as it was.
      if (!(await back.call("state"))) await open(back);
      counter.release(id);
      await follower.call("taken", "m2");
      await follower.call("idle");
      const log = await follower.call("log");
      await back.call("heardUpTo", log.length);
      assert.deepEqual(await back.call("log"), log);
      const ends = log.flatMap((event) => (event.type === "turn/end" ? [event.data.reason.kind] : []));
      assert.deepEqual(ends, ["interrupted", "completed"], how);
      assert.equal(counter.runs(id), 1);
      await back.close();
      await follower.close();
    }
    return `tabs whose leader is ${Object.keys(ACCIDENTS).join(", ")}`;
  } finally {
    counter.close();
  }
}
