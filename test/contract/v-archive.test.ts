/** V: sessions as lines of JSON: out of one storage, into another (D26). */
import { createHarness, defineTool, type Harness, type SessionEvent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect, vi } from "vitest";
import {
  failingStorage,
  fails,
  faultyStage,
  holds,
  losesAnswer,
  turnOfTheEventLoop,
} from "../support/failing-storage.ts";
import { harnessWith, local } from "../support/fixture.ts";
import {
  assistant,
  called,
  headerOf,
  line,
  logOf,
  plainTurn,
  queued,
  said,
  started,
  stepEnd,
  stepStart,
  storageOf,
  turnEnd,
  turnStart,
  user,
  type Line,
} from "../support/made-log.ts";
import { endOf, eventOf, typesOf } from "../support/wait.ts";

const code = (is: string): unknown => expect.objectContaining({ code: is });
const two = logOf(plainTurn(1), plainTurn(2));

async function exported(harness: Harness, id = "s"): Promise<string> {
  let lines = "";
  for await (const piece of harness.sessions.export(id)) lines += piece;
  return lines;
}

/** The lines of an archive. */
function linesOf(events: readonly (SessionEvent | object)[], header: object = headerOf("s")): string {
  return [header, ...events].map((one) => `${JSON.stringify(one)}\n`).join("");
}

async function storedEvents(harness: Harness, id = "s"): Promise<readonly SessionEvent[]> {
  return (await harness.sessions.load(id))!.events;
}

describe("export", () => {
  local("D26 gives the header and then the events, a line of JSON each", async () => {
    const harness = createHarness({ storage: await storageOf(two) });
    const lines = (await exported(harness)).split("\n");
    expect(lines.pop()).toBe("");
    expect(lines.map((one) => JSON.parse(one) as unknown)).toEqual([headerOf("s"), ...two]);
  });

  local("D26 of a live session stores everything first", async () => {
    const stage = faultyStage();
    const agent = await stage.open();
    stage.storage.next(holds);
    agent.inject("hello");
    const reading = exported(stage.harness);
    await stage.storage.tries(1);
    stage.storage.heal();
    expect(await reading).toBe(linesOf(agent.session.events, agent.session.header));
    expect(await stage.storage.stored("s")).toEqual(agent.session.events);
  });

  local("D26 ends at the seq of the call, whatever is appended while it is read", async () => {
    const harness = createHarness();
    const { agent } = await harness.agents.open({ id: "s" });
    agent.inject("before");
    const { events, header } = agent.session;
    const iterable = harness.sessions.export("s");
    agent.inject("after the call");
    let lines = "";
    for await (const piece of iterable) {
      lines += piece;
      agent.configure({ temperature: 0 });
    }
    expect(lines).toBe(linesOf(events, header));
  });

  local("D26 changes nothing, in a session that was cut short either", async () => {
    const open = logOf(turnStart(1), user("hello"));
    const harness = createHarness({ storage: await storageOf(open) });
    expect(await exported(harness)).toBe(linesOf(open));
    expect(await storedEvents(harness)).toEqual(open);
  });

  local("D26 SESSION_NOT_FOUND", async () => {
    await expect(exported(createHarness())).rejects.toEqual(code("SESSION_NOT_FOUND"));
  });
});

