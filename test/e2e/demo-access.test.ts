/** The demo for those who use a keyboard or a screen reader: axe finds nothing serious, in any state of the page. */
import { AxeBuilder } from "@axe-core/playwright";
import { afterAll, beforeAll, expect, test } from "vitest";
import { answers, button, startDemo, type Demo, type DemoPage } from "./demo-page.ts";

let demo: Demo;
beforeAll(async () => {
  demo = await startDemo();
});
afterAll(async () => {
  await demo.close();
});

const idle = ({ page }: DemoPage): Promise<void> => page.getByText("Working").waitFor({ state: "detached" });

/** Each goes on from the one before. */
const STATES: readonly (readonly [name: string, reach: (visit: DemoPage) => Promise<void>])[] = [
  ["empty", ({ page }) => page.getByRole("heading", { name: "An agent, in this page" }).waitFor()],
  [
    "with the settings open",
    async (visit) => {
      await button(visit, "Settings").click();
      await visit.page.getByRole("dialog", { name: "Connect a model" }).waitFor();
    },
  ],
  [
    "at an approval",
    async (visit) => {
      await button(visit, "Cancel").click();
      await visit.say("What is 2 + 3, and add a note: buy oat milk");
      await button(visit, "Allow").waitFor();
      await visit.card("Calculator").getByText("Done").click();
    },
  ],
  [
    "at a question",
    async (visit) => {
      await button(visit, "Allow").click();
      await idle(visit);
      await visit.say("Plan a dinner for me");
      await button(visit, "Japanese").waitFor();
    },
  ],
  [
    "with a table, code and the meter open",
    async (visit) => {
      await button(visit, "Japanese").click();
      await idle(visit);
      await visit.say("Show me code and a table");
      await idle(visit);
      await visit.page.getByRole("contentinfo").getByRole("button", { name: "tokens" }).click();
      await visit.page.getByRole("table", { name: "Used by this chat" }).waitFor();
    },
  ],
  [
    "with the inspector open",
    async (visit) => {
      await visit.page.keyboard.press("Escape");
      await visit.page.getByRole("table", { name: "Used by this chat" }).waitFor({ state: "hidden" });
      await button(visit, "Inspect").click();
      await visit.page.getByRole("button", { name: /^Turn 1 / }).click();
      await visit.page
        .getByRole("button", { name: /^Step 1 / })
        .first()
        .click();
      await visit.page.getByText("System prompt").click();
    },
  ],
  [
    "after an error",
    async (visit) => {
      await button(visit, "Close the inspector").click();
      await visit.say("Fail, please");
      await button(visit, "Try again").waitFor();
    },
  ],
  [
    "in mid stream, with a message that waits",
    async (visit) => {
      await visit.say("Write 20000 words");
      await answers(visit).getByText("After 0 words").waitFor();
      await visit.say("And be brief");
      await visit.page.getByText("Next step", { exact: true }).waitFor();
    },
  ],
  [
    "with the chats open",
    async (visit) => {
      await button(visit, "Stop").click();
      await button(visit, "Chats").click();
      await visit.page.getByRole("dialog", { name: "Chats" }).getByRole("listitem").first().waitFor();
    },
  ],
];

for (const scheme of ["light", "dark"] as const) {
  for (const width of [1280, 390]) {
    test(`axe finds nothing serious ${width} pixels wide in ${scheme}, in any state`, async () => {
      const visit = await demo.open({ scheme, width, pace: 5 });
      const found: string[] = [];
      for (const [name, reach] of STATES) {
        await reach(visit);
        const { violations } = await new AxeBuilder({ page: visit.page }).analyze();
        found.push(
          ...violations.flatMap(({ id, impact, nodes }) =>
            impact === "serious" || impact === "critical"
              ? nodes.map((node) => `${name}: ${id}: ${node.html.slice(0, 120)} ${node.any[0]?.message ?? ""}`)
              : [],
          ),
        );
      }
      expect(found).toEqual([]);
    }, 240_000);
  }
}

test("a tool is allowed, a question answered, and a turn stopped by keyboard alone", async () => {
  const visit = await demo.open({ pace: 5 });
  const { keyboard } = visit.page;
  const press = async (name: string): Promise<void> => {
    const target = button(visit, name);
    await target.waitFor();
    for (let tabs = 0; tabs < 60; tabs += 1) {
      await keyboard.press("Shift+Tab");
      if (await target.evaluate((element) => element === document.activeElement)) return keyboard.press("Enter");
    }
    throw new Error(`${name} cannot be reached by keyboard`);
  };
  await visit.say("Add a note: buy oat milk");
  await press("Allow");
  await answers(visit).getByText("Added as note 1.").last().waitFor();
  await idle(visit);
  await visit.say("Plan a dinner for me");
  await press("Japanese");
  await visit.page.getByRole("cell", { name: "Matcha ice cream" }).waitFor();
  await idle(visit);
  await visit.say("Write 20000 words");
  await answers(visit).getByText("After 0 words").waitFor();
  await press("Stop");
  await visit.page.getByText("Stopped", { exact: true }).waitFor();
  expect(visit.errors).toEqual([]);
}, 120_000);
