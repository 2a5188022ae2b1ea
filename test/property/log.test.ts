/** The log, for any program of appends, replacements, forks and repairs: what is derived equals a naive replay. */
import * as fc from "fast-check";
import { TurnloopError, type Message, type SessionEvent, type SessionHeader } from "turnloop";
import { describe, expect, test } from "vitest";
import { cutForFork } from "../../src/life/fork.ts";
import { createLog, type Log } from "../../src/session/log.ts";
import { checkEvent } from "../../src/session/shapes.ts";
import { repair } from "../../src/session/repair.ts";
import {
  assistant,
  called,
  context,
  headerOf,
  line,
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

/** What a program does next; `a` and `b` choose among what there is. */
interface Move {
  readonly kind: (typeof KINDS)[number];
  readonly a: number;
  readonly b: number;
}

// Those that move a turn on come more often than those that end it.
const KINDS = [
  ...["open", "open", "open", "answer", "answer", "answer", "call", "start", "result", "result", "result"],
  ...["context", "steering", "user", "step-end", "turn-end", "title", "queue"],
  ...["summary", "summary", "prune", "misplaced", "fork", "repair", "reload"],
] as const;

const program = fc.array(
  fc.record({ kind: fc.constantFrom(...KINDS), a: fc.nat({ max: 50 }), b: fc.nat({ max: 50 }) }),
  { minLength: 10, maxLength: 80 },
) as fc.Arbitrary<readonly Move[]>;

function openLog(events: readonly SessionEvent[], header: SessionHeader = headerOf("s")): Log {
  let now = events.at(-1)?.time ?? 0;
  return createLog({ header, events, now: () => (now += 1), report() {}, betweenTurns: () => false });
}

/** The same log as another process reads it. */
function reloaded(log: Log): Log {
  const { events, header } = log.session;
  const text = JSON.stringify(events);
  return openLog(
    (JSON.parse(text) as unknown[]).map((event, seq) => checkEvent(event, seq)),
    header,
  );
}

/** A program under way: the log, and what no part of the package was asked. */
interface World {
  log: Log;
  ids: number;
}

function append(world: World, { type, data, surface, cites }: Line): void {
  world.log.session.append(type, data, { ...(surface && { surface }), ...(cites && { cites }) });
}

/** Where the log stands, by a look at its events alone. */
function standing(events: readonly SessionEvent[]): { turn: number; step: number; open: boolean; inStep: boolean } {
  const at = { turn: 0, step: 0, open: false, inStep: false };
  for (const { type, data } of events) {
    if (type === "turn/start") Object.assign(at, { turn: (data as { turn: number }).turn, step: 0, open: true });
    else if (type === "turn/end") at.open = false;
    else if (type === "step/start") Object.assign(at, { step: at.step + 1, inStep: true });
    else if (type === "step/end") at.inStep = false;
  }
  return at;
}

/** The calls of the open step, those without a result first. */
function openCalls(events: readonly SessionEvent[]): string[] {
  const from = events.findLastIndex(({ type }) => type === "step/start");
  const step = events.slice(from);
  const answered = new Set(step.flatMap((event) => (event.type === "tool/result" ? [event.data.callId] : [])));
  return callIds(step.filter((event) => event.type === "assistant/message")).filter((id) => !answered.has(id));
}

function callIds(answers: readonly SessionEvent<"assistant/message">[]): string[] {
  return answers.flatMap(({ data }) =>
    data.content.flatMap((block) => (block.type === "tool-call" ? [block.callId] : [])),
  );
}

/** Makes the move if the log as it stands has a place for it; `misplaced` makes one for which it has none. */
function make(world: World, { kind, a, b }: Move): void {
  const { events } = world.log.session;
  const { turn, step, open, inStep } = standing(events);
  const id = (): string => `id${(world.ids += 1)}`;
  const calls = inStep ? openCalls(events) : [];
  const call = calls[a % Math.max(calls.length, 1)];
  const last = events.at(-1)?.type;
  switch (kind) {
    case "open":
      if (!open) append(world, turnStart(turn + 1));
      else if (!inStep) append(world, stepStart(turn, step + 1));
      return;
    case "answer":
      if (inStep && last === "step/start")
        append(world, assistant(turn, step, a % 3 === 0 ? "" : id(), ...Array.from({ length: b % 4 }, id)));
      return;
    case "call":
      if (call !== undefined) append(world, called(turn, step, call));
      return;
    case "start":
      if (call !== undefined) append(world, started(turn, step, call));
      return;
    case "result":
      if (call !== undefined) append(world, result(turn, step, call));
      return;
    case "context":
      if (open) append(world, context(id(), "plugin"));
      return;
    case "steering":
      if (open) append(world, steering(turn, id()));
      return;
    case "user":
      if (open) append(world, user(id()));
      return;
    case "step-end":
      if (inStep) append(world, stepEnd(turn, step));
      return;
    case "turn-end":
      if (open && !inStep) append(world, turnEnd(turn));
      return;
    case "title":
      append(world, line("session/titled", { title: id() }));
      return;
    case "queue":
      append(world, queued(id()));
      return;
    case "summary":
      if (open) trySummary(world, id(), a, b);
      return;
    case "prune":
      if (open) tryPrune(world, a);
      return;
    case "misplaced":
      refused(world, open ? turnStart(turn + 1) : user(id()));
      return;
    case "fork": {
      const ends = events.flatMap((event) => (event.type === "turn/end" ? [event.seq] : []));
      const at = ends[a % Math.max(ends.length, 1)];
      const seed = cutForFork(events, at === undefined ? {} : { at });
      world.log = openLog(seed, headerOf("child", { parent: { id: "s", seq: seed.length }, seedLength: seed.length }));
      return;
    }
    case "repair":
      world.log = repaired(world.log);
      return;
    case "reload":
      world.log = reloaded(world.log);
  }
}

function steering(turn: number, id: string): Line {
  const content = [{ type: "text" as const, text: id }];
  return line("steering/message", { turn, id, content, source: { kind: "user" } }, { surface: "append" });
}

/** Expects the append to be refused, by an error that leaves everything as it was. */
function refused(world: World, made: Line): void {
  const { events } = world.log.session;
  const history = world.log.session.deriveMessages();
  let error: unknown;
  try {
    append(world, made);
  } catch (thrown) {
    error = thrown;
  }
  expect(TurnloopError.is(error)).toBe(true);
  expect(world.log.session.events).toBe(events);
  expect(world.log.session.deriveMessages()).toEqual(history);
}

/** A range can be replaced if its ends stand on the surface and no call is parted from its result by either. */
function trySummary(world: World, id: string, a: number, b: number): void {
  const { events } = world.log.session;
  const nodes = surfaceOf(events);
  if (nodes.length === 0) return;
  const [from, to] = [a % nodes.length, b % nodes.length].toSorted((x, y) => x - y) as [number, number];
  const range = nodes.slice(from, to + 1);
  const [start, end] = [range[0]!.seq, range.at(-1)!.seq];
  const { type, data } = context(id, "summary");
  const made = { type, data, surface: { replace: [start, end] }, cites: range.map(({ seq }) => seq) } as Line;
  // A call that is over without a result is answered by the history: it has nothing to be parted from.
  const asked = range
    .filter((node) => node.type === "assistant/message")
    .flatMap((node) => callIds([node]).filter((callId) => resultOf(nodes, callId) || !isOver(events, nodes, node)));
  const answered = range.flatMap((node) => (node.type === "tool/result" ? [node.data.callId] : []));
  const isWhole = asked.toSorted().join() === answered.toSorted().join();
  if (!isWhole) refused(world, made);
  else append(world, made);
}

function tryPrune(world: World, a: number): void {
  const results = surfaceOf(world.log.session.events).filter((node) => node.type === "tool/result");
  const node = results[a % Math.max(results.length, 1)];
  if (!node) return;
  const { turn, step, callId } = node.data;
  const { surface: _, ...rest } = result(turn, step, callId, "pruned") as Line & { surface: unknown };
  append(world, { ...rest, surface: { replace: [node.seq, node.seq] }, cites: [node.seq] });
}

/** The events that make up the history, by the words of the contract. */
function surfaceOf(events: readonly SessionEvent[]): SessionEvent[] {
  const nodes: SessionEvent[] = [];
  for (const event of events) {
    if (event.surface === undefined) continue;
    if (event.surface === "append") {
      nodes.push(event);
      continue;
    }
    const [start, end] = event.surface.replace;
    const from = nodes.findIndex(({ seq }) => seq === start);
    nodes.splice(from, nodes.findIndex(({ seq }) => seq === end) - from + 1, event);
  }
  return nodes;
}

/** The history in short, from the surface alone: results behind their calls, one for each call that is over. */
function naiveHistory(events: readonly SessionEvent[]): string[] {
  const nodes = surfaceOf(events);
  const history: string[] = [];
  for (const node of nodes) {
    if (node.type === "tool/result") continue;
    if (node.type === "context/message") {
      const { kind } = node.data.source;
      history.push(`user <${kind}>\n${node.data.id}\n</${kind}>`);
    } else if (node.type !== "assistant/message") {
      history.push(`user ${(node.data as { id: string }).id}`);
    } else if (node.data.content.length > 0) {
      history.push(`assistant ${node.data.content.map(textOf).join("")}`);
      for (const callId of callIds([node])) {
        const found = resultOf(nodes, callId);
        if (found) history.push(`tool ${callId} ${outcome(found.data.content)}`);
        else if (isOver(events, nodes, node))
          history.push(`tool ${callId} ${hasStarted(events, callId) ? "unknown" : "not started"}`);
      }
    }
  }
  return history;
}

function resultOf(nodes: readonly SessionEvent[], callId: string): SessionEvent<"tool/result"> | undefined {
  return nodes.find((node) => node.type === "tool/result" && node.data.callId === callId) as
    | SessionEvent<"tool/result">
    | undefined;
}

/** Whether nothing can answer the calls of the answer any more: there is a later one, or its turn has ended. */
function isOver(events: readonly SessionEvent[], nodes: readonly SessionEvent[], answer: SessionEvent): boolean {
  const last = nodes.findLast((node) => node.type === "assistant/message");
  return answer !== last || events.slice(answer.seq).some(({ type }) => type === "turn/end");
}

function hasStarted(events: readonly SessionEvent[], callId: string): boolean {
  return events.some((event) => event.type === "tool/start" && event.data.callId === callId);
}

function textOf(block: { readonly type: string; readonly text?: string; readonly callId?: string }): string {
  return block.type === "tool-call" ? `(${block.callId})` : (block.text ?? "");
}

function short({ role, content }: Message): string {
  const [block] = content;
  if (block?.type !== "tool-result") return `${role} ${content.map(textOf).join("")}`;
  return `tool ${block.callId} ${outcome(block.content)}`;
}

function outcome(content: readonly { readonly type: string }[]): string {
  const said = content.map(textOf).join("");
  return /outcome is unknown/.test(said) ? "unknown" : /was not started/.test(said) ? "not started" : said;
}

/** Repairs the log as the next process to open it does, and looks at what that added. */
function repaired(log: Log): Log {
  const before = log.session.events;
  const next = reloaded(log);
  repair(next, () => false);
  const { events } = next.session;
  expect(events.slice(0, before.length)).toEqual(before);
  expect(standing(events)).toMatchObject({ open: false, inStep: false });
  expect(events.slice(before.length).every(({ time }) => time === before.at(-1)?.time)).toBe(true);
  if (standing(before).inStep) expect(openCalls(events)).toEqual([]);
  const again = reloaded(next);
  repair(again, () => false);
  expect(again.session.events).toEqual(events);
  return next;
}

describe("for any program", () => {
  test("the history that was derived bit by bit is that of the surface, and of a log that is read anew", () => {
    fc.assert(
      fc.property(program, (moves) => {
        const world: World = { log: openLog([]), ids: 0 };
        for (const move of moves) {
          make(world, move);
          const { session } = world.log;
          const history = session.deriveMessages();
          expect(history.map(short)).toEqual(naiveHistory(session.events));
          expect(reloaded(world.log).session.deriveMessages()).toEqual(history);
        }
      }),
      { numRuns: 150 },
    );
  });

  test("seqs have no gap, events never change, and every listener hears all of them in order", () => {
    fc.assert(
      fc.property(program, (moves) => {
        const world: World = { log: openLog([]), ids: 0 };
        let kept: readonly SessionEvent[] = [];
        let heard: SessionEvent[] = [];
        let followed: Log | undefined;
        for (const move of moves) {
          if (world.log !== followed) {
            followed = world.log;
            heard = [];
            kept = [];
            followed.session.subscribe((event) => void heard.push(event), { from: 0 });
          }
          expect(world.log.session.events.slice(0, kept.length)).toEqual(kept);
          kept = world.log.session.events;
          make(world, move);
          expect(followed.session.events).toEqual(heard);
          expect(heard.map(({ seq }) => seq)).toEqual(heard.map((_, i) => i));
        }
      }),
      { numRuns: 100 },
    );
  });
});
