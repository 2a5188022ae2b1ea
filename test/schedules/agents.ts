/** The agents that the schedules are about: what their model and tools do, and tell those outside. */
import { defineTool, type HarnessOptions, type Model, type ModelChunk } from "../../src/index.ts";

export interface Effect {
  readonly session: string;
  readonly tool: string;
  readonly callId: string;
}

/** What a message asks for, by its last word. */
export const ASKS = ["nothing", "effect", "sure", "pay"] as const;

export function agentsOf(tell: (effect: Effect) => Promise<void>): HarnessOptions {
  const tool = (name: string, traits: object): ReturnType<typeof defineTool> =>
    defineTool({
      name,
      description: "Does something to the world.",
      inputSchema: { type: "object" },
      async execute(_, { callId, agent }) {
        await tell({ session: agent.id, tool: name, callId });
        return "done";
      },
      ...traits,
    });
  const tools = [tool("effect", {}), tool("sure", { idempotent: true }), tool("pay", { needsApproval: true })];
  return { model, tools, onDiagnostic() {} };
}

const model: Model = {
  id: "test/scheduled",
  async *stream({ messages }) {
    const last = messages.at(-1)!;
    const words = last.content.map((block) => (block.type === "text" ? block.text : "")).join(" ");
    const asked = last.role === "user" ? words.split(" ").at(-1)! : "nothing";
    for (let word = 0; word < 8; word += 1) {
      // In a turn of the event loop of its own.
      await new Promise((resolve) => {
        setTimeout(resolve);
      });
      yield { type: "delta", index: 0, text: `${word} ` };
    }
    if (ASKS.includes(asked as never) && asked !== "nothing") yield* call(asked);
    else yield { type: "finish", reason: { kind: "stop" } };
  },
};

function* call(name: string): Generator<ModelChunk> {
  yield { type: "block-start", index: 1, block: { type: "tool-call", name } };
  yield { type: "delta", index: 1, text: "{}" };
  yield { type: "finish", reason: { kind: "tool-calls" } };
}
