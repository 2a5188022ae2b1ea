/** The frames: JSON texts, the same over every connection, checked on both sides. */
import * as z from "zod/mini";
import { TurnloopError } from "../../src/core.ts";
import type {
  AgentOptions,
  CallConfig,
  ContentInput,
  JsonSchema,
  JsonValue,
  MessageSource,
  QueuedMessage,
} from "../../src/core.ts";
import type { Right } from "./types.ts";

/** Of the frames; a peer of another version is refused. */
export const PROTOCOL = 1;

/** A constant text each way, so that a platform can answer them while the host sleeps. */
export const PING = '{"type":"ping"}';
export const PONG = '{"type":"pong"}';

/** What a handle asks of its host. `id` is made by the client, and takes effect once. */
export type Command =
  | {
      readonly kind: "send" | "steer" | "inject";
      readonly id: string;
      readonly content: ContentInput;
      /** Heeded only of a peer whose identity is null. */
      readonly source?: MessageSource;
      readonly output?: JsonSchema;
    }
  /** `turn`: the number of the last turn that its sender saw. */
  | { readonly kind: "continue"; readonly id: string; readonly turn: number }
  | { readonly kind: "withdraw"; readonly id: string; readonly message: string }
  /** `turn`: the open turn that its sender saw. `messages`: what was queued or asked for there. It is meant for no other. */
  | {
      readonly kind: "cancel";
      readonly id: string;
      readonly reason: string;
      readonly queue: "drop" | "keep";
      readonly turn?: number;
      readonly messages: readonly string[];
    }
  | { readonly kind: "respond"; readonly id: string; readonly interaction: string; readonly value: JsonValue }
  | { readonly kind: "claim"; readonly id: string; readonly interaction: string }
  | { readonly kind: "configure"; readonly id: string; readonly patch: Partial<CallConfig> };

export type ClientFrame =
  | {
      readonly type: "hello";
      readonly version: number;
      readonly session: string;
      /** Names this handle for as long as it lives, over all its connections. */
      readonly client: string;
      /** The seq that it wants next; absent of a newcomer. */
      readonly next?: number;
      /** The event before that, so that the host sees whether both speak of the same log. */
      readonly last?: Mark;
      /** Of a newcomer. */
      readonly history?: "all" | "tail";
    }
  /** What was asked for in one synchronous frame takes effect in one. */
  | { readonly type: "commands"; readonly session: string; readonly commands: readonly Command[] }
  /** So many more characters of events have arrived. */
  | { readonly type: "seen"; readonly session: string; readonly amount: number }
  /** Asks for what stands before the seq. */
  | { readonly type: "earlier"; readonly session: string; readonly before: number };

/** By which two logs are told apart. */
export interface Mark {
  readonly seq: number;
  readonly time: number;
  readonly type: string;
}

/** Where a tail begins: what a reader of the whole log would know there. */
export interface Base {
  readonly start: number;
  /** The number of the last turn before. */
  readonly turn: number;
  readonly queue: readonly QueuedMessage[];
}

/** What the log does not tell. */
export interface HostState {
  readonly status: "idle" | "running";
  readonly durable: "stored" | "degraded";
}

export interface WireError {
  readonly code: string;
  readonly message: string;
}

export type HostFrame =
  | {
      /** Comes once more, on the same connection, of a host that has slept and wakes: what is its own is in `openedAt`. */
      readonly type: "welcome";
      readonly version: number;
      readonly session: string;
      readonly header: unknown;
      readonly rights: readonly Right[];
      readonly options: Pick<AgentOptions, "model" | "call">;
      /** The seq that follows: the one that was asked for; otherwise all that the client has is of another log. */
      readonly next: number;
      /** Of a newcomer that gets the tail alone. */
      readonly base?: Base;
      /** Where the host took the log up: what was claimed or steered before is so no more. */
      readonly openedAt: number;
      readonly maxFrameBytes: number;
      /** `seen` is wanted after so many characters. */
      readonly seenEvery: number;
    }
  | { readonly type: "events"; readonly session: string; readonly from: number; readonly events: readonly unknown[] }
  | { readonly type: "state"; readonly session: string; readonly state: HostState }
  | { readonly type: "earlier"; readonly session: string; readonly base: Base; readonly events: readonly unknown[] }
  /** Stored, with all that came of it before. */
  | { readonly type: "done"; readonly session: string; readonly id: string; readonly value?: JsonValue }
  | { readonly type: "refused"; readonly session: string; readonly id: string; readonly error: WireError }
  /** The last frame. `retry`: another connection may do better. */
  | { readonly type: "closed"; readonly error: WireError; readonly retry: boolean };

