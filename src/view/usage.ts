/** What a session used, in tokens: a fold of its log. */
import { addUsage, type SessionEvent, type SessionView, type Usage } from "../core.ts";

export interface SessionUsage {
  readonly total: Usage;
  /** By `Model.id`. */
  readonly byModel: Readonly<Record<string, Usage>>;
  /** By the number of the turn; what was used between turns is in none. */
  readonly byTurn: ReadonlyMap<number, Usage>;
}

/**
 * Adds up what the session's own requests used: answers, attempts that failed, and requests outside of steps
 * (titles, summaries). What a fork inherited was used by the session it comes from, and is not counted.
 */
export function usageOf(session: SessionView): SessionUsage {
  let total: Usage = {};
  const byModel = new Map<string, Usage>();
  const byTurn = new Map<number, Usage>();
  const own = session.header.seedLength ?? 0;
  let turn: number | undefined;
  let model = "";

  const count = (usage: Usage | undefined, by: string): void => {
    if (!usage) return;
    total = addUsage(total, usage);
    byModel.set(by, addUsage(byModel.get(by) ?? {}, usage));
    if (turn !== undefined) byTurn.set(turn, addUsage(byTurn.get(turn) ?? {}, usage));
  };
  const countEvent = (event: SessionEvent): void => {
    switch (event.type) {
      case "assistant/message":
        return count(event.data.usage, event.data.model);
      case "request/failed":
        return count(event.data.usage, model);
      case "model/aux":
        return count(event.data.usage, event.data.model);
    }
  };

  for (let seq = session.start; seq < session.seq; seq += 1) {
    const event = session.at(seq);
    if (event?.type === "turn/start") turn = event.data.turn;
    else if (event?.type === "turn/end") turn = undefined;
    else if (event?.type === "request/header") model = event.data.header.modelId ?? event.data.header.config.model;
    else if (event && seq >= own) countEvent(event);
  }
  return Object.freeze({ total: Object.freeze(total), byModel: Object.freeze(Object.fromEntries(byModel)), byTurn });
}
