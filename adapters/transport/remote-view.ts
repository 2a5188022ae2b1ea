/** What a remote handle shows: its mirrored log, what its outbox still holds, and how the host is doing. */
import {
  contentOf,
  isWaiting,
  jsonEqual,
  nextSnapshot,
  openInteractions,
  queuedMessages,
  sourceOf,
} from "../../src/core.ts";
import type { AgentSnapshot, AgentStatus, LogState, QueuedMessage, TurnloopError } from "../../src/core.ts";
import type { Command, HostState } from "./protocol.ts";
import type { Right } from "./types.ts";

/** What is shown besides the log. */
export interface Circumstances {
  readonly status: AgentStatus;
  readonly connection: "connecting" | "open" | "closed";
  readonly rights: readonly Right[];
  readonly host: HostState;
  readonly commands: readonly Command[];
  readonly error: TurnloopError | undefined;
}

/** Frozen; the same object as `last` where nothing differs. */
export function snapshotOf(last: AgentSnapshot | undefined, state: LogState, now: Circumstances): AgentSnapshot {
  const shown: AgentSnapshot = {
    status: now.status,
    waiting: isWaiting(state),
    queue: queueOf(state, now),
    interactions: openInteractions(state),
    durable: now.host.durable === "degraded" ? "degraded" : now.commands.length > 0 ? "pending" : "stored",
    connection: now.connection,
    rights: now.rights,
    ...(now.error && { error: now.error }),
  };
  return nextSnapshot(last, shown, sameEntry);
}

/** What the host has accepted, then what is on its way there; without what is on its way out. */
function queueOf(state: LogState, { commands, status }: Circumstances): QueuedMessage[] {
  const leaving = new Set(commands.flatMap(leavingBy));
  const queue = queuedMessages(state).map(({ id, content, source, as }) => Object.freeze({ id, content, source, as }));
  for (const command of commands) {
    if (command.kind !== "send" && command.kind !== "steer" && command.kind !== "inject") continue;
    if (state.accepted.has(command.id)) continue;
    const { id, kind, content, source, output } = command;
    const as = kind === "steer" && (status !== "running" || output) ? "send" : kind;
    queue.push(Object.freeze({ id, content: contentOf(content), source: sourceOf(source), as }));
  }
  return leaving.size === 0 ? queue : queue.filter(({ id }) => !leaving.has(id));
}

function leavingBy(command: Command): readonly string[] {
  return command.kind === "cancel" && command.queue === "drop" ? command.messages : [];
}

function sameEntry(a: QueuedMessage, b: QueuedMessage): boolean {
  return a.id === b.id && a.as === b.as && jsonEqual(a.source, b.source);
}
