/** `agent.scope.stop`: a policy ends a turn wherever it stands, as `stopped`, with nothing dangling. */
import { memoryStorage, type Agent, type Harness, type HarnessOptions, type ModelRequest } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { describe, expect, test } from "vitest";
import { calls, resultsOf, tool } from "../support/calls.ts";
import { openWithEveryTool, script } from "../support/every-call.ts";
import { dataOf, linesOf, scene } from "../support/scene.ts";
import { deferred, endOf, eventOf, snapshotWhere, typesOf } from "../support/wait.ts";

const ENOUGH = { by: "limit", reason: "enough" };
const STOPPED = { kind: "stopped", ...ENOUGH };
const stop = (agent: Agent): boolean => agent.scope!.stop(ENOUGH);
const never = (): Promise<never> => new Promise(() => {});

/** Every call has one result, every question an end, and nothing waits. */
function isWhole(agent: Agent): void {
  const { session } = agent;
  const results = dataOf(session, "tool/result").map(({ callId }) => callId);
  expect(results).toEqual([...new Set(results)]);
  expect(results.toSorted()).toEqual(
    dataOf(session, "tool/call")
      .map(({ callId }) => callId)
      .toSorted(),
  );
  expect(dataOf(session, "step/start")).toHaveLength(dataOf(session, "step/end").length);
  expect(dataOf(session, "interaction/requested")).toHaveLength(dataOf(session, "interaction/resolved").length);
  expect(agent.interactions).toEqual([]);
}

function answer({ messages }: ModelRequest): ScriptedAnswer {
  const last = messages.findLastIndex(({ role }) => role === "user");
  if (linesOf(messages.slice(last, last + 1))[0] !== "user: go") return "fine";
  return script[messages.slice(last).filter(({ role }) => role === "assistant").length]!;
}

test("behind any event of its turn, a turn ends as stopped, and the next one runs", async () => {
  const open = () => openWithEveryTool({}, answer, (name) => () => name);
  const whole = await open();
  whole.agent.send("go");
  await whole.agent.whenIdle();
  const { events } = whole.agent.session;
  const [from, to] = (["turn/start", "turn/end"] as const).map((type) => events.findIndex((one) => one.type === type));
  for (let seq = 0; seq < events.length; seq += 1) {
    const { agent } = await open();
    let stopped: boolean | undefined;
    agent.session.subscribe((event) => void (event.seq === seq && (stopped = stop(agent))));
    agent.send("go");
    await agent.whenIdle();
    const moment = `behind ${seq}: ${agent.session.at(seq)!.type}`;
    expect(stopped, moment).toBe(seq >= from! && seq < to!);
    expect(endOf(agent.session), moment).toEqual(stopped ? STOPPED : { kind: "completed" });
    isWhole(agent);
    agent.send("again");
    await agent.whenIdle();
    expect(endOf(agent.session), moment).toEqual({ kind: "completed" });
    expect(agent.queue).toEqual([]);
  }
});

