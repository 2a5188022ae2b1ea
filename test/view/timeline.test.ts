/** The timeline: what ran when, as spans within spans. */
import {
  createHarness,
  createTimeline,
  defineTool,
  rebuildRequest,
  requestChanges,
  usageOf,
  type SessionView,
  type TimelineSpan,
} from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import {
  assistant,
  called,
  line,
  logOf,
  plainTurn,
  result,
  started,
  stepEnd,
  stepStart,
  storageOf,
  turnEnd,
  turnStart,
  user,
  type Line,
} from "../support/made-log.ts";
import { eventOf } from "../support/wait.ts";
import { handWritten, openStep, USER } from "./hand-written.ts";

/** `kind name state start-end`, indented; times since 1000, where `logOf` begins. */
function drawn(spans: readonly TimelineSpan[], indent = ""): string[] {
  return spans.flatMap(({ kind, name, state, startedAt, endedAt, children }) => [
    `${indent}${kind} ${name} ${state} ${startedAt - 1000}-${endedAt === undefined ? "" : endedAt - 1000}`,
    ...drawn(children, `${indent}  `),
  ]);
}

async function view(...lines: readonly (Line | readonly Line[])[]): Promise<SessionView> {
  const harness = createHarness({ storage: await storageOf(logOf(...lines)) });
  return (await harness.sessions.load("s"))!;
}

const header = (modelId: string): ReturnType<typeof line> =>
  line("request/header", { header: { config: { model: "route" }, modelId }, reason: "initial" });
const failure = (next: "retry" | "fail"): ReturnType<typeof line> =>
  line("request/failed", { turn: 1, step: 1, attempt: 1, error: { message: "busy", code: "OVERLOADED" }, next });

test("a turn has steps, a step its attempts, the delay between them and its calls, a call its waits", async () => {
  const session = await view(
    turnStart(1),
    user("hello"),
    header("lab/small"),
    stepStart(1, 1),
    failure("retry"),
    line("assistant/chunk", { turn: 1, step: 1, chunk: { type: "delta", index: 0, text: "…" } }),
    assistant(1, 1, "", "c1", "c2"),
    called(1, 1, "c1"),
    called(1, 1, "c2"),
    line("interaction/requested", { id: "i1", kind: "approval", payload: {}, callId: "c1" }),
    started(1, 1, "c2"),
    result(1, 1, "c2"),
    line("interaction/resolved", { id: "i1", outcome: "answered", value: {} }),
    started(1, 1, "c1"),
    result(1, 1, "c1"),
    stepEnd(1, 1),
    turnEnd(1),
  );
  expect(drawn(createTimeline(session).getSnapshot().spans)).toEqual([
    "turn turn done 0-16",
    "  step step done 3-15",
    "    request lab/small failed 3-4",
    "    wait retry done 4-5",
    "    request scripted/model done 5-6",
    "    tool work done 9-14",
    "      wait approval done 9-12",
    "    tool work done 10-11",
  ]);
});

test("what is cut short says so, down to what was open in it", async () => {
  const session = await view(
    turnStart(1),
    user("hello"),
    stepStart(1, 1),
    assistant(1, 1, "", "c1"),
    called(1, 1, "c1"),
    started(1, 1, "c1"),
    line("interaction/requested", { id: "i1", kind: "question", payload: {}, callId: "c1" }),
    turnEnd(1, { kind: "aborted", reason: "enough" }),
    plainTurn(2),
  );
  const { spans } = createTimeline(session).getSnapshot();
  expect(drawn(spans).slice(0, 5)).toEqual([
    "turn turn stopped 0-7",
    "  step step stopped 2-7",
    "    request scripted/model done 2-3",
    "    tool work stopped 5-7",
    "      wait question stopped 6-7",
  ]);
  expect(spans[0]).toMatchObject({ turn: 1, reason: { kind: "aborted", reason: "enough" }, events: [0, 7] });
});

test("a failure stands on its attempt, its step and its turn", async () => {
  const session = await view(
    turnStart(1),
    user("hello"),
    stepStart(1, 1),
    failure("fail"),
    stepEnd(1, 1),
    turnEnd(1, { kind: "error", step: 1, message: "busy", code: "OVERLOADED" }),
  );
  const [turn] = createTimeline(session).getSnapshot().spans;
  const error = { message: "busy", code: "OVERLOADED" };
  expect(turn).toMatchObject({ state: "failed", error });
  expect(turn!.children[0]).toMatchObject({ state: "failed", children: [{ kind: "request", state: "failed", error }] });
});

