/** A policy that was taken back leaves the loop as it was: what happens from then on is what happens without it. */
import {
  approvals,
  askUser,
  budget,
  compaction,
  fallback,
  outputTool,
  repeatedCalls,
  retry,
  stallLimits,
  standard,
  subagents,
  title,
  toolTimeout,
  type Plugin,
  type SessionEvent,
} from "turnloop";
import { mcp } from "turnloop/mcp";
import { otel } from "turnloop/otel";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { scene } from "../support/scene.ts";
import { policies } from "../support/bundle.ts";

/** Each so strict that the turns below would be others with it. */
const plugins: Readonly<Record<string, Plugin>> = {
  askUser: ({ tools }) => tools.register(askUser()),
  approvals: approvals({ when: () => true }),
  budget: budget({ steps: 1, toolCalls: 1, tokens: 1, ms: 1 }),
  compaction: compaction({ contextWindow: 1000 }),
  fallback: fallback({ models: ["other"] }),
  outputTool: outputTool({ models: ["main"] }),
  repeatedCalls: repeatedCalls({ warnAt: 2, stopAt: 2 }),
  retry: retry(),
  stallLimits: stallLimits({ firstChunkMs: 1, betweenChunksMs: 1 }),
  standard: standard({ maxSteps: 1 }),
  subagents: subagents({ plugins: [budget({ steps: 1 })] }),
  title: title(),
  toolTimeout: toolTimeout(1),
  mcp: mcp({ name: "sea", url: "http://127.0.0.1:9/mcp" }),
  otel: otel({ content: true }),
};

interface Played {
  readonly events: readonly SessionEvent[];
  readonly diagnostics: readonly string[];
  /** For how long somebody has slept. */
  readonly sleeps: readonly number[];
}

/** A turn with calls, one that asks for output, one that fails; with what a plugin leaves in what is there already. */
async function play(plugin?: Plugin): Promise<Played> {
  const failing = { error: { message: "slow down", code: "RATE_LIMITED" } };
  const usage = { input: 900 };
  const main = scriptedModel([
    { ...calls("look"), usage },
    { ...calls("look"), usage },
    { text: "Once upon a time. ".repeat(50), usage },
    '{"city":"Oslo"}',
    failing,
  ]);
  const clock = testClock();
  const sleeps: number[] = [];
  let id = 0;
  let off = (): void => {};
  const one = await scene([], {
    model: "main",
    models: { main, other: scriptedModel(["by another"]) },
    tools: [tool("look", () => "waves")],
    clock: {
      now: clock.now,
      sleep(ms, signal) {
        sleeps.push(ms);
        return clock.sleep(ms, signal);
      },
    },
    newId: () => `id-${(id += 1)}`,
    plugins: [
      ({ harness }) => {
        if (plugin) off = harness.use(plugin);
      },
    ],
  });
  // An agent that was opened with it, and one that has seen it come and go.
  off();
  if (plugin) one.harness.use(plugin)();
  sleeps.length = 0;
  await one.say("go");
  one.agent.send("a city", { output: { type: "object" } });
  await one.agent.whenIdle();
  await one.say("again");
  const { events } = one.session;
  await one.harness.dispose();
  return { events, diagnostics: one.diagnostics, sleeps };
}

test("every policy is looked at", () => {
  expect(Object.keys(plugins).toSorted()).toEqual([...policies(), "mcp", "otel"].toSorted());
});

test.each(Object.keys(plugins))("%s, taken back, leaves the log as it is without it", async (name) => {
  expect(await play(plugins[name])).toEqual(await play());
});
