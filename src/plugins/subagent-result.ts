/** What came of a helper, read off its log. */
import { addUsage, readPayments, textIn, TurnloopError, type SessionView, type Usage } from "../core.ts";

/** The text of its last answer. Throws HELPER_FAILED when its last turn did not complete. */
export function outcomeOf({ events }: SessionView): string {
  const end = events.findLast((event) => event.type === "turn/end");
  const reason = end?.data.reason;
  if (reason?.kind !== "completed") {
    const why = reason && "message" in reason ? reason.message : reason && "reason" in reason ? reason.reason : "";
    const how = reason === undefined ? "has not begun" : `ended as ${reason.kind}`;
    throw new TurnloopError("HELPER_FAILED", `the helper ${how}${why === "" ? "" : `: ${why}`}`);
  }
  const answer = events.findLast((event) => event.type === "assistant/message");
  const text = textIn(answer?.data.content ?? []);
  return text === "" ? "(the helper has answered nothing)" : text;
}

/** All that it has used, failed requests and requests beside its steps too. */
export function usageByModel({ events }: SessionView): ReadonlyMap<string, Usage> {
  const used = new Map<string, Usage>();
  const paymentIn = readPayments();
  for (const event of events) {
    const payment = paymentIn(event);
    if (payment) used.set(payment.model, addUsage(used.get(payment.model) ?? {}, payment.usage));
  }
  return used;
}
