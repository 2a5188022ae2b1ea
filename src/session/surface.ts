/** The surface: the events that make up the history, and the messages that a model reads of them. */
import { TurnloopError } from "../errors.ts";
import type { ContentBlock, Message, MessageSource, ToolCallBlock } from "../model/types.ts";
import type { Cite, SessionEvent, SurfaceOp } from "./types.ts";

/** For an event that is a message of the history, behind what is there. */
export const APPEND = Object.freeze({ surface: "append" as const });

/** An assistant message whose calls are not all answered yet, and what has come since. */
interface OpenGroup {
  readonly message: Message;
  readonly calls: readonly ToolCallBlock[];
  readonly results: Map<string, Message>;
  readonly after: Message[];
}

export interface Surface {
  /** Throws INVALID_SURFACE when a replacement cannot take the place that it names. Changes nothing. */
  check(event: SessionEvent): void;
  /** Takes every event of the log, in order. */
  add(event: SessionEvent): void;
  /** A fresh array of frozen messages: results follow their calls, in call order, each call has one. */
  messages(): Message[];
  /** The events behind them, in their order: frozen, the same array until it changes. */
  events(): readonly SessionEvent[];
  /** The seqs of what a replacement would take the place of, runs of neighbours as ranges. */
  replaced(op: SurfaceOp): readonly Cite[] | undefined;
}

/** An event of the history, with the message that it is. */
interface Node {
  readonly event: SessionEvent;
  readonly message: Message | undefined;
}

export function createSurface(): Surface {
  let nodes: Node[] = [];
  let events: readonly SessionEvent[] | undefined;
  let settled: Message[] = [];
  let group: OpenGroup | undefined;
  const started = new Set<string>();
  function settle(): void {
    if (!group) return;
    const { message, calls, results, after } = group;
    group = undefined;
    settled.push(message);
    for (const call of calls) settled.push(results.get(call.callId) ?? missingResult(call, started.has(call.callId)));
    for (const late of after) settled.push(late);
  }

  function place({ event, message }: Node): void {
    switch (event.type) {
      case "assistant/message": {
        settle();
        if (!message) return;
        const calls = event.data.content.filter((block) => block.type === "tool-call");
        if (calls.length === 0) settled.push(message);
        else group = { message, calls, results: new Map(), after: [] };
        return;
      }
      case "tool/result": {
        // A result without its call would make every later request invalid: it stays in the log alone.
        const call = group?.calls.find((one) => one.callId === event.data.callId);
        if (!group || !call || group.results.has(call.callId)) return;
        group.results.set(call.callId, resultMessage(call, event.data.content, event.data.isError));
        if (group.results.size === group.calls.length) settle();
        return;
      }
      default:
        (group ? group.after : settled).push(message!);
    }
  }

  /** The places of a range of nodes, or undefined. */
  function range(start: number, end: number): [number, number] | undefined {
    const from = nodes.findIndex((node) => node.event.seq === start);
    const to = nodes.findIndex((node) => node.event.seq === end);
    return from >= 0 && to >= from ? [from, to] : undefined;
  }

  return {
    check(event) {
      if (event.surface === undefined || event.surface === "append") return;
      const [start, end] = event.surface.replace;
      const found = range(start, end);
      if (!found)
        throw new TurnloopError(
          "INVALID_SURFACE",
          `no messages stand from ${start} to ${end}; name seqs of the history`,
        );
      const shadowed = nodes.slice(found[0], found[1] + 1).map((node) => node.event);
      for (const node of shadowed) {
        if (!isCited(event, node.seq))
          throw new TurnloopError("INVALID_SURFACE", `\`cites\` must name event ${node.seq}, which is replaced`);
      }
      if (event.type === "tool/result") {
        const [only] = shadowed;
        if (shadowed.length === 1 && only?.type === "tool/result" && only.data.callId === event.data.callId) return;
        throw new TurnloopError("INVALID_SURFACE", "a tool/result can replace only a result of the same call");
      }
      if (event.type !== "context/message")
        throw new TurnloopError("INVALID_SURFACE", `${event.type} cannot replace anything; a context/message can`);
      const owed = new Set(group?.calls.map((call) => call.callId));
      for (const node of nodes) if (node.event.type === "tool/result") owed.add(node.event.data.callId);
      if (!isWhole(shadowed, owed))
        throw new TurnloopError(
          "INVALID_SURFACE",
          "the range would part a tool call from its result; cut where no call is open",
        );
    },

    add(event) {
      if (event.type === "tool/start") started.add(event.data.callId);
      else if (event.type === "turn/end") settle();
      if (event.surface === undefined) return;
      events = undefined;
      const node: Node = { event, message: toMessage(event) };
      if (event.surface === "append") {
        nodes.push(node);
        place(node);
        return;
      }
      const found = range(...event.surface.replace);
      if (!found) return;
      const open = group !== undefined;
      nodes = [...nodes.slice(0, found[0]), node, ...nodes.slice(found[1] + 1)];
      settled = [];
      group = undefined;
      for (const one of nodes) place(one);
      if (!open) settle();
    },

    messages() {
      if (!group) return settled.slice();
      const { message, calls, results, after } = group;
      const answered = calls.flatMap((call) => results.get(call.callId) ?? []);
      return [...settled, message, ...answered, ...after];
    },

    events: () => (events ??= Object.freeze(nodes.map((node) => node.event))),

    replaced(op) {
      const found = op === "append" ? undefined : range(...op.replace);
      if (!found) return undefined;
      const runs: Run[] = [];
      const seqs = nodes.slice(found[0], found[1] + 1).map((node) => node.event.seq);
      for (const seq of seqs.toSorted((a, b) => a - b)) addToRuns(runs, seq);
      return citesOf(runs);
    },
  };
}

