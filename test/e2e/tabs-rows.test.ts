/** More than two tabs, hidden tabs, tabs that talk at once, and tabs that let go. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import {
  accidents,
  answers,
  endsOf,
  eventually,
  ofType,
  settled,
  startTabs,
  type Tab,
  type TabsSite,
} from "./tabs-site.ts";

let site: TabsSite;
beforeAll(async () => void (site = await startTabs()));
beforeEach(() => site.next());
afterEach(() => site.closeTabs());
afterAll(() => site.close());

async function leaderOf(tabs: readonly Tab[]): Promise<Tab> {
  let leader: Tab | undefined;
  await eventually(async () => {
    const states = await Promise.all(tabs.map((tab) => tab.call("state")));
    leader = tabs[states.findIndex((state) => state!.leads)];
    expect(leader).toBeDefined();
  });
  return leader!;
}

test("tabs that open at once have one leader, and what all of them say at once is taken once each", async () => {
  const tabs = await Promise.all([site.open(), site.open(), site.open()]);
  const messages = [0, 1, 2].flatMap((tab) => Array.from({ length: 10 }, (_, i) => `m${tab}-${i}`));
  await Promise.all(
    tabs.map((tab, number) =>
      Promise.all(messages.filter((id) => id.startsWith(`m${number}`)).map((id) => tab.call("say", id, id))),
    ),
  );
  const log = await settled(tabs, messages);
  // A turn takes all that is queued, and the model speaks to the last of it.
  const last = ofType(log, "user/message").at(-1)!.data.id;
  expect(answers(log, `answer to ${last}`)).toBe(1);
  expect(new Set(endsOf(log))).toEqual(new Set(["completed"]));
});

test("leader after leader crashes or is closed in mid tool: no tool runs twice, every message is answered", async () => {
  let tabs = [await site.open(), await site.open(), await site.open()];
  const messages: string[] = [];
  for (const [round, how] of ["crashes", "is closed", "crashes"].entries()) {
    const leader = await leaderOf(tabs);
    const others = tabs.filter((tab) => tab !== leader);
    const id = `round-${round}`;
    await others[0]!.call("say", id, `charge ${id}`);
    await site.counter.started(id);
    await others[1]!.call("say", `then ${id}`, `hello ${id}`);
    const back = await accidents[how]!(leader, site, async () => {});
    tabs = [...others, back];
    messages.push(id, `then ${id}`);
    await settled(tabs, messages);
  }
  const log = await settled(tabs, messages);
  expect(endsOf(log)).toEqual(["interrupted", "completed", "interrupted", "completed", "interrupted", "completed"]);
  for (const round of [0, 1, 2]) expect(site.counter.runs(`round-${round}`)).toBe(1);
});

test("when a leader freezes, one of the others leads, and a message of the frozen one is not lost", async () => {
  const tabs = [await site.open(), await site.open(), await site.open()];
  const [frozen, ...others] = tabs as [Tab, Tab, Tab];
  await frozen.call("say", "m1", "talk");
  await others[0].call("heard", 50);
  await accidents["freezes and thaws"]!(frozen, site, async () => {
    await others[0].call("say", "m2", "hello");
    await eventually(async () => expect((await others[0].call("state"))!.connection).toBe("connecting"));
    await eventually(async () => expect(answers(await others[1].call("log"), "answer to hello")).toBe(1));
  });
  await frozen.call("say", "m3", "thawed");
  const log = await settled(tabs, ["m1", "m2", "m3"]);
  expect(endsOf(log)).toContain("interrupted");
  expect(answers(log, "answer to thawed")).toBe(1);
});

test("a hidden tab leads at the full rate of the stream", async () => {
  const leader = await site.open();
  const follower = await site.open();
  await follower.page.bringToFront();
  expect(await leader.call("state")).toMatchObject({ leads: true, hidden: true });
  await follower.call("say", "m1", "flood");
  const log = await settled([leader, follower], ["m1"]);
  // A timer a second would take days for these.
  expect(ofType(log, "assistant/chunk").length).toBeGreaterThan(10_000);
});

test("a leader whose handle is disposed ends its turn, and another tab takes over what is queued", async () => {
  const leader = await site.open();
  const follower = await site.open();
  await follower.call("say", "m1", "charge disposed");
  await site.counter.started("disposed");
  await leader.call("dispose");
  await follower.call("say", "m2", "hello");
  site.counter.release("disposed");
  const log = await settled([follower], ["m1", "m2"]);
  expect(answers(log, "charged")).toBe(1);
  expect(endsOf(log)).toEqual(["completed", "completed"]);
  await site.reopen(leader);
  await settled([leader, follower], ["m1", "m2"]);
});
