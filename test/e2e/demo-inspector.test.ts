/** The inspector in the demo: what the agent did, beside the chat on a wide page, over it on a narrow one. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { answers, button, startDemo, type Demo, type DemoPage } from "./demo-page.ts";

let demo: Demo;
beforeAll(async () => {
  demo = await startDemo();
});
afterAll(async () => {
  await demo.close();
});

const panel = ({ page }: DemoPage) => page.getByRole("complementary", { name: "What the agent did" });
const row = (visit: DemoPage, name: string | RegExp) => panel(visit).getByRole("button", { name });

/** Two turns, each with a tool. */
async function talk(visit: DemoPage): Promise<void> {
  for (const [text, answer] of [
    ["What is 2 + 3?", "2 + 3 = 5"],
    ["What is 4 + 5?", "4 + 5 = 9"],
  ] as const) {
    await visit.say(text);
    await answers(visit).getByText(answer).last().waitFor();
    await visit.page.getByText("Working").waitFor({ state: "detached" });
  }
}

test("a turn's steps, requests and tools stand beside the chat; a step shows its request and what was new in it", async () => {
  const visit = await demo.open();
  const loaded = () => visit.page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  await talk(visit);
  const before = await loaded();
  await button(visit, "Inspect").click();
  await row(visit, /^Turn 1 /).click();
  expect((await loaded()).filter((name) => !before.includes(name)).join(" "), "loaded on demand").toContain(
    "inspector",
  );
  await row(visit, /^calculator/).waitFor();
  await row(visit, /^Step 2 /).click();
  await panel(visit).getByText("Since the request before: 2 messages more.").waitFor();
  await panel(visit).getByText("System prompt").click();
  await panel(visit).getByText("You are the assistant of a demo page.").waitFor();

  await row(visit, "Events").click();
  await panel(visit).getByText("step/end").first().waitFor();
  await panel(visit).getByRole("searchbox").fill("no event says this");
  await panel(visit).getByText("step/end").first().waitFor({ state: "detached" });
  const bar = await panel(visit).locator(".tl-bar").first().boundingBox();
  expect(bar?.width).toBeGreaterThan(5);
  expect(bar?.height).toBeGreaterThan(5);
  const both = await Promise.all([visit.input.boundingBox(), panel(visit).boundingBox()]);
  expect(both[0]!.x + both[0]!.width, "it covers nothing").toBeLessThanOrEqual(both[1]!.x);
  expect(visit.errors).toEqual([]);
});

test("it follows a turn that runs, and another chat once that is shown", async () => {
  const visit = await demo.open();
  await button(visit, "Inspect").click();
  await panel(visit).getByText("Nothing has happened yet.").waitFor();
  await talk(visit);
  await row(visit, /^Turn 2 /).waitFor();
  await button(visit, "New chat").click();
  await panel(visit).getByText("Nothing has happened yet.").waitFor();
  await visit.page.goBack();
  await row(visit, /^Turn 2 /).waitFor();
  expect(visit.errors).toEqual([]);
});

test("by keyboard it opens, is zoomed and closed, and the focus is where it was", async () => {
  const visit = await demo.open({ width: 390, height: 780 });
  await talk(visit);
  await button(visit, "Inspect").focus();
  await visit.page.keyboard.press("Enter");
  await row(visit, /^Turn 1 /).focus();
  await visit.page.keyboard.press("+");
  await expect.poll(() => row(visit, "Whole session").isEnabled()).toBe(true);
  const { width } = (await panel(visit).boundingBox())!;
  expect(width, "the whole page").toBe(390);
  expect(await visit.page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  await visit.page.keyboard.press("Escape");
  await panel(visit).waitFor({ state: "detached" });
  expect(await button(visit, "Inspect").evaluate((element) => element === document.activeElement)).toBe(true);
});
