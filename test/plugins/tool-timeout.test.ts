/** `toolTimeout`: a body that takes too long fails its call, and nothing else. */
import { toolTimeout } from "turnloop";
import { expect, test } from "vitest";
import { calls, clientTool, deafBody, resultsOf, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { heldTool } from "../support/held.ts";
import { scene } from "../support/scene.ts";
import { deferred, endOf, eventOf, snapshotWhere } from "../support/wait.ts";

const LATE = { fails: expect.stringContaining("1000 ms"), code: "TOOL_TIMEOUT" };

async function stage(tools: ReturnType<typeof tool>[], ...names: string[]) {
  const clock = testClock();
  const one = await scene([calls(...names), "fine"], { clock, tools, plugins: [toolTimeout(1000)] });
  return { ...one, clock, said: one.say("go") };
}

test("a deaf body fails its call in time; its signal aborts, the turn's does not", async () => {
  const signals: AbortSignal[] = [];
  const { body, running } = deafBody((_, { signal }) => signals.push(signal));
  const one = await stage([tool("slow", body), tool("work")], "slow", "work");
  await running;
  await one.clock.advance(999);
  expect(resultsOf(one.session)).toEqual([]);
  await one.clock.advance(1);
  expect(await one.said).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toEqual([
    { tool: "slow", ...LATE },
    { tool: "work", says: "done" },
  ]);
  expect(signals[0]!.reason).toMatchObject({ code: "TOOL_TIMEOUT" });
});

test("a body that ends in time keeps its answer, and leaves no timer", async () => {
  const held = heldTool();
  const one = await stage([held.tool], "held");
  await held.started;
  await one.clock.advance(900);
  held.answer("just so");
  expect(await one.said).toEqual({ kind: "completed" });
  await one.clock.advance(10_000);
  expect(resultsOf(one.session)).toEqual([{ tool: "held", says: "just so" }]);
});

test("what a body answers or throws after its time is ignored", async () => {
  const held = heldTool();
  const one = await stage([held.tool], "held");
  await held.started;
  await one.clock.advance(1000);
  held.answer(Promise.reject(new Error("too late")));
  expect(await one.said).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toEqual([{ tool: "held", ...LATE }]);
});

test("a tool's own limit is the one that counts, longer or shorter", async () => {
  const bodies = [deafBody(), deafBody()] as const;
  const one = await stage(
    [
      tool("patient", bodies[0].body, { timeoutMs: 5000, parallel: true }),
      tool("hasty", bodies[1].body, { timeoutMs: 10, parallel: true }),
    ],
    "patient",
    "hasty",
  );
  await Promise.all(bodies.map(({ running }) => running));
  await one.clock.advance(4999);
  expect(resultsOf(one.session)).toMatchObject([{ tool: "hasty", fails: expect.stringContaining("10 ms") }]);
  await one.clock.advance(1);
  expect(await one.said).toEqual({ kind: "completed" });
});

test("an agent's own tool of the same name has its own limit", async () => {
  const clock = testClock();
  const { body, running } = deafBody();
  const one = await scene([calls("work"), "fine"], {
    clock,
    tools: [tool("work")],
    plugins: [toolTimeout(1000)],
    open: { setup: ({ tools }) => void tools.register(tool("work", body, { timeoutMs: 3000 })) },
  });
  const said = one.say("go");
  await running;
  await clock.advance(2999);
  expect(resultsOf(one.session)).toEqual([]);
  await clock.advance(1);
  await said;
  expect(resultsOf(one.session)).toMatchObject([{ code: "TOOL_TIMEOUT" }]);
});

test("a call that waits for a person holds up no other's time", async () => {
  const { body, running } = deafBody();
  const one = await stage(
    [tool("ask", (_, { ask }) => ask("sure?"), { parallel: true }), tool("slow", body, { parallel: true })],
    "ask",
    "slow",
  );
  await running;
  await snapshotWhere(one.agent, ({ interactions }) => interactions.length === 1);
  await one.clock.advance(1000);
  await eventOf(one.session, "tool/result");
  expect(resultsOf(one.session)).toMatchObject([{ tool: "slow", ...LATE }]);
  await one.agent.respond("call_1_1_1_0/1", "yes");
  expect(await one.said).toEqual({ kind: "completed" });
});

test("the time in which a person is asked does not count; what the body had left before does", async () => {
  const { body, running } = deafBody();
  const ready = deferred();
  const started = deferred();
  const ask = tool("ask", async (args, call) => {
    started.resolve();
    await ready.promise;
    await call.ask("sure?");
    return body(args, call);
  });
  const one = await stage([ask], "ask");
  await started.promise;
  await one.clock.advance(400);
  ready.resolve();
  await snapshotWhere(one.agent, ({ interactions }) => interactions.length === 1);
  await one.clock.advance(60_000);
  await one.agent.respond("call_1_1_1_0/1", "yes");
  await running;
  await one.clock.advance(599);
  expect(resultsOf(one.session)).toEqual([]);
  await one.clock.advance(1);
  await one.said;
  expect(resultsOf(one.session)).toMatchObject([{ tool: "ask", ...LATE }]);
});

test("a client has its time once it has claimed the call; its late answer reaches nobody", async () => {
  const one = await stage([clientTool("page")], "page");
  await snapshotWhere(one.agent, ({ interactions }) => interactions.length === 1);
  await one.clock.advance(60_000);
  await one.agent.claim("call_1_1_1_0/client");
  await one.clock.advance(1000);
  expect(await one.said).toEqual({ kind: "completed" });
  await expect(one.agent.respond("call_1_1_1_0/client", { value: 1 })).rejects.toMatchObject({
    code: "INTERACTION_RESOLVED",
  });
  expect(resultsOf(one.session)).toMatchObject([{ tool: "page", ...LATE }]);
});

test.each(["cancel", "dispose"] as const)("a %s while a body runs is what it is", async (how) => {
  const signals: AbortSignal[] = [];
  const { body, running } = deafBody((_, { signal }) => signals.push(signal));
  const one = await stage([tool("slow", body)], "slow");
  one.said.catch(() => {});
  await running;
  if (how === "cancel") one.agent.cancel("enough");
  else await one.dispose();
  await eventOf(one.session, "turn/end");
  await one.clock.advance(10_000);
  expect(resultsOf(one.session)).toMatchObject([{ code: "TOOL_ABORTED" }]);
  expect(signals[0]!.aborted).toBe(true);
  expect(endOf(one.session)).toMatchObject({ kind: how === "cancel" ? "aborted" : "disposed" });
});

test("taken out, it leaves the loop as it was", async () => {
  const clock = testClock();
  const held = heldTool();
  const one = await scene([calls("held"), "fine"], { clock, tools: [held.tool] });
  one.harness.use(toolTimeout(1000))();
  const said = one.say("go");
  await held.started;
  await clock.advance(1_000_000);
  held.answer("at last");
  expect(await said).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toEqual([{ tool: "held", says: "at last" }]);
});

test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, "1" as never])("a limit of %s is refused", (ms) => {
  expect(() => toolTimeout(ms)).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
});
