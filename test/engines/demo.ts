/** The core path of the demo in an engine: what is said is answered, a tool allowed, a reload survived, a chat found again. */
import type { Engine } from "./engines.ts";

const PATIENCE_MS = 60_000;
const LOOKS_EVERY_MS = 50;

/** Answers what it has seen to hold. */
export async function checkDemo(engine: Engine, url: string): Promise<string> {
  /** Until the page shows the text. */
  async function shows(text: string): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    while (!(await engine.evaluate<boolean>(`document.body.innerText.includes(${JSON.stringify(text)})`))) {
      if (performance.now() > end) {
        const seen = await engine.evaluate<string>("document.body.innerText");
        throw new Error(`the page does not show ${JSON.stringify(text)}, but:\n${seen}`);
      }
      await new Promise((resolve) => setTimeout(resolve, LOOKS_EVERY_MS));
    }
  }
  /** As React hears it from a person who types. */
  const say = (text: string): Promise<void> =>
    engine.evaluate(`(async () => {
      const input = document.querySelector("textarea");
      input.focus();
      Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(input, ${JSON.stringify(text)});
      input.dispatchEvent(new Event("input", { bubbles: true }));
      await new Promise(requestAnimationFrame);
      input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
    })()`);
  const press = (name: string): Promise<void> =>
    engine.evaluate(`[...document.querySelectorAll("button")]
      .find((button) => button.innerText.trim() === ${JSON.stringify(name)}).click()`);

  await engine.open(`${url}?pace=3`);
  await shows("An agent, in this page");
  await say("What is 2 + 3?");
  await shows("2 + 3 = 5");
  await say("Add a note: buy oat milk");
  await shows("May it do that?");
  await press("Allow");
  await shows("Added as note 1.");
  await say("Write something long");
  await shows("Whatever happens to them");
  await engine.reload();
  await shows("Whatever happens to them");
  await shows("2 + 3 = 5");
  await say("What is 6 + 7?");
  await shows("6 + 7 = 13");
  await press("New chat");
  await shows("An agent, in this page");
  await press("Chats");
  await shows("What is 2 + 3?");
  return "the demo: tools, an approval, a reload in mid stream, the list of chats";
}
