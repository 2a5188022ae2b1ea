/** What each type of event must hold, and where it may stand. Checked for all that comes from outside the loop. */
import { TurnloopError } from "../errors.ts";
import { isCount, isRecord, jsonCopyOfWhole } from "../json.ts";
import { checkChunk } from "../model/chunks.ts";
import { answerBlocksOf } from "../model/content.ts";
import type { ModelChunk } from "../model/types.ts";
import type { Cite, SessionEvent, SurfaceOp } from "./types.ts";

/**
 * Fields by kind: `#` a whole number, `$` text, `!` a boolean, `%` content blocks, `&` a list of texts, `@` an
 * object with a `kind`, `~` a chunk, `^` a header, `{` an object, `*` anything. `?` behind a name: it may be absent.
 */
const SHAPES: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    "turn/start": "#turn @trigger &messages?",
    "turn/resumed": "#turn #attempt",
    "turn/end": "#turn @reason",
    "step/start": "#turn #step",
    "step/end": "#turn #step",
    "user/message": "$id %content @source",
    "prompt/blocked": "$id %content @source $reason",
    "context/message": "$id %content @source",
    "steering/message": "#turn $id %content @source",
    "request/header": "^header $reason",
    "request/failed": "#turn #step #attempt {error $next {usage?",
    "assistant/chunk": "#turn #step ~chunk",
    "assistant/message": "#turn #step $model %content {usage?",
    "tool/call": "#turn #step $callId $name $arguments",
    "tool/start": "#turn #step $callId #attempt",
    "tool/progress": "$callId *value",
    "tool/result": "#turn #step $callId %content !isError",
    "interaction/requested": "$id $kind *payload $callId? #expiresAt?",
    "interaction/claimed": "$id $client",
    "interaction/released": "$id $client",
    "interaction/resolved": "$id $outcome",
    "inbox/queued": "$id %content @source $as {output?",
    "inbox/dropped": "&ids $reason",
    "agent/cancelled": "$id $reason &dropped #turn?",
    "agent/configured": "{patch",
    "session/titled": "$title",
    "model/aux": "$purpose $model {usage?",
  }).map(([type, fields]) => [type, fields.split(" ")]),
);

const SURFACE = new Set(["user/message", "assistant/message", "tool/result", "context/message", "steering/message"]);

/** Whether events of this type are messages, and so carry `surface`. */
export function isMessageType(type: string): boolean {
  return SURFACE.has(type);
}

export function isCoreType(type: string): boolean {
  return SHAPES.has(type);
}

/** Bookkeeping: the core's own types that may stand between turns. */
export function isBookkeeping(type: string): boolean {
  return /^(inbox|agent|session)\//.test(type) ? SHAPES.has(type) : type === "model/aux";
}

function fits(field: string, data: Record<string, unknown>): boolean {
  const optional = field.endsWith("?");
  const name = nameOf(field);
  if (!Object.hasOwn(data, name)) return optional;
  const value = data[name];
  switch (field[0]) {
    case "#":
      return Number.isSafeInteger(value);
    case "$":
      return typeof value === "string";
    case "!":
      return typeof value === "boolean";
    case "%":
      return passes(() => answerBlocksOf(value));
    case "&":
      return Array.isArray(value) && value.every((item) => typeof item === "string");
    case "@":
      return isRecord(value) && typeof value.kind === "string";
    case "~":
      return isRecord(value) && passes(() => checkChunk(value as ModelChunk));
    case "^":
      return isRecord(value) && isRecord(value.config) && typeof (value.modelId ?? value.config.model) === "string";
    case "{":
      return isRecord(value);
    default:
      return true;
  }
}

function nameOf(field: string): string {
  return field.replace(/^.|\?$/g, "");
}

