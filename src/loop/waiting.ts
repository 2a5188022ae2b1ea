/** What waits for a safe place in the history: context behind a tool batch, steering between steps. */
import { queuedMessages, type InboxEntry } from "../session/state.ts";
import { TurnloopError } from "../errors.ts";
import { contentOf, sourceOf } from "../model/content.ts";
import type { CheckedContext, HookContext } from "../tools/types.ts";
import type { Log } from "../session/log.ts";
import { APPEND } from "../session/surface.ts";
import { write, type Turn } from "./instance.ts";

/** Context from a hook, checked. It must say who speaks. */
export function contextOf({ content, source }: HookContext): CheckedContext {
  if (source === undefined) throw new TurnloopError("INVALID_CONTENT", "context from a hook needs a `source`");
  return { content: contentOf(content), source: sourceOf(source) };
}

/** The id under which a call's additional context waits. */
export function contextId(callId: string, accepted: ReadonlySet<string>): string {
  let id = `${callId}/context`;
  for (let n = 2; accepted.has(id); n += 1) id = `${callId}/context/${n}`;
  return id;
}

/** After all results: the contexts of the calls in call order, then what was injected, by acceptance. */
export function writeWaiting(log: Log): void {
  if (log.state.inbox.size === 0) return;
  const calls = [...(log.state.open?.calls.keys() ?? [])];
  const rank = (id: string): number => {
    const call = calls.findIndex((callId) => id.startsWith(`${callId}/context`));
    return call < 0 ? calls.length : call;
  };
  // What is injected by those who hear of it lands here too.
  for (;;) {
    const waiting = queuedMessages(log.state).filter((entry) => entry.as === "inject");
    if (waiting.length === 0) return;
    const [{ id, content, source }] = waiting.toSorted((a, b) => rank(a.id) - rank(b.id)) as [InboxEntry];
    log.write("context/message", { id, content, source }, APPEND);
  }
}

/** Whether anything steers the next step. */
export function isSteered({ instance, reasons }: Turn): boolean {
  return reasons.length > 0 || queuedMessages(instance.log.state).some((entry) => entry.as === "steer");
}

/** Steering enters the history; answers whether there was any. */
export function writeSteering(turn: Turn): boolean {
  const { log, newId } = turn.instance;
  const { reasons } = turn;
  const queued = queuedMessages(log.state).filter((entry) => entry.as === "steer");
  turn.reasons = [];
  for (const { content, source } of reasons) {
    write(turn, "steering/message", { turn: turn.number, id: newId(), content, source }, APPEND);
  }
  for (const { id, content, source } of queued) {
    write(turn, "steering/message", { turn: turn.number, id, content, source }, APPEND);
  }
  return reasons.length + queued.length > 0;
}
