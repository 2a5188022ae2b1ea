/** M: what a model streams, on its way into the log. */
import type { Model, ModelChunk } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { anywhere, local } from "../support/fixture.ts";
import { chunksIn, dataOf, scene } from "../support/scene.ts";
import { deferred, endOf, eventOf, textOf, typesOf } from "../support/wait.ts";

const CHUNKS: readonly ModelChunk[] = [
  { type: "block-start", index: 0, block: { type: "reasoning" }, meta: { acme: { signature: "s" } } },
  { type: "delta", index: 0, text: "hm" },
  { type: "delta", index: 1, text: "hel" },
  { type: "block-end", index: 0 },
  { type: "delta", index: 1, text: "lo" },
  { type: "usage", usage: { input: 1, output: 2 } },
  { type: "finish", reason: { kind: "stop" } },
];

const modelOf = (stream: Model["stream"]): Model => ({ id: "own/model", stream });
const delta = (text: string, index = 0): ModelChunk => ({ type: "delta", index, text });
const finish = (kind: string, more = {}): ModelChunk => ({ type: "finish", reason: { kind, ...more } as never });

anywhere("#152 every chunk is logged as it came, in its order, before the message", async (open) => {
  const agent = await open({ model: scriptedModel([{ chunks: CHUNKS }]) });
  agent.send("hi");
  await eventOf(agent.session, "turn/end");
  expect(dataOf(agent.session, "assistant/chunk")).toEqual(CHUNKS.map((chunk) => ({ turn: 1, step: 1, chunk })));
  const types = agent.session.events.map(({ type }) => type);
  expect(types.lastIndexOf("assistant/chunk")).toBe(types.indexOf("assistant/message") - 1);
});

local("#152 a chunk is in the log as soon as it comes, long before the answer is whole", async () => {
  const gate = deferred();
  const { agent, session } = await scene([], {
    model: modelOf(async function* () {
      yield delta("one");
      await gate.promise;
      yield [delta(" two"), delta(" three"), finish("stop")];
    }),
  });
  agent.send("hi");
  expect((await eventOf(session, "assistant/chunk")).data.chunk).toEqual(delta("one"));
  expect(typesOf(session)).not.toContain("assistant/message");
  gate.resolve();
  await agent.whenIdle();
  expect(dataOf(session, "assistant/chunk").map(({ chunk }) => chunk)).toEqual([
    delta("one"),
    delta(" two"),
    delta(" three"),
    finish("stop"),
  ]);
});

local("#152 a chunk is detached from what the model keeps", async () => {
  const mine = { type: "block-end" as const, index: 0, block: { type: "text" as const, text: "hello" } };
  const { session, say } = await scene([], {
    model: modelOf(async function* () {
      yield mine;
      mine.block.text = "changed";
      yield finish("stop");
    }),
  });
  await say("hi");
  expect(textOf(dataOf(session, "assistant/message")[0]!.content)).toBe("hello");
});

const HOSTILE: readonly [string, unknown][] = [
  ["nothing", undefined],
  ["null", null],
  ["text", "hello"],
  ["an unknown type", { type: "audio" }],
  ["a delta without an index", { type: "delta", text: "x" }],
  ["a delta without text", { type: "delta", index: 0 }],
  ["an index that is no count", { type: "delta", index: -1, text: "x" }],
  ["an index of a prototype", { type: "delta", index: "__proto__", text: "x" }],
  ["a start without a block", { type: "block-start", index: 0 }],
  ["an end with a block that is none", { type: "block-end", index: 0, block: { type: "text" } }],
  ["usage without counts", { type: "usage" }],
  ["usage that is no number", { type: "usage", usage: { input: Number.NaN } }],
  ["a finish without a reason", { type: "finish" }],
  ["something that is no JSON", { type: "delta", index: 0, text: "x", id: () => {} }],
];

local("#152 whatever else a model streams is its failure, and never enters the log", async () => {
  const answers = HOSTILE.map(([, wrong]) => ({ chunks: [delta("good"), wrong as ModelChunk, finish("stop")] }));
  const { session, say } = await scene([...answers, "fine"]);
  for (const [what] of HOSTILE) {
    expect(await say(what), what).toMatchObject({ kind: "error", step: 1, code: "MALFORMED_CHUNK" });
  }
  expect(chunksIn(session)).toEqual(HOSTILE.map(() => "delta"));
  expect(await say("hi")).toEqual({ kind: "completed" });
});

