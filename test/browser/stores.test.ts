/** The stores in other frameworks than React, as README.md shows: real Vue, real Svelte, a bare page. */
import { createHarness, createTranscript, type Agent, type Harness, type Transcript } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { draw } from "virtual:readme/dom.ts";
import { fromStore } from "virtual:readme/svelte-store.ts";
import { useStore } from "virtual:readme/vue-store.ts";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createApp, h } from "vue";

let harness: Harness;
let agent: Agent;
let host: HTMLElement;

beforeEach(async () => {
  harness = createHarness({ model: scriptedModel(["Good day.", "Good night."]) });
  ({ agent } = await harness.agents.open({ id: "chat" }));
  host = document.body.appendChild(document.createElement("div"));
});
afterEach(async () => {
  host.remove();
  await harness.dispose();
});

function wordsOf({ messages }: Transcript): string[] {
  return messages.flatMap(({ parts }) => parts.map((part) => (part.type === "text" ? part.text : part.type)));
}

async function say(text: string): Promise<void> {
  agent.send(text);
  await agent.whenIdle();
}

test("Vue: a component draws the transcript as it grows, and lets go when it is unmounted", async () => {
  const store = createTranscript(agent);
  let followers = 0;
  const counted: typeof store = {
    ...store,
    subscribe(listener) {
      followers += 1;
      const off = store.subscribe(listener);
      return () => {
        followers -= 1;
        off();
      };
    },
  };
  const app = createApp({
    setup() {
      const transcript = useStore(counted);
      return () => wordsOf(transcript.value).map((words) => h("p", words));
    },
  });
  app.mount(host);
  await say("Hello");
  await vi.waitFor(() => expect(host.textContent).toBe("HelloGood day."));
  app.unmount();
  expect(followers).toBe(0);
});

test("Svelte: a store of its own kind tells at once, at each change, and nothing after the last has gone", async () => {
  const told: string[][] = [];
  const off = fromStore(createTranscript(agent)).subscribe((transcript) => told.push(wordsOf(transcript)));
  expect(told).toEqual([[]]);
  await say("Hello");
  expect(told.at(-1)).toEqual(["Hello", "Good day."]);
  off();
  const { length } = told;
  await say("And now?");
  expect(told).toHaveLength(length);
});

test("a bare page: what changed is drawn, the rest stays the same element", async () => {
  const stop = draw(agent, host);
  await say("Hello");
  await vi.waitFor(() => expect(host.textContent).toBe("HelloGood day."));
  const [first] = host.children;
  await say("And now?");
  await vi.waitFor(() => expect(host.textContent).toBe("HelloGood day.And now?Good night."));
  expect(host.children[0]).toBe(first);
  stop();
});
