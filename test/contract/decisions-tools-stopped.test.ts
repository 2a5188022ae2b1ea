/** D18: a batch that is stopped leaves no call without a result, and each result says what it knows. */
import type { ToolOutcome } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, deafBody, resultsOf, staged, talk, tool } from "../support/calls.ts";
import { anywhere, local } from "../support/fixture.ts";
import { deferred, endOf, eventOf, typesOf } from "../support/wait.ts";

const never = new Promise<never>(() => {});

/** The types from the answer with the calls on, without chunks. */
const batchOf = (session: Parameters<typeof typesOf>[0]): string[] =>
  typesOf(session).slice(typesOf(session).indexOf("assistant/message") + 1);

anywhere("D18 #190 a cancelled batch leaves no call without a result, each with its own code", async (open) => {
  const { body, running } = deafBody();
  const agent = await open({
    model: scriptedModel([calls("quick", "deaf", "late", "later")]),
    tools: [tool("quick"), tool("deaf", body), tool("late"), tool("later")],
  });
  agent.send("go");
  await running;
  agent.cancel();
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toEqual([
    { tool: "quick", says: "done" },
    { tool: "deaf", fails: expect.stringContaining("may still finish"), code: "TOOL_ABORTED" },
    { tool: "late", fails: expect.any(String), code: "ABORTED_BEFORE_DISPATCH" },
    { tool: "later", fails: expect.any(String), code: "ABORTED_BEFORE_DISPATCH" },
  ]);
  expect(batchOf(agent.session)).toEqual([
    "tool/call",
    "tool/start",
    "tool/result",
    "tool/call",
    "tool/start",
    "agent/cancelled",
    "tool/result",
    "tool/call",
    "tool/result",
    "tool/call",
    "tool/result",
    "step/end",
    "turn/end",
  ]);
});

local(
  "D18 tools/result is told once of each call of a stopped batch, post-execute of none that was stopped",
  async () => {
    const told: string[] = [];
    const post: string[] = [];
    const { agent, hooks, session } = await staged({
      model: scriptedModel([calls("quick", "deaf", "late")]),
      tools: [tool("quick"), tool("deaf", () => never), tool("late")],
    });
    hooks.on("tools/post-execute", ({ execution }, next) => (post.push(execution.name), next()));
    hooks.on("tools/result", ({ execution, outcome }) => {
      told.push(`${execution.name} ${outcome.error?.code ?? "ok"}`);
      expect(session.events.at(-1)).toMatchObject({ type: "tool/result", data: { callId: execution.callId } });
    });
    agent.send("go");
    await eventOf(session, "tool/start", ({ data }) => data.callId === "call_1_1_1_1");
    agent.cancel();
    await agent.whenIdle();
    expect(told).toEqual(["quick ok", "deaf TOOL_ABORTED", "late ABORTED_BEFORE_DISPATCH"]);
    expect(post).toEqual(["quick"]);
  },
);

local("D18 a call that a hook holds back before its start was not dispatched, and has one tool/call", async () => {
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("a")]),
    tools: [tool("a", () => expect.unreachable())],
  });
  const holding = deferred();
  hooks.on("tools/pre-execute", () => (holding.resolve(), never));
  agent.send("go");
  await holding.promise;
  agent.cancel();
  await agent.whenIdle();
  expect(batchOf(session)).toEqual(["tool/call", "agent/cancelled", "tool/result", "step/end", "turn/end"]);
  expect(resultsOf(session)).toMatchObject([{ tool: "a", code: "ABORTED_BEFORE_DISPATCH" }]);
});

local("D18 a cancel from the frame in which the calls arrive dispatches none of them", async () => {
  const { agent, session } = await staged({
    model: scriptedModel([calls("a", "b")]),
    tools: [tool("a", () => expect.unreachable()), tool("b", () => expect.unreachable())],
  });
  agent.on("assistant/message", () => agent.cancel("no tools"));
  await talk(agent);
  expect(resultsOf(session).map((one) => "code" in one && one.code)).toEqual([
    "ABORTED_BEFORE_DISPATCH",
    "ABORTED_BEFORE_DISPATCH",
  ]);
  expect(endOf(session)).toEqual({ kind: "aborted", reason: "no tools" });
});

/** What is in the log when a cancel lands while post-execute waits behind a call. */
async function cancelledBehind(
  body: Parameters<typeof tool>[1],
  around?: () => Promise<ToolOutcome>,
): Promise<ReturnType<typeof resultsOf>> {
  const { agent, hooks, session } = await staged({ model: scriptedModel([calls("a")]), tools: [tool("a", body)] });
  const waiting = deferred();
  if (around) hooks.on("tools/execute", around);
  hooks.on("tools/post-execute", () => (waiting.resolve(), never));
  agent.send("go");
  await waiting.promise;
  agent.cancel();
  await agent.whenIdle();
  return resultsOf(session);
}

