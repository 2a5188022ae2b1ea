/** The demo, as a visitor uses it. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { answers, button, startDemo, type Demo } from "./demo-page.ts";

/** Slow enough to act while the script speaks. */
const SLOW = 22;

let demo: Demo;
beforeAll(async () => {
  demo = await startDemo();
});
afterAll(async () => {
  await demo.close();
});

test("the page says that it is a scripted demo, works at once, and logs no error", async () => {
  const visit = await demo.open();
  const { page } = visit;
  await page.getByText("Scripted demo, no language model").waitFor();
  await button(visit, "What is 1234 * 5678, and what time is it in Oslo? Two tools, one after the other").click();
  await answers(visit).getByText("1234 * 5678 = 7,006,652").waitFor();
  await answers(visit).getByText("in Europe/Oslo.").waitFor();
  await visit.card("Calculator").getByText("Done").waitFor();
  await visit.card("Clock").getByText("Done").waitFor();
  expect(visit.errors).toEqual([]);
});

test("an answer streams: it grows on the page before it is complete, and thoughts are folded", async () => {
  const visit = await demo.open({ pace: SLOW });
  await visit.say("Write something long");
  await answers(visit).getByText("A turn begins when").waitFor();
  await visit.page.getByText("Working").waitFor();
  expect(await visit.page.getByText("And with that, the long text ends.").count()).toBe(0);
  const thought = visit.page.getByText("A long text was asked for.");
  expect(await thought.isVisible()).toBe(false);
  await visit.page.getByText("Thought", { exact: true }).click();
  await thought.waitFor();
  await answers(visit).getByText("And with that, the long text ends.").waitFor();
  await visit.page.getByRole("heading", { name: "Why a log" }).waitFor();
});

test("a card shows the arguments and the result of its call", async () => {
  const visit = await demo.open();
  await visit.say("What is (1 + 2) * 3?");
  const card = visit.card("Calculator");
  await card.getByText("Done").click();
  await card.getByText('"expression": "(1 + 2) * 3"').waitFor();
  expect(await card.getByRole("definition").last().innerText()).toBe("9");
});

test("a tool waits for approval; allowed it runs, denied it does not", async () => {
  const visit = await demo.open();
  await visit.say("Add a note: buy oat milk");
  await visit.page.getByText("Waits for you").first().waitFor();
  await button(visit, "Allow").click();
  await answers(visit).getByText("Added as note 1.").last().waitFor();
  await visit.say("Delete note 1");
  await button(visit, "Deny").click();
  await visit.card("Delete a note").getByText("Did not work").waitFor();
  await answers(visit).getByText("the user did not allow it").last().waitFor();
  await visit.say("Show my notes");
  await answers(visit).getByText("Your notes:").waitFor();
  // The list is still being written when its heading is there.
  await answers(visit).last().getByText("buy oat milk").waitFor();
  expect(await answers(visit).last().innerText()).toContain("buy oat milk");
});

test("a tool asks a question; it can be answered by a choice or in words", async () => {
  const visit = await demo.open();
  await visit.say("Plan a dinner for me");
  await button(visit, "Japanese").click();
  const dish = visit.page.getByRole("cell", { name: "Matcha ice cream" });
  await dish.waitFor();
  await visit.say("Plan another one");
  await visit.page.getByRole("textbox", { name: "Which kitchen do you like?" }).fill("Peruvian");
  await button(visit, "Answer").click();
  await answers(visit).getByText("You chose Peruvian").waitFor();
  expect(await dish.isVisible()).toBe(true);
});

test("Enter steers a turn that runs: the words wait in sight, then go into the next step", async () => {
  const visit = await demo.open();
  await visit.say("Add a note: buy oat milk");
  await button(visit, "Allow").waitFor();
  await visit.say("and what is 2 + 3?");
  const queue = visit.page.getByRole("list", { name: "Waiting messages" });
  await queue.getByText("Next step").waitFor();
  await button(visit, "Allow").click();
  await answers(visit).getByText("You said in between").first().waitFor();
  await answers(visit).getByText("2 + 3 = 5").waitFor();
  expect(await queue.count()).toBe(0);
});

test("Ctrl+Enter queues for the next turn; what is taken back is in the input again, before what is typed", async () => {
  const visit = await demo.open({ pace: SLOW });
  await visit.say("Write something long");
  await answers(visit).getByText("A turn begins when").waitFor();
  await visit.say("What is 1 + 1?", "Control+Enter");
  await visit.say("What is 7 * 6?", "Control+Enter");
  const queue = visit.page.getByRole("list", { name: "Waiting messages" });
  await queue.getByText("What is 7 * 6?").waitFor();
  await visit.input.fill("half a thought");
  await queue.getByRole("listitem").filter({ hasText: "1 + 1" }).getByRole("button").click();
  await expect.poll(() => visit.input.inputValue(), { timeout: 10_000 }).toBe("What is 1 + 1?\nhalf a thought");
  await answers(visit).getByText("7 * 6 = 42").waitFor();
  expect(await answers(visit).getByText("1 + 1 = 2").count()).toBe(0);
});

