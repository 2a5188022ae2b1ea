/** What a visitor can do with a chat beside talking: copies, attachments, the meter, and what is said of storage. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { chat, providerUrl } from "../support/provider-answers.ts";
import { startProviderServer, type ProviderServer } from "../support/provider-server.ts";
import { answers, button, connect, startDemo, type Demo, type DemoPage } from "./demo-page.ts";

let demo: Demo;
let provider: ProviderServer;
beforeAll(async () => {
  [demo, provider] = [await startDemo(), await startProviderServer()];
});
afterAll(async () => {
  await Promise.all([demo.close(), provider.close()]);
});

/** The smallest PNG: one pixel. */
const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const asked = ({ page }: DemoPage, text: string) =>
  page
    .getByRole("article")
    .filter({ has: page.getByRole("heading", { name: "You" }) })
    .filter({ hasText: text });
const chooser = ({ page }: DemoPage) => page.getByLabel("Images or texts to attach");

async function ask(visit: DemoPage, text: string, answer: string): Promise<void> {
  await visit.say(text);
  await answers(visit).getByText(answer).last().waitFor();
  await visit.page.getByText("Working").waitFor({ state: "detached" });
}

test("a turn is answered again in a copy, which asks the same; the chat stays as it was", async () => {
  const visit = await demo.open();
  await ask(visit, "What is 2 + 3?", "2 + 3 = 5");
  await ask(visit, "What is 4 + 5?", "4 + 5 = 9");
  const address = visit.page.url();
  await button(visit, "Answer again in a copy").first().click();
  await expect.poll(() => visit.page.url()).not.toBe(address);
  await answers(visit).getByText("2 + 3 = 5").waitFor();
  expect(await asked(visit, "What is 2 + 3?").count()).toBe(1);
  expect(await asked(visit, "What is 4 + 5?").count()).toBe(0);
  await visit.page.goBack();
  await asked(visit, "What is 4 + 5?").waitFor();
  expect(visit.errors).toEqual([]);
});

test("a copy goes on from the end of any turn", async () => {
  const visit = await demo.open();
  await ask(visit, "What is 2 + 3?", "2 + 3 = 5");
  await ask(visit, "What is 4 + 5?", "4 + 5 = 9");
  await button(visit, "Continue in a copy from here").first().click();
  await asked(visit, "What is 4 + 5?").waitFor({ state: "detached" });
  await answers(visit).getByText("2 + 3 = 5").waitFor();
  await ask(visit, "What is 6 + 7?", "6 + 7 = 13");
  expect(await asked(visit, "What is").count()).toBe(2);
});

test("files are attached by choosing, pasting and dropping, can be left out, and stand in the message", async () => {
  const visit = await demo.open();
  const { page } = visit;
  await chooser(visit).setInputFiles([
    { name: "pixel.png", mimeType: "image/png", buffer: PIXEL },
    { name: "notes.md", mimeType: "text/markdown", buffer: Buffer.from("# Milk\nand bread") },
  ]);
  await page.getByRole("img", { name: "pixel.png" }).waitFor();
  for (const [type, name] of [
    ["paste", "pasted.txt"],
    ["drop", "dropped.txt"],
  ] as const) {
    await visit.input.evaluate(
      (input, [kind, file]) => {
        const data = new DataTransfer();
        data.items.add(new File(["inside"], file, { type: "text/plain" }));
        const more = { bubbles: true, cancelable: true };
        input.dispatchEvent(
          kind === "paste"
            ? new ClipboardEvent("paste", { clipboardData: data, ...more })
            : new DragEvent("drop", { dataTransfer: data, ...more }),
        );
      },
      [type, name] as const,
    );
    await page.getByText(name).waitFor();
  }
  await button(visit, "Remove pasted.txt").click();
  await visit.say("Look at these");
  const message = asked(visit, "Look at these");
  await message.getByRole("img", { name: "pixel.png" }).waitFor();
  await message.getByText("dropped.txt").waitFor();
  expect(await message.getByText("pasted.txt").count()).toBe(0);
  await message.getByText("notes.md").click();
  await message.getByText("and bread").waitFor();
  await answers(visit).getByText("I was given the image pixel.png").waitFor();
  await answers(visit).getByText("I was given the text notes.md, 2 lines long").waitFor();
  // What is said otherwise keeps its files.
  await page.getByText("Working").waitFor({ state: "detached" });
  await button(visit, "Edit in a copy").click();
  await button(visit, "Remove pixel.png").waitFor();
  await button(visit, "Remove notes.md").waitFor();
  expect(visit.errors).toEqual([]);
});

