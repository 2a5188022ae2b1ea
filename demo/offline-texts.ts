/** The longer texts of the scripted model. */

export const INTRODUCTION = `I am **a script, not a language model**: I look for a few words and play my part, so that you can see what the loop does. Try one of these:

- \`What is 1234 * 5678, and what time is it in Oslo?\` runs two tools, one after the other
- \`Add a note: buy oat milk\` asks you for approval first
- \`Plan a dinner\` asks you a question
- \`Write something long\` leaves you time to stop me, steer me or queue a message
- \`Fail, please\` shows what an error looks like
- \`Show me code and a table\` shows how Markdown looks

To talk to a real model, open **Settings** and name an endpoint.`;

export const ESSAY = `## A turn, from the inside

A turn begins when something is queued. The loop takes it, writes it down, and asks the model for an answer. Every piece of that answer is written down too, in the order in which it arrives, before anything else is done with it.

When the answer asks for tools, the loop runs them. Some may run at once, some have to be allowed by a person first, and some ask a question of their own. Whatever happens to them, each call gets exactly one result, and the next request shows the model all of them.

### What you can do meanwhile

1. **Steer.** Press Enter while I write. Your words go into this turn, before its next step.
2. **Queue.** Press Ctrl and Enter. Your words wait, and open the next turn.
3. **Stop.** What I have written so far stays, marked as interrupted, and you can let me go on later.

### Why a log

The page that you look at is a fold of the log: messages, tool cards, the queue, approvals, all of it. Close a tab in the middle of a sentence and nothing that was stored is lost; open it again and the log says where the turn stood.

\`\`\`ts
const { agent } = await harness.agents.open({ id: "chat-1" });
agent.send("Hello");
await agent.whenIdle();
\`\`\`

That is also why a stopped turn can simply go on: the history is there, the loop reads it, and the model is asked again. There is no other state to be lost.

And with that, the long text ends.`;

export const SAMPLE = `An agent takes a few lines. This one has a tool, and keeps its log in the browser:

\`\`\`ts
import { createHarness, defineTool } from "turnloop";
import { indexedDBStorage } from "turnloop/indexeddb";

// The log is the truth: a reload goes on from it.
const harness = createHarness({
  model: "openai/gpt-5.5",
  storage: indexedDBStorage(),
  tools: [dice],
});
const { agent } = await harness.agents.open({ id: "chat-1" });
agent.send("Roll 2 dice");
\`\`\`

What you can say while it works, and what becomes of it:

| Verb | Takes effect | When nothing runs |
| --- | --- | --- |
| \`send\` | in a turn of its own | opens a turn |
| \`steer\` | before the next step | opens a turn |
| \`inject\` | before the next step | waits for the next turn |
| \`cancel\` | at once | does nothing |

> Whatever was accepted is in the log before anything is done with it.`;

/** So many words in sections of Markdown, the last one a number that says how many came before it. */
export function wordsOf(count: number): string {
  const words = (ESSAY.match(/[A-Za-z]+/g) ?? []).map((word) => word.toLowerCase());
  let text = "";
  for (let at = 0; at < count - 1; at += 1) {
    if (at % 240 === 0) text += `${at === 0 ? "" : "\n\n"}## After ${at} words\n\n`;
    else text += at % 60 === 0 ? ".\n\n" : " ";
    text += words[at % words.length];
  }
  return `${text} ${count - 1}.`;
}
