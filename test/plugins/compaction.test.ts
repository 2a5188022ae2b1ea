/** The policy `compaction`: a history that stays within the window. That requests are rebuilt is watched in every test. */
import {
  compaction,
  createTranscript,
  usageOf,
  type CompactionOptions,
  type HarnessOptions,
  type SessionView,
} from "turnloop";
import { scriptedModel, type ScriptedAnswer, type ScriptedParts } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, resultsOf, staged, talk, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { endings, firstLife, liveOn } from "../support/lives.ts";
import { said } from "../support/made-log.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { deferred, endOf, typesOf } from "../support/wait.ts";

const overflow: ScriptedAnswer = { error: { code: "CONTEXT_OVERFLOW", message: "too long" } };
const words = (tokens: number): string => "word".repeat(tokens);
const turns = (count: number, input = 0): ScriptedParts[] =>
  Array.from({ length: count }, (_, n) => ({ text: `answer ${n} ${words(50)}`, usage: { input } }));

/** An agent whose window has 1000 tokens, and a model that sums up. */
async function narrow(
  answers: readonly ScriptedAnswer[],
  summaries: readonly ScriptedAnswer[],
  options: CompactionOptions = {},
  more: Omit<HarnessOptions, "model"> = {},
) {
  const small = scriptedModel(summaries, { id: "scripted/small" });
  const plugins = [compaction({ contextWindow: 1000, model: "small", ...options })];
  const stage = await staged({ model: scriptedModel(answers), models: { small }, plugins, ...more });
  return { ...stage, small };
}

const summariesIn = (session: SessionView): number =>
  session.events.filter((event) => event.type === "context/message" && event.surface !== "append").length;

test("when an answer measures most of the window, the next step begins with a summary", async () => {
  const { agent, session, model, small } = await narrow(
    [...turns(4), { text: "big", usage: { input: 900 } }, "fine"],
    [{ text: "what was said", usage: { input: 70, output: 3 } }],
  );
  for (let n = 0; n < 5; n += 1) await talk(agent, `question ${n}`);
  expect(summariesIn(session)).toBe(0);
  await talk(agent, "question 5");
  expect(summariesIn(session)).toBe(1);
  const sent = linesOf(model.requests.at(-1)!.messages);
  expect(sent[0]).toMatch(/^user: <compaction>\n[^]*what was said\n<\/compaction>$/);
  expect(sent.at(-1)).toBe("user: question 5");
  expect(sent.length).toBeLessThan(11);
  expect(linesOf(small.requests[0]!.messages)[0]).toContain("User: question 0");
  expect(dataOf(session, "model/aux")).toEqual([
    { purpose: "compaction", model: "scripted/small", usage: { input: 70, output: 3 } },
  ]);
  expect(usageOf(session).byModel["scripted/small"]).toEqual({ input: 70, output: 3 });
});

test("a window that is not near its end changes nothing", async () => {
  const { agent, session, small } = await narrow(turns(6, 100), []);
  for (let n = 0; n < 6; n += 1) await talk(agent);
  expect(small.requests).toEqual([]);
  expect(session.deriveMessages()).toHaveLength(12);
});

test("the window is what the model says of itself, unless it is given", async () => {
  const answers = [...turns(4), { text: "big", usage: { input: 900 } }, "fine"];
  const model = Object.assign(scriptedModel(answers), { contextWindow: 1000 });
  const small = scriptedModel(["short"]);
  const { agent, session } = await staged({ model, models: { small }, plugins: [compaction({ model: "small" })] });
  for (let n = 0; n < 6; n += 1) await talk(agent);
  expect(summariesIn(session)).toBe(1);
});

test("people keep the whole transcript, with a mark where it was compacted", async () => {
  const { agent, session } = await narrow([...turns(4, 900), "fine"], ["short", "short", "short"]);
  for (let n = 0; n < 5; n += 1) await talk(agent, `question ${n}`);
  const { messages } = createTranscript(agent).getSnapshot();
  const asked = messages.flatMap(({ role, parts }) => (role === "user" ? parts : []));
  expect(asked).toMatchObject([0, 1, 2, 3, 4].map((n) => ({ text: `question ${n}` })));
  expect(messages.filter(({ role }) => role === "assistant")).toHaveLength(5);
  expect(messages.filter(({ role }) => role === "mark")).toHaveLength(summariesIn(session));
});

