/** The demo keeps its chats: what a visitor finds again. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHarness, rebuildRequest, run } from "turnloop";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { scriptedModel } from "turnloop/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { answers, button, startDemo, type Demo, type DemoPage } from "./demo-page.ts";

let demo: Demo;
beforeAll(async () => {
  demo = await startDemo();
});
afterAll(async () => {
  await demo.close();
});

const chats = ({ page }: DemoPage) => page.getByRole("dialog", { name: "Chats" });
const SUM = "What is (1 + 2) * 3?";

async function ask(visit: DemoPage, text = SUM): Promise<void> {
  await visit.say(text);
  await answers(visit).getByText("= 9").last().waitFor();
  await visit.page.getByText("Working").waitFor({ state: "detached" });
}

test("a reload comes back to the chat, and the next message is answered", async () => {
  const visit = await demo.open();
  await ask(visit);
  await visit.page.reload();
  await visit.page.getByText(SUM).waitFor();
  await answers(visit).getByText("= 9").waitFor();
  await ask(visit);
  expect(await visit.page.getByText(SUM).count()).toBe(2);
  expect(visit.errors).toEqual([]);
});

test("a reload in mid stream shows the partial answer, and lets the visitor go on", async () => {
  const visit = await demo.open({ pace: 22 });
  await visit.say("Write something long");
  await answers(visit).getByText("A turn begins when").waitFor();
  await visit.page.reload();
  await answers(visit).getByText("A turn begins when").waitFor();
  await button(visit, "Continue").click();
  await visit.page.getByText("Working").waitFor();
  await button(visit, "Stop").click();
  expect(visit.errors).toEqual([]);
});

test("an open approval is still open after a reload, and runs its tool once", async () => {
  const visit = await demo.open();
  await visit.say("Add a note: buy oat milk");
  await button(visit, "Allow").waitFor();
  await visit.page.reload();
  await button(visit, "Allow").click();
  await answers(visit).getByText("Added as note 1.").last().waitFor();
  expect(await visit.page.getByText("Added as note 2.").count()).toBe(0);
});

test("the list has the chats by what was said first; they are opened, renamed, deleted", async () => {
  const visit = await demo.open();
  await ask(visit);
  await button(visit, "New chat").click();
  await visit.page.getByRole("heading", { name: "An agent, in this page" }).waitFor();
  await ask(visit, "And what is (4 + 5) * 1?");
  await button(visit, "Chats").click();
  await chats(visit).getByRole("listitem").nth(1).waitFor();
  await visit.page.screenshot({ path: join(demo.screenshots, "chats.png") });

  await button(visit, `Rename ${SUM}`).click();
  await chats(visit)
    .getByRole("textbox", { name: `New name of ${SUM}` })
    .fill("Sums");
  await button(visit, "Save").click();
  await chats(visit).getByText("Sums", { exact: true }).click();
  await visit.page.getByText(SUM).waitFor();
  expect(await visit.page.getByText("And what is").count()).toBe(0);

  await button(visit, "Chats").click();
  await button(visit, "Delete And what is (4 + 5) * 1?").click();
  await button(visit, "Delete").click();
  await chats(visit).getByText("And what is").waitFor({ state: "detached" });
  expect(await button(visit, "Delete Sums").isDisabled()).toBe(true);
  await visit.page.goBack();
  expect(visit.errors).toEqual([]);
});

test("a chat goes into a file, and out of it in another browser and in Node", async () => {
  const visit = await demo.open();
  await ask(visit);
  await button(visit, "Chats").click();
  const download = visit.page.waitForEvent("download");
  await button(visit, `Export ${SUM}`).click();
  const folder = mkdtempSync(join(tmpdir(), "turnloop-export-"));
  const file = join(folder, (await download).suggestedFilename());
  await (await download).saveAs(file);

  const other = await demo.open();
  await button(other, "Chats").click();
  await chats(other).getByText("Nothing is kept here yet").waitFor();
  await other.page.getByLabel("A chat from a file").setInputFiles(file);
  await other.page.getByText(SUM).waitFor();
  await ask(other);
  expect(await other.page.getByText(SUM).count()).toBe(2);

  // The same file goes on in Node: what the page's model was sent can be rebuilt there, and the next turn sees it all.
  const model = scriptedModel(["Still 9."]);
  const harness = createHarness({ storage: nodeSqliteStorage(join(folder, "sessions.db")), model });
  const { id } = await harness.sessions.import([readFileSync(file, "utf8")]);
  const { agent } = await harness.agents.open({ id });
  const steps = agent.session.events.flatMap(({ type, data }) => (type === "step/start" ? [data] : []));
  const rebuilt = steps.map((at) => rebuildRequest(agent.session.events, at));
  expect(rebuilt.map(({ messages }) => messages.length)).toEqual([1, 3]);
  expect((await run(agent, "Are you sure?").result).text).toBe("Still 9.");
  expect(model.requests[0]!.messages.slice(0, 3)).toEqual(rebuilt[1]!.messages);
  await harness.dispose();
  rmSync(folder, { recursive: true });
});

test("a message is said otherwise in a copy of the chat; the chat stays as it was", async () => {
  const visit = await demo.open();
  await ask(visit);
  await ask(visit, "And what is (4 + 5) * 1?");
  await visit.page.getByText("And what is (4 + 5) * 1?").hover();
  await visit.page.getByRole("button", { name: "Edit in a copy" }).last().click();
  await visit.page.getByRole("article").getByText("And what is").waitFor({ state: "detached" });
  expect(await visit.input.inputValue()).toBe("And what is (4 + 5) * 1?");
  await visit.page.getByText(SUM).waitFor();
  await visit.page.goBack();
  await visit.page.getByRole("article").getByText("And what is").waitFor();
});

test("a second tab on the same chat says that another one has it", async () => {
  const visit = await demo.open();
  await ask(visit);
  const second = await visit.page.context().newPage();
  await second.goto(visit.page.url());
  await second.getByText("The chat could not be opened").waitFor();
  await visit.page.close();
  await second.reload();
  await second.getByText(SUM).waitFor();
  expect(await second.getByText("The chat could not be opened").count()).toBe(0);
});

test("what is sent while the chat is still being opened goes into it as soon as it is open", async () => {
  const visit = await demo.open();
  await ask(visit);
  const second = await visit.page.context().newPage();
  await second.goto(visit.page.url());
  // The first tab still has the chat, so the second one cannot have opened it yet.
  const input = second.getByRole("textbox", { name: "Message" });
  await input.fill("And what is (4 + 5) * 1?");
  await input.press("Enter");
  await visit.page.close();
  await second.getByRole("article").getByText("And what is (4 + 5) * 1?").waitFor();
  await second.getByRole("article").filter({ hasText: "Assistant" }).getByText("(4 + 5) * 1 = 9").waitFor();
  expect(await input.inputValue()).toBe("");
});