describe("import", () => {
  local("D26 stores what export gave, and answers with its summary", async () => {
    const source = createHarness({ storage: await storageOf(two, "s", headerOf("s", { meta: { title: "Trip" } })) });
    const target = createHarness();
    const summary = await target.sessions.import(source.sessions.export("s"));
    expect(summary).toEqual({ id: "s", createdAt: 1000, updatedAt: 1011, seq: 12, title: "Trip", status: "idle" });
    expect(await exported(target)).toBe(await exported(source));
    expect((await target.sessions.list()).sessions).toEqual([summary]);
    const { agent } = await target.agents.resume({ id: "s" });
    expect(said(agent.session.deriveMessages())).toHaveLength(4);
  });

  local(
    "D26 takes a text in pieces of any size: a long line in small ones costs no more than one in a large one",
    async () => {
      const long = logOf(plainTurn(1, "x".repeat(20_000)));
      const text = linesOf(long);
      const harness = createHarness();
      const [split, join] = [vi.spyOn(String.prototype, "split"), vi.spyOn(Array.prototype, "join")];
      // By its characters, as a string is iterated.
      await harness.sessions.import(text);
      const handled = [...split.mock.contexts, ...join.mock.results.map(({ value }) => value)];
      vi.restoreAllMocks();
      expect(handled.reduce<number>((sum, one) => sum + String(one).length, 0)).toBeLessThan(3 * text.length);
      expect(await storedEvents(harness)).toEqual(long);
    },
  );

  local("D26 takes the text in any pieces, and any iterable of them", async () => {
    const text = linesOf(two);
    const pieces: readonly Iterable<string>[] = [
      [text],
      text,
      text.split(/(?<=\n)/u),
      [...text.matchAll(/[\s\S]{1,7}/gu)].map(String),
      [text.slice(0, -1)],
      ["", text.replaceAll("\n", "\r\n"), "\n \n"],
    ];
    for (const [i, one] of pieces.entries()) {
      const harness = createHarness();
      await harness.sessions.import(one, { id: `copy-${i}` });
      expect(await storedEvents(harness, `copy-${i}`)).toEqual(two);
    }
  });

  local("D26 gives it another id if told so, so that a copy can live beside its original", async () => {
    const harness = createHarness({ storage: await storageOf(two) });
    const summary = await harness.sessions.import(harness.sessions.export("s"), { id: "copy" });
    expect(summary.id).toBe("copy");
    expect((await harness.sessions.load("copy"))!.header).toEqual(headerOf("copy"));
    expect(await storedEvents(harness, "copy")).toEqual(await storedEvents(harness));
  });

  local("D26 SESSION_EXISTS for an id that is stored or live, and neither is touched", async () => {
    const harness = createHarness({ storage: await storageOf(two) });
    await harness.agents.open({ id: "live" });
    await expect(harness.sessions.import(linesOf(two))).rejects.toEqual(code("SESSION_EXISTS"));
    await expect(harness.sessions.import(linesOf(two), { id: "live" })).rejects.toEqual(code("SESSION_EXISTS"));
    expect(await storedEvents(harness)).toEqual(two);
  });

  local("D26 tells nobody: an imported session is not live, and its events are not heard", async () => {
    const harness = createHarness();
    const heard: string[] = [];
    harness.hooks.on("session/created", () => void heard.push("created"));
    harness.hooks.on("session/event", ({ event }) => void heard.push(event.type));
    await harness.sessions.import(linesOf(logOf(turnStart(1), user("hello"))));
    expect(heard).toEqual([]);
    expect(harness.sessions.get("s")).toBeUndefined();
    expect(harness.agents.list()).toEqual([]);
  });

  local("D26 of one id twice at once: one of them wins", async () => {
    const harness = createHarness();
    const settled = await Promise.allSettled([
      harness.sessions.import(linesOf(two)),
      harness.sessions.import(linesOf(logOf(plainTurn(1, "other")))),
    ]);
    const lost = settled.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
    expect(lost).toEqual([code("SESSION_EXISTS")]);
  });

  local("#244 D26 and an opening of the id at once: the agent goes on with what is stored", async () => {
    const storage = failingStorage();
    const harness = harnessWith({ storage });
    storage.next(holds);
    const importing = harness.sessions.import(linesOf(two));
    await storage.tries(1);
    const opening = harness.agents.open({ id: "s" });
    await turnOfTheEventLoop();
    storage.heal();
    await importing;
    const { agent } = await opening;
    agent.configure({ temperature: 0 });
    await agent.flush();
    expect(agent.session.seq).toBe(13);
    expect(await storage.stored("s")).toEqual(agent.session.events);
  });

  local("D26 is stored when it answers, however often the storage fails first", async () => {
    const stage = faultyStage();
    stage.storage.next(fails, losesAnswer);
    const importing = stage.harness.sessions.import(linesOf(two));
    for (const wait of [100, 200]) {
      await stage.clock.sleeping(wait);
      await stage.clock.advance(wait);
    }
    expect(await importing).toMatchObject({ seq: 12 });
    expect(await stage.storage.stored("s")).toEqual(two);
  });
});