test("old results are pruned first, which costs no request", async () => {
  const { agent, session, model, small } = await narrow(
    [calls("read", "read"), "one", { text: words(100), usage: { input: 850 } }, "three"],
    [],
    {},
    { tools: [tool("read", () => words(250))] },
  );
  for (const text of ["a", "b", "c"]) await talk(agent, text);
  expect(small.requests).toEqual([]);
  const sent = model.requests.at(-1)!.messages;
  expect(said(sent).map((line) => line.split(" ")[0])).toEqual(
    said(session.deriveMessages())
      .slice(0, -1)
      .map((line) => line.split(" ")[0]),
  );
  expect(JSON.stringify(sent)).toContain("characters left out here");
  expect(JSON.stringify(sent).length).toBeLessThan(
    JSON.stringify(session.events.filter(({ surface }) => surface === "append")).length - 500,
  );
  // What the tool said is in the log, and with people.
  expect(resultsOf(session).slice(0, 2)).toContainEqual({ tool: "read", says: words(250) });
  const parts = createTranscript(agent)
    .getSnapshot()
    .messages.flatMap((message) => message.parts);
  const shown = parts.flatMap((part) => (part.type === "tool" ? part.result : []));
  expect(shown).toEqual([words(250), words(250)].map((text) => ({ type: "text", text })));
});

test("a request that overflows is sent again, shorter, in a new step", async () => {
  const { agent, session, model } = await narrow([...turns(4), overflow, "fine"], ["short"], { contextWindow: 9999 });
  for (let n = 0; n < 5; n += 1) await talk(agent, `question ${n}`);
  expect(endOf(session)).toEqual({ kind: "completed" });
  expect(dataOf(session, "request/failed")).toMatchObject([{ next: "new-step", error: { code: "CONTEXT_OVERFLOW" } }]);
  expect(model.requests.at(-1)!.messages.length).toBeLessThan(model.requests.at(-2)!.messages.length);
  expect(linesOf(model.requests.at(-1)!.messages).at(-1)).toBe("user: question 4");
});

test("B163 an overflow in the middle of a turn, of a window that nobody knows, is compacted too", async () => {
  const plugins = [compaction()];
  const steps = Array.from({ length: 6 }, () => calls("read"));
  const { agent, session, model } = await staged({
    model: scriptedModel([...steps, overflow, "short", "fine"]),
    tools: [tool("read", () => words(90))],
    plugins,
  });
  await talk(agent);
  expect(endOf(session)).toEqual({ kind: "completed" });
  const [before, after] = [model.requests[6]!, model.requests.at(-1)!];
  expect(JSON.stringify(after.messages).length).toBeLessThan(JSON.stringify(before.messages).length * 0.7);
});

test("B163 a turn whose tools fill the window stays within it, step after step", async () => {
  const steps = Array.from({ length: 40 }, () => calls("read"));
  const summary = Array.from({ length: 40 }, (_, n) => `summary ${n}`);
  const { agent, session, model } = await narrow(
    [...steps, "fine"],
    summary,
    {},
    { tools: [tool("read", () => words(80))] },
  );
  await talk(agent);
  expect(endOf(session)).toEqual({ kind: "completed" });
  for (const { messages } of model.requests) expect(JSON.stringify(messages).length / 4).toBeLessThan(1500);
  expect(summariesIn(session)).toBeGreaterThan(0);
});

