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

test("an answer as Markdown is shown as such, and can neither run scripts nor load from elsewhere", async () => {
  const visit = await demo.open();
  const text = [
    "**bold** <b id=raw>raw</b> <script>window.hit = 1</script> <img src=x onerror='window.hit = 2'>",
    "![pixel](http://127.0.0.1:9/pixel.png) [link](https://example.com/) [bad](javascript:window.hit=3)",
  ].join("\n\n");
  const requested: string[] = [];
  visit.page.on("request", (request) => requested.push(request.url()));
  await connect(visit, failing({ body: chat({ content: text }) }));
  await visit.say("show me");
  const link = visit.page.getByRole("link", { name: "link" });
  await link.waitFor();
  expect(await link.getAttribute("rel")).toBe("noopener noreferrer nofollow");
  expect(await visit.page.locator("strong").filter({ hasText: "bold" }).count()).toBe(1);
  expect(await visit.page.locator("#raw, article script, article img").count()).toBe(0);
  expect(await visit.page.getByRole("link", { name: "Image: pixel" }).count()).toBe(1);
  expect(await visit.page.locator("a[href^='javascript']").count()).toBe(0);
  expect(await visit.page.evaluate(() => "hit" in window)).toBe(false);
  expect(requested.filter((url) => url.endsWith("pixel.png"))).toEqual([]);
});
