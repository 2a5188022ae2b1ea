/** What came of a helper, read off its log. */
import {
  addUsage,
  readPayments,
  textIn,
  TurnloopError,
  type Session,
  type SessionEvent,
  type SessionView,
  type Usage,
} from "../core.ts";

/** What the helper itself has done: not what it was seeded with. */
function ownEvents({ events, header }: SessionView): readonly SessionEvent[] {
  return events.slice(header.seedLength ?? 0);
}

/** The text of its last answer. Throws HELPER_FAILED when its last turn did not complete. */
export function outcomeOf(session: SessionView): string {
  const events = ownEvents(session);
  const end = events.findLast((event) => event.type === "turn/end");
  const answer = events.findLast((event) => event.type === "assistant/message");
  const text = textIn(answer?.data.content ?? []);
  const reason = end?.data.reason;
  if (reason?.kind === "completed") return text === "" ? "(the helper has answered nothing)" : text;
  const why = reason && "message" in reason ? reason.message : reason && "reason" in reason ? reason.reason : "";
  const how = reason === undefined ? "has not begun" : `ended as ${reason.kind}`;
  throw new TurnloopError(
    "HELPER_FAILED",
    `the helper ${how}${why === "" ? "" : `: ${why}`}${text === "" ? "" : `\nIts last words were: ${text}`}`,
  );
}

/**
 * Writes what the helper has used into its parent's log, as far as it does not stand there yet: each token once, however
 * often the call is run, and wherever it was cut short.
 */
export function tellUsage(parent: Session, helper: SessionView): void {
  const purpose = `helper ${helper.id}`;
  const told = new Map<string, Usage>();
  for (const { type, data } of parent.events) {
    if (type !== "model/aux" || data.purpose !== purpose) continue;
    told.set(data.model, addUsage(told.get(data.model) ?? {}, data.usage));
  }
  for (const [model, used] of usageByModel(helper)) {
    const usage = without(used, told.get(model) ?? {});
    if (Object.keys(usage).length > 0) parent.append("model/aux", { purpose, model, usage });
  }
}

/** Failed requests and requests beside its steps too. */
function usageByModel(helper: SessionView): ReadonlyMap<string, Usage> {
  const used = new Map<string, Usage>();
  const paymentIn = readPayments();
  for (const event of helper.events) {
    const payment = paymentIn(event);
    if (!payment || event.seq < (helper.header.seedLength ?? 0)) continue;
    used.set(payment.model, addUsage(used.get(payment.model) ?? {}, payment.usage));
  }
  return used;
}

/** The counts that are left. */
function without(all: Usage, part: Usage): Usage {
  const left = Object.entries(all).map(([count, value]) => [count, value - (part[count as keyof Usage] ?? 0)] as const);
  return Object.fromEntries(left.filter(([, value]) => value > 0));
}
