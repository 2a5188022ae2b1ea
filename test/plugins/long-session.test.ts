/**
 * One session with all the policies at once: 300 steps on a file of SQLite, two overflows, a rate limit, a fallback,
 * approvals, a helper, and hosts that die. It comes to its end, and each request and each token is accounted for.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  addUsage,
  approvals,
  budget,
  createHarness,
  fallback,
  rebuildRequest,
  standard,
  subagents,
  usageOf,
  type Harness,
  type Message,
  type Model,
  type ModelRequest,
  type SessionEvent,
  type SessionView,
  type Usage,
} from "turnloop";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { mortal } from "../support/mortal.ts";
import { dataOf, leftBehind } from "../support/scene.ts";
import { endOf } from "../support/wait.ts";

vi.setConfig({ testTimeout: 120_000 });

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "turnloop-long-"))));
afterEach(() => rmSync(folder, { recursive: true }));

/** Tokens that the models take, and do not say beforehand. */
const WINDOW = 28_000;
const STEPS = 50;
const TURNS = 6;
const TASK = { name: "delegate", args: { task: "look three times" } };

/** Which turn of which session a request is for, and how many answers that turn has had. */
interface Place {
  readonly session: string;
  readonly turn: number;
  readonly answers: number;
}

/** What the models say, by the place alone, so that any host can go on. */
function scriptAt({ session, turn, answers }: Place): ScriptedAnswer {
  if (session !== "session") return answers < 3 ? calls("look") : "all looked at";
  if (answers === STEPS - 1) return `turn ${turn} is done`;
  if (turn === 3 && answers % 10 === 5) return calls("pay", "look");
  if (turn === 4 && answers % 20 === 5) return calls(TASK);
  if (turn === 6 && answers === 20) return calls("act");
  return answers % 3 === 0 ? { text: "Let me look.", ...calls("look", "look") } : calls("look");
}

/** The providers: they outlive the hosts, and know what they have told whom. */
function providers() {
  const seen = new Map<string, string>();
  const told: { readonly model: string; readonly usage: Usage }[] = [];
  const faults = { overflow: 0, busy: 0, refused: 0 };

  function usageFor(request: ModelRequest): Usage {
    const input = sizeOf(request);
    return { input: input - 10, cacheRead: 10, output: 20, reasoning: 5 };
  }

  /** As one host meets them; once it is dead it meets nobody. */
  function models(harness: () => Harness, host: { readonly dead: boolean }): Record<string, Model> {
    const modelOf = (name: string): Model => {
      const id = `${name}/model`;
      return {
        id,
        async *stream(request, options) {
          const [session, beside] = options.sessionId.split("/") as [string, string?];
          const log = harness().sessions.get(session)!;
          const answer = beside === undefined ? answerTo(name, request, log) : "They looked at things.";
          const parts = typeof answer === "object" && "error" in answer ? answer : undefined;
          for await (const given of scriptedModel([answer]).stream(request, options)) {
            const chunk = given as Exclude<typeof given, readonly unknown[]>;
            if (host.dead) return void (await new Promise<never>(() => {}));
            if (chunk.type === "finish" && (!parts || name === "main")) {
              const usage = parts ? { input: 3 } : usageFor(request);
              told.push({ model: id, usage });
              yield { type: "usage", usage };
              if (host.dead) return void (await new Promise<never>(() => {}));
            }
            yield chunk;
          }
        },
      };
    };
    return Object.fromEntries(["main", "backup", "helper"].map((name) => [name, modelOf(name)]));
  }

  function answerTo(name: string, request: ModelRequest, log: SessionView): ScriptedAnswer {
    const at = placeIn(log);
    isValid(request.messages);
    seen.set(`${log.id} ${at.turn} ${at.step} ${at.attempt}`, JSON.stringify(request));
    const fail = (code: string, more: object = {}): ScriptedAnswer => ({ error: { message: code, code, ...more } });
    if (sizeOf(request) > WINDOW) return ((faults.overflow += 1), fail("CONTEXT_OVERFLOW"));
    if (name === "main" && at.turn === 1 && at.answers === 10 && at.attempt < 3)
      return ((faults.busy += 1), fail("RATE_LIMITED", { retryAfterMs: 2000 }));
    if (name === "main" && at.turn === 2 && at.answers === 20) return ((faults.refused += 1), fail("MODEL_AUTH"));
    return scriptAt({ session: log.id, ...at });
  }
  return { models, seen, told, faults };
}

