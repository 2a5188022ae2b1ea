/** The inspector, under a real react-dom in a real browser. */
import type { ReactElement } from "react";
import { createRoot, type Root } from "react-dom/client";
import { createHarness, defineTool, type Agent, type Harness, type ModelChunk, type SessionView } from "turnloop";
import { Inspector } from "turnloop/inspector";
import { scriptedModel } from "turnloop/testing";
import { afterEach, expect, test, vi } from "vitest";
import { page, userEvent } from "vitest/browser";

let root: Root | undefined;
let harness: Harness;

function mount(node: ReactElement): HTMLElement {
  const host = document.body.appendChild(document.createElement("div"));
  root = createRoot(host);
  root.render(node);
  return host;
}

afterEach(async () => {
  root?.unmount();
  document.body.replaceChildren();
  await harness.dispose();
});

const look = defineTool({
  name: "look",
  description: "Looks something up",
  inputSchema: { type: "object" },
  execute: () => "<img src=x onerror=alert(1)>",
});

/** Two turns: one that calls a tool, one that fails once and is asked again. */
async function talked(): Promise<Agent> {
  const model = scriptedModel([
    { toolCalls: [{ name: "look", args: { at: "the sky" } }], usage: { input: 812, output: 20 } },
    { text: "It is blue.", usage: { input: 870, output: 6 } },
    { error: { message: "too many requests", code: "RATE_LIMITED" } },
    { text: "<b>Still</b> blue.", usage: { input: 900, output: 7 } },
  ]);
  harness = createHarness({
    model,
    system: "Look before you answer.",
    tools: [look],
    plugins: [({ hooks }) => hooks.on("agent/request-error", () => ({ kind: "retry" }))],
  });
  const { agent } = await harness.agents.open({ id: "chat" });
  agent.send("What colour is the sky?");
  await agent.whenIdle();
  agent.send("And now?");
  await agent.whenIdle();
  return agent;
}

const row = (name: string | RegExp): ReturnType<typeof page.getByRole> => page.getByRole("button", { name });

test("the last turn is open: its steps, its attempts with what went wrong, and what they used", async () => {
  mount(<Inspector of={await talked()} />);
  await expect.element(row(/^Turn 1 /)).toBeVisible();
  await expect.element(row(/RATE_LIMITED: too many requests/)).toBeVisible();
  await expect.element(row(/attempt 2 .*900 in, 7 out/)).toBeVisible();
  expect(row(/^look/).elements()).toHaveLength(0);
  await row(/^Turn 1 /).click();
  await expect.element(row(/^look/)).toBeVisible();
  await row(/^Turn 1 /).click();
  await vi.waitFor(() => expect(row(/^look/).elements()).toHaveLength(0));
});

test("a step shows the request that was sent, and what was new in it; nothing in it is markup", async () => {
  const host = mount(<Inspector of={await talked()} />);
  await row(/^Turn 1 /).click();
  await row(/^Step 2 /).click();
  await expect.element(page.getByText("Since the request before: 2 messages more.")).toBeVisible();
  await expect.element(page.getByText("look: <img src=x onerror=alert(1)>")).toBeVisible();
  expect(host.querySelector("img")).toBeNull();
  await page.getByText("1 message as in the request before").click();
  await expect.element(page.getByText("What colour is the sky?")).toBeVisible();
  await page.getByText("System prompt").click();
  await expect.element(page.getByText("Look before you answer.")).toBeVisible();
});

test("the events of what is selected, by type and by words", async () => {
  mount(<Inspector of={await talked()} />);
  await page.getByRole("button", { name: "Events" }).click();
  await expect.element(page.getByText("request/failed")).toBeVisible();
  expect(page.getByText("assistant/chunk").elements()).toHaveLength(0);
  await page.getByRole("button", { name: "chunks" }).click();
  await expect.element(page.getByText("assistant/chunk").first()).toBeVisible();
  await page.getByRole("searchbox").fill("too many");
  await expect.element(page.getByText("request/failed")).toBeVisible();
  expect(page.getByText("turn/end").elements()).toHaveLength(0);
});

test("the picture is zoomed by keys, and goes back to the whole", async () => {
  const host = mount(<Inspector of={await talked()} />);
  await expect.element(row(/^Turn 2 /)).toBeVisible();
  const widthOf = (): number => Number.parseFloat(host.querySelector<HTMLElement>(".tl-turn .tl-bar")!.style.width);
  const before = widthOf();
  row(/^Turn 1 /)
    .element()
    .focus();
  await userEvent.keyboard("+");
  await vi.waitFor(() => expect(widthOf()).toBeCloseTo(before * 2, 3));
  await page.getByRole("button", { name: "Whole session" }).click();
  await vi.waitFor(() => expect(widthOf()).toBeCloseTo(before, 3));
});

test("a live turn grows in it; a chunk that changes no span renders nothing", async () => {
  const chunks: { push(chunk: ModelChunk): void; end(): void } = { push: () => {}, end: () => {} };
  const stream = new ReadableStream<ModelChunk>({
    start(controller) {
      chunks.push = (chunk) => controller.enqueue(chunk);
      chunks.end = () => controller.close();
    },
  });
  harness = createHarness({ model: { id: "slow", stream: () => stream } });
  const { agent } = await harness.agents.open({ id: "chat" });
  const host = mount(<Inspector of={agent} />);
  await expect.element(page.getByText("Nothing has happened yet.")).toBeVisible();
  agent.send("Hi");
  await expect.element(row(/^slow/)).toBeVisible();
  chunks.push({ type: "delta", index: 0, text: "a" });
  await vi.waitFor(() => expect(host.querySelector(".tl-waiting")).not.toBeNull());
  let changes = 0;
  const observer = new MutationObserver((records) => (changes += records.length));
  observer.observe(host, { subtree: true, childList: true, attributes: true, characterData: true });
  const told = new Promise<void>((resolve) => {
    let seen = 0;
    agent.session.subscribe(({ type }) => {
      if (type === "assistant/chunk" && (seen += 1) === 50) resolve();
    });
  });
  for (let i = 0; i < 50; i += 1) chunks.push({ type: "delta", index: 0, text: "b" });
  await told;
  await new Promise(requestAnimationFrame);
  observer.disconnect();
  expect(changes).toBe(0);
  chunks.push({ type: "finish", reason: { kind: "stop" } });
  chunks.end();
  await agent.whenIdle();
  await expect.element(row(/^Turn 1 /)).not.toHaveTextContent("…");
});

test("of a tail, the request is shown once the rest was asked for", async () => {
  const { session } = await talked();
  let start = session.seq - 8;
  const listeners = new Set<() => void>();
  const tail: SessionView = {
    ...session,
    get start() {
      return start;
    },
    get events() {
      return session.events.slice(start);
    },
    get seq() {
      return session.seq;
    },
    at: (seq) => (seq < start ? undefined : session.at(seq)),
    subscribe: (listener) => {
      const tell = (): void => listener(session.at(0)!);
      listeners.add(tell);
      return () => void listeners.delete(tell);
    },
    loadEarlier: async () => {
      start = 0;
      for (const tell of listeners) tell();
    },
  };
  mount(<Inspector of={tail} />);
  await page.getByRole("button", { name: "Load the rest" }).click();
  await expect.element(page.getByText("<b>Still</b> blue.").or(page.getByText(/messages? as in/))).toBeVisible();
});