test.each<[string, ScriptedAnswer, string]>([
  ["is as long as what it sums up", words(300), "SUMMARY_TOO_LONG"],
  ["fails", { error: { code: "RATE_LIMITED", message: "slow down" } }, "RATE_LIMITED"],
  ["overflows as well", overflow, "CONTEXT_OVERFLOW"],
  ["says nothing", "", "EMPTY_RESPONSE"],
  ["breaks off", { text: "wh", finish: "none" }, "STREAM_INCOMPLETE"],
])("B161 a summary that %s leaves the first error as it was, and tries no more", async (_, summary, code) => {
  const { agent, session, small, diagnostics, model } = await narrow(
    [...turns(4), overflow, "never"],
    Array.from({ length: 9 }, () => summary),
    { contextWindow: 9999 },
  );
  for (let n = 0; n < 5; n += 1) await talk(agent);
  expect(endOf(session)).toMatchObject({ kind: "error", code: "CONTEXT_OVERFLOW", message: "too long" });
  expect(model.requests).toHaveLength(5);
  expect(small.requests).toHaveLength(1);
  expect(diagnostics).toMatchObject([{ code: "COMPACTION_FAILED" }]);
  expect((diagnostics[0] as unknown as { cause: { code: string } }).cause.code).toBe(code);
  expect(summariesIn(session)).toBe(0);
});

test("B161 while no summary comes of it the turn goes on, and three attempts are all", async () => {
  const steps = Array.from({ length: 8 }, () => ({ ...calls("look"), usage: { input: 900 } }));
  const { agent, session, small } = await narrow(
    [...turns(4), ...steps, "fine"],
    Array.from({ length: 20 }, () => ({ error: { message: "down" } })),
    {},
    { tools: [tool("look")] },
  );
  for (let n = 0; n < 5; n += 1) await talk(agent);
  expect(endOf(session)).toEqual({ kind: "completed" });
  expect(small.requests).toHaveLength(3);
  expect(dataOf(session, "model/aux")).toHaveLength(3);
});

test("B161 an overflow with nothing to shorten fails as it came", async () => {
  const { agent, session, small } = await narrow([overflow], []);
  await talk(agent);
  expect(endOf(session)).toMatchObject({ kind: "error", code: "CONTEXT_OVERFLOW", message: "too long" });
  expect(small.requests).toEqual([]);
});

test("another error is none of its business", async () => {
  const { agent, session, small } = await narrow(
    [...turns(4), { error: { code: "RATE_LIMITED", message: "slow" } }],
    [],
  );
  for (let n = 0; n < 5; n += 1) await talk(agent);
  expect(endOf(session)).toMatchObject({ kind: "error", code: "RATE_LIMITED" });
  expect(small.requests).toEqual([]);
});

test.each(["", "b", "be", "beg"])(
  "a result too large for any window is cut between code points, behind %j",
  async (before) => {
    const whole = `${before}${"😀".repeat(5000)}${before}`;
    const { agent, session, model } = await narrow(
      [calls("read"), "fine"],
      [],
      {},
      { tools: [tool("read", () => whole)] },
    );
    await talk(agent);
    expect(resultsOf(session)[0]).toEqual({ tool: "read", says: whole });
    const sent = linesOf(model.requests[1]!.messages)[2]!;
    expect(sent).toMatch(/^tool: b?e?g?😀+\n\[… \d+ of \d+ characters left out here …\]\n😀+b?e?g?$/u);
    expect(sent.isWellFormed()).toBe(true);
    expect(sent.length).toBeLessThan(2000);
  },
);

test("B161 an overflow of what was cut as short as it can be fails as it came", async () => {
  const { agent, session, model } = await narrow(
    [calls("read"), overflow, overflow, "never"],
    [],
    { contextWindow: 60 },
    { tools: [tool("read", () => words(100))] },
  );
  await talk(agent);
  expect(endOf(session)).toMatchObject({ kind: "error", code: "CONTEXT_OVERFLOW" });
  expect(dataOf(session, "request/failed").map(({ next }) => next)).toEqual(["fail"]);
  expect(model.requests).toHaveLength(2);
  expect(dataOf(session, "tool/result")).toHaveLength(2);
});

test("in a window too small for anything no result is cut again and again", async () => {
  const steps = Array.from({ length: 10 }, () => calls("read", "read"));
  const { agent, session } = await narrow(
    [...steps, "fine"],
    [],
    { contextWindow: 60 },
    { tools: [tool("read", () => words(100))] },
  );
  await talk(agent);
  expect(endOf(session)).toEqual({ kind: "completed" });
  expect(dataOf(session, "tool/result").length).toBeLessThanOrEqual(40);
});

