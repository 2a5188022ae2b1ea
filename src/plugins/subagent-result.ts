/** What came of a helper, read off its log. */
import { addUsage, TurnloopError, type SessionView, type Usage } from "../core.ts";

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
  const text = (answer?.data.content ?? []).map((block) => (block.type === "text" ? block.text : "")).join("");
  return text === "" ? "(the helper has answered nothing)" : text;
}

/** All that it has used, failed requests and requests beside its steps too. */
export function usageByModel({ events }: SessionView): ReadonlyMap<string, Usage> {
  const used = new Map<string, Usage>();
  let asked = "";
  for (const event of events) {
    if (event.type === "request/header") asked = event.data.header.modelId ?? event.data.header.config.model;
    if (event.type !== "assistant/message" && event.type !== "request/failed" && event.type !== "model/aux") continue;
    const { usage } = event.data;
    const model = "model" in event.data ? event.data.model : asked;
    if (usage) used.set(model, addUsage(used.get(model) ?? {}, usage));
  }
  return used;
}
