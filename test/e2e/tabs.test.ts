/** Tabs of one page with one agent, and what happens to tabs: one log, every message answered once, no tool run twice. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
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
afterEach(() => site.closeTabs());
afterAll(() => site.close());

/** The first one leads. */
async function openTwo(): Promise<{ leader: Tab; follower: Tab }> {
  site.next();
  const leader = await site.open();
  const follower = await site.open();
  expect(await leader.call("state")).toMatchObject({ leads: true });
  expect(await follower.call("state")).toMatchObject({ leads: false, connection: "open" });
  return { leader, follower };
}

/** It has taken over, and answered this. */
async function leadsAndAnswers(tab: Tab, text: string): Promise<void> {
  await tab.call("say", "while away", text);
  await eventually(async () => {
    expect(await tab.call("state")).toMatchObject({ leads: true, status: "idle", queue: [] });
    expect(answers(await tab.call("log"), `answer to ${text}`)).toBe(1);
  });
}

test("what one tab says every tab hears, and the agent runs in one of them", async () => {
  const { leader, follower } = await openTwo();
  await follower.call("say", "m1", "hello");
  await leader.call("say", "m2", "good day");
  await eventually(async () => expect(answers(await follower.call("log"), "answer to good day")).toBe(1));
  const log = await settled([leader, follower], ["m1", "m2"]);
  expect(answers(log, "answer to hello")).toBe(1);
});

/** The tab comes back with what it had not delivered. */
const comesBack = (how: string): boolean => how !== "crashes" && how !== "is closed";

describe.for(Object.entries(accidents))("a leader that %s", ([how, befall]) => {
  test("in mid stream", async () => {
    const { leader, follower } = await openTwo();
    await leader.call("say", "m1", "talk");
    await follower.call("heard", 100);
    const messages = ["m1", "while away"];
    if (comesBack(how)) {
      await leader.call("say", "last", "last words");
      messages.push("last");
    }
    const back = await befall(leader, site, () => leadsAndAnswers(follower, "hello"));
    const log = await settled([follower, back], messages);
    expect(endsOf(log).filter((end) => end !== "completed")).toEqual(["interrupted"]);
    expect(answers(log, "answer to hello")).toBe(1);
    expect(answers(log, "answer to last words")).toBe(comesBack(how) ? 1 : 0);
  });

  test("in mid tool", async () => {
    const { leader, follower } = await openTwo();
    const id = `leader-${how.replaceAll(" ", "-")}`;
    await follower.call("say", "m1", `charge ${id}`);
    await site.counter.started(id);
    const back = await befall(leader, site, () => leadsAndAnswers(follower, "hello"));
    site.counter.release(id);
    const log = await settled([follower, back], ["m1", "while away"]);
    expect(endsOf(log)).toEqual(["interrupted", "completed"]);
    expect(ofType(log, "tool/result")).toHaveLength(1);
    expect(site.counter.runs(id)).toBe(1);
  });
});

describe.for(Object.entries(accidents))("a follower that %s", ([how, befall]) => {
  test("in mid stream", async () => {
    const { leader, follower } = await openTwo();
    await follower.call("say", "m1", "talk");
    await follower.call("heard", 100);
    const back = await befall(follower, site, () => leader.call("heardUpTo", 1000));
    await back.call("cancel");
    const log = await settled([leader, back], ["m1"]);
    expect(endsOf(log)).toEqual(["aborted"]);
  });

  test("in mid tool", async () => {
    const { leader, follower } = await openTwo();
    const id = `follower-${how.replaceAll(" ", "-")}`;
    await follower.call("say", "m1", `charge ${id}`);
    await site.counter.started(id);
    const messages = ["m1"];
    if (comesBack(how)) {
      await follower.call("say", "last", "last words");
      messages.push("last");
    }
    const back = await befall(follower, site, async () => site.counter.release(id));
    const log = await settled([leader, back], messages);
    expect(endsOf(log)).toEqual(messages.map(() => "completed"));
    expect(answers(log, "charged")).toBe(1);
    expect(site.counter.runs(id)).toBe(1);
  });
});