function passes(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

/** Throws INVALID_CONTENT when an event of a type of the core lacks what that type holds. */
export function checkData(type: string, data: unknown): void {
  if (!isRecord(data)) {
    throw new TurnloopError("INVALID_CONTENT", `the data of ${type} must be an object`);
  }
  for (const field of SHAPES.get(type) ?? []) {
    if (!fits(field, data)) {
      throw new TurnloopError("INVALID_CONTENT", `the data of ${type} lacks a valid \`${nameOf(field)}\``);
    }
  }
}

/** In the order of the history, where a summary stands in front of what is older than itself. */
function isRange(value: unknown, below: number): value is [number, number] {
  return Array.isArray(value) && value.length === 2 && value.every((end) => isSeq(end, below));
}

function isSpan(value: unknown, below: number): boolean {
  return isRange(value, below) && value[0] <= value[1];
}

function isSeq(value: unknown, below: number): boolean {
  return isCount(value) && value < below;
}

/** Throws INVALID_SURFACE for a surface or cites that cannot stand on an event at `seq`. */
export function checkEnvelope(
  type: string,
  seq: number,
  surface: SurfaceOp | undefined,
  cites: readonly Cite[] | undefined,
): void {
  const bad = (what: string): never => {
    throw new TurnloopError("INVALID_SURFACE", `${type}: ${what}`);
  };
  if (isMessageType(type) !== (surface !== undefined)) {
    bad(surface === undefined ? "a message must say `surface`" : "only messages carry `surface`");
  }
  if (surface !== undefined && surface !== "append" && !isRange((surface as { replace?: unknown }).replace, seq)) {
    bad('`surface` must be "append" or a range of earlier seqs');
  }
  if (cites === undefined) return;
  if (!Array.isArray(cites) || !cites.every((cite) => isSeq(cite, seq) || isSpan(cite, seq))) {
    bad("`cites` must name earlier seqs, or ranges of them");
  }
  const spans = cites
    .map((cite) => (typeof cite === "number" ? ([cite, cite] as const) : cite))
    .toSorted((a, b) => a[0] - b[0]);
  if (spans.some(([start], i) => i > 0 && start <= spans[i - 1]![1])) bad("`cites` names a seq twice");
}

/** The next one must be whole, too: a limit that moves with the log is reached by none that is counted from here on. */
function checkCountable(number: number, seq: number): void {
  if (number > 2 ** 52 + seq)
    throw new TurnloopError("INVALID_LOG", `has the number ${number}, behind which none can be`);
}

const ENVELOPE = new Set(["seq", "time", "type", "data", "surface", "cites"]);

/**
 * One event from a seed, a store or an import, as it may enter a log: detached, frozen, its place in the row
 * checked. Throws INVALID_LOG; UNKNOWN_EVENT for a message of a type that this version does not know.
 */
export function checkEvent(raw: unknown, seq: number): SessionEvent {
  const bad = (what: string, cause?: unknown): never => {
    throw new TurnloopError("INVALID_LOG", `event ${seq} ${what}`, { cause });
  };
  let event: SessionEvent;
  try {
    event = jsonCopyOfWhole(raw) as SessionEvent;
  } catch (cause) {
    return bad("is not JSON", cause);
  }
  if (!isRecord(event)) return bad("is not an object");
  for (const key of Object.keys(event)) if (!ENVELOPE.has(key)) bad(`has an unknown field \`${key}\``);
  if (event.seq !== seq) bad(`says that it is ${String(event.seq)}: the log has a gap`);
  if (!Number.isSafeInteger(event.time)) bad("has no valid `time`");
  if (typeof event.type !== "string") bad("has no `type`");
  if (!SHAPES.has(event.type) && event.surface !== undefined) {
    throw new TurnloopError(
      "UNKNOWN_EVENT",
      `event ${seq} is a message of the unknown type ${event.type}, of a newer version; update this one`,
    );
  }
  try {
    checkData(event.type, event.data);
    if (SHAPES.has(event.type)) checkEnvelope(event.type, seq, event.surface, event.cites);
    const { turn, step } = event.data as { readonly turn?: number; readonly step?: number };
    if (event.type === "turn/start" || event.type === "step/start") checkCountable(step ?? turn!, seq);
  } catch (cause) {
    bad((cause as Error).message, cause);
  }
  return event;
}