test("what is too large, or neither image nor text, is refused with the reason", async () => {
  const visit = await demo.open();
  const refused = visit.page.getByRole("form", { name: "Your message" }).getByRole("alert");
  await chooser(visit).setInputFiles([
    { name: "huge.txt", mimeType: "text/plain", buffer: Buffer.alloc(300 * 1024, "a") },
    { name: "tool.exe", mimeType: "application/x-msdownload", buffer: Buffer.from("MZ") },
    { name: "drawing.svg", mimeType: "image/svg+xml", buffer: Buffer.from("<svg/>") },
  ]);
  await refused.getByText("huge.txt: it has 300 kB, and at most 256 kB are taken").waitFor();
  await refused.getByText("tool.exe: only images (PNG, JPEG, GIF, WebP) and texts").waitFor();
  expect(await visit.page.getByRole("list", { name: "Attachments" }).count()).toBe(0);
});

test("a connected model is sent the image and the text, and the meter counts at the visitor's prices", async () => {
  const visit = await demo.open();
  const baseUrl = providerUrl(provider.url, {
    body: chat({ content: "I see." }).replace(
      '"prompt_tokens":3,"completion_tokens":2',
      '"prompt_tokens":1500,"completion_tokens":500',
    ),
  });
  await connect(visit, baseUrl, { prices: { Input: "2", Output: "10" } });
  await chooser(visit).setInputFiles([
    { name: "pixel.png", mimeType: "image/png", buffer: PIXEL },
    { name: "notes.md", mimeType: "text/markdown", buffer: Buffer.from("oat milk") },
  ]);
  await visit.say("What is this?");
  await answers(visit).getByText("I see.").waitFor();
  const sent = JSON.stringify(provider.requests(baseUrl)[0]);
  expect(sent).toContain(PIXEL.toString("base64"));
  expect(sent).toContain("oat milk");
  const meter = visit.page.getByRole("button", { name: "2,000 tokens" });
  await visit.page.getByText("$0.008").first().waitFor();
  await meter.click();
  await visit.page.getByRole("row", { name: "endpoint/lab-1 1,500 0 500 $0.008" }).waitFor();
  await visit.page.reload();
  await visit.page.getByText("$0.008").first().waitFor();
});

test("the header says who drives and that it is saved; a second tab can take the chat over and give it back", async () => {
  const visit = await demo.open();
  await ask(visit, "What is 2 + 3?", "2 + 3 = 5");
  await visit.page.getByText("Runs in this tab · saved").waitFor();
  const second = await demo.join(visit);
  await second.page.getByText("The chat could not be opened").waitFor();
  await button(second, "Take it over").click();
  await answers(second).getByText("2 + 3 = 5").waitFor();
  await ask(second, "What is 4 + 5?", "4 + 5 = 9");
  await visit.page.getByRole("alert").getByText("Another tab has taken this chat over.").waitFor();
  await button(visit, "Take it back").click();
  await answers(visit).getByText("4 + 5 = 9").waitFor();
  await ask(visit, "What is 6 + 7?", "6 + 7 = 13");
  expect(await asked(visit, "What is").count()).toBe(3);
});

test("a browser that stores nothing is told of, and the chat can be exported", async () => {
  const visit = await demo.open({ before: "Object.defineProperty(globalThis, 'indexedDB', { value: undefined })" });
  await ask(visit, "What is 2 + 3?", "2 + 3 = 5");
  await visit.page.getByText("This browser lets the page store nothing").waitFor();
  const download = visit.page.waitForEvent("download");
  await button(visit, "Export").click();
  expect((await download).suggestedFilename()).toMatch(/\.ndjson$/);
});

test("storage that refuses is told of with what to do, and the word is taken back when it has caught up", async () => {
  const visit = await demo.open({ before: REFUSING });
  await ask(visit, "What is 2 + 3?", "2 + 3 = 5");
  await visit.page.evaluate("globalThis.isFull = true");
  await visit.say("What is 4 + 5?");
  const told = visit.page.getByRole("alert").getByText("This browser does not store what is said.");
  await told.waitFor();
  await visit.page.getByText("Runs in this tab · not saved").waitFor();
  await button(visit, "Export").waitFor();
  await visit.page.evaluate("globalThis.isFull = false");
  await told.waitFor({ state: "detached" });
  await visit.page.getByText("Runs in this tab · saved").waitFor();
  await visit.page.reload();
  await asked(visit, "What is 4 + 5?").waitFor();
  expect(await asked(visit, "What is").count()).toBe(2);
});

/** A disk that is full while `isFull`. */
const REFUSING = `
  for (const verb of ["put", "add"]) {
    const real = IDBObjectStore.prototype[verb];
    IDBObjectStore.prototype[verb] = function (...given) {
      if (globalThis.isFull) throw new DOMException("the disk is full", "QuotaExceededError");
      return real.apply(this, given);
    };
  }
`;