describe("import repairs", () => {
  const cut = [turnStart(1, ["do"]), user("do"), stepStart(1, 1), assistant(1, 1, "", "a"), called(1, 1, "a")];
  const idempotentAsk = defineTool({
    name: "work",
    description: "asks",
    inputSchema: { type: "object" },
    idempotent: true,
    execute: (_: unknown, call) => call.ask("really?"),
  });

  local("D26 an open turn is closed as interrupted, and its calls are answered", async () => {
    const harness = createHarness();
    const events = logOf(cut, started(1, 1, "a"));
    expect(await harness.sessions.import(linesOf(events))).toMatchObject({ status: "idle", seq: 9, updatedAt: 1005 });
    const stored = await storedEvents(harness);
    expect(stored.slice(0, 6)).toEqual(events);
    expect(stored.slice(6)).toMatchObject([
      { type: "tool/result", data: { error: { code: "TOOL_OUTCOME_UNKNOWN" } } },
      stepEnd(1, 1),
      turnEnd(1, { kind: "interrupted" }),
    ]);
  });

  const asked = line("interaction/requested", { id: "a/1", kind: "question", payload: "really?", callId: "a" });

  local("D26 D23 a parked turn stays open, waits at its new place, and goes on there when it is answered", async () => {
    const model = scriptedModel(["so it is"]);
    const harness = createHarness({ tools: [idempotentAsk], model });
    const events = logOf(cut, started(1, 1, "a"), asked);
    expect(await harness.sessions.import(linesOf(events))).toMatchObject({ status: "waiting", seq: 7 });
    const { agent } = await harness.agents.open({ id: "s" });
    expect(agent.session.events).toEqual(events);
    await agent.respond("a/1", "yes");
    await agent.whenIdle();
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
    expect(said(model.requests[0]!.messages)).toEqual(["user: do", "assistant: calls a", "tool: answers a"]);
  });

  local("D26 D23 where the tool may not be run again the turn is not parked, and is closed", async () => {
    const harness = createHarness();
    const events = logOf(cut, started(1, 1, "a"), asked);
    expect(await harness.sessions.import(linesOf(events))).toMatchObject({ status: "idle" });
    expect((await storedEvents(harness)).slice(7)).toMatchObject([
      line("interaction/resolved", { id: "a/1", outcome: "cancelled" }),
      { type: "tool/result" },
      stepEnd(1, 1),
      turnEnd(1, { kind: "interrupted" }),
    ]);
  });

  const waiting: readonly Line[] = [
    queued("first"),
    queued("consumed"),
    turnStart(1, ["consumed"]),
    user("consumed"),
    queued("steered", "steer"),
    stepStart(1, 1),
    queued("injected", "inject"),
    assistant(1, 1, "hi"),
    stepEnd(1, 1),
    turnEnd(1),
    queued("last"),
  ];

  local("D26 what is queued and was not consumed is dropped, for the reason imported", async () => {
    const model = scriptedModel([]);
    const harness = createHarness({ model });
    await harness.sessions.import(linesOf(logOf(waiting)));
    expect((await storedEvents(harness)).slice(waiting.length)).toMatchObject([
      line("inbox/dropped", { ids: ["first", "steered", "injected", "last"], reason: "imported" }),
    ]);
    const { agent } = await harness.agents.open({ id: "s" });
    await agent.whenIdle();
    expect(agent.queue).toEqual([]);
    expect(model.requests).toEqual([]);
  });

  local("D26 D13 with `move` it goes on at the new place", async () => {
    const model = scriptedModel(["answer"]);
    const harness = createHarness({ model });
    await harness.sessions.import(linesOf(logOf(waiting)), { move: true });
    expect(typesOf((await harness.sessions.load("s"))!)).toEqual(logOf(waiting).map(({ type }) => type));
    const { agent } = await harness.agents.open({ id: "s" });
    await agent.whenIdle();
    expect(said(model.requests[0]!.messages).slice(2)).toEqual([
      "user: <user>\n injected \n</user>",
      "user: first",
      "user: steered",
      "user: last",
    ]);
    expect(agent.queue).toEqual([]);
  });

  local("D26 a message whose turn had only taken it is dropped as well, or goes on with `move`", async () => {
    const events = logOf(queued("do"), turnStart(1, ["do"]));
    const harness = createHarness({ model: scriptedModel(["done"]) });
    await harness.sessions.import(linesOf(events), { id: "copy" });
    expect(typesOf((await harness.sessions.load("copy"))!)).toEqual([
      "inbox/queued",
      "turn/start",
      "turn/end",
      "inbox/dropped",
    ]);
    await harness.sessions.import(linesOf(events), { id: "moved", move: true });
    const { agent } = await harness.agents.open({ id: "moved" });
    await eventOf(agent.session, "turn/end", ({ data }) => data.turn === 2);
    expect(said(agent.session.deriveMessages())).toEqual(["user: do", "assistant: done"]);
  });
});
