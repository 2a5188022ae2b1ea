/** `standard`: what a newcomer gets with one line. */
import { standard } from "turnloop";
import type { ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { dataOf, scene } from "../support/scene.ts";
import { eventOf } from "../support/wait.ts";

const busy: ScriptedAnswer = { error: { message: "no", code: "RATE_LIMITED" } };
const overflow: ScriptedAnswer = { error: { message: "too long", code: "CONTEXT_OVERFLOW" } };

test("a request that fails for a reason that passes is made again", async () => {
  const clock = testClock();
  const one = await scene([busy, "fine"], { clock, plugins: [standard()] });
  const said = one.say("go");
  await eventOf(one.session, "request/failed");
  await clock.sleeping(1);
  await clock.advance(1000);
  expect(await said).toEqual({ kind: "completed" });
});

test("a turn has 50 steps, or as many as it is told", async () => {
  for (const [options, steps] of [
    [undefined, 50],
    [{ maxSteps: 3 }, 3],
  ] as const) {
    const one = await scene(
      Array.from({ length: 60 }, () => calls("work")),
      { tools: [tool("work")], plugins: [standard(options)] },
    );
    expect(await one.say("go")).toMatchObject({ kind: "stopped", by: "budget" });
    expect(one.model.requests).toHaveLength(steps);
  }
});

test("a model that falls silent is given up, and asked again", async () => {
  const clock = testClock();
  const one = await scene([{ chunks: [], hang: "deaf" }, "fine"], { clock, plugins: [standard()] });
  const said = one.say("go");
  await clock.sleeping(300_000);
  await clock.advance(300_000);
  await eventOf(one.session, "request/failed");
  await clock.sleeping(1);
  await clock.advance(1000);
  expect(await said).toEqual({ kind: "completed" });
});

test("a history that is too long is summed up, and the step asked anew", async () => {
  const long = "word ".repeat(4000);
  const one = await scene([long, long, overflow, "a summary", "fine"], { plugins: [standard()] });
  await one.say("one");
  await one.say("two");
  expect(await one.say("three")).toEqual({ kind: "completed" });
  expect(dataOf(one.session, "request/failed")).toMatchObject([{ next: "new-step" }]);
  expect(dataOf(one.session, "model/aux")).toHaveLength(1);
});

test("taken out, it takes all of its parts with it", async () => {
  const one = await scene([busy, overflow, ...Array.from({ length: 60 }, () => calls("work")), "fine"], {
    tools: [tool("work")],
  });
  one.harness.use(standard())();
  expect(await one.say("go")).toMatchObject({ kind: "error", code: "RATE_LIMITED" });
  expect(await one.say("go")).toMatchObject({ kind: "error", code: "CONTEXT_OVERFLOW" });
  expect(await one.say("go")).toEqual({ kind: "completed" });
});

test("no steps at all are refused", () => {
  expect(() => standard({ maxSteps: 0 })).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
});
