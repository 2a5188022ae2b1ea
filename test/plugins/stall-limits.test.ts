/** `stallLimits`: a model that falls silent is given up, and only that. */
import { retry, stallLimits, type Model, type ModelChunk } from "turnloop";
import type { ScriptedAnswer } from "turnloop/testing";
import { describe, expect, test } from "vitest";
import { testClock } from "../support/clock.ts";
import { calm } from "../support/lifecycle.ts";
import { sse } from "../support/provider-answers.ts";
import { dataOf, scene } from "../support/scene.ts";
import { deferred, endOf, eventOf } from "../support/wait.ts";
import { chatDialects, delta, says, useWire } from "../support/wire.ts";

const limits = { firstChunkMs: 7000, betweenChunksMs: 1000 };
const text = (word: string): ModelChunk => ({ type: "delta", index: 0, text: word });
const open = useWire();

/** A model whose chunks are handed out by the test. */
function fedModel() {
  const signals: AbortSignal[] = [];
  const given: { row: ModelChunk | readonly ModelChunk[] | undefined; taken(): void }[] = [];
  let waiting = deferred();
  const model: Model = {
    id: "fed/model",
    async *stream(_, { signal }) {
      signals.push(signal);
      for (;;) {
        while (given.length === 0) await waiting.promise;
        const { row, taken } = given.shift()!;
        taken();
        if (row === undefined) return;
        yield row;
      }
    },
  };
  /** Resolves when the loop has it and asks for the next. */
  const feed = async (row: ModelChunk | readonly ModelChunk[] | undefined): Promise<void> => {
    const taken = deferred();
    given.push({ row, taken: () => taken.resolve() });
    waiting.resolve();
    waiting = deferred();
    await taken.promise;
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  };
  return { model, feed, signals };
}

async function fed() {
  const clock = testClock();
  const source = fedModel();
  const one = await scene([], { clock, model: source.model, plugins: [stallLimits(limits)] });
  one.agent.send("go");
  await clock.sleeping(7000);
  return { ...one, ...source, clock };
}

test.each(["polite", "deaf"] as const)("a model that says nothing at all is given up (it is %s)", async (hang) => {
  const clock = testClock();
  const one = await scene([{ chunks: [], hang }], { clock, plugins: [stallLimits(limits)] });
  const said = one.say("go");
  await clock.sleeping(7000);
  await clock.advance(6999);
  expect(endOf(one.session)).toBeUndefined();
  await clock.advance(1);
  expect(await said).toMatchObject({
    kind: "error",
    code: "MODEL_STALLED",
    message: expect.stringContaining("7000 ms"),
  });
});

test("its signal aborts, and the turn's does not", async () => {
  const { clock, signals, session, feed } = await fed();
  await feed(text("Hel"));
  await clock.advance(1000);
  await eventOf(session, "turn/end");
  expect(signals[0]!.aborted).toBe(true);
  expect(signals[0]!.reason).toMatchObject({ code: "MODEL_STALLED" });
  expect(endOf(session)).toMatchObject({ kind: "error", code: "MODEL_STALLED" });
  expect(dataOf(session, "assistant/message")).toMatchObject([{ interrupted: true, content: [{ text: "Hel" }] }]);
});

test("a model that goes on speaking may take as long as it likes", async () => {
  const { clock, session, agent, feed } = await fed();
  await clock.advance(4000);
  for (let n = 0; n < 20; n += 1) {
    await feed(text("x"));
    await clock.advance(999);
  }
  await feed({ type: "finish", reason: { kind: "stop" } });
  await feed(undefined);
  await agent.whenIdle();
  expect(endOf(session)).toEqual({ kind: "completed" });
});

