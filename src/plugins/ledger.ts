/** What an agent has used up, as a fold of its log. */
import { readPayments, type Payment, type SessionEvent, type SessionView } from "../core.ts";
import { follow } from "./follow.ts";
import { usedTokens } from "./tokens.ts";

/** For a million tokens. `cacheRead` and `cacheWrite` default to `input`; reasoning is output. */
export interface Price {
  input: number;
  output: number;
  cacheRead?: number;
  cacheWrite?: number;
}
export type Prices = Readonly<Record<string, Price>>;

export interface Spent {
  steps: number;
  toolCalls: number;
  tokens: number;
  cost: number;
  /** A model that has no price, so that `cost` is too low. */
  unpriced: string | undefined;
  /** In which a turn was at work: not while it waited for a person or a client, nor while its host was gone. */
  ms: number;
}

export interface Ledger {
  /** As of now: a copy of what is spent, and whether the open turn is at work. */
  now(): { readonly spent: Spent; readonly isAtWork: boolean };
  /** The number of a call of the open step among all that count. */
  place(callId: string): number;
}

/** Of the last turn, or of the whole session but for what it was seeded with. */
export function openLedger(session: SessionView, per: "turn" | "session", time: () => number, prices?: Prices): Ledger {
  const zero: Readonly<Spent> = { steps: 0, toolCalls: 0, tokens: 0, cost: 0, unpriced: undefined, ms: 0 };
  const spent = { ...zero };
  const places = new Map<string, number>();
  const paymentIn = readPayments();
  /** The open turn's bodies that have begun, and what nobody has taken up yet: each with the call that waits for it. */
  const begun = new Set<string>();
  const waiting = new Map<string, string | undefined>();
  /** What a client runs: it may come back to waiting. */
  const claimed = new Map<string, string | undefined>();
  let isOpen = false;
  /** Since when the turn has been at work. */
  let since: number | undefined;
  let last = 0;

  /** A turn is at work unless all that it could do waits for a person or a client. */
  const settle = (at: number): void => {
    const asking = new Set(waiting.values());
    const isAtWork = isOpen && (waiting.size === 0 || [...begun].some((callId) => !asking.has(callId)));
    if (isAtWork) since ??= at;
    else if (since !== undefined) {
      spent.ms += Math.max(0, at - since);
      since = undefined;
    }
  };
  const pay = ({ model, usage }: Payment): void => {
    const { input = 0, cacheRead = 0, cacheWrite = 0, output = 0, reasoning = 0 } = usage;
    spent.tokens += usedTokens(usage);
    if (!prices) return;
    const price = Object.hasOwn(prices, model) ? prices[model] : undefined;
    if (!price) {
      spent.unpriced = model;
      return;
    }
    const read = cacheRead * (price.cacheRead ?? price.input);
    const written = cacheWrite * (price.cacheWrite ?? price.input);
    spent.cost += (input * price.input + read + written + (output + reasoning) * price.output) / 1_000_000;
  };
  const take = (event: SessionEvent): void => {
    const { type, data, time: at } = event;
    const payment = paymentIn(event);
    if (payment) pay(payment);
    switch (type) {
      case "turn/start":
        if (per === "turn") Object.assign(spent, zero);
        isOpen = true;
        break;
      case "turn/resumed":
        // The host was gone.
        if (since !== undefined) spent.ms += Math.max(0, last - since);
        since = undefined;
        break;
      case "turn/end":
        isOpen = false;
        begun.clear();
        break;
      case "step/start":
        spent.steps += 1;
        places.clear();
        break;
      case "tool/call":
        places.set(data.callId, (spent.toolCalls += 1));
        break;
      case "tool/start":
        begun.add(data.callId);
        break;
      case "tool/result":
        begun.delete(data.callId);
        break;
      case "interaction/requested":
        waiting.set(data.id, data.callId);
        break;
      case "interaction/claimed":
        if (waiting.has(data.id)) claimed.set(data.id, waiting.get(data.id));
        waiting.delete(data.id);
        break;
      case "interaction/released":
        if (claimed.has(data.id)) waiting.set(data.id, claimed.get(data.id));
        claimed.delete(data.id);
        break;
      case "interaction/resolved":
        waiting.delete(data.id);
        claimed.delete(data.id);
        break;
    }
    if (type !== "assistant/chunk") settle(at);
    last = at;
  };
  const catchUp = follow(session, session.header.seedLength ?? 0, take);
  return {
    now() {
      catchUp();
      const ms = spent.ms + (since === undefined ? 0 : Math.max(0, time() - since));
      return { spent: { ...spent, ms }, isAtWork: since !== undefined };
    },
    place(callId) {
      catchUp();
      return places.get(callId) ?? 0;
    },
  };
}