const text = z.string();
const id = z.string().check(z.minLength(1), z.maxLength(1024));
const count = z.int().check(z.nonnegative());
const fields = z.custom<object>((value) => typeof value === "object" && value !== null && !Array.isArray(value));

/** An id may be any text, as it may here: what is no id of anything is refused by the verb, not by the wire. */
const command = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal(["send", "steer", "inject"]),
    id: text,
    content: z.union([text, z.array(z.unknown())]),
    source: z.optional(fields),
    output: z.optional(fields),
  }),
  z.object({ kind: z.literal("continue"), id: text, turn: count }),
  z.object({ kind: z.literal("withdraw"), id: text, message: text }),
  z.object({
    kind: z.literal("cancel"),
    id: text,
    reason: text,
    queue: z.literal(["drop", "keep"]),
    turn: z.optional(count),
    messages: z.array(text),
  }),
  z.object({ kind: z.literal("respond"), id: text, interaction: text, value: z.unknown() }),
  z.object({ kind: z.literal("claim"), id: text, interaction: text }),
  z.object({ kind: z.literal("configure"), id: text, patch: fields }),
]);

const clientFrame = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("hello"),
    version: z.number(),
    session: id,
    client: id,
    next: z.optional(count),
    last: z.optional(z.object({ seq: count, time: z.int(), type: text })),
    history: z.optional(z.literal(["all", "tail"])),
  }),
  z.object({ type: z.literal("commands"), session: id, commands: z.array(command) }),
  z.object({ type: z.literal("seen"), session: id, amount: count }),
  z.object({ type: z.literal("earlier"), session: id, before: count }),
]);

const error = z.object({ code: text, message: text });
const base = z.object({ start: count, turn: count, queue: z.array(fields) });

const hostFrame = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("welcome"),
    version: z.number(),
    session: id,
    header: z.unknown(),
    rights: z.array(z.literal(["read", "drive", "answer"])),
    options: fields,
    next: count,
    base: z.optional(base),
    openedAt: count,
    maxFrameBytes: count,
    seenEvery: count,
  }),
  z.object({ type: z.literal("events"), session: id, from: count, events: z.array(z.unknown()) }),
  z.object({
    type: z.literal("state"),
    session: id,
    state: z.object({ status: z.literal(["idle", "running"]), durable: z.literal(["stored", "degraded"]) }),
  }),
  z.object({ type: z.literal("earlier"), session: id, base, events: z.array(z.unknown()) }),
  z.object({ type: z.literal("done"), session: id, id: text, value: z.optional(z.unknown()) }),
  z.object({ type: z.literal("refused"), session: id, id: text, error }),
  z.object({ type: z.literal("closed"), error, retry: z.boolean() }),
]);

/** Throws BAD_FRAME, VERSION_MISMATCH. What a message holds is checked by whoever takes it. */
export function readClientFrame(frame: string): ClientFrame {
  // JSON knows no undefined: what is optional is there or it is not. Blocks and events are checked by the core.
  return parse(clientFrame, frame) as ClientFrame;
}

/** Throws BAD_FRAME, VERSION_MISMATCH. */
export function readHostFrame(frame: string): HostFrame {
  return parse(hostFrame, frame) as HostFrame;
}

/** A command that was kept over a reload; undefined for anything else. */
export function readCommand(value: unknown): Command | undefined {
  const read = z.safeParse(command, value);
  return read.success ? (read.data as Command) : undefined;
}

function parse(schema: typeof clientFrame | typeof hostFrame, frame: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(frame);
  } catch (cause) {
    throw new TurnloopError("BAD_FRAME", "a frame must be JSON", { cause });
  }
  checkVersion(value);
  const read = z.safeParse(schema, value);
  if (read.success) return read.data;
  const place = read.error.issues[0]?.path.join(".") ?? "";
  throw new TurnloopError("BAD_FRAME", `a frame is not what it should be${place && ` at \`${place.slice(0, 100)}\``}`);
}

/** Before all else: a peer of another version may shape its first frame otherwise. Throws VERSION_MISMATCH. */
function checkVersion(value: unknown): void {
  const { type, version } = Object(value) as { readonly type?: unknown; readonly version?: unknown };
  if ((type !== "hello" && type !== "welcome") || typeof version !== "number" || version === PROTOCOL) return;
  const message = `this side speaks version ${PROTOCOL} of the protocol, the other version ${version}; update the older one`;
  throw new TurnloopError("VERSION_MISMATCH", message);
}