test("several results that only together are too large are each cut", async () => {
  const { agent, session, model } = await narrow(
    [calls("read", "read", "read", "read"), overflow, "fine"],
    [],
    {},
    { tools: [tool("read", () => words(300))] },
  );
  await talk(agent);
  expect(endOf(session)).toEqual({ kind: "completed" });
  const sent = model.requests.at(-1)!.messages;
  expect(sent).toHaveLength(6);
  expect(JSON.stringify(sent).length / 4).toBeLessThan(1000);
});

test("B158 whatever is cut, no call is parted from its result", async () => {
  let summaries = 0;
  for (let size = 1; size <= 12; size += 1) {
    const batches = Array.from({ length: 7 }, (_, n) => calls(...Array.from({ length: 1 + (n % 3) }, () => "read")));
    const { agent, session, diagnostics } = await narrow(
      [...batches.map((one) => Object.assign(one, { usage: { input: 100 * size } })), "fine"],
      Array.from({ length: 9 }, () => "short"),
      { atFraction: 0.3 },
      { tools: [tool("read", () => words(9 * size))] },
    );
    await talk(agent);
    // The pairs themselves are looked at after the test.
    expect(endOf(session), `size ${size}`).toEqual({ kind: "completed" });
    // A cut in a wrong place is refused, and reported.
    expect(diagnostics.filter(({ message }) => !message.includes("about as long"))).toEqual([]);
    summaries += summariesIn(session);
  }
  expect(summaries).toBeGreaterThan(5);
});

test("B167 a session that is compacted again and again stays in its bounds, and is read back the same", async () => {
  const { agent, session, model, harness } = await narrow(
    turns(40, 900),
    Array.from({ length: 40 }, (_, n) => `summary ${n}`),
  );
  for (let n = 0; n < 40; n += 1) await talk(agent, `question ${n} ${words(40)}`);
  expect(summariesIn(session)).toBeGreaterThan(5);
  for (const { messages } of model.requests) expect(messages.length).toBeLessThan(20);
  await agent.flush();
  const view = await harness.sessions.load("session");
  expect(view!.deriveMessages()).toEqual(session.deriveMessages());
  const fork = await harness.agents.fork({ from: "session", id: "fork" });
  expect(fork.agent.session.deriveMessages()).toEqual(session.deriveMessages());
});

/** An agent whose next turn is at its summary, which does not come. */
async function summarising(hang: ScriptedAnswer) {
  const asked = deferred();
  const stage = await narrow(
    [...turns(3), ...turns(1, 900), "fine", "more"],
    [() => (asked.resolve(), hang), "short", "short"],
  );
  for (let n = 0; n < 4; n += 1) await talk(stage.agent, `question ${n} ${words(60)}`);
  stage.agent.send("now");
  await asked.promise;
  return stage;
}

test.each(["deaf", "polite"] as const)(
  "a cancel ends a summary at once, and nothing comes of it later (%s)",
  async (hang) => {
    const { agent, session, model, diagnostics } = await summarising({ text: "half", hang });
    agent.cancel("enough");
    await agent.whenIdle();
    expect(endOf(session)).toEqual({ kind: "aborted", reason: "enough" });
    expect(summariesIn(session)).toBe(0);
    expect(model.requests).toHaveLength(4);
    expect(diagnostics).toEqual([]);
    await talk(agent);
    expect(summariesIn(session)).toBe(1);
    expect(endOf(session)).toEqual({ kind: "completed" });
  },
);

test("a summary that comes after the cancel is not taken", async () => {
  const answer = deferred<string>();
  const { agent, session } = await summarising(() => answer.promise);
  agent.cancel();
  answer.resolve("late");
  await agent.whenIdle();
  expect(summariesIn(session)).toBe(0);
});

test("a disposal in the middle of a summary ends it", async () => {
  const { handle, session } = await summarising({ hang: "deaf" });
  await handle.dispose();
  expect(endOf(session)).toEqual({ kind: "disposed" });
  expect(summariesIn(session)).toBe(0);
});

