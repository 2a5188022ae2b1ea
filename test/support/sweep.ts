/** An agent at every moment of its turn: what holds must hold whenever a verb comes. */
import type { AgentHandle } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { calls, tool } from "./calls.ts";
import { harnessWith } from "./fixture.ts";

/** So many turns of the event loop, then so many microtasks. The last ones lie behind the end of the turn. */
export const MOMENTS = [0, 1, 2, 3].flatMap((macrotasks) =>
  Array.from({ length: 100 }, (_, microtasks) => ({ macrotasks, microtasks })),
);

export interface Swept extends AgentHandle {
  /** Whom the loop has called: `model`, `body`. */
  readonly called: string[];
}

/** The agent, that long after it was sent `go`: a step with two tools, and one without. More answers are there. */
export async function agentAt({ macrotasks, microtasks }: (typeof MOMENTS)[number]): Promise<Swept> {
  const called: string[] = [];
  const saying =
    <T>(who: string, answer: T) =>
    (): T => {
      called.push(who);
      return answer;
    };
  const answers = [calls("look", "look"), "one two three", "more", "and more", "and more"];
  const harness = harnessWith({
    model: scriptedModel(answers.map((answer) => saying("model", answer))),
    tools: [tool("look", saying("body", Promise.resolve("seen")))],
  });
  harness.hooks.on("agent/prompt-submit", (_, next) => next());
  harness.hooks.on("agent/pre-step", async () => {});
  harness.hooks.on("tools/pre-execute", (_, next) => next());
  harness.hooks.on("agent/turn-continuation", (_, next) => next());
  const handle = await harness.agents.open({ id: "s" });
  handle.agent.send("go", { id: "go" });
  for (let i = 0; i < macrotasks; i += 1) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
  for (let i = 0; i < microtasks; i += 1) await Promise.resolve();
  return { ...handle, called };
}