local(
  "#153 a failure may be thrown at once, while streaming, or told by the finish: all end the step the same",
  async () => {
    const boom = (): never => {
      throw Object.assign(new Error("boom"), { code: "BUSY" });
    };
    const ways: Model["stream"][] = [
      boom,
      () => ({ [Symbol.asyncIterator]: () => ({ next: async () => boom() }) }),
      async function* () {
        yield boom();
      },
      async function* () {
        yield finish("error", { message: "boom", code: "BUSY" });
      },
    ];
    let way = 0;
    const { session, say } = await scene([], { model: modelOf((request, options) => ways[way++]!(request, options)) });
    for (const _ of ways) {
      expect(await say("hi")).toEqual({ kind: "error", step: 1, message: "boom", code: "BUSY" });
    }
    expect(dataOf(session, "request/failed")).toEqual(
      ways.map((_, i) => ({
        turn: i + 1,
        step: 1,
        attempt: 1,
        error: { message: "boom", code: "BUSY" },
        next: "fail",
      })),
    );
    expect(typesOf(session)).not.toContain("assistant/message");
  },
);

local("#153 a model that answers no stream at all has failed", async () => {
  const { say } = await scene([], { model: modelOf((() => undefined) as never) });
  expect(await say("hi")).toMatchObject({ kind: "error", step: 1, code: "MALFORMED_CHUNK" });
});

local("#153 the signal is the model's to honour: it is aborted by a cancel, and not before", async () => {
  const signals: AbortSignal[] = [];
  const { agent, say, session } = await scene([
    (_, { signal }) => (signals.push(signal), "one"),
    (_, { signal }) => (signals.push(signal), agent.cancel("enough"), { hang: "polite" }),
  ]);
  await say("one");
  expect(await say("two")).toEqual({ kind: "aborted", reason: "enough" });
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, true]);
  expect(typesOf(session)).not.toContain("request/failed");
});

/** A model whose first chunk is the given one; then it says nothing until it is told to return. */
function waitingModel(first: unknown): { model: Model; returned: Promise<void>; answer(chunk: ModelChunk): void } {
  const { promise, resolve } = deferred();
  const next = deferred<IteratorResult<ModelChunk>>();
  const results = [Promise.resolve({ done: false, value: first as ModelChunk }), next.promise];
  const stream = {
    [Symbol.asyncIterator]: () => ({
      next: () => results.shift() ?? new Promise<never>(() => {}),
      return: () => (resolve(), new Promise<never>(() => {})),
    }),
  };
  return { model: modelOf(() => stream), returned: promise, answer: (value) => next.resolve({ done: false, value }) };
}

local(
  "#153 a model is let go, its iterator told to return: when it is stopped, and when it talks nonsense",
  async () => {
    const silent = waitingModel(delta("one"));
    const one = await scene([], { model: silent.model });
    one.agent.send("hi");
    await eventOf(one.session, "assistant/chunk");
    one.agent.cancel();
    await Promise.all([one.agent.whenIdle(), silent.returned]);

    const talking = waitingModel(delta("one"));
    const two = await scene([], { model: talking.model });
    two.agent.on("assistant/chunk", () => two.agent.cancel());
    expect(await two.say("hi")).toMatchObject({ kind: "aborted" });
    await talking.returned;

    const mad = waitingModel("nonsense");
    const three = await scene([], { model: mad.model });
    expect(await three.say("hi")).toMatchObject({ code: "MALFORMED_CHUNK" });
    await mad.returned;
  },
);

local("#154 a chunk that comes after the abort is dropped, though the agent lives on", async () => {
  const late = waitingModel(delta("one"));
  const { agent, session } = await scene(["two"], { models: { late: late.model } });
  agent.configure({ model: "late" });
  agent.send("hi");
  await eventOf(session, "assistant/chunk");
  agent.cancel("enough");
  await agent.whenIdle();
  agent.configure({ model: "scripted/model" });
  agent.on("step/start", () => late.answer(delta("too late")));
  agent.send("on");
  await agent.whenIdle();
  expect(JSON.stringify(session.events)).not.toContain("too late");
  expect(endOf(session)).toEqual({ kind: "completed" });
});

