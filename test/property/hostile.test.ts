/** Events from anywhere: taken whole, or refused by an error of the package that leaves the log as it was. */
import * as fc from "fast-check";
import { createTranscript, TurnloopError, usageOf, type SessionEvent } from "turnloop";
import { expect, test } from "vitest";
import { createLog, type Log } from "../../src/session/log.ts";
import { checkEvent } from "../../src/session/shapes.ts";
import { repair } from "../../src/session/repair.ts";
import {
  assistant,
  called,
  context,
  headerOf,
  line,
  logOf,
  queued,
  result,
  started,
  stepEnd,
  stepStart,
  turnEnd,
  turnStart,
  user,
  type Line,
} from "../support/made-log.ts";

const place = { turn: 1, step: 1 };
/** A log that holds every type of the core, each where it may stand. */
const whole: readonly SessionEvent[] = logOf(
  queued("m1"),
  queued("m2"),
  line("inbox/dropped", { ids: ["m2"], reason: "withdrawn" }),
  line("agent/configured", { patch: { temperature: 0 } }),
  line("session/titled", { title: "t" }),
  turnStart(1, ["m1"]),
  line("turn/resumed", { turn: 1, attempt: 1 }),
  user("m1"),
  line("prompt/blocked", { id: "m3", content: [], source: { kind: "user" }, reason: "no" }),
  context("c"),
  stepStart(1, 1),
  line("request/header", { header: { config: { model: "m" }, modelId: "p/m" }, reason: "initial" }),
  line("assistant/chunk", { ...place, chunk: { type: "block-start", index: 0, block: { type: "text" } } }),
  line("assistant/chunk", { ...place, chunk: { type: "delta", index: 0, text: "a" } }),
  line("request/failed", { ...place, attempt: 1, error: { message: "busy" }, next: "retry", usage: { output: 1 } }),
  line("assistant/chunk", { ...place, chunk: { type: "block-end", index: 0, block: { type: "text", text: "b" } } }),
  line("assistant/chunk", { ...place, chunk: { type: "usage", usage: { output: 1 } } }),
  line("assistant/chunk", { ...place, chunk: { type: "finish", reason: { kind: "stop" } } }),
  assistant(1, 1, "b", "a", "b"),
  called(1, 1, "a"),
  line("interaction/requested", { id: "a/approval", kind: "approval", payload: { tool: "work" }, callId: "a" }),
  line("interaction/claimed", { id: "a/approval", client: "c" }),
  line("interaction/released", { id: "a/approval", client: "c" }),
  line("interaction/resolved", { id: "a/approval", outcome: "answered", value: { decision: "allow" } }),
  started(1, 1, "a"),
  line("tool/progress", { callId: "a", value: 1 }),
  result(1, 1, "a"),
  called(1, 1, "b"),
  result(1, 1, "b"),
  line("steering/message", { turn: 1, id: "s", content: [], source: { kind: "user" } }, { surface: "append" }),
  { ...context("sum", "summary"), surface: { replace: [7, 9] }, cites: [7, 9] },
  stepEnd(1, 1),
  line("agent/cancelled", { id: "x", reason: "r", turn: 1, dropped: [] }),
  turnEnd(1, { kind: "aborted", reason: "r" }),
  line("model/aux", { purpose: "title", model: "p/m", usage: { output: 1 } }),
);

const poison = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1.5,
    1e300,
    "",
    "text",
    [],
    {},
    [null],
    [[]],
    [{}],
    [{ type: "tool-call" }],
  ),
  fc.constantFrom<unknown>([{ type: 3 }], [{ type: "text" }], { kind: 3 }, { kind: null }, ["__proto__"], {
    __proto__: null,
  }),
  fc.jsonValue({ maxDepth: 3 }),
);

/** The event with one thing in it made otherwise: the `n`-th place of its data, or a field that is gone. */
function poisoned(event: SessionEvent, n: number, value: unknown, gone: boolean): SessionEvent {
  const copy = structuredClone(event);
  const places: [Record<string, unknown>, string][] = [];
  const open: object[] = [{ data: copy.data }];
  const root = open[0] as Record<string, unknown>;
  for (let one = open.pop(); one; one = open.pop()) {
    for (const [key, inner] of Object.entries(one)) {
      places.push([one as Record<string, unknown>, key]);
      if (typeof inner === "object" && inner !== null) open.push(inner as object);
    }
  }
  const [at, key] = places[n % places.length]!;
  if (gone && !Array.isArray(at)) delete at[key];
  else at[key] = value;
  return { ...copy, data: root["data"] } as SessionEvent;
}

function openLog(events: readonly SessionEvent[]): Log {
  return createLog({ header: headerOf("s"), events, now: () => 1, report() {}, betweenTurns: () => false });
}

/** What it throws, which must be an error of the package. */
function refusal(attempt: () => unknown): TurnloopError | undefined {
  try {
    attempt();
    return undefined;
  } catch (error) {
    if (!TurnloopError.is(error)) throw error;
    return error;
  }
}

const hostile = fc.record({
  at: fc.nat({ max: whole.length - 1 }),
  n: fc.nat({ max: 40 }),
  value: poison,
  gone: fc.boolean(),
});

test("an append of anything is taken, or refused before anything has changed; and the log can be read on", () => {
  fc.assert(
    fc.property(hostile, ({ at, n, value, gone }) => {
      const log = openLog(whole.slice(0, at).map((event, seq) => checkEvent(event, seq)));
      const before = log.session.events;
      const history = log.session.deriveMessages();
      const { type, data, surface, cites } = poisoned(whole[at]!, n, value, gone);
      const append = log.session.append as (type: string, data: unknown, envelope: object) => unknown;
      const refused = refusal(() => append(type, data, { ...(surface && { surface }), ...(cites && { cites }) }));
      expect(log.session.seq).toBe(before.length + (refused ? 0 : 1));
      expect(log.session.events.slice(0, before.length)).toEqual(before);
      // A message that was taken comes last; one that was refused is not there.
      expect(refused ? log.session.deriveMessages() : history).toEqual(history);
      if (!refused) readOn(log);
    }),
    { numRuns: 1500 },
  );
});

test("a log of anything is read whole or refused, by an error of the package; and what was read can be read on", () => {
  fc.assert(
    fc.property(hostile, fc.nat({ max: whole.length }), ({ at, n, value, gone }, cut) => {
      const lines = whole.map((event, i) => (i === at ? poisoned(event, n, value, gone) : event)).slice(0, cut + 1);
      let log: Log | undefined;
      const refused = refusal(() => {
        log = openLog(lines.map((event, seq) => checkEvent(event, seq)));
      });
      expect(log === undefined).toBe(refused !== undefined);
      if (log) readOn(log);
    }),
    { numRuns: 1500 },
  );
});

/** Everything that is done with a log must be possible with one that was taken. */
function readOn(log: Log): void {
  repair(log, () => false);
  log.session.deriveMessages();
  createTranscript(log.session).getSnapshot();
  usageOf(log.session);
  // A turn that was left waiting for an answer stays open.
  const next: Line = log.state.open ? line("session/titled", { title: "on" }) : turnStart(log.state.turn + 1);
  log.session.append(next.type, next.data);
  expect(log.session.events.at(-1)).toMatchObject(next);
}