test("Stop keeps what was said, gives back what waited, and Continue goes on where it ended", async () => {
  const visit = await demo.open({ pace: SLOW });
  await visit.say("Write something long");
  await answers(visit).getByText("What you can do meanwhile").waitFor();
  await visit.say("never mind", "Control+Enter");
  await button(visit, "Stop").click();
  await visit.page.getByText("Stopped", { exact: true }).waitFor();
  await visit.page.getByText("Not sent:").waitFor();
  await button(visit, "Put it back").click();
  await expect.poll(() => visit.input.inputValue(), { timeout: 10_000 }).toBe("never mind");
  await answers(visit).getByText("A turn begins when").waitFor();
  expect(await visit.page.getByText("the long text ends").count()).toBe(0);
  await button(visit, "Continue").click();
  await answers(visit).getByText("And with that, the long text ends.").waitFor();
  expect(await button(visit, "Continue").count()).toBe(0);
});

test("a failed turn says what happened and what to do, and Try again goes on", async () => {
  const visit = await demo.open();
  await visit.say("Fail, please");
  const problem = visit.page.getByRole("alert");
  await problem.getByText("the scripted model was asked to fail").waitFor();
  await problem.getByText("Try again").waitFor();
  await button(visit, "Try again").click();
  await answers(visit).getByText("This time it worked").waitFor();
  expect(await problem.count()).toBe(1);
});

test("Shift+Enter makes a new line, and a new chat begins empty", async () => {
  const visit = await demo.open();
  await visit.input.fill("one");
  await visit.input.press("Shift+Enter");
  await visit.input.pressSequentially("two");
  expect(await visit.input.inputValue()).toBe("one\ntwo");
  await visit.input.press("Enter");
  await visit.page.getByText("one two").or(visit.page.getByText("one\ntwo")).first().waitFor();
  await button(visit, "New chat").click();
  await visit.page.getByRole("heading", { name: "An agent, in this page" }).waitFor();
  expect(await answers(visit).count()).toBe(0);
});

test("the page works without a pointer: what is tabbed to shows, and the dialog gives the focus back", async () => {
  const visit = await demo.open();
  const settings = button(visit, "Settings");
  await settings.focus();
  await visit.page.keyboard.press("Enter");
  const dialog = visit.page.getByRole("dialog", { name: "Connect a model" });
  await dialog.waitFor();
  await visit.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  expect(await settings.evaluate((element) => element === document.activeElement)).toBe(true);
});

test("nothing is loaded from elsewhere, and the client of real models only when it is asked for", async () => {
  const visit = await demo.open();
  const requested: string[] = [];
  visit.page.on("request", (request) => requested.push(request.url()));
  await visit.page.reload();
  await visit.say("What is 1 + 1?");
  await answers(visit).getByText("1 + 1 = 2").waitFor();
  expect(requested.filter((url) => !url.startsWith(demo.url) && !url.startsWith("data:"))).toEqual([]);
  const before = requested.length;
  await button(visit, "Settings").click();
  await visit.page.getByLabel("Model", { exact: true }).fill("any");
  await visit.page.getByLabel("Base URL").fill("http://127.0.0.1:9/v1");
  await button(visit, "Connect").click();
  await visit.page.getByText("any at 127.0.0.1:9").waitFor();
  expect(requested.slice(before).some((url) => url.endsWith(".js"))).toBe(true);
});

for (const scheme of ["light", "dark"] as const) {
  for (const [place, width, height] of [
    ["desktop", 1280, 860],
    ["phone", 390, 800],
  ] as const) {
    test(`on a ${place} in ${scheme} nothing is wider than the page`, async () => {
      const visit = await demo.open({ width, height, scheme, pace: SLOW });
      const shoot = async (what: string): Promise<void> => {
        await visit.page.screenshot({ path: join(demo.screenshots, `${place}-${scheme}-${what}.png`) });
        const overflow = await visit.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect(overflow).toBeLessThanOrEqual(0);
      };
      await visit.page.getByRole("heading", { name: "An agent, in this page" }).waitFor();
      await shoot("1-welcome");
      await visit.say("Plan a dinner for me");
      await button(visit, "Italian").waitFor();
      await shoot("2-question");
      await button(visit, "Italian").click();
      await visit.page.getByRole("cell", { name: "Panna cotta" }).waitFor();
      await visit.say("Write something long");
      await answers(visit).getByText("A turn begins when").waitFor();
      await visit.say("And be brief about the rest of it, please, since I have little time left today");
      await visit.page.getByText("Next step", { exact: true }).waitFor();
      await visit.page.getByRole("heading", { name: "What you can do meanwhile" }).waitFor();
      await shoot("3-streaming");
      await button(visit, "Stop").click();
      await button(visit, "Continue").waitFor();
      await shoot("4-stopped");
    });
  }
}