local("#153 a stream that cannot even be let go holds up nobody", async () => {
  const leaving: (() => unknown)[] = [
    () => {
      throw new Error("no");
    },
    () => Promise.reject(new Error("no")),
    () => new Promise(() => {}),
    () => undefined,
  ];
  for (const how of leaving) {
    const { agent, session, say } = await scene([], {
      model: modelOf(() => ({
        [Symbol.asyncIterator]: () => ({
          next: () => Promise.resolve({ done: false, value: delta("x") }),
          return: how as never,
        }),
      })),
    });
    agent.on("assistant/chunk", () => agent.cancel("enough"));
    expect(await say("hi"), String(how)).toEqual({ kind: "aborted", reason: "enough" });
    expect(chunksIn(session)).toEqual(["delta"]);
  }
});

local("D17 #154 what a stopped model throws later is nobody's failure", async () => {
  const gate = deferred();
  const { agent, say, errors, diagnostics } = await scene([
    { text: "x", hang: "deaf" },
    async () => {
      agent.cancel("enough");
      await gate.promise;
      throw new Error("too late");
    },
    "fine",
  ]);
  agent.on("assistant/chunk", () => agent.cancel("enough"));
  expect(await say("hi")).toMatchObject({ kind: "aborted" });
  expect(await say("hi")).toMatchObject({ kind: "aborted" });
  gate.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  expect([errors, diagnostics]).toEqual([[], []]);
});

local("#154 what comes after an abort is dropped, chunk by chunk and within one row", async () => {
  for (const rows of [true, false]) {
    const { agent, session, say } = await scene([], {
      model: modelOf(async function* () {
        const chunks = [delta("one"), delta(" two"), delta(" three"), finish("stop")];
        if (rows) yield chunks;
        else yield* chunks;
      }),
    });
    agent.on("assistant/chunk", ({ data }) => {
      if (data.chunk.type === "delta" && data.chunk.text === " two") agent.cancel("enough");
    });
    expect(await say("hi")).toEqual({ kind: "aborted", reason: "enough" });
    expect(dataOf(session, "assistant/chunk").map(({ chunk }) => chunk)).toEqual([delta("one"), delta(" two")]);
    await agent.whenIdle();
    expect(session.events.at(-1)!.type).toBe("turn/end");
  }
});

local("#154 H4 a model that ends quietly on an abort has not succeeded", async () => {
  const { agent, session, say } = await scene([
    async (_, { signal }) => {
      const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
      agent.cancel("enough");
      await aborted;
      return { text: "all is well" };
    },
  ]);
  expect(await say("hi")).toEqual({ kind: "aborted", reason: "enough" });
  expect(chunksIn(session)).toEqual([]);
  expect(typesOf(session)).not.toContain("assistant/message");
});

local("D17 #154 a deaf model holds up neither a cancel nor a disposal, and its late chunks go nowhere", async () => {
  const gate = deferred();
  const late = deferred();
  const { agent, session, say, dispose } = await scene([], {
    model: modelOf(async function* () {
      yield delta("one");
      await gate.promise;
      yield delta("late");
      late.resolve();
    }),
  });
  agent.on("assistant/chunk", () => agent.cancel("enough"));
  expect(await say("hi")).toEqual({ kind: "aborted", reason: "enough" });
  agent.send("again");
  await eventOf(session, "step/start", ({ data }) => data.turn === 2);
  await dispose();
  const before = session.seq;
  gate.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  expect(session.seq).toBe(before);
  expect(endOf(session, 2)).toEqual({ kind: "disposed" });
});

local("#153 a model may ask for patience: nothing is lost when chunks come faster than they are stored", async () => {
  const words = Array.from({ length: 12_000 }, (_, i) => `${i} `);
  const { session, say } = await scene([
    { chunks: [...words.map((word) => delta(word)), { type: "usage", usage: { output: 12_000 } }, finish("stop")] },
  ]);
  expect(await say("hi")).toEqual({ kind: "completed" });
  expect(dataOf(session, "assistant/chunk")).toHaveLength(12_002);
  expect(textOf(dataOf(session, "assistant/message")[0]!.content)).toBe(words.join(""));
  expect(session.durable).toBe("stored");
});