function sizeOf({ messages }: ModelRequest): number {
  return Math.ceil(JSON.stringify(messages).length / 4);
}

/** Where the request stands that is made now. */
function placeIn({ events }: SessionView): { turn: number; step: number; attempt: number; answers: number } {
  const start = events.findLastIndex((event) => event.type === "turn/start");
  const mine = events.slice(start);
  const step = mine.findLastIndex((event) => event.type === "step/start");
  const failures = mine.slice(step).filter((event) => event.type === "request/failed").length;
  const answers = mine.filter((event) => event.type === "assistant/message").length;
  const { turn, step: number } = (mine[step] as SessionEvent<"step/start">).data;
  return { turn, step: number, attempt: failures + 1, answers };
}

/** Each call has one result right behind it, and nobody but a tool speaks out of turn. */
function isValid(messages: readonly Message[]): void {
  let owed: string[] = [];
  let before: Message["role"] | undefined;
  for (const { role, content } of messages) {
    if (role === "tool") {
      expect(content.map((block) => block.type === "tool-result" && block.callId)).toEqual([owed.shift()]);
    } else {
      expect(owed, "calls without a result").toEqual([]);
      if (role === "assistant") expect(before, "who an answer follows").not.toBe("assistant");
      owed = content.flatMap((block) => (block.type === "tool-call" ? [block.callId] : []));
    }
    before = role;
  }
  expect(owed, "calls without a result").toEqual([]);
  expect(messages[0]!.role, "the first word").toBe("user");
  expect(before, "the last word").not.toBe("assistant");
}

/** The event of which a host dies: the last one that is stored. */
type Fatal = (event: SessionEvent, session: SessionView) => boolean;

/** One life of the session. */
async function openHost(world: ReturnType<typeof providers>, fatal: Fatal, ran: string[]) {
  const clock = testClock(1_700_000_000_000 + ran.length * 60_000);
  const state = { dead: false };
  const disk = nodeSqliteStorage(join(folder, "sessions.db"));
  const { storage, dead, killAfter } = mortal(disk);
  const body = (name: string) => (): unknown => {
    if (state.dead) return new Promise<never>(() => {});
    ran.push(name);
    return `${name} found: ${"many words, and then some more. ".repeat(8)}`;
  };
  const harness = createHarness({
    storage,
    clock,
    models: world.models(() => harness, state),
    model: "main",
    interrupted: "continue",
    tools: [tool("look", body("look"), { readOnly: true }), tool("pay", body("pay")), tool("act", body("act"))],
    plugins: [
      standard({ maxSteps: STEPS + 10 }),
      approvals({ when: { pay: true } }),
      fallback({ models: ["backup"] }),
      subagents({ model: "helper", tools: ["look"] }),
      budget({ tokens: 1e9, per: "session" }),
    ],
    onDiagnostic() {},
  });
  harness.hooks.on("session/event", ({ session, event }) => {
    if (state.dead) return;
    if (fatal(event, session)) {
      state.dead = true;
      killAfter(event.type, (one) => one === (event as never));
    } else if (event.type === "request/failed" && event.data.afterMs) {
      const { afterMs } = event.data;
      setImmediate(() => void clock.advance(afterMs));
    }
  });
  harness.hooks.on("interaction/requested", ({ agent, interaction }) => {
    if (!state.dead) void agent.respond(interaction.id, { decision: "allow" }).catch(() => {});
  });
  const { agent } = await harness.agents.open({ id: "session" });
  return { harness, agent, dead };
}

/** Runs the session on: the messages that are not in yet, or the turn that is open. False when the host has died. */
async function runOn({ agent, dead, harness }: Awaited<ReturnType<typeof openHost>>): Promise<boolean> {
  let isDead = false;
  void dead.then(() => (isDead = true));
  for (let turn = 1; turn <= TURNS; turn += 1) {
    agent.send(`turn ${turn}`, { id: `message-${turn}` });
    await Promise.race([agent.whenIdle(), dead]);
    if (isDead) break;
  }
  await harness.dispose();
  return !isDead;
}

