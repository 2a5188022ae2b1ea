/** F: stops, limits and second tries. */
import { createTranscript, run, type ErrorData, type ModelChunk } from "turnloop";
import { expect, test } from "vitest";
import { calls, deafBody, resultsOf, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { all, heldTool, textsOf } from "../support/held.ts";
import { sse } from "../support/provider-answers.ts";
import { dataOf, linesOf, scene } from "../support/scene.ts";
import { deferred, endOf, eventOf, typesOf } from "../support/wait.ts";
import { chatDialects, delta, says, useWire } from "../support/wire.ts";

const open = useWire();
const piece = (text: string, more = {}): ModelChunk => ({ type: "delta", index: 0, text, ...more });
const failed: ModelChunk = { type: "finish", reason: { kind: "error", message: "busy", code: "BUSY" } };
const hanging = { body: sse(delta({ content: "Hel" })).replace("data: [DONE]\n\n", ""), end: "hang" as const };

test.each(chatDialects)(
  "B094 a stop in mid answer settles every promise there is, and lets the connection go (%s)",
  async (dialect) => {
    const wired = await open([hanging], { dialect });
    const going = run(wired.agent, "go");
    const iterated = all(going);
    const waiting = [going.result, iterated, wired.agent.whenIdle()] as const;
    await eventOf(wired.session, "assistant/chunk", ({ data }) => data.chunk.type === "delta");
    wired.agent.cancel("enough");
    const [{ reason }, events] = await Promise.all(waiting);
    await Promise.all([wired.agent.flush(), wired.server.abandoned(wired.url)]);
    expect(reason).toEqual({ kind: "aborted", reason: "enough" });
    expect(events.at(-1)).toMatchObject({ type: "turn/end" });
    expect(dataOf(wired.session, "agent/cancelled")).toHaveLength(1);
  },
);

test("B095 no promise rejects behind the back of those who watch only a part", async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  try {
    const ways: ((going: ReturnType<typeof run>) => unknown)[] = [
      () => undefined,
      (going) => going[Symbol.asyncIterator]().next(),
      (going) =>
        going.result.then(
          () => {},
          () => {},
        ),
    ];
    for (const [n, watch] of ways.entries()) {
      for (const stop of ["cancel", "signal", "dispose", "fail"] as const) {
        const controller = new AbortController();
        const answer =
          stop === "fail" ? { text: "Hel", error: { message: "no" } } : { text: "Hel", hang: "polite" as const };
        const one = await scene([answer], { id: `s-${n}-${stop}` });
        void watch(run(one.agent, "go", { signal: controller.signal }));
        await eventOf(one.session, stop === "fail" ? "turn/end" : "assistant/chunk");
        if (stop === "cancel") one.agent.cancel();
        if (stop === "signal") controller.abort();
        await one.dispose();
      }
    }
    // Node tells of unhandled rejections when the microtasks are done.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(unhandled).toEqual([]);
  } finally {
    process.off("unhandledRejection", note);
  }
});

test("B097 a stop during the wait before another try ends it at once; there is no other try", async () => {
  const clock = testClock();
  const wired = await open([{ status: 429, headers: { "retry-after-ms": "3000" }, body: "{}" }, says("never")], {
    clock,
  });
  wired.hooks.on("agent/request-error", ({ error }) => ({ kind: "retry", afterMs: error.retryAfterMs! }));
  const asked = wired.ask();
  await clock.sleeping(3000);
  await clock.advance(100);
  wired.agent.cancel("enough");
  expect((await asked).reason).toEqual({ kind: "aborted", reason: "enough" });
  await clock.advance(10_000);
  await wired.agent.whenIdle();
  expect(wired.sent).toHaveLength(1);
});

