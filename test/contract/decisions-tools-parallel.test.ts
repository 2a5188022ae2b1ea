/** D28: which calls of an answer overlap, and in which order they are told. */
import type { Agent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, deafBody, resultsOf, staged, talk, tool } from "../support/calls.ts";
import { anywhere, local } from "../support/fixture.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { deferred, endOf, eventOf, snapshotWhere } from "../support/wait.ts";

/** Tools whose bodies end when they are told to, and what has happened to them so far. */
function directed(names: Readonly<Record<string, { parallel?: true; readOnly?: true }>>) {
  const log: string[] = [];
  const gates = new Map(Object.keys(names).map((name) => [name, deferred()]));
  const begun = new Map(Object.keys(names).map((name) => [name, deferred()]));
  const tools = Object.entries(names).map(([name, traits]) =>
    tool(
      name,
      async () => {
        log.push(`${name} begins`);
        begun.get(name)!.resolve();
        await gates.get(name)!.promise;
        log.push(`${name} ends`);
        return name;
      },
      traits,
    ),
  );
  return {
    log,
    tools,
    begun: (...wanted: string[]) => Promise.all(wanted.map((name) => begun.get(name)!.promise)),
    end: (...wanted: string[]) => wanted.forEach((name) => gates.get(name)!.resolve()),
  };
}

const parallel = { parallel: true } as const;

anywhere("D28 #192 calls overlap only where their tools say so, by parallel or by readOnly", async (open) => {
  const { log, tools, begun, end } = directed({ a: parallel, b: { readOnly: true }, c: {} });
  const agent = await open({ model: scriptedModel([calls("a", "b", "c"), "done"]), tools });
  agent.send("go");
  await begun("a", "b");
  end("b", "c");
  await eventOf(agent.session, "tool/result");
  end("a");
  await agent.whenIdle();
  expect(log).toEqual(["a begins", "b begins", "b ends", "a ends", "c begins", "c ends"]);
});

anywhere("D28 #173 idempotent alone does not make calls overlap", async (open) => {
  const bodies: string[] = [];
  const one = (name: string) =>
    tool(
      name,
      async () => {
        bodies.push(`${name} begins`);
        await Promise.resolve();
        bodies.push(`${name} ends`);
      },
      { idempotent: true },
    );
  const agent = await open({ model: scriptedModel([calls("a", "b"), "done"]), tools: [one("a"), one("b")] });
  await talk(agent);
  expect(bodies).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});

anywhere(
  "D28 starts are in model order, results as each settles, and the model reads them in its own order",
  async (open) => {
    const { tools, begun, end } = directed({ a: parallel, b: parallel, c: parallel });
    const model = scriptedModel([calls("a", "b", "c"), "done"]);
    const agent = await open({ model, tools });
    agent.send("go");
    await begun("a", "b", "c");
    for (const name of ["c", "a", "b"]) {
      end(name);
      await eventOf(agent.session, "tool/result", ({ data }) => data.callId === `call_1_1_1_${"abc".indexOf(name)}`);
    }
    await agent.whenIdle();
    const ids = (type: "tool/call" | "tool/start" | "tool/result"): string =>
      dataOf(agent.session, type)
        .map(({ callId }) => "abc"[Number(callId.at(-1))])
        .join("");
    expect({ calls: ids("tool/call"), starts: ids("tool/start"), results: ids("tool/result") }).toEqual({
      calls: "abc",
      starts: "abc",
      results: "cab",
    });
    expect(linesOf(model.requests[1]!.messages).slice(2)).toEqual(["tool: a", "tool: b", "tool: c"]);
  },
);

local("D28 post-execute comes as each call settles", async () => {
  const { tools, begun, end } = directed({ a: parallel, b: parallel });
  const { agent, hooks, session } = await staged({ model: scriptedModel([calls("a", "b"), "done"]), tools });
  const settled: string[] = [];
  hooks.on("tools/post-execute", ({ execution }, next) => (settled.push(execution.name), next()));
  agent.send("go");
  await begun("a", "b");
  end("b");
  await eventOf(session, "tool/result");
  expect(settled).toEqual(["b"]);
  end("a");
  await agent.whenIdle();
  expect(settled).toEqual(["b", "a"]);
});

for (const [most, expected] of [
  [undefined, 10],
  [1, 1],
  [3, 3],
] as const) {
  anywhere(`D28 #192 with maxParallelToolCalls ${most ?? "left out"}, ${expected} calls overlap`, async (open) => {
    let running = 0;
    let highest = 0;
    const wide = tool(
      "wide",
      async () => {
        highest = Math.max(highest, (running += 1));
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
        running -= 1;
      },
      parallel,
    );
    const agent = await open({
      model: scriptedModel([calls(...Array.from({ length: 14 }, () => "wide")), "done"]),
      tools: [wide],
      ...(most !== undefined && { maxParallelToolCalls: most }),
    });
    const session = await talk(agent);
    expect(highest).toBe(expected);
    expect(resultsOf(session)).toHaveLength(14);
  });
}