test("what is injected while the summary is written stands behind it", async () => {
  const answer = deferred<string>();
  const { agent, session, model } = await summarising(() => answer.promise);
  agent.inject("by the way");
  answer.resolve("short");
  await agent.whenIdle();
  expect(summariesIn(session)).toBe(1);
  expect(linesOf(model.requests.at(-1)!.messages).at(-1)).toContain("by the way");
});

test("a history that another policy has changed meanwhile is left as it is", async () => {
  const answer = deferred<string>();
  const { agent, session, harness, diagnostics } = await summarising(() => answer.promise);
  const log = harness.sessions.get("session")!;
  const nodes = log.events
    .filter(({ surface }) => surface === "append")
    .slice(0, 2)
    .map(({ seq }) => seq);
  log.append(
    "context/message",
    { id: "other", content: [{ type: "text", text: "theirs" }], source: { kind: "other" } },
    { surface: { replace: [nodes[0]!, nodes[1]!] }, cites: nodes },
  );
  answer.resolve("ours");
  await agent.whenIdle();
  expect(diagnostics).toMatchObject([{ code: "COMPACTION_FAILED" }]);
  expect(JSON.stringify(session.deriveMessages())).not.toContain("ours");
  expect(endOf(session)).toEqual({ kind: "completed" });
});

test("a summary that does not come in time is given up, and the turn goes on", async () => {
  const clock = testClock();
  const { agent, session, small } = await narrow(
    [...turns(3), ...turns(1, 900), "fine"],
    [{ hang: "deaf" }],
    {},
    { clock },
  );
  for (let n = 0; n < 4; n += 1) await talk(agent, `question ${n} ${words(60)}`);
  agent.send("now");
  await clock.sleeping(120_000);
  expect(small.requests).toHaveLength(1);
  await clock.advance(120_000);
  await agent.whenIdle();
  expect(endOf(session)).toEqual({ kind: "completed" });
  expect(dataOf(session, "model/aux")).toMatchObject([{ error: { code: "AUX_TIMEOUT" } }]);
});

test.each(endings)("a host that ends in the middle of a summary leaves a log that goes on (%s)", async (how) => {
  const options = (answers: readonly ScriptedAnswer[], summaries: readonly ScriptedAnswer[]): HarnessOptions => ({
    model: scriptedModel(answers),
    models: { small: scriptedModel(summaries) },
    plugins: [compaction({ contextWindow: 1000, model: "small" })],
    interrupted: "continue",
  });
  const asked = deferred();
  const first = await firstLife(options([...turns(1), ...turns(1, 900)], [() => (asked.resolve(), { hang: "deaf" })]));
  for (let n = 0; n < 2; n += 1) await talk(first.agent, `question ${n} ${words(200)}`);
  first.agent.send("now");
  await asked.promise;
  await first.end(how);

  const second = await liveOn(first.disk, options(["fine", "more"], ["short", "short"]));
  await talk(second.agent, "again");
  expect(endOf(second.agent.session)).toEqual({ kind: "completed" });
  expect(summariesIn(second.agent.session)).toBe(1);
});

test("taken away, it leaves the loop as it was", async () => {
  const stage = await narrow([...turns(6, 900), overflow], ["never"], {}, { plugins: [] });
  const off = stage.harness.use(compaction({ contextWindow: 1000 }));
  off();
  for (let n = 0; n < 7; n += 1) await talk(stage.agent);
  expect(endOf(stage.session)).toMatchObject({ code: "CONTEXT_OVERFLOW" });
  expect(new Set(typesOf(stage.session))).not.toContain("model/aux");
  expect(summariesIn(stage.session)).toBe(0);
});

test.each([[{ atFraction: 0 }], [{ atFraction: 1.1 }], [{ contextWindow: -1 }], [{ contextWindow: Number.NaN }]])(
  "%j is refused",
  (options) => {
    expect(() => compaction(options)).toThrow(expect.objectContaining({ code: "INVALID_OPTIONS" }));
  },
);