test.each(["cancel", "timeout", "dispose"] as const)(
  "B098 a tool that never settles does not outlive a %s",
  async (how) => {
    const clock = testClock();
    const deaf = deafBody();
    const one = await scene([calls("work"), "fine"], {
      clock,
      tools: [tool("work", deaf.body, how === "timeout" ? { timeoutMs: 10 } : {})],
    });
    one.agent.send("go");
    await deaf.running;
    if (how === "cancel") one.agent.cancel();
    if (how === "timeout") await clock.advance(10);
    if (how === "dispose") await one.dispose();
    await one.agent.whenIdle();
    expect(endOf(one.session)!.kind).toBe({ cancel: "aborted", timeout: "completed", dispose: "disposed" }[how]);
    expect(resultsOf(one.session)).toMatchObject([{ code: how === "timeout" ? "TOOL_TIMEOUT" : "TOOL_ABORTED" }]);
  },
);

test("B098 what a body settles to after its time is ignored", async () => {
  const clock = testClock();
  const held = heldTool({ timeoutMs: 10 });
  const one = await scene([calls("held"), "fine"], { clock, tools: [held.tool] });
  const said = one.say("go");
  await held.started;
  await clock.advance(10);
  held.answer("too late");
  expect(await said).toEqual({ kind: "completed" });
  expect(resultsOf(one.session)).toMatchObject([{ tool: "held", code: "TOOL_TIMEOUT" }]);
});

test("B100 a body whose time is up hears it by its own signal; the turn's goes on", async () => {
  const clock = testClock();
  const held = heldTool({ timeoutMs: 10 });
  const one = await scene([calls("held"), "fine"], { clock, tools: [held.tool] });
  const said = one.say("go");
  const { signal } = await held.started;
  await clock.advance(9);
  expect(signal.aborted).toBe(false);
  await clock.advance(1);
  expect(signal.aborted).toBe(true);
  expect(signal.reason).toMatchObject({ code: "TOOL_TIMEOUT" });
  expect(await said).toEqual({ kind: "completed" });
});

test.each(["prompt/assemble", "agent/session-prefix", "agent/pre-step", "agent/request", "model/stream"] as const)(
  "B101 a stop while %s is awaited stops this run; the next one has a signal of its own",
  async (name) => {
    const one = await scene(["fine"]);
    const [reached, gate] = [deferred(), deferred()];
    const signals: AbortSignal[] = [];
    let runs = 0;
    one.hooks.on("model/stream", ({ signal }, next) => (signals.push(signal), next()));
    one.hooks.on(name, async (_: unknown, next?: () => never) => {
      if ((runs += 1) === 1) {
        reached.resolve();
        await gate.promise;
      }
      return next?.();
    });
    const said = one.say("go");
    await reached.promise;
    one.agent.cancel("enough");
    expect(await said).toEqual({ kind: "aborted", reason: "enough" });
    gate.resolve();
    expect(await one.say("again")).toEqual({ kind: "completed" });
    expect(one.model.requests).toHaveLength(1);
    expect(signals.at(-1)!.aborted).toBe(false);
  },
);

test("B103 a stop in a tool is told once, by each way of telling it", async () => {
  let aborts = 0;
  const deaf = deafBody((_, { signal }) => signal.addEventListener("abort", () => (aborts += 1)));
  const one = await scene([calls("work")], { tools: [tool("work", deaf.body)] });
  let results = 0;
  one.hooks.on("tools/result", () => void (results += 1));
  const said = one.say("go");
  await deaf.running;
  one.agent.cancel("one");
  one.agent.cancel("two");
  expect(await said).toEqual({ kind: "aborted", reason: "one" });
  expect([aborts, results]).toEqual([1, 1]);
  expect(typesOf(one.session).filter((type) => type === "turn/end")).toHaveLength(1);
});

test("B104 a message that comes while a tool runs waits for the end of its turn; one loop writes", async () => {
  const held = heldTool();
  const one = await scene([calls("held"), "first", "second"], { tools: [held.tool] });
  const first = run(one.agent, "one");
  await held.started;
  const second = run(one.agent, "two");
  expect(one.agent.queue.map(({ as }) => as)).toEqual(["send"]);
  held.answer("done");
  expect([(await first.result).text, (await second.result).text]).toEqual(["first", "second"]);
  expect(dataOf(one.session, "turn/start").map(({ turn }) => turn)).toEqual([1, 2]);
});