test("it ends, its history is valid at each request, each is rebuilt from the log, and the costs add up", async () => {
  const world = providers();
  const ran: string[] = [];
  const isMain = (session: SessionView): boolean => session.id === "session";
  const turnOf = (session: SessionView): number => session.events.filter(({ type }) => type === "turn/start").length;
  const deaths: readonly Fatal[] = [
    // Before the answer of a person, with a finished call beside it.
    (event, session) => event.type === "interaction/requested" && turnOf(session) === 3,
    // Inside of a helper.
    (event, session) => event.type === "tool/result" && !isMain(session),
    // Between what an answer has cost and its end.
    ({ type, data }, session) =>
      type === "assistant/chunk" &&
      data.chunk.type === "usage" &&
      turnOf(session) === 5 &&
      placeIn(session).answers === 20,
    // In the body of a tool that may not run twice.
    (event, session) =>
      event.type === "tool/start" &&
      dataOf(session, "tool/call").some(({ callId, name }) => name === "act" && callId === event.data.callId),
  ];
  for (const fatal of deaths) expect(await runOn(await openHost(world, fatal, ran))).toBe(false);
  const last = await openHost(world, () => false, ran);
  expect(await runOn(last)).toBe(true);

  const disk = nodeSqliteStorage(join(folder, "sessions.db"));
  const harness = createHarness({ storage: disk });
  const session = (await harness.sessions.load("session"))!;
  const helpers = (await harness.sessions.list()).sessions.filter(({ id }) => id !== "session");
  const all = [session, ...(await Promise.all(helpers.map(async ({ id }) => (await harness.sessions.load(id))!)))];

  // It ends.
  expect(dataOf(session, "turn/end").map(({ reason }) => reason)).toEqual(
    Array.from({ length: TURNS }, () => ({ kind: "completed" })),
  );
  expect(dataOf(session, "step/start").length).toBeGreaterThanOrEqual(STEPS * TURNS);
  expect(dataOf(session, "turn/resumed").map(({ turn }) => turn)).toEqual([4, 5, 6]);
  // It has met all that was to be met.
  expect(world.faults).toEqual({ overflow: 2, busy: 2, refused: 1 });
  expect(dataOf(session, "model/aux").filter(({ purpose }) => purpose === "compaction")).toHaveLength(2);
  expect(dataOf(session, "request/header").filter(({ header }) => header.config.model === "backup")).toHaveLength(1);
  expect(dataOf(session, "interaction/resolved").map(({ outcome }) => outcome)).toEqual(
    Array.from({ length: 5 }, () => "answered"),
  );
  expect(helpers).toHaveLength(3);
  expect(ran.filter((name) => name === "pay")).toHaveLength(5);
  expect(ran).not.toContain("act");
  expect(dataOf(session, "tool/result").filter(({ error }) => error?.code === "TOOL_OUTCOME_UNKNOWN")).toHaveLength(1);

  // Each request is rebuilt.
  let rebuilt = 0;
  for (const { id, events } of all) {
    for (const key of world.seen.keys()) {
      const [of, turn, step, attempt] = key.split(" ");
      if (of !== id) continue;
      const request = rebuildRequest(events, { turn: Number(turn), step: Number(step), attempt: Number(attempt) });
      expect(JSON.stringify(request), key).toBe(world.seen.get(key));
      rebuilt += 1;
    }
  }
  expect(rebuilt).toBe(world.seen.size);

  // The costs add up: by the log, by the providers' books, and by the budget.
  const booked: Record<string, Usage> = {};
  for (const { model, usage } of world.told) booked[model] = addUsage(booked[model] ?? {}, usage);
  expect(usageOf(session).byModel).toEqual(booked);
  const tokens = Object.values(booked).reduce(
    (sum, usage) => sum + Object.values(usage).reduce((part: number, n) => part + (n as number), 0),
    0,
  );
  for (const [limit, kind] of [
    [tokens, "stopped"],
    [tokens + 1, "completed"],
  ] as const) {
    const model = scriptedModel(["fine"]);
    const plugins = [budget({ tokens: limit, per: "session" })];
    const after = createHarness({ storage: await leftBehind(session), model, models: { main: model }, plugins });
    const { agent } = await after.agents.open({ id: "session" });
    agent.send("one more");
    await agent.whenIdle();
    expect(endOf(agent.session)).toMatchObject({ kind });
  }
  await harness.dispose();
});