test.each<[string, ModelChunk | readonly ModelChunk[]]>([
  ["rows without chunks", []],
  ["deltas without text", text("")],
])("%s do not count", async (_, nothing) => {
  const { clock, session, feed } = await fed();
  await feed(text("Hel"));
  for (let n = 0; n < 3; n += 1) {
    await clock.advance(300);
    await feed(nothing);
  }
  expect(endOf(session)).toBeUndefined();
  await clock.advance(100);
  await eventOf(session, "turn/end");
  expect(endOf(session)).toMatchObject({ code: "MODEL_STALLED" });
});

test("the time in which the loop does not ask is not the model's", async () => {
  const clock = testClock();
  const slow = deferred();
  const { model, feed } = fedModel();
  const one = await scene([], { clock, model, plugins: [stallLimits(limits)] });
  // A listener in front holds each chunk back, as a storage that cannot keep up does.
  one.hooks.on(
    "model/stream",
    async (_, next) => {
      const stream = await next();
      return (async function* held() {
        for await (const row of stream) {
          yield row;
          await slow.promise;
        }
      })();
    },
    { prepend: true },
  );
  one.agent.send("go");
  await clock.sleeping(7000);
  await feed(text("Hel"));
  await clock.advance(60_000);
  expect(endOf(one.session)).toBeUndefined();
  slow.resolve();
  await feed({ type: "finish", reason: { kind: "stop" } });
  await feed(undefined);
  await one.agent.whenIdle();
  expect(endOf(one.session)).toEqual({ kind: "completed" });
});

test("retry asks again; each request has its own time", async () => {
  const clock = testClock();
  const quiet: ScriptedAnswer = { chunks: [], hang: "deaf" };
  const one = await scene([quiet, quiet, "fine"], { clock, plugins: [stallLimits(limits), retry()] });
  const said = one.say("go");
  for (let n = 1; n <= 2; n += 1) {
    await clock.sleeping(7000);
    await clock.advance(7000);
    const { data } = await eventOf(one.session, "request/failed", (event) => event.data.attempt === n);
    // It sleeps behind this frame; the recorder may sleep too, for longer.
    await calm();
    await clock.advance(data.afterMs!);
  }
  expect(await said).toEqual({ kind: "completed" });
});

test.each(["cancel", "dispose"] as const)("a %s leaves no timer behind", async (how) => {
  const clock = testClock();
  const sleeping: AbortSignal[] = [];
  const one = await scene([{ text: "Hel", hang: "deaf" }], {
    clock: { ...clock, sleep: (ms, signal) => (sleeping.push(signal), clock.sleep(ms, signal)) },
    plugins: [stallLimits(limits)],
  });
  one.agent.send("go");
  await eventOf(one.session, "assistant/chunk", ({ data }) => data.chunk.type === "block-end");
  const timers = [...sleeping];
  if (how === "cancel") one.agent.cancel();
  else await one.dispose();
  await one.agent.whenIdle().catch(() => {});
  expect(timers.length).toBeGreaterThan(0);
  expect(timers.every(({ aborted }) => aborted)).toBe(true);
});

test("a chunk that comes after all, when the model was given up, starts no timer and is nobody's", async () => {
  const clock = testClock();
  const timers: AbortSignal[] = [];
  const { model, feed } = fedModel();
  const one = await scene([], {
    clock: { ...clock, sleep: (ms, signal) => (timers.push(signal), clock.sleep(ms, signal)) },
    model,
    plugins: [stallLimits(limits)],
  });
  one.agent.send("go");
  await clock.sleeping(limits.firstChunkMs);
  await clock.advance(limits.firstChunkMs);
  await one.agent.whenIdle();
  const before = timers.length;
  await feed(text("too late"));
  expect([timers.length, dataOf(one.session, "assistant/chunk")]).toEqual([before, []]);
});

test("a stop of the turn is heard by the model", async () => {
  const { agent, session, signals, feed } = await fed();
  await feed(text("Hel"));
  agent.cancel("enough");
  await eventOf(session, "turn/end");
  expect(signals[0]!.reason).toMatchObject({ code: "ABORTED" });
});