local("D18 a body that had finished keeps its own outcome", async () => {
  expect(await cancelledBehind(() => "paid")).toEqual([{ tool: "a", says: "paid" }]);
});

local("D18 a body that had failed keeps its own outcome", async () => {
  const refuse = (): never => {
    throw new Error("refused");
  };
  expect(await cancelledBehind(refuse)).toEqual([{ tool: "a", fails: "Error: refused" }]);
});

local("D18 an outcome that around-execute had given is kept", async () => {
  const cached = async (): Promise<ToolOutcome> => ({ content: [{ type: "text", text: "cached" }], isError: false });
  expect(await cancelledBehind(() => expect.unreachable(), cached)).toEqual([{ tool: "a", says: "cached" }]);
});

local("D18 a body that had finished inside a hook that goes on keeps its own outcome", async () => {
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("a")]),
    tools: [tool("a", () => "paid")],
  });
  const waiting = deferred();
  hooks.on("tools/execute", async (_, next) => {
    await next();
    waiting.resolve();
    return never;
  });
  agent.send("go");
  await waiting.promise;
  agent.cancel();
  await agent.whenIdle();
  expect(resultsOf(session)).toEqual([{ tool: "a", says: "paid" }]);
});

local("D18 a body that is run again is not told as its first run", async () => {
  let runs = 0;
  const { body, running } = deafBody();
  const { agent, hooks, session } = await staged({
    model: scriptedModel([calls("a")]),
    tools: [tool("a", (args, call) => ((runs += 1) === 1 ? "the first" : body(args, call)))],
  });
  hooks.on("tools/execute", async (_, next) => {
    await next();
    return next();
  });
  agent.send("go");
  await running;
  agent.cancel();
  await agent.whenIdle();
  expect(resultsOf(session)).toMatchObject([{ tool: "a", code: "TOOL_ABORTED" }]);
});

local("D18 D16 a disposal leaves no call without a result either", async () => {
  const { body, running } = deafBody();
  const { agent, handle, session } = await staged({
    model: scriptedModel([calls("deaf", "late")]),
    tools: [tool("deaf", body), tool("late")],
  });
  agent.send("go");
  await running;
  await handle.dispose();
  expect(resultsOf(session)).toMatchObject([
    { tool: "deaf", code: "TOOL_ABORTED" },
    { tool: "late", code: "ABORTED_BEFORE_DISPATCH" },
  ]);
  expect(endOf(session)).toEqual({ kind: "disposed" });
});

anywhere("D18 calls that overlap and are cut off each say that they may still finish", async (open) => {
  const [a, c] = [deafBody(), deafBody()];
  const agent = await open({
    model: scriptedModel([calls("a", "b", "c")]),
    tools: [
      tool("a", a.body, { parallel: true }),
      tool("b", () => "done", { parallel: true }),
      tool("c", c.body, { parallel: true }),
    ],
  });
  agent.send("go");
  await Promise.all([a.running, c.running, eventOf(agent.session, "tool/result")]);
  agent.cancel();
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toMatchObject([
    { tool: "b", says: "done" },
    { tool: "a", code: "TOOL_ABORTED" },
    { tool: "c", code: "TOOL_ABORTED" },
  ]);
});

local("D17 D18 the context of a call that was cut off is inert", async () => {
  const [begun, goOn] = [deferred(), deferred()];
  const after = deferred<unknown>();
  const { agent, session } = await staged({
    model: scriptedModel([calls("a"), "later"]),
    tools: [
      tool("a", async (_, call) => {
        begun.resolve();
        await goOn.promise;
        call.progress({ half: true });
        after.resolve(await call.ask("still there?").catch((error: unknown) => error));
      }),
    ],
  });
  agent.send("go");
  await begun.promise;
  agent.cancel();
  await agent.whenIdle();
  const { seq } = session;
  goOn.resolve();
  expect(await after.promise).toMatchObject({ code: "INTERACTION_CANCELLED" });
  expect(session.seq).toBe(seq);
});

local("D18 a tool that honours the signal learns of the cancel", async () => {
  const begun = deferred();
  const reason = deferred<unknown>();
  const { agent, session } = await staged({
    model: scriptedModel([calls("a")]),
    tools: [
      tool("a", (_, { signal }) => {
        begun.resolve();
        return new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => (reason.resolve(signal.reason), reject(signal.reason as Error)));
        });
      }),
    ],
  });
  agent.send("go");
  await begun.promise;
  agent.cancel("enough");
  expect(await reason.promise).toMatchObject({ code: "ABORTED", message: "enough" });
  await agent.whenIdle();
  expect(resultsOf(session)).toMatchObject([{ tool: "a", code: "TOOL_ABORTED" }]);
});