describe("a turn that waits", () => {
  /** What hangs, and how to make it. `hung` is to be called when it does. */
  const places: Record<
    string,
    (hung: () => void) => HarnessOptions & { hang?(harness: Harness): void; after?(): void }
  > = {
    ...Object.fromEntries(
      (
        [
          "agent/prompt-submit",
          "agent/session-prefix",
          "agent/pre-step",
          "agent/request",
          "model/stream",
          "agent/step-result",
          "tools/pre-execute",
          "tools/execute",
          "tools/post-execute",
          "agent/turn-continuation",
          "agent/turn-stop",
        ] as const
      ).map((name) => [
        `in ${name}`,
        (hung: () => void) => ({
          hang: ({ hooks }: Harness) => void hooks.on(name, (): Promise<never> => (hung(), never())),
        }),
      ]),
    ),
    "for a prompt section": (hung) => ({
      hang: ({ prompt }) => void prompt.section({ name: "slow", text: () => (hung(), never()) }),
    }),
    "for a model": (hung) => ({ model: scriptedModel([() => (hung(), { chunks: [], hang: "deaf" })]) }),
    "in agent/request-error": (hung) => ({
      model: scriptedModel([{ error: { message: "no" } }]),
      hang: ({ hooks }) => void hooks.on("agent/request-error", () => (hung(), never())),
    }),
    "for another try": (hung) => ({
      model: scriptedModel([{ error: { message: "no" } }]),
      clock: { now: () => 1, sleep: () => (hung(), never()) },
      hang: ({ hooks }) => void hooks.on("agent/request-error", () => ({ kind: "retry", afterMs: 1000 })),
    }),
    "for a body": (hung) => ({ tools: [tool("work", () => (hung(), never()))] }),
    "for `needsApproval`": (hung) => ({
      tools: [tool("work", () => "done", { needsApproval: () => (hung(), never()) })],
    }),
    "for an approval": (hung) => ({
      tools: [tool("work", () => "done", { needsApproval: true })],
      hang: ({ hooks }) => void hooks.on("interaction/requested", hung),
    }),
    "for an answer": (hung) => ({
      tools: [tool("work", (_, { ask }) => ask("sure?"))],
      hang: ({ hooks }) => void hooks.on("interaction/requested", hung),
    }),
    "for the storage, before a body": (hung) => {
      const storage = memoryStorage();
      const gate = deferred();
      return {
        after: gate.resolve,
        storage: {
          ...storage,
          append: async (batch) => {
            if (batch.events.some(({ type }) => type === "tool/start")) await (hung(), gate.promise);
            return storage.append(batch);
          },
        },
      };
    },
  };

  test.each(Object.entries(places))("%s", async (_, make) => {
    const hung = deferred();
    const { hang, after, ...options } = make(hung.resolve);
    const one = await scene([calls("work"), "never"], { tools: [tool("work")], ...options });
    hang?.(one.harness);
    one.agent.send("go");
    await hung.promise;
    expect(stop(one.agent)).toBe(true);
    expect(stop(one.agent)).toBe(false);
    await eventOf(one.session, "turn/end");
    expect(endOf(one.session)).toEqual(STOPPED);
    expect(one.errors).toEqual([]);
    expect(stop(one.agent)).toBe(false);
    expect(one.agent.queue).toEqual([]);
    isWhole(one.agent);
    after?.();
  });
});

test("what was streamed is kept, without its calls, and marked", async () => {
  const one = await scene([
    {
      chunks: [
        { type: "delta", index: 0, text: "Hel" },
        { type: "block-start", index: 1, block: { type: "tool-call", name: "work" } },
      ],
      hang: "deaf",
    },
    "fine",
  ]);
  const said = one.say("go");
  await eventOf(one.session, "assistant/chunk", ({ data }) => data.chunk.type === "block-start");
  stop(one.agent);
  expect(await said).toEqual(STOPPED);
  expect(dataOf(one.session, "assistant/message")).toMatchObject([
    { interrupted: true, content: [{ type: "text", text: "Hel" }] },
  ]);
  expect(await one.say("again")).toEqual({ kind: "completed" });
});

test("a call that ran and one that had not begun are told why, and what had finished keeps its outcome", async () => {
  const started = deferred();
  const signals: AbortSignal[] = [];
  const one = await scene([calls("work", "slow", "work")], {
    tools: [tool("work"), tool("slow", (_, { signal }) => (signals.push(signal), started.resolve(), never()))],
  });
  const said = one.say("go");
  await started.promise;
  stop(one.agent);
  expect(await said).toEqual(STOPPED);
  expect(resultsOf(one.session)).toMatchObject([
    { tool: "work", says: "done" },
    { tool: "slow", code: "TOOL_ABORTED" },
    { tool: "work", code: "ABORTED_BEFORE_DISPATCH" },
  ]);
  expect(linesOf(one.session.deriveMessages()).join()).toContain("The call was stopped (enough) while it ran");
  expect(signals[0]!.reason).toMatchObject({ code: "TURN_STOPPED", message: "enough" });
});

