/** A process that shares a session with others: `node <module> <file> <name> <messages>`. */
import { writeSync } from "node:fs";
import { createHarness, run, TurnloopError, type Model } from "turnloop";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { pause } from "./life.ts";

export type Heard =
  /** The message was answered, in a turn that is stored. */
  | { readonly kind: "answered"; readonly message: string }
  /** Another process has written to the session instead. */
  | { readonly kind: "refused"; readonly code: string; readonly durable: string }
  /** Something went wrong beside that. */
  | { readonly kind: "diagnostic"; readonly code: string };

const [file, name, messages] = process.argv.slice(2) as [string, string, string];
const tell = (heard: Heard): void => void writeSync(1, `${JSON.stringify(heard)}\n`);

const echo: Model = {
  id: "test/echo",
  async *stream({ messages: history }) {
    await pause();
    const block = history.at(-1)?.content[0];
    yield { type: "delta", index: 0, text: block?.type === "text" ? block.text : "" };
    await pause();
    yield { type: "finish", reason: { kind: "stop" } };
  },
};

const harness = createHarness({
  storage: nodeSqliteStorage(file),
  model: echo,
  onDiagnostic: ({ code }) => tell({ kind: "diagnostic", code }),
});

/** Says it until it is answered: when another has the session, opens that again and goes on there. */
async function say(text: string): Promise<void> {
  for (;;) {
    const handle = await harness.agents.open({ id: "shared" });
    const saying = run(handle.agent, text);
    try {
      const { reason } = await saying.result;
      if (reason.kind === "completed") {
        tell({ kind: "answered", message: saying.id });
        return;
      }
    } catch (thrown) {
      if (!TurnloopError.is(thrown)) throw thrown;
      tell({ kind: "refused", code: thrown.code, durable: handle.agent.session.durable });
    } finally {
      await handle.dispose();
    }
    for (let i = Math.random() * 20; i > 0; i -= 1) await pause();
  }
}

for (let i = 0; i < Number(messages); i += 1) await say(`${name} ${i}`);
await harness.dispose();