test("a model that hears no signal is let go by its iterator, when it is given up and when the turn is stopped", async () => {
  for (const how of ["silence", "cancel"] as const) {
    const clock = testClock();
    const left = deferred();
    const iterator = {
      next: () => new Promise<never>(() => {}),
      return: () => (left.resolve(), Promise.resolve({ done: true as const, value: undefined })),
    };
    const model: Model = { id: "m", stream: () => ({ [Symbol.asyncIterator]: () => iterator }) };
    const one = await scene([], { clock, model, plugins: [stallLimits(limits)] });
    one.agent.send("go");
    await clock.sleeping(limits.firstChunkMs);
    if (how === "cancel") one.agent.cancel();
    else await clock.advance(limits.firstChunkMs);
    await left.promise;
    await one.agent.whenIdle();
    expect(endOf(one.session)).toMatchObject({ kind: how === "cancel" ? "aborted" : "error" });
  }
});

test("the end of an answer leaves no timer behind, and a long answer never has two", async () => {
  const clock = testClock();
  let [most, now] = [0, 0];
  const counting = {
    ...clock,
    sleep: (ms: number, signal: AbortSignal) => {
      if (ms === 1000 || ms === 7000) most = Math.max(most, (now += 1));
      return clock.sleep(ms, signal).finally(() => (now -= 1));
    },
  };
  const one = await scene(["word ".repeat(2000)], { clock: counting, plugins: [stallLimits(limits)] });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  await one.dispose();
  expect(most).toBeLessThanOrEqual(2);
});

test("what is no stream is the loop's to refuse", async () => {
  const one = await scene([], {
    model: { id: "m", stream: () => ({}) as never },
    plugins: [stallLimits(limits)],
  });
  expect(await one.say("go")).toMatchObject({ kind: "error", code: "MALFORMED_CHUNK" });
});

test("taken out, it leaves the loop as it was", async () => {
  const clock = testClock();
  const one = await scene([{ chunks: [], hang: "polite" }], { clock });
  one.harness.use(stallLimits(limits))();
  one.agent.send("go");
  await eventOf(one.session, "request/header");
  await clock.advance(1_000_000);
  expect(endOf(one.session)).toBeUndefined();
  one.agent.cancel();
});

test.each([{ firstChunkMs: 0 }, { betweenChunksMs: Number.POSITIVE_INFINITY }])("%o is refused", (options) => {
  expect(() => stallLimits(options)).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
});

describe("B058 B059 a provider that says nothing more is given up, and asked again", () => {
  const quiet = { end: "hang" as const };
  const cases: [string, object, number][] = [
    ["that never answers", { silent: true }, 7000],
    ["that sends comments alone", { ...quiet, body: ": ping\n\n".repeat(20) }, 7000],
    [
      "that stops in the middle",
      { ...quiet, body: sse(delta({ content: "Hi" })).replace("data: [DONE]\n\n", "") },
      1000,
    ],
  ];
  describe.each(chatDialects)("%s", (dialect) => {
    test.each(cases)("%s", async (_, answer, ms) => {
      const clock = testClock();
      const wired = await open([answer, says("fine")], { dialect, clock });
      wired.harness.use(stallLimits(limits));
      wired.harness.use(retry({ afterOutput: true }));
      const asked = wired.ask();
      await wired.server.asked(wired.url);
      await clock.sleeping(ms);
      if (ms === 1000) await eventOf(wired.session, "assistant/chunk", ({ data }) => data.chunk.type === "delta");
      await clock.advance(ms);
      await eventOf(wired.session, "request/failed");
      await wired.server.abandoned(wired.url);
      await clock.sleeping(1);
      await clock.advance(2000);
      expect(await asked).toMatchObject({ reason: { kind: "completed" }, text: "fine" });
      expect(dataOf(wired.session, "request/failed")).toMatchObject([{ error: { code: "MODEL_STALLED" } }]);
    });
  });
});
