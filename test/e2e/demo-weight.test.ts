/** The demo under weight: long chats, long answers, and no network. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHarness, eventsFromMessages, type Message } from "turnloop";
import { afterAll, beforeAll, expect, test } from "vitest";
import { answers, button, startDemo, type Demo, type DemoPage } from "./demo-page.ts";

let demo: Demo;
let folder: string;
beforeAll(async () => {
  demo = await startDemo();
  folder = mkdtempSync(join(tmpdir(), "turnloop-weight-"));
});
afterAll(async () => {
  await demo.close();
  rmSync(folder, { recursive: true });
});

/** Counts, from the page's first moment, the tasks that kept it from answering: above 50 ms, as browsers say. */
const WATCH = `
  globalThis.longTasks = [];
  new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((entry) => entry.duration)))
    .observe({ type: "longtask", buffered: true });
  globalThis.drawn = new Map();
  globalThis.onMessageDrawn = (id) => drawn.set(id, (drawn.get(id) ?? 0) + 1);
`;

interface Weight {
  readonly tasks: number;
  readonly longest: number;
  readonly nodes: number;
  readonly megabytes: number;
}

/** What it weighed since it was asked last; told on the console too. */
async function weigh({ page }: DemoPage, what: string): Promise<Weight> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("HeapProfiler.collectGarbage");
  const { usedSize } = await devtools.send("Runtime.getHeapUsage");
  await devtools.detach();
  const { durations, nodes } = await page.evaluate(() => ({
    durations: (globalThis as unknown as { longTasks: number[] }).longTasks.splice(0),
    nodes: document.querySelectorAll("*").length,
  }));
  const weight = {
    tasks: durations.length,
    longest: Math.round(Math.max(0, ...durations)),
    nodes,
    megabytes: Math.round(usedSize / 1024 / 1024),
  };
  console.log(
    `${what}: ${weight.tasks} long tasks, the longest ${weight.longest} ms, ${nodes} elements, ${weight.megabytes} MB`,
  );
  return weight;
}

async function chatOf(turns: number): Promise<string> {
  const messages: Message[] = [];
  for (let turn = 1; turn <= turns; turn += 1) {
    messages.push({ role: "user", content: [{ type: "text", text: `Question ${turn} of many` }] });
    const text = `**Answer ${turn}** with a [link](https://example.com/${turn}).\n\n- one\n- two\n\n\`\`\`ts\nconst turn = ${turn};\n\`\`\``;
    messages.push({ role: "assistant", content: [{ type: "text", text }] });
  }
  const harness = createHarness();
  const { agent, dispose } = await harness.agents.create({
    id: "long-chat",
    meta: { title: "A long chat" },
    seed: eventsFromMessages(messages),
  });
  await agent.flush();
  const lines: string[] = [];
  for await (const line of harness.sessions.export("long-chat")) lines.push(line);
  await dispose();
  await harness.dispose();
  const file = join(folder, "long.ndjson");
  writeFileSync(file, lines.join(""));
  return file;
}

test("a chat of 5,000 messages draws those near the reader, and answers while it is scrolled through", async () => {
  const file = await chatOf(2500);
  const visit = await demo.open({ before: WATCH });
  const { page } = visit;
  await visit.input.waitFor();
  await weigh(visit, "an empty chat");
  await button(visit, "Chats").click();
  await page.getByLabel("A chat from a file").setInputFiles(file);
  await page.getByText("Question 2500 of many").waitFor();
  const opened = await weigh(visit, "5,000 messages, imported and opened");
  expect(opened.nodes).toBeLessThan(4000);

  // Only a reader who scrolls leaves the end, which the page keeps to otherwise.
  await page.getByRole("main").hover();
  await page.mouse.wheel(0, -2000);
  await button(visit, "Latest").waitFor();
  await page.getByRole("main").evaluate(async (element) => {
    const frame = (): Promise<unknown> => new Promise(requestAnimationFrame);
    for (let at = element.scrollHeight - 10_000; at > 0; at -= 10_000) {
      element.scrollTo({ top: at });
      await frame();
    }
    element.scrollTo({ top: 0 });
  });
  await page.getByText("Question 1 of many").waitFor();
  const scrolled = await weigh(visit, "scrolled from its end to its beginning");
  expect(scrolled.nodes).toBeLessThan(4000);

  await visit.say("What is 2 + 3?");
  await answers(visit).getByText("2 + 3 = 5").waitFor();
  await page.getByText("Working").waitFor({ state: "detached" });
  const answered = await weigh(visit, "and a turn at its end");
  expect(answered.nodes).toBeLessThan(4000);
}, 180_000);

test("an answer of 20,000 pieces streams into a page that stays small, and draws nothing settled again", async () => {
  const visit = await demo.open({ before: WATCH, pace: 0.5 });
  const { page } = visit;
  await visit.say("What is 2 + 3?");
  await answers(visit).getByText("2 + 3 = 5").waitFor();
  await page.getByText("Working").waitFor({ state: "detached" });
  await page.evaluate(() => (globalThis as unknown as { drawn: Map<string, number> }).drawn.clear());
  await weigh(visit, "before the long answer");

  await visit.say("Write 20000 words");
  await answers(visit).getByText("After 960 words").waitFor();
  // The page answers meanwhile: what is typed is there.
  await visit.input.pressSequentially("typed while it streams", { delay: 5 });
  expect(await visit.input.inputValue()).toBe("typed while it streams");
  await answers(visit).getByText("19999.").waitFor({ timeout: 120_000 });
  await page.getByText("Working").waitFor({ state: "detached" });
  const weight = await weigh(visit, "20,000 pieces streamed");
  expect(weight.nodes).toBeLessThan(4000);
  expect(weight.megabytes).toBeLessThan(150);

  const drawn = await page.evaluate(() => [...(globalThis as unknown as { drawn: Map<string, number> }).drawn]);
  const times = drawn.map(([, count]) => count).toSorted((a, b) => b - a);
  console.log(`messages were drawn ${times.join(", ")} times while it streamed`);
  // The answer itself is drawn at each frame; of the others at most what an event changed.
  expect(times.slice(1).every((count) => count <= 3)).toBe(true);
}, 180_000);

test("after the first load the page opens without a network, and the scripted model answers", async () => {
  const visit = await demo.open();
  const { page } = visit;
  await visit.say("What is 2 + 3?");
  await answers(visit).getByText("2 + 3 = 5").waitFor();
  await page.getByText("Working").waitFor({ state: "detached" });
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
  await page.context().setOffline(true);
  await page.reload();
  await answers(visit).getByText("2 + 3 = 5").waitFor();
  await visit.say("What is 4 + 5?");
  await answers(visit).getByText("4 + 5 = 9").waitFor();
  const fresh = await page.context().newPage();
  await fresh.goto(demo.url);
  await fresh.getByRole("heading", { name: "An agent, in this page" }).waitFor();
  expect(visit.errors).toEqual([]);
});
