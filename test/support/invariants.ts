/** What holds for every session of every test, whatever the test is about. */
import {
  rebuildRequest,
  type Message,
  type ModelRequest,
  type SessionEvent,
  type SessionView,
} from "../../src/index.ts";

/** A request as a model received it, and the place of its step. */
export interface SeenRequest {
  readonly turn: number;
  readonly step: number;
  readonly attempt: number;
  readonly json: string;
}

/** The open step and its attempt: the place of what its model is sent. */
export function placeOf({ events }: SessionView): Omit<SeenRequest, "json"> | undefined {
  let attempt = 1;
  for (const event of events.toReversed()) {
    if (event.type === "request/failed") attempt += 1;
    else if (event.type === "step/start") return { turn: event.data.turn, step: event.data.step, attempt };
    else if (event.type === "step/end") return undefined;
  }
  return undefined;
}

/** Every way in which the session breaks a promise, in words. */
export function brokenPromises(session: SessionView, requests: readonly SeenRequest[]): string[] {
  const { events } = session;
  return [
    ...brokenSeqs(events, session.start),
    ...brokenBoundaries(events, session.header.seedLength ?? 0),
    ...brokenResults(events),
    ...brokenPairs(session),
    ...brokenRequests(events, requests),
    ...brokenFreezing(events),
  ].map((what) => `session ${session.id}: ${what}`);
}

function brokenSeqs(events: readonly SessionEvent[], start: number): string[] {
  return events.flatMap((event, i) => (event.seq === start + i ? [] : [`event ${event.seq} stands at ${start + i}`]));
}

const BETWEEN_TURNS = /^(inbox|agent|session)\/|^model\/aux$/;
/** Types that a test has defined to stand between turns. */
export const definedBetweenTurns = new Set<string>();

function brokenBoundaries(events: readonly SessionEvent[], seedLength: number): string[] {
  const broken: string[] = [];
  let turn = 0;
  let open = false;
  let step = 0;
  let stepOpen = false;
  for (const event of events) {
    const bad = (what: string): void => void broken.push(`${event.type} (${event.seq}): ${what}`);
    switch (event.type) {
      case "turn/start":
        if (open) bad("a turn is open");
        if (event.data.turn !== turn + 1) bad(`is turn ${event.data.turn}, after ${turn}`);
        turn = event.data.turn;
        open = true;
        step = 0;
        break;
      case "turn/end":
        if (!open || event.data.turn !== turn) bad("ends no open turn");
        if (stepOpen) bad("a step is open");
        open = false;
        break;
      case "step/start":
        if (!open || stepOpen) bad(open ? "a step is open" : "no turn is open");
        if (event.data.step !== step + 1) bad(`is step ${event.data.step}, after ${step}`);
        step = event.data.step;
        stepOpen = true;
        break;
      case "step/end":
        if (!stepOpen || event.data.step !== step) bad("ends no open step");
        stepOpen = false;
        break;
      default:
        if (
          !open &&
          event.seq >= seedLength &&
          !BETWEEN_TURNS.test(event.type) &&
          !definedBetweenTurns.has(event.type)
        ) {
          bad("no turn is open");
        }
    }
  }
  return broken;
}

/** One result for each call, and in a closed turn exactly one. */
function brokenResults(events: readonly SessionEvent[]): string[] {
  const broken: string[] = [];
  let open = new Map<string, number>();
  for (const event of events) {
    if (event.type === "assistant/message") {
      for (const block of event.data.content) if (block.type === "tool-call") open.set(block.callId, 0);
    } else if (event.type === "tool/result" && event.surface === "append") {
      const results = open.get(event.data.callId);
      if (results === undefined) broken.push(`a result of ${event.data.callId} answers no call`);
      else if (results > 0) broken.push(`${event.data.callId} has two results`);
      else open.set(event.data.callId, 1);
    } else if (event.type === "step/end") {
      for (const [callId, results] of open)
        if (results === 0) broken.push(`${callId} has no result when its step ends`);
      open = new Map();
    }
  }
  return broken;
}

/** In what a model would read, each call is followed by its result, before anything else. */
function brokenPairs(session: SessionView): string[] {
  const messages = session.deriveMessages();
  const isOpen =
    session.events.findLast((event) => event.type === "turn/start" || event.type === "turn/end")?.type === "turn/start";
  const broken: string[] = [];
  for (let i = 0; i < messages.length; i += 1) {
    const calls = callsOf(messages[i]!);
    const answered = calls.map((_, n) => resultOf(messages[i + 1 + n]));
    const isLast = isOpen && !messages.slice(i + 1).some((message) => message.role === "assistant");
    if (!isLast && JSON.stringify(answered) !== JSON.stringify(calls)) {
      broken.push(`the calls ${calls.join()} are answered by ${answered.join()}`);
    }
  }
  return broken;
}

function callsOf(message: Message): string[] {
  return message.role === "assistant"
    ? message.content.flatMap((block) => (block.type === "tool-call" ? [block.callId] : []))
    : [];
}

function resultOf(message: Message | undefined): string | undefined {
  const [block] = message?.role === "tool" ? message.content : [];
  return block?.type === "tool-result" ? block.callId : undefined;
}

/** Every request is, byte for byte, what the log alone gives. */
function brokenRequests(events: readonly SessionEvent[], requests: readonly SeenRequest[]): string[] {
  return requests.flatMap(({ json, ...at }) => {
    const place = `turn ${at.turn}, step ${at.step}, attempt ${at.attempt}`;
    let rebuilt: ModelRequest;
    try {
      rebuilt = rebuildRequest(events, at);
    } catch (error) {
      return [`the request of ${place} cannot be rebuilt: ${String(error)}`];
    }
    return JSON.stringify(rebuilt) === json
      ? []
      : [`the request of ${place} was ${json}, and is rebuilt as ${JSON.stringify(rebuilt)}`];
  });
}

function brokenFreezing(events: readonly SessionEvent[]): string[] {
  return events.flatMap((event) => (isDeepFrozen(event) ? [] : [`${event.type} (${event.seq}) is not frozen`]));
}

function isDeepFrozen(root: unknown): boolean {
  const open = [root];
  for (let value = open.pop(); open.length > 0 || value !== undefined; value = open.pop()) {
    if (typeof value !== "object" || value === null) continue;
    if (!Object.isFrozen(value)) return false;
    open.push(...Object.values(value));
  }
  return true;
}
