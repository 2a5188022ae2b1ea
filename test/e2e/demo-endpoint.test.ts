/** The demo, pointed at a model over the network. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { chat, providerUrl, responses, type Answer } from "../support/provider-answers.ts";
import { startProviderServer, type ProviderServer } from "../support/provider-server.ts";
import { connect, startDemo, type Demo } from "./demo-page.ts";

let demo: Demo;
let provider: ProviderServer;
beforeAll(async () => {
  [demo, provider] = [await startDemo(), await startProviderServer()];
});
afterAll(async () => {
  await Promise.all([demo.close(), provider.close()]);
});

const failing = (answer: Answer): string => providerUrl(provider.url, answer);

for (const [api, body] of [
  ["Chat Completions", chat({ content: "Hello from " }, { content: "the wire" })],
  ["Responses", responses("Hello from the wire")],
] as const) {
  test(`by ${api} the endpoint answers, is named in the page, and is asked with what was said before`, async () => {
    const visit = await demo.open();
    await visit.say("What is 1 + 1?");
    await visit.page.getByText("1 + 1 = 2").first().waitFor();
    const baseUrl = providerUrl(provider.url, { body });
    await connect(visit, baseUrl, { api });
    await visit.page.getByText("lab-1 at 127.0.0.1").waitFor();
    await visit.say("and who are you?");
    await visit.page.getByRole("article").getByText("Hello from the wire").waitFor();
    const [sent] = provider.requests(baseUrl);
    expect(sent).toMatchObject({ model: "lab-1", stream: true });
    expect(JSON.stringify(sent)).toContain("What is 1 + 1?");
    expect(JSON.stringify(sent)).not.toContain("sk-secret");
  });
}

test("the key is in this tab's session storage and nowhere else, survives a reload, and goes with the script", async () => {
  const visit = await demo.open();
  await connect(visit, failing({ body: chat({ content: "x" }) }));
  const stored = (): Promise<{ session: string; local: string }> =>
    visit.page.evaluate(() => ({
      session: JSON.stringify(sessionStorage),
      local: JSON.stringify(localStorage) + document.cookie,
    }));
  expect((await stored()).session).toContain("sk-secret");
  expect((await stored()).local).not.toContain("sk-secret");
  await visit.page.reload();
  await visit.page.getByText("lab-1 at 127.0.0.1").waitFor();
  await visit.page.getByRole("button", { name: "Settings", exact: true }).click();
  await visit.page.getByRole("button", { name: "Back to the scripted demo" }).click();
  await visit.page.getByText("Scripted demo, no language model").waitFor();
  expect((await stored()).session).not.toContain("sk-secret");
  await visit.say("What is 1 + 1?");
  await visit.page.getByText("1 + 1 = 2").first().waitFor();
});

test.for<[string, () => string, string]>([
  [
    "a key that is refused",
    () => failing({ status: 401, body: '{"error":{"message":"bad key"}}' }),
    "Check the API key",
  ],
  [
    "a page of HTML",
    () => failing({ body: "<!doctype html><p>hi</p>", headers: { "content-type": "text/html" } }),
    "Check the base URL",
  ],
  ["nobody there", () => "http://127.0.0.1:9/v1", "Check the base URL"],
  ["a server that does not allow pages", () => failing({ cors: false, body: chat({ content: "x" }) }), "CORS"],
])("after %s the error says what to do, and leads to the settings", async ([, url, advice]) => {
  const visit = await demo.open();
  await connect(visit, url());
  await visit.say("hello");
  const problem = visit.page.getByRole("alert");
  await problem.getByText(advice).first().waitFor();
  expect(await problem.innerText()).not.toContain("sk-secret");
  await problem.getByRole("button", { name: "Open Settings" }).click();
  await visit.page.getByRole("dialog", { name: "Connect a model" }).waitFor();
});

test("hostile output runs nothing, loads nothing from elsewhere, links to nothing that runs, and breaks no page", async () => {
  const visit = await demo.open({ width: 390 });
  const { page } = visit;
  const columns = Array.from({ length: 60 }, (_, at) => `column ${at}`).join(" | ");
  const text = [
    "**bold** <b id=raw>raw</b> <script>window.hit = 1</script> <img src=x onerror='window.hit = 2'>",
    "![pixel](http://127.0.0.1:9/pixel.png) [link](https://example.com/) [bad](javascript:window.hit=3)",
    "[data](data:text/html,<script>alert(1)</script>) [vb](vbscript:x) [odd](java\tscript:window.hit=4) <javascript:window.hit=5>",
    "<iframe src='http://127.0.0.1:9/frame'></iframe><style>body { display: none }</style><base href='http://127.0.0.1:9/'>",
    "[ref][r] ![img][r]\n\n[r]: javascript:window.hit=6",
    "```html\n<script>window.hit = 7</script>\n```",
    "unbreakable".repeat(200),
    `| ${columns} |\n| ${columns.replaceAll(/column \d+/g, "---")} |\n${`| ${columns} |\n`.repeat(150)}`,
    `${"> ".repeat(150)}deep`,
    "The end of it",
  ].join("\n\n");
  const requested: string[] = [];
  page.on("request", (request) => requested.push(request.url()));
  page.on("dialog", (dialog) => requested.push(dialog.message()));
  // Too long for an address to hold.
  const headers = { "access-control-allow-origin": "*", "access-control-allow-headers": "*" };
  await page.route("http://hostile.example/**", (route) =>
    route.fulfill({ headers, contentType: "text/event-stream", body: chat({ content: text }) }),
  );
  await connect(visit, "http://hostile.example/v1");
  const before = page.url();
  await visit.say("show me");
  await page.getByRole("article").getByText("The end of it").waitFor();
  const answer = page.getByRole("article").filter({ hasText: "Assistant" });

  for (const name of ["bad", "data", "vb", "odd", "ref"]) {
    expect(await answer.getByRole("link", { name, exact: true }).count(), name).toBe(0);
  }
  expect(await answer.getByRole("link", { name: "link", exact: true }).getAttribute("rel")).toBe(
    "noopener noreferrer nofollow",
  );
  expect(await answer.getByRole("link", { name: "Image: pixel" }).count()).toBe(1);
  expect(await answer.locator("strong").filter({ hasText: "bold" }).count()).toBe(1);
  expect(await page.locator("article :is(#raw, script, img, iframe, style, base)").count()).toBe(0);
  expect(await page.locator("a:not([href^='http'])").count()).toBe(0);
  expect(await page.evaluate(() => "hit" in window)).toBe(false);
  expect(requested.filter((url) => url.includes("127.0.0.1:9/") || !url.startsWith("http"))).toEqual([]);
  expect(page.url()).toBe(before);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  expect(await page.getByRole("main").evaluate((main) => main.scrollWidth - main.clientWidth)).toBeLessThanOrEqual(0);
  await visit.input.fill("still here");
  expect(visit.errors).toEqual([]);
});