test("B104 a run that was stopped writes nothing beside the one that follows it", async () => {
  const held = heldTool();
  const one = await scene([calls("held"), "second"], { tools: [held.tool] });
  const first = one.say("one");
  const call = await held.started;
  one.agent.cancel();
  const second = one.say("two");
  call.progress("still here");
  held.answer("too late");
  expect([await first, await second]).toMatchObject([{ kind: "aborted" }, { kind: "completed" }]);
  expect(dataOf(one.session, "tool/progress")).toEqual([]);
  expect(textsOf(one.session)).toEqual(["one", "two"]);
});

/** An answer that fails at first, whatever it had said, and the whole one that follows. */
async function retried(...first: ModelChunk[]) {
  const one = await scene([{ chunks: [...first, failed] }, calls({ name: "add", args: { c: "print" } }), "fine"], {
    tools: [tool("add")],
  });
  one.hooks.on("agent/request-error", () => ({ kind: "retry" }));
  const transcript = createTranscript(one.session);
  const seen: number[] = [];
  one.agent.on("step/start", ({ data }) => void seen.push(data.step));
  expect(await one.say("go")).toEqual({ kind: "completed" });
  return { ...one, seen, transcript };
}

test("B106 a second try begins no second message", async () => {
  const { seen, session, transcript } = await retried({ type: "block-start", index: 0, block: { type: "text" } });
  expect(seen).toEqual([1, 2]);
  expect(dataOf(session, "assistant/message")).toHaveLength(2);
  expect(transcript.getSnapshot().messages.map(({ role }) => role)).toEqual(["user", "assistant", "assistant"]);
});

test("B107 a second try starts with empty hands: nothing of the first is put before it", async () => {
  const { session, model, transcript } = await retried(piece('{"c":"pri', { name: "add", id: "a" }));
  expect(dataOf(session, "tool/call").map((call) => call.arguments)).toEqual(['{"c":"print"}']);
  expect(linesOf(model.requests[1]!.messages)).toEqual(["user: go"]);
  expect(transcript.getSnapshot().messages[1]!.parts).toMatchObject([
    { type: "tool", arguments: '{"c":"print"}', state: "done" },
  ]);
  const { session: texts } = await retried(piece("Hel"));
  expect(linesOf(texts.deriveMessages())[1]).toBe("assistant: ");
});

const limits: [string, object, string, object?][] = [
  [
    "insufficient_quota",
    { error: { message: "You exceeded your current quota", code: "insufficient_quota" } },
    "MODEL_QUOTA",
  ],
  [
    "a quota that Google says is used up",
    {
      error: {
        code: 429,
        status: "RESOURCE_EXHAUSTED",
        message: "You exceeded your current quota, please check your plan",
      },
    },
    "MODEL_QUOTA",
  ],
  ["a short limit", { error: { message: "slow down" } }, "RATE_LIMITED", { "retry-after": "2" }],
  [
    "a wait of half a day",
    { error: { code: 429, status: "RESOURCE_EXHAUSTED", message: "wait" } },
    "RATE_LIMITED",
    { "retry-after": "43200" },
  ],
];

test.each(limits)("B109 a policy is told what kind of 429 it is: %s", async (_, body, code, headers = {}) => {
  for (const dialect of chatDialects) {
    const wired = await open([{ status: 429, headers: headers as never, body: JSON.stringify(body) }], {
      dialect,
      id: dialect,
    });
    const told: ErrorData[] = [];
    wired.hooks.on("agent/request-error", ({ error }, next) => (told.push(error), next()));
    expect((await wired.ask()).reason).toMatchObject({ kind: "error", code });
    const wait = (headers as Record<string, string>)["retry-after"];
    expect(told).toMatchObject([{ code, status: 429, ...(wait && { retryAfterMs: Number(wait) * 1000 }) }]);
    // Without a policy nothing is tried again.
    expect(wired.sent).toHaveLength(1);
  }
});
