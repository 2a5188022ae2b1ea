/** E, 55 to 58: how a message is accepted. */
import type { QueuedMessage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { anywhere, harnessWith, local } from "../support/fixture.ts";
import { heldAnswer, statusesOf, text, textsOf } from "../support/held.ts";
import { codeOf } from "../support/lifecycle.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { endOf, eventOf, typesOf } from "../support/wait.ts";

anywhere("#55 send queues a message, returns its id, and takes the user as its source", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  const id = agent.send("hello");
  const { data } = await eventOf(agent.session, "inbox/queued");
  expect(data).toEqual({ id, content: text("hello"), source: { kind: "user" }, as: "send" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "user/message")).toEqual([{ id, content: text("hello"), source: { kind: "user" } }]);
});

anywhere("#55 a source, an id and blocks are kept as they were given", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  const content = [
    { type: "text" as const, text: "what is this?", meta: { lang: "en" } },
    { type: "file" as const, mediaType: "image/png", data: { base64: "AA==" }, name: "a.png" },
  ];
  const id = agent.send(content, { id: "m1", source: { kind: "mail", from: { name: "Ada" } } });
  await agent.whenIdle();
  expect(id).toBe("m1");
  expect(dataOf(agent.session, "user/message")).toEqual([
    { id: "m1", content, source: { kind: "mail", from: { name: "Ada" } } },
  ]);
});

local("#55 send does not change the status before it returns", async () => {
  const harness = harnessWith({ model: scriptedModel(["hi"]) });
  const statuses = statusesOf(harness);
  const { agent } = await harness.agents.open({ id: "s" });
  agent.send("hello");
  expect(agent.status).toBe("idle");
  expect(statuses).toEqual([]);
  await agent.whenIdle();
  expect(statuses).toEqual(["running", "idle"]);
});

