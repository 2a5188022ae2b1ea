/** Takes pictures of the built demo, as a visitor sees it: `npm run demo:pictures`, for the README and for designers. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { argv } from "node:process";
import type { Page } from "playwright";
import { answers, button, startDemo, type Demo, type DemoPage, type OpenOptions } from "../test/e2e/demo-page.ts";

/** `--all FOLDER`: every state at both widths and in both schemes, as PNG. Otherwise those that are kept, as WebP. */
const all = argv[2] === "--all" ? (argv[3] ?? "pictures") : undefined;
const kept = join(import.meta.dirname, "pictures");

const CODE = "Show me code and a table";

const STATES: Readonly<Record<string, (visit: DemoPage, demo: Demo) => Promise<void>>> = {
  async empty({ page }) {
    await page.getByRole("heading", { name: "An agent, in this page" }).waitFor();
  },
  async streaming(visit) {
    await visit.say("What is 1234 * 5678, and what time is it in Oslo?");
    await answers(visit).getByText("in Europe/Oslo.").waitFor();
    await visit.page.getByText("Working").waitFor({ state: "detached" });
    await visit.say("Write something long");
    await answers(visit).getByText("Whatever happens to them").waitFor();
    await visit.say("And be brief, please");
    await visit.page.getByText("Next step", { exact: true }).waitFor();
  },
  async approval(visit) {
    await visit.say("What is (1 + 2) * 3, and add a note: buy oat milk");
    await visit.card("Calculator").getByText("Done").click();
    await button(visit, "Allow").waitFor();
  },
  async code(visit) {
    await visit.say(CODE);
    await visit.page.getByRole("table").waitFor();
    await visit.page.getByText("Working").waitFor({ state: "detached" });
  },
  async inspector(visit) {
    for (const text of ["What is 1234 * 5678, and what time is it in Oslo?", "Show me code and a table"]) {
      await visit.say(text);
      await visit.page.getByText("Working").waitFor();
      await visit.page.getByText("Working").waitFor({ state: "detached" });
    }
    await button(visit, "Inspect").click();
    await visit.page.getByRole("button", { name: /^Turn 1 / }).click();
    await visit.page
      .getByRole("button", { name: /^Step 2 / })
      .first()
      .click();
  },
  async question(visit) {
    await visit.say("Plan a dinner for me");
    await button(visit, "Japanese").waitFor();
  },
  async settings(visit) {
    await visit.page.getByRole("heading", { name: "An agent, in this page" }).waitFor();
    await button(visit, "Settings").click();
    await visit.page.getByRole("dialog").waitFor();
  },
  async chats(visit) {
    for (const text of ["What is 12 * 12?", "Show my notes", "Plan a dinner for me"]) {
      await visit.say(text);
      await visit.page.getByRole("article").getByText(text).waitFor();
      await visit.page.getByRole("status").filter({ hasText: "saved" }).waitFor();
      if (text.startsWith("What")) await answers(visit).getByText("12 * 12 = 144").waitFor();
      if (!text.startsWith("Plan")) await button(visit, "New chat").click();
    }
    await button(visit, "Chats").click();
    await visit.page.getByRole("listitem").filter({ hasText: "Show my notes" }).waitFor();
  },
  async error(visit) {
    await visit.say("Fail, please");
    await visit.page.getByRole("alert").waitFor();
    await button(visit, "Try again").waitFor();
  },
};

const PLACES: Readonly<Record<string, OpenOptions>> = {
  desktop: { width: 1200, height: 800 },
  phone: { width: 390, height: 780 },
};

/** What the README shows. */
const KEPT = new Set([
  "desktop-light-inspector",
  "desktop-light-approval",
  "desktop-dark-streaming",
  "phone-light-code",
  "phone-dark-question",
]);

const demo = await startDemo();
const folder = all ?? kept;
mkdirSync(folder, { recursive: true });
for (const [place, size] of Object.entries(PLACES)) {
  for (const scheme of ["light", "dark"] as const) {
    for (const [state, reach] of Object.entries(STATES)) {
      const name = `${place}-${scheme}-${state}`;
      if (all === undefined && !KEPT.has(name)) continue;
      if (argv[4] !== undefined && !new RegExp(argv[4]).test(name)) continue;
      const visit = await demo.open({ ...size, scheme, pace: state === "streaming" ? 22 : 1 });
      await reach(visit, demo);
      const png = await visit.page.screenshot({ animations: "disabled" });
      if (all === undefined) writeFileSync(join(folder, `${name}.webp`), await toWebp(visit.page, png));
      else writeFileSync(join(folder, `${name}.png`), png);
      await visit.page.context().close();
    }
  }
}
await demo.close();

/** The browser is at hand, and knows how. */
async function toWebp(page: Page, png: Buffer): Promise<Buffer> {
  const url = await page.evaluate(async (base64) => {
    const image = new Image();
    image.src = `data:image/png;base64,${base64}`;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    canvas.getContext("2d")!.drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 0.85);
  }, png.toString("base64"));
  return Buffer.from(url.slice(url.indexOf(",") + 1), "base64");
}