test("the messages of its turn that a hook has not let in yet are dropped with it, and cannot begin another", async () => {
  const hung = deferred();
  const one = await scene(["fine"]);
  one.hooks.on("agent/prompt-submit", ({ id }, next) => (id === "second" ? (hung.resolve(), never()) : next()));
  for (const id of ["first", "second", "third"]) one.agent.send(id, { id });
  await hung.promise;
  one.agent.send("fourth");
  stop(one.agent);
  await one.agent.whenIdle();
  expect(dataOf(one.session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["stopped", "completed"]);
  expect(dataOf(one.session, "inbox/dropped")).toMatchObject([{ ids: ["second", "third"], reason: "stopped" }]);
  expect(linesOf(one.session.deriveMessages())).toEqual(["user: first", "user: fourth", "assistant: fine"]);
});

test("steering that waits is dropped with it, as with any stop, and what is sent survives", async () => {
  const hung = deferred();
  const one = await scene([() => (hung.resolve(), { chunks: [], hang: "deaf" }), "fine"]);
  one.agent.send("go");
  await hung.promise;
  const id = one.agent.steer("faster");
  one.agent.send("next");
  stop(one.agent);
  await one.agent.whenIdle();
  expect(dataOf(one.session, "inbox/dropped")).toEqual([{ ids: [id], reason: "stopped" }]);
  expect(linesOf(one.session.deriveMessages())).toEqual(["user: go", "user: next", "assistant: fine"]);
});

test.each(["cancel", "dispose"] as const)("a %s that comes before the end is stronger", async (how) => {
  const hung = deferred();
  const one = await scene([() => (hung.resolve(), { chunks: [], hang: "deaf" })]);
  one.agent.send("go");
  await hung.promise;
  expect(stop(one.agent)).toBe(true);
  if (how === "cancel") one.agent.cancel("mine");
  else void one.dispose();
  await eventOf(one.session, "turn/end");
  expect(endOf(one.session)).toMatchObject({ kind: how === "cancel" ? "aborted" : "disposed" });
});

test("it is weaker than a cancel that came first, an answer that was cut short, and a failure", async () => {
  const cancelled = await scene([{ chunks: [], hang: "deaf" }]);
  let late: boolean | undefined;
  cancelled.agent.on("agent/cancelled", () => queueMicrotask(() => (late = stop(cancelled.agent))));
  cancelled.agent.on("step/start", () => cancelled.agent.cancel("mine"));
  expect(await cancelled.say("go")).toEqual({ kind: "aborted", reason: "mine" });
  expect(late).toBe(false);

  const cut = await scene([{ text: "Hel", finish: "max-tokens" }]);
  cut.agent.on("step/end", () => void stop(cut.agent));
  expect(await cut.say("go")).toEqual({ kind: "max-tokens" });

  const failed = await scene([{ error: { message: "broken" } }]);
  failed.hooks.on("agent/error", ({ agent }) => void stop(agent));
  expect(await failed.say("go")).toMatchObject({ kind: "error", message: "broken" });
});

test("a turn that is parked can be stopped, and a policy's own two texts are checked", async () => {
  const one = await scene([calls("rm")], { tools: [tool("rm", () => "gone", { needsApproval: true })] });
  expect(stop(one.agent)).toBe(false);
  const said = one.say("go");
  await snapshotWhere(one.agent, ({ waiting }) => waiting);
  expect(() => one.agent.scope!.stop({ by: "x" } as never)).toThrow(
    expect.objectContaining({ code: "INVALID_DECISION" }),
  );
  stop(one.agent);
  await expect(one.agent.respond("call_1_1_1_0/approval", { decision: "allow" })).rejects.toThrow(/cancelled already/);
  expect(await said).toEqual(STOPPED);
  expect(resultsOf(one.session)).toMatchObject([{ code: "ABORTED_BEFORE_DISPATCH" }]);
  expect(typesOf(one.session).at(-1)).toBe("turn/end");
});