/** Neighbouring seqs: the first and the last of them. */
export type Run = [first: number, last: number];

/** For a `seq` above all that are in `runs`. */
export function addToRuns(runs: Run[], seq: number): void {
  const last = runs.at(-1);
  if (last && last[1] === seq - 1) last[1] = seq;
  else runs.push([seq, seq]);
}

export function citesOf(runs: readonly Run[]): readonly Cite[] {
  return Object.freeze(runs.map((run) => (run[0] === run[1] ? run[0] : Object.freeze(run))));
}

function isCited(event: SessionEvent, seq: number): boolean {
  return (event.cites ?? []).some((cite) =>
    typeof cite === "number" ? cite === seq : cite[0] <= seq && seq <= cite[1],
  );
}

/** Whether every call in the row that has a result, or waits for one, has it there; and every result its call. */
function isWhole(row: readonly SessionEvent[], owed: ReadonlySet<string>): boolean {
  const open = new Set<string>();
  for (const node of row) {
    if (node.type === "assistant/message") {
      for (const block of node.data.content)
        if (block.type === "tool-call" && owed.has(block.callId)) open.add(block.callId);
    } else if (node.type === "tool/result" && !open.delete(node.data.callId)) {
      return false;
    }
  }
  return open.size === 0;
}

function toMessage(event: SessionEvent): Message | undefined {
  switch (event.type) {
    case "user/message":
    case "steering/message":
      return userMessage(event.data.content, event.data.source);
    case "context/message":
      return userMessage(inTag(event.data.content, event.data.source), event.data.source);
    case "assistant/message": {
      const { content, model } = event.data;
      return content.length === 0 ? undefined : Object.freeze({ role: "assistant", content, model });
    }
    default:
      return undefined;
  }
}

function userMessage(content: readonly ContentBlock[], source: MessageSource): Message {
  return Object.freeze({ role: "user", content, source });
}

/** Context goes in a tag that names what kind of source it has. */
function inTag(content: readonly ContentBlock[], source: MessageSource): readonly ContentBlock[] {
  const tag = source.kind.replace(/[^\w-]/g, "-") || "context";
  return Object.freeze([text(`<${tag}>\n`), ...content, text(`\n</${tag}>`)]);
}

function text(value: string): ContentBlock {
  return Object.freeze({ type: "text", text: value });
}

function resultMessage(call: ToolCallBlock, content: readonly ContentBlock[], isError: boolean): Message {
  const block = Object.freeze({ type: "tool-result" as const, callId: call.callId, name: call.name, content, isError });
  return Object.freeze({ role: "tool", content: Object.freeze([block]) });
}

/** What stands for a result that was never written. */
export const NOT_STARTED = "The tool was not started. It has had no effect and may be called again.";
export const OUTCOME_UNKNOWN =
  "The tool was started, and its outcome is unknown: it may or may not have had its effect. Verify before calling it again.";

function missingResult(call: ToolCallBlock, started: boolean): Message {
  return resultMessage(call, Object.freeze([text(started ? OUTCOME_UNKNOWN : NOT_STARTED)]), true);
}
