/** An agent at every moment of its turn: what holds must hold whenever a verb comes. */
import type { AgentHandle } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { calls, tool } from "./calls.ts";
import { harnessWith } from "./fixture.ts";

export interface Moment extends AgentHandle {
  /** How many microtasks the turn has had. */
  readonly microtasks: number;
  /** Whom the loop has called: `model`, `body`. */
  readonly called: string[];
}

/** More than any turn here takes: it is a mistake when one is not over by then. */
const TOO_LONG = 2000;

/**
 * One agent after another, each a microtask later after it was sent `go`, until the turn is over: a step with
 * two tools, and one without. There are answers for more. Microtasks are all that such a turn takes.
 */
export async function* everyMoment(): AsyncGenerator<Moment> {
  for (let microtasks = 0; microtasks < TOO_LONG; microtasks += 1) {
    const moment = await agentAt(microtasks);
    const { session } = moment.agent;
    const isOver = session.events.at(-1)?.type === "turn/end";
    yield moment;
    if (isOver) return;
  }
  throw new Error(`a turn is not over after ${TOO_LONG} microtasks`);
}

async function agentAt(microtasks: number): Promise<Moment> {
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
  for (let i = 0; i < microtasks; i += 1) await Promise.resolve();
  return { ...handle, microtasks, called };
}
