/** What a body is given, and what stays of that when its call has ended (D17, D23, D29, #195). */
import type { JsonValue, ToolCallContext } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, resultsOf, staged, talk, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf } from "../support/scene.ts";
import { deferred, endOf, eventOf, snapshotWhere, typesOf } from "../support/wait.ts";

const CALL = "call_1_1_1_0";

anywhere("#195 a body that takes longer than its time fails as TOOL_TIMEOUT, though it is deaf", async (open) => {
  const clock = testClock();
  let aborted: unknown;
  const agent = await open({
    clock,
    model: scriptedModel([calls("slow"), "I see"]),
    tools: [
      tool(
        "slow",
        (_, { signal }) => {
          signal.addEventListener("abort", () => (aborted = signal.reason));
          return new Promise(() => {});
        },
        { timeoutMs: 30_000 },
      ),
    ],
  });
  agent.send("go");
  await clock.sleeping(30_000);
  await clock.advance(30_000);
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toMatchObject([{ tool: "slow", code: "TOOL_TIMEOUT" }]);
  expect(aborted).toMatchObject({ code: "TOOL_TIMEOUT" });
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

anywhere("#195 a body that is in time leaves no timer", async (open) => {
  const clock = testClock();
  let asleep = 0;
  const sleep = (ms: number, signal: AbortSignal): Promise<void> => {
    asleep += 1;
    return clock.sleep(ms, signal).finally(() => (asleep -= 1));
  };
  const agent = await open({
    clock: { ...clock, sleep },
    model: scriptedModel([calls("quick"), "done"]),
    tools: [tool("quick", () => "quick", { timeoutMs: 30_000 })],
  });
  expect(resultsOf(await talk(agent))).toEqual([{ tool: "quick", says: "quick" }]);
  await agent.flush();
  expect(asleep).toBe(0);
});

anywhere("D23 the time of a body stands still while it waits for a person, and keeps no timer", async (open) => {
  const clock = testClock();
  let asleep: number[] = [];
  const sleep = (ms: number, signal: AbortSignal): Promise<void> => {
    asleep.push(ms);
    return clock.sleep(ms, signal).finally(() => (asleep = asleep.toSpliced(asleep.indexOf(ms), 1)));
  };
  const agent = await open({
    clock: { ...clock, sleep },
    model: scriptedModel([calls("ask"), "done"]),
    tools: [tool("ask", (_, call) => call.ask("sure?"), { timeoutMs: 30_000, idempotent: true })],
  });
  agent.send("go");
  await snapshotWhere(agent, ({ waiting, durable }) => waiting && durable === "stored");
  expect(asleep).toEqual([]);
  await clock.advance(3_600_000);
  await agent.respond(`${CALL}/1`, "yes");
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toEqual([{ tool: "ask", says: "yes" }]);
});

/** A body that works for `before`, asks, and works for `after`: both in ms of the clock. */
async function workingAround(before: number, after: number) {
  const clock = testClock();
  const [begun, resumed] = [deferred(), deferred()];
  const work = (ms: number, signal: AbortSignal, told: () => void): Promise<void> => {
    const worked = clock.sleep(ms, signal);
    told();
    return worked;
  };
  const { agent, session } = await staged({
    clock,
    model: scriptedModel([calls("work"), "done"]),
    tools: [
      tool(
        "work",
        async (_, call) => {
          await work(before, call.signal, begun.resolve);
          await call.ask("go on?");
          await work(after, call.signal, resumed.resolve);
        },
        { timeoutMs: 30_000 },
      ),
    ],
  });
  agent.send("go");
  await begun.promise;
  await clock.advance(before);
  await snapshotWhere(agent, ({ waiting }) => waiting);
  await clock.advance(3_600_000);
  await agent.respond(`${CALL}/1`, "yes");
  await resumed.promise;
  await clock.advance(after);
  await agent.whenIdle();
  return resultsOf(session);
}

local("D23 #195 the time of a body runs on behind an answer, and counts what it had used before", async () => {
  expect(await workingAround(20_000, 9_000)).toEqual([{ tool: "work", says: "done" }]);
  expect(await workingAround(20_000, 11_000)).toMatchObject([{ tool: "work", code: "TOOL_TIMEOUT" }]);
  expect(await workingAround(1_000, 31_000)).toMatchObject([{ tool: "work", code: "TOOL_TIMEOUT" }]);
});

local("D17 the context of a call is inert from the frame in which its turn is cancelled", async () => {
  const { agent, session } = await staged({
    model: scriptedModel([calls("act")]),
    tools: [
      tool("act", (_, call) => {
        call.agent.cancel();
        call.progress("still here");
      }),
    ],
  });
  await talk(agent);
  expect(dataOf(session, "tool/progress")).toEqual([]);
  expect(endOf(session)).toMatchObject({ kind: "aborted" });
});

local("D17 the context of a call that has its result is inert", async () => {
  const kept = deferred<ToolCallContext>();
  const { agent, session } = await staged({
    model: scriptedModel([calls("act"), "done"]),
    tools: [
      tool("act", (_, call) => {
        call.progress(1);
        kept.resolve(call);
      }),
    ],
  });
  await talk(agent);
  const { seq } = session;
  const call = await kept.promise;
  call.progress(2);
  await expect(call.ask("hello?")).rejects.toMatchObject({ code: "INTERACTION_CANCELLED" });
  expect(session.seq).toBe(seq);
  expect(dataOf(session, "tool/progress")).toEqual([{ callId: CALL, value: 1 }]);
});

for (const [what, payload] of [
  ["undefined", undefined],
  ["a function", () => 1],
  ["NaN", Number.NaN],
  ["a date", new Date(0)],
  ["a bigint", 1n],
] as unknown as [string, JsonValue][]) {
  anywhere(`D23 a question must be JSON: ${what} is refused in the body`, async (open) => {
    const agent = await open({
      model: scriptedModel([calls("ask"), "I see"]),
      tools: [tool("ask", (_, call) => call.ask(payload))],
    });
    const session = await talk(agent);
    expect(resultsOf(session)).toMatchObject([{ tool: "ask", code: "INVALID_CONTENT" }]);
    expect(typesOf(session)).not.toContain("interaction/requested");
  });
}

for (const expiresInMs of [Number.NaN, Number.POSITIVE_INFINITY, -1, "5", null] as unknown as number[]) {
  anywhere(`D23 a question cannot expire in ${typeof expiresInMs} ${String(expiresInMs)} ms`, async (open) => {
    const agent = await open({
      clock: testClock(),
      model: scriptedModel([calls("ask"), "I see"]),
      tools: [tool("ask", (_, call) => call.ask("?", { expiresInMs }))],
    });
    agent.send("go");
    await Promise.race([agent.whenIdle(), eventOf(agent.session, "interaction/requested")]);
    expect(typesOf(agent.session)).not.toContain("interaction/requested");
    expect(resultsOf(agent.session)).toMatchObject([{ tool: "ask", fails: expect.stringMatching(/^Error: ./) }]);
  });

  local(
    `D29 an approval cannot expire in ${typeof expiresInMs} ${String(expiresInMs)} ms: the call fails closed`,
    async () => {
      const { agent, hooks, session } = await staged({
        clock: testClock(),
        model: scriptedModel([calls("act"), "I see"]),
        tools: [tool("act", () => expect.unreachable())],
      });
      hooks.on("tools/pre-execute", () => ({ kind: "ask", expiresInMs }));
      agent.send("go");
      await Promise.race([agent.whenIdle(), eventOf(session, "interaction/requested")]);
      expect(typesOf(session)).not.toContain("interaction/requested");
      expect(typesOf(session)).not.toContain("tool/start");
      expect(resultsOf(session)).toMatchObject([{ tool: "act", fails: expect.stringMatching(/^Error: ./) }]);
    },
  );
}

// Whether needsApproval may ask at all is open; what it was told is never what the body is told.
anywhere("D23 an answer that needsApproval was given does not answer the body's own question", async (open) => {
  const agent = await open({
    model: scriptedModel([calls("act"), "done"]),
    tools: [
      tool("act", async (_, call) => ["for", await call.ask("for whom?")], {
        needsApproval: async (_, call) => (await call.ask("is it a test?")) !== "yes",
      }),
    ],
  });
  agent.send("go");
  await Promise.race([eventOf(agent.session, "interaction/requested"), eventOf(agent.session, "turn/end")]);
  for (const { id } of agent.interactions) await agent.respond(id, "yes");
  await snapshotWhere(
    agent,
    ({ interactions, status }) => status === "idle" || interactions[0]?.payload === "for whom?",
  );
  expect(resultsOf(agent.session)).not.toContainEqual({ tool: "act", says: '["for","yes"]' });
});

anywhere("D23 a body that goes on without its question leaves nothing open behind its turn", async (open) => {
  const agent = await open({
    model: scriptedModel([calls("act"), "done", "next"]),
    tools: [tool("act", (_, call) => void call.ask("anybody?").catch(() => {}))],
  });
  const session = await talk(agent);
  expect(endOf(session)).toEqual({ kind: "completed" });
  expect(agent.interactions).toEqual([]);
  expect(dataOf(session, "interaction/resolved")).toEqual([{ id: `${CALL}/1`, outcome: "cancelled" }]);
});

local("D23 a body that a hook runs again gets the answer that is in the log", async () => {
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("ask"), "done"]),
    tools: [tool("ask", (_, call) => call.ask("sure?"))],
  });
  hooks.on("tools/execute", async (_, next) => {
    await next();
    return next();
  });
  agent.send("go");
  await snapshotWhere(agent, ({ waiting }) => waiting);
  await agent.respond(`${CALL}/1`, "yes");
  await agent.whenIdle();
  expect(dataOf(session, "interaction/requested")).toHaveLength(1);
  expect(resultsOf(session)).toEqual([{ tool: "ask", says: "yes" }]);
});
