/** The demo at the edge: the same page, with each chat's agent in a Durable Object. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { answers, button, type DemoPage } from "./demo-page.ts";
import { startEdge, type EdgeSite } from "./demo-edge-site.ts";

let site: EdgeSite;
beforeAll(async () => {
  site = await startEdge();
}, 120_000);
afterAll(async () => {
  await site.close();
});

const idle = ({ page }: DemoPage): Promise<void> => page.getByText("Working").waitFor({ state: "detached" });
const state = ({ page }: DemoPage, text: string) => page.getByRole("status").filter({ hasText: text });

async function ask(visit: DemoPage, text: string, answer: string): Promise<void> {
  await visit.say(text);
  await answers(visit).getByText(answer).last().waitFor();
  await idle(visit);
}

test("a chat streams, asks for approval and is stored, with the agent elsewhere; a second tab has all of it", async () => {
  const visit = await site.open();
  await state(visit, "Runs at the edge · saved").waitFor();
  expect(await button(visit, "Settings").count(), "no key of a page has a place there").toBe(0);
  await ask(visit, "What is 2 + 3?", "2 + 3 = 5");
  await visit.say("What is 4 + 5, and add a note: buy oat milk");
  await visit.page.getByText("buy oat milk").nth(1).waitFor();
  const other = await site.join(visit);
  await button(other, "Allow").click();
  for (const one of [visit, other]) {
    await answers(one).getByText("Added as note 1.").last().waitFor();
    await idle(one);
  }
  await ask(other, "What is 6 + 7?", "6 + 7 = 13");
  await answers(visit).getByText("6 + 7 = 13").waitFor();
  await visit.card("Calculator").first().waitFor();
  expect([...visit.errors, ...other.errors]).toEqual([]);
});

test("a page that is reloaded in mid stream has what was said, and the rest as it comes", async () => {
  const visit = await site.open();
  await visit.say("Write something long");
  await answers(visit).getByText("Whatever happens to them").waitFor();
  await visit.page.reload();
  await answers(visit).getByText("Whatever happens to them").waitFor();
  await idle(visit);
  expect(await answers(visit).count()).toBe(1);
  expect(await visit.page.getByText("was interrupted").count()).toBe(0);
});

test("chats are listed, renamed, copied, and deleted", async () => {
  const visit = await site.open();
  const { page } = visit;
  await ask(visit, "What is 2 + 3?", "2 + 3 = 5");
  await ask(visit, "What is 4 + 5?", "4 + 5 = 9");
  await button(visit, "Continue in a copy from here").first().click();
  await answers(visit).getByText("4 + 5 = 9").waitFor({ state: "detached" });
  await answers(visit).getByText("2 + 3 = 5").waitFor();
  await ask(visit, "What is 6 + 7?", "6 + 7 = 13");
  await button(visit, "Chats").click();
  const rows = page.getByRole("dialog").getByRole("listitem");
  await expect.poll(() => rows.count()).toBe(2);
  await rows
    .last()
    .getByRole("button", { name: /^Rename/ })
    .click();
  await page.getByRole("textbox", { name: /^New name of/ }).fill("Sums");
  await page.keyboard.press("Enter");
  await rows.filter({ hasText: "Sums" }).waitFor();
  await rows
    .filter({ hasText: "Sums" })
    .getByRole("button", { name: /^Delete/ })
    .click();
  await button(visit, "Delete").click();
  await expect.poll(() => rows.count()).toBe(1);
  expect(await rows.filter({ hasText: "Sums" }).count()).toBe(0);
});

test("a chat goes to a file and comes back as another; what is none is refused in words", async () => {
  const visit = await site.open();
  const { page } = visit;
  await ask(visit, "What is 2 + 3?", "2 + 3 = 5");
  await button(visit, "Chats").click();
  const download = page.waitForEvent("download");
  await button(visit, "Export What is 2 + 3?").click();
  const file = page.getByLabel("A chat from a file");
  await file.setInputFiles({ name: "chat.ndjson", mimeType: "application/x-ndjson", buffer: Buffer.from("no chat") });
  await page.getByRole("alert").getByText("line 1 cannot be imported").waitFor();
  await file.setInputFiles(await (await download).path());
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await ask(visit, "What is 4 + 5?", "4 + 5 = 9");
  await answers(visit).getByText("2 + 3 = 5").waitFor();
  await button(visit, "Chats").click();
  await expect.poll(() => page.getByRole("dialog").getByRole("listitem").count()).toBe(2);
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
  const headers = { cookie, origin: new URL(site.url).origin };
  const chat = decodeURIComponent(new URL(page.url()).hash.slice(1));
  const lines = await (await fetch(`${site.url}api/chats/${chat}`, { headers })).json();
  const again = await fetch(`${site.url}api/chats/${chat}`, {
    method: "PUT",
    headers,
    body: (lines as string[]).join(""),
  });
  expect([again.status, await again.json()]).toMatchObject([409, { code: "SESSION_EXISTS" }]);
  for (const [path, status] of Object.entries({ "chats/%E0%A4%A": 400, chats: 200, notes: 404 }))
    expect((await fetch(`${site.url}api/${path}`, { headers })).status, path).toBe(status);
});

test("an id is nothing to other visitors, with a cookie or without, on a socket or by HTTP", async () => {
  const visit = await site.open();
  await ask(visit, "What is 2 + 3?", "2 + 3 = 5");
  const chat = decodeURIComponent(new URL(visit.page.url()).hash.slice(1));
  const stranger = await site.open();
  // The page has put its own chat into its address, and does so no more.
  await state(stranger, "Runs at the edge").waitFor();
  await stranger.page.goto(visit.page.url());
  await stranger.page.reload();
  await stranger.page.getByText("The chat could not be opened").waitFor();
  expect(await answers(stranger).count()).toBe(0);
  const cookie = (await stranger.page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
  const origin = new URL(site.url).origin;
  for (const headers of [{}, { cookie }, { cookie, origin }]) {
    for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
      const body = method === "GET" ? {} : { body: "{}" };
      const { status } = await fetch(`${site.url}api/chats/${chat}`, { method, headers, ...body });
      expect(status, method).toBe(403);
    }
    const told = await new Promise<string>((resolve, reject) => {
      const socket = new WebSocket(`${site.url.replace("http", "ws")}agents/${chat}`, { headers });
      socket.once("message", (data: Buffer) => resolve(data.toString()));
      socket.once("error", reject);
    });
    expect(JSON.parse(told)).toMatchObject({ type: "closed", error: { code: "UNAUTHORIZED" } });
  }
  // A page of another site has the visitor's own cookie, if a browser lets it.
  const own = (await visit.page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
  const forged = { cookie: own, origin: "https://elsewhere.example" };
  expect((await fetch(`${site.url}api/chats/${chat}`, { method: "DELETE", headers: forged })).status).toBe(403);
  expect((await fetch(`${site.url}api/chats/${chat}`, { headers: { cookie: own } })).status).toBe(200);
});

test("workerd is killed while an approval is open: the page connects again, and the answer counts once", async () => {
  const visit = await site.open();
  await ask(visit, "What is 2 + 3?", "2 + 3 = 5");
  await visit.say("Add a note: water the plants");
  await button(visit, "Allow").waitFor();
  await visit.page.setViewportSize({ width: 360, height: 780 });
  await site.kill();
  await state(visit, "Connecting").getByText("Connecting").waitFor();
  await site.start();
  await state(visit, "Runs at the edge").waitFor();
  await button(visit, "Allow").click();
  await answers(visit).getByText("Added as note 1.").last().waitFor();
  await idle(visit);
  await visit.page.reload();
  await answers(visit).getByText("2 + 3 = 5").waitFor();
  await answers(visit).getByText("Added as note 1.").last().waitFor();
  expect(await visit.page.getByText("Added as note 2.").count()).toBe(0);
}, 120_000);
