/** What a session used, in tokens: a fold of its log. */
import { addUsage, readPayments, type Payment, type SessionView, type Usage } from "../core.ts";

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
  const paymentIn = readPayments();

  const count = ({ model, usage }: Payment): void => {
    total = addUsage(total, usage);
    byModel.set(model, addUsage(byModel.get(model) ?? {}, usage));
    if (turn !== undefined) byTurn.set(turn, addUsage(byTurn.get(turn) ?? {}, usage));
  };

  for (let seq = session.start; seq < session.seq; seq += 1) {
    const event = session.at(seq);
    if (!event) continue;
    const payment = paymentIn(event);
    if (event.type === "turn/start") turn = event.data.turn;
    else if (event.type === "turn/end") turn = undefined;
    else if (payment && seq >= own) count(payment);
  }
  return Object.freeze({ total: Object.freeze(total), byModel: Object.freeze(Object.fromEntries(byModel)), byTurn });
}