test("usage adds up from the requests to their turn, as it does over the session", async () => {
  const model = scriptedModel([
    { toolCalls: [{ name: "look", args: {} }], usage: { input: 10, output: 1 } },
    { text: "done", usage: { input: 20, output: 2 } },
  ]);
  const look = defineTool({
    name: "look",
    description: "",
    inputSchema: { type: "object" },
    execute: () => "seen",
  });
  const { agent } = await createHarness({ model, tools: [look] }).agents.open({ id: "chat" });
  agent.send("go");
  await agent.whenIdle();
  const [turn] = createTimeline(agent).getSnapshot().spans;
  expect(turn!.usage).toEqual(usageOf(agent.session).total);
  expect(turn!.children.map(({ usage }) => usage?.input)).toEqual([10, 20]);
  expect(turn!.children[0]!.children.map(({ kind, name }) => `${kind} ${name}`)).toEqual([
    `request ${model.id}`,
    "tool look",
  ]);
});

test("a request outside of turns stands between them", async () => {
  const session = await view(
    plainTurn(1),
    line("model/aux", { purpose: "title", model: "lab/small", usage: { output: 3 } }),
  );
  expect(createTimeline(session).getSnapshot().spans[1]).toMatchObject({
    kind: "request",
    name: "title",
    usage: { output: 3 },
  });
});

test("but for the first of an answer a chunk changes nothing; what is settled stays the same object", async () => {
  const written = await handWritten();
  const timeline = createTimeline(written.session);
  openStep(written);
  written.stream({ type: "delta", index: 0, text: "a" });
  const before = timeline.getSnapshot();
  for (let i = 0; i < 100; i += 1) written.stream({ type: "delta", index: 0, text: "b" });
  expect(timeline.getSnapshot()).toBe(before);
  written.add("assistant/message", { turn: 1, step: 1, model: "m", content: [{ type: "text", text: "ab" }] });
  written.add("step/end", { turn: 1, step: 1 });
  written.add("step/start", { turn: 1, step: 2 });
  const [turn] = timeline.getSnapshot().spans;
  written.stream({ type: "delta", index: 0, text: "c" });
  const [later] = timeline.getSnapshot().spans;
  expect(later).not.toBe(turn);
  expect(later!.children[0]).toBe(turn!.children[0]);
});

test("of a tail, the turn that it begins in is there from where it begins", async () => {
  const session = await view(
    turnStart(1),
    user("hello"),
    stepStart(1, 1),
    assistant(1, 1, "", "c1"),
    called(1, 1, "c1"),
    started(1, 1, "c1"),
    result(1, 1, "c1"),
    stepEnd(1, 1),
    stepStart(1, 2),
    assistant(1, 2, "done"),
    stepEnd(1, 2),
    turnEnd(1),
  );
  const tail: SessionView = {
    ...session,
    start: 8,
    seq: session.seq,
    at: (seq) => (seq < 8 ? undefined : session.at(seq)),
  };
  expect(drawn(createTimeline(tail).getSnapshot().spans)).toEqual([
    "turn turn done 8-11",
    "  step step done 8-10",
    "    request scripted/model done 8-9",
  ]);
});

test("subscribers are told, and find what is there when they ask", async () => {
  const { session, add } = await handWritten();
  const timeline = createTimeline(session);
  let told = 0;
  const off = timeline.subscribe(() => (told += 1));
  add("turn/start", { turn: 1, trigger: { kind: "message", source: USER } });
  off();
  add("step/start", { turn: 1, step: 1 });
  expect(told).toBe(1);
  expect(timeline.getSnapshot().spans[0]).toMatchObject({ state: "open", children: [{ kind: "step" }] });
});

test("what a request says otherwise than the one before: settings, prompt, tools, messages", async () => {
  const model = scriptedModel(["one", "two", "three"]);
  const harness = createHarness({ model, system: "Be brief." });
  const { agent } = await harness.agents.open({ id: "chat" });
  agent.send("a");
  await eventOf(agent.session, "turn/end");
  await agent.whenIdle();
  harness.tools.register(defineTool({ name: "__proto__", description: "", inputSchema: {}, execute: () => "" }));
  agent.configure({ temperature: 0 });
  agent.send("b");
  await agent.whenIdle();
  const { events } = agent.session;
  const [first, second] = [1, 2].map((turn) => rebuildRequest(events, { turn, step: 1 }));
  expect(requestChanges(first!, second!)).toEqual({
    config: ["temperature"],
    system: false,
    tools: { added: ["__proto__"], removed: [], changed: [] },
    messages: { kept: 1, removed: 0, added: 2 },
  });
  expect(requestChanges(first!, first!)).toEqual({
    config: [],
    system: false,
    tools: { added: [], removed: [], changed: [] },
    messages: { kept: 1, removed: 0, added: 0 },
  });
  const other = { ...second!, system: "Be long.", messages: second!.messages.slice(1) };
  expect(requestChanges(second!, other)).toMatchObject({ system: true, messages: { kept: 0, removed: 3, added: 2 } });
});