local("#56 what the hook, the queue and the log have of a message is one detached, frozen record", async () => {
  const held = heldAnswer("hi");
  const harness = harnessWith({ model: scriptedModel([held.answer, "again"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  const told: QueuedMessage[] = [];
  harness.hooks.on("agent/queued", ({ message }) => {
    told.push(message);
  });
  const content = [{ type: "text" as const, text: "hello" }];
  const source = { kind: "mail", tags: ["a"] };
  agent.send(content, { source });
  await held.asked;
  agent.steer(content, { source });
  const queued = dataOf(agent.session, "inbox/queued");
  for (const [i, message] of told.entries()) {
    expect(message.content).toBe(queued[i]!.content);
    expect(message.source).toBe(queued[i]!.source);
    expect(message.content).not.toBe(content);
    expect(Object.isFrozen(message) && Object.isFrozen(message.content) && Object.isFrozen(message.content[0])).toBe(
      true,
    );
    expect(Object.isFrozen(message.source["tags"])).toBe(true);
  }
  expect(told.map(({ as }) => as)).toEqual(["send", "steer"]);
  expect(agent.queue[0]!.content).toBe(told[1]!.content);
  held.give();
  await agent.whenIdle();
});

const cycle: unknown[] = [];
cycle.push({ type: "text", text: "a", meta: cycle });
class Instance {
  readonly kind = "user";
}

const BAD_CONTENT: Readonly<Record<string, unknown>> = {
  "nothing at all": undefined,
  null: null,
  "a number": 5,
  "an object": { type: "text", text: "a" },
  "a string in an array": ["a"],
  "a block without text": [{ type: "text" }],
  "a block without a type": [{ text: "a" }],
  "a block of no known type": [{ type: "video", url: "a" }],
  "a file without data": [{ type: "file", mediaType: "image/png", data: {} }],
  "a field that is undefined": [{ type: "text", text: "a", meta: undefined }],
  "a bigint": [{ type: "text", text: "a", meta: { n: 1n } }],
  "a function": [{ type: "text", text: "a", meta: { f: () => 1 } }],
  "a symbol": [{ type: "text", text: "a", meta: { s: Symbol("s") } }],
  "a symbol as a key": [{ type: "text", text: "a", [Symbol("s")]: 1 }],
  NaN: [{ type: "text", text: "a", meta: { n: Number.NaN } }],
  Infinity: [{ type: "text", text: "a", meta: { n: Infinity } }],
  "-0": [{ type: "text", text: "a", meta: { n: -0 } }],
  // oxlint-disable-next-line no-sparse-arrays
  "a hole": [, { type: "text", text: "a" }],
  "a cycle": cycle,
  "a date": [{ type: "text", text: "a", meta: { at: new Date(0) } }],
  "an instance of a class": [{ type: "text", text: "a", meta: { one: new Instance() } }],
};

const BAD_SOURCE: Readonly<Record<string, unknown>> = {
  null: null,
  "a string": "user",
  "no kind": {},
  "a kind that is no text": { kind: 1 },
  "an array": ["user"],
  "an instance of a class": new Instance(),
  "a field that is undefined": { kind: "user", name: undefined },
};

local("#56 content that is not lossless JSON throws, from every verb, before anything changes", async () => {
  const held = heldAnswer("hi");
  const harness = harnessWith({ model: scriptedModel([held.answer]) });
  const { agent } = await harness.agents.open({ id: "s" });
  let told = 0;
  harness.hooks.on("agent/queued", () => void (told += 1));
  const verbs = ["send", "steer", "inject"] as const;
  for (const running of [false, true]) {
    if (running) {
      agent.send("hello");
      await held.asked;
    }
    const { seq } = agent.session;
    const snapshot = agent.getSnapshot();
    for (const verb of verbs) {
      for (const [what, content] of Object.entries(BAD_CONTENT)) {
        expect(await codeOf(() => agent[verb](content as string)), `${verb} ${what}`).toBe("INVALID_CONTENT");
      }
      for (const [what, source] of Object.entries(BAD_SOURCE)) {
        expect(await codeOf(() => agent[verb]("a", { source: source as never })), `${verb} from ${what}`).toBe(
          "INVALID_CONTENT",
        );
      }
    }
    expect(agent.session.seq).toBe(seq);
    expect(agent.getSnapshot()).toBe(snapshot);
  }
  expect(told).toBe(1);
  held.give();
  await agent.whenIdle();
});

anywhere("#56 text that is not well formed is made so, in content, source and id alike", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  const id = agent.send("a\uD800b", { id: "m\uD800", source: { kind: "k\uDC00" } });
  await agent.whenIdle();
  expect(dataOf(agent.session, "user/message")).toEqual([
    { id: "m\uFFFD", content: text("a\uFFFDb"), source: { kind: "k\uFFFD" } },
  ]);
  expect(id).toBe("m\uFFFD");
});

anywhere("#56 names of the prototype are ids, kinds and keys like any other", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  const meta = JSON.parse('{"__proto__":{"a":1},"constructor":"c"}') as Record<string, string>;
  agent.send([{ type: "text", text: "a", meta }], { id: "__proto__", source: { kind: "constructor" } });
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  const [message] = dataOf(agent.session, "user/message");
  expect(message).toMatchObject({ id: "__proto__", source: { kind: "constructor" } });
  expect(JSON.stringify(message!.content)).toBe(
    '[{"type":"text","text":"a","meta":{"__proto__":{"a":1},"constructor":"c"}}]',
  );
});

anywhere("#57 what the caller changes after send reaches neither the log nor the model", async (open) => {
  const model = scriptedModel(["hi"]);
  const agent = await open({ model });
  const content = [{ type: "text" as const, text: "hello" }];
  const source = { kind: "user", tags: ["a"] };
  agent.send(content, { source });
  content[0]!.text = "changed";
  content.push({ type: "text", text: "more" });
  source.tags.push("b");
  await agent.whenIdle();
  expect(dataOf(agent.session, "user/message")).toMatchObject([
    { content: text("hello"), source: { kind: "user", tags: ["a"] } },
  ]);
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: hello"]);
});

local("#57 a listener that tries to change a queued message fails alone", async () => {
  const model = scriptedModel(["hi"]);
  const harness = harnessWith({ model });
  const { agent } = await harness.agents.open({ id: "s" });
  harness.hooks.on("agent/queued", ({ message }) => {
    (message.content[0] as { text: string }).text = "changed";
  });
  harness.hooks.on("agent/queued", ({ message }) => {
    (message as { content: unknown }).content = text("changed");
  });
  agent.send("hello");
  await agent.whenIdle();
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: hello"]);
  expect(harness.diagnostics.map(({ code }) => code)).toEqual(["LISTENER_FAILED", "LISTENER_FAILED"]);
});

anywhere("#57 every getter is read once", async (open) => {
  const agent = await open({ model: scriptedModel(["hi"]) });
  const reads: Record<string, number> = {};
  const once = <T>(name: string, value: T): T => {
    reads[name] = (reads[name] ?? 0) + 1;
    return value;
  };
  const block = {
    get type() {
      return once("type", "text" as const);
    },
    get text() {
      return once("text", `hello ${reads["text"]}`);
    },
  };
  agent.send([block], {
    get id() {
      return once("id", "m1");
    },
    get source() {
      return once("source", { kind: "user" });
    },
    get output() {
      return once("output", { type: "object" });
    },
  });
  await agent.whenIdle();
  expect(reads).toEqual({ type: 1, text: 1, id: 1, source: 1, output: 1 });
  expect(textsOf(agent.session)).toEqual(["hello undefined"]);
});

anywhere("#57 what a getter throws passes through, and nothing is accepted", async (open) => {
  const agent = await open({ model: scriptedModel([]) });
  const failure = new Error("no text");
  const block = {
    type: "text" as const,
    get text(): string {
      throw failure;
    },
  };
  expect(() => agent.send([block])).toThrow(failure);
  expect(agent.session.seq).toBe(0);
});

local("#58 agent/queued carries the whole message, and says whether it steers", async () => {
  const held = heldAnswer("hi");
  const harness = harnessWith({ model: scriptedModel([held.answer, "again"]) });
  const { agent } = await harness.agents.open({ id: "s" });
  const told: unknown[] = [];
  harness.hooks.on("agent/queued", ({ agent: of, ...rest }) => {
    told.push([of.id, rest]);
  });
  agent.send("one", { id: "m1" });
  await held.asked;
  agent.steer("two", { id: "m2", source: { kind: "mail" } });
  agent.send("three", { id: "m3" });
  held.give();
  await agent.whenIdle();
  const said = (id: string, value: string, as: string, kind = "user"): unknown => ({
    message: { id, content: text(value), source: { kind }, as },
    steering: as === "steer",
  });
  expect(told).toEqual([
    ["s", said("m1", "one", "send")],
    ["s", said("m2", "two", "steer", "mail")],
    ["s", said("m3", "three", "send")],
  ]);
});

local("#58 a message is in the queue and in the log before it is told, so no listener can lose it", async () => {
  const model = scriptedModel(["hi"]);
  const harness = harnessWith({ model });
  const { agent } = await harness.agents.open({ id: "s" });
  let seen: unknown;
  harness.hooks.on("agent/queued", ({ message }) => {
    seen = [agent.queue.map(({ id }) => id), typesOf(agent.session), message.id];
    throw new Error("no");
  });
  agent.send("hello", { id: "m1" });
  expect(seen).toEqual([["m1"], ["inbox/queued"], "m1"]);
  await agent.whenIdle();
  expect(linesOf(model.requests[0]!.messages)).toEqual(["user: hello"]);
});

for (const [what, content] of [
  ["nothing at all", []],
  ["a tool call", [{ type: "tool-call", callId: "c", name: "x", arguments: "{}" }]],
  ["a tool result", [{ type: "tool-result", callId: "c", name: "x", content: [], isError: false }]],
  ["reasoning", [{ type: "reasoning", text: "hm" }]],
] as const) {
  anywhere(`#56 a message of ${what} is refused by every verb, and nothing is accepted`, async (open) => {
    const agent = await open({ model: scriptedModel([]) });
    for (const say of [agent.send, agent.steer, agent.inject]) {
      expect(await codeOf(() => say(content))).toBe("INVALID_CONTENT");
    }
    expect(agent.session.events).toEqual([]);
  });
}