anywhere("D28 the next call starts as soon as one of those under way has settled", async (open) => {
  const { log, tools, begun, end } = directed({ a: parallel, b: parallel, c: parallel });
  const agent = await open({ model: scriptedModel([calls("a", "b", "c"), "done"]), tools, maxParallelToolCalls: 2 });
  agent.send("go");
  await begun("a", "b");
  end("b");
  await begun("c");
  expect(log).toEqual(["a begins", "b begins", "b ends", "c begins"]);
  end("a", "c");
  await agent.whenIdle();
});

anywhere("D28 #192 an exclusive call is a barrier on both sides", async (open) => {
  const { log, tools, begun, end } = directed({ a: parallel, b: parallel, x: {}, c: parallel, d: parallel });
  const agent = await open({ model: scriptedModel([calls("a", "b", "x", "c", "d"), "done"]), tools });
  agent.send("go");
  await begun("a", "b");
  end("b", "a");
  await begun("x");
  expect(log).toEqual(["a begins", "b begins", "b ends", "a ends", "x begins"]);
  end("x");
  await begun("c", "d");
  end("c", "d");
  await agent.whenIdle();
  expect(log.slice(5)).toEqual(["x ends", "c begins", "d begins", "c ends", "d ends"]);
});

/** Allows what is asked for. */
const allow = (agent: Agent, n: number): Promise<void> =>
  agent.respond(`call_1_1_1_${n}/approval`, { decision: "allow" });

const asking = { parallel: true, needsApproval: true } as const;

anywhere("D28 the asks of calls that may overlap open together, and each goes on with its own answer", async (open) => {
  const agent = await open({
    model: scriptedModel([calls("a", "b"), "done"]),
    tools: [tool("a", () => "a", asking), tool("b", () => "b", asking)],
  });
  agent.send("go");
  await snapshotWhere(agent, ({ interactions }) => interactions.length === 2);
  expect(agent.interactions.map(({ id }) => id)).toEqual(["call_1_1_1_0/approval", "call_1_1_1_1/approval"]);
  await allow(agent, 1);
  await eventOf(agent.session, "tool/result");
  expect(resultsOf(agent.session)).toEqual([{ tool: "b", says: "b" }]);
  expect(agent.interactions.map(({ id }) => id)).toEqual(["call_1_1_1_0/approval"]);
  await allow(agent, 0);
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toEqual([
    { tool: "b", says: "b" },
    { tool: "a", says: "a" },
  ]);
});

anywhere("D28 an exclusive call that asks is a barrier: nothing behind it is even asked for", async (open) => {
  const agent = await open({
    model: scriptedModel([calls("a", "b"), "done"]),
    tools: [tool("a", () => "a", { needsApproval: true }), tool("b", () => "b", asking)],
  });
  agent.send("go");
  await snapshotWhere(agent, ({ waiting }) => waiting);
  expect(agent.interactions.map(({ id }) => id)).toEqual(["call_1_1_1_0/approval"]);
  expect(dataOf(agent.session, "tool/call")).toHaveLength(1);
  await allow(agent, 0);
  await snapshotWhere(agent, ({ interactions }) => interactions[0]?.id === "call_1_1_1_1/approval");
  await allow(agent, 1);
  await agent.whenIdle();
  expect(resultsOf(agent.session).map((one) => one.tool)).toEqual(["a", "b"]);
});

anywhere("D28 what waits for an answer keeps its place among those that may overlap", async (open) => {
  const agent = await open({
    model: scriptedModel([calls("a", "b", "c"), "done"]),
    tools: ["a", "b", "c"].map((name) => tool(name, () => name, asking)),
    maxParallelToolCalls: 2,
  });
  agent.send("go");
  await snapshotWhere(agent, ({ interactions }) => interactions.length === 2);
  expect(dataOf(agent.session, "tool/call")).toHaveLength(2);
  await allow(agent, 0);
  await snapshotWhere(agent, ({ interactions }) => interactions.some(({ id }) => id === "call_1_1_1_2/approval"));
  await allow(agent, 1);
  await allow(agent, 2);
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toHaveLength(3);
});

anywhere("D28 one call that fails does not take the others with it", async (open) => {
  const agent = await open({
    model: scriptedModel([calls("a", "b"), "done"]),
    tools: [
      tool(
        "a",
        () => {
          throw new Error("broken");
        },
        parallel,
      ),
      tool("b", async () => "fine", parallel),
    ],
  });
  const session = await talk(agent);
  expect(resultsOf(session)).toEqual([
    { tool: "a", fails: "Error: broken" },
    { tool: "b", says: "fine" },
  ]);
  expect(endOf(session)).toEqual({ kind: "completed" });
});

// #192 has an abort wait for the calls that were started; D17 lets nothing deaf hold up a cancel.
anywhere("#192 D17 a cancel does not wait for calls that overlap", async (open) => {
  const deaf = deafBody();
  const agent = await open({
    model: scriptedModel([calls("a", "b")]),
    tools: [tool("a", deaf.body, parallel), tool("b", deaf.body, parallel)],
  });
  agent.send("go");
  await deaf.running;
  agent.cancel("enough");
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toHaveLength(2);
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "enough" });
});

test.for([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "3"])(
  "D28 maxParallelToolCalls %s is refused",
  async (maxParallelToolCalls) => {
    await expect(
      staged({ model: scriptedModel([]), maxParallelToolCalls: maxParallelToolCalls as number }),
    ).rejects.toMatchObject({ code: "INVALID_OPTIONS" });
  },
);
