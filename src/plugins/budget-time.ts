/** The time limit of a budget: a timer for the open turn of each agent, which runs while that is at work. */
import type { Agent, Clock, Hooks, Unregister } from "../core.ts";
import type { Ledger } from "./ledger.ts";
import { together } from "./together.ts";

export interface TimeLimit {
  readonly hooks: Hooks;
  readonly clock: Clock;
  readonly ms: number;
  readonly ledger: (agent: Agent) => Ledger;
  /** Ends the turn. */
  readonly over: (agent: Agent) => void;
}

/** Acts whatever the turn waits for: a model, a body, a hook, another try, or the storage. */
export function limitTime({ hooks, over, ...limit }: TimeLimit): Unregister {
  const watched = new Map<Agent, Unregister>();
  const leave = (agent: Agent): void => {
    watched.get(agent)?.();
    watched.delete(agent);
  };
  return together(
    () => [...watched.keys()].forEach(leave),
    hooks.on("agent/status", ({ agent, status }) => {
      if (status === "disposed") leave(agent);
      else if (status === "running" && !watched.has(agent))
        watched.set(
          agent,
          watch(agent, limit, () => over(agent)),
        );
    }),
  );
}

/** From the next event on; the timer stands while the turn waits for a person or a client. */
function watch(agent: Agent, { clock, ms, ledger }: Omit<TimeLimit, "hooks" | "over">, over: () => void): Unregister {
  let timer: AbortController | undefined;
  const look = (): void => {
    const { isAtWork, spent } = ledger(agent).now();
    if (!isAtWork) hold();
    else if (!timer) run(Math.max(0, ms - spent.ms));
  };
  const hold = (): void => {
    timer?.abort();
    timer = undefined;
  };
  const run = (left: number): void => {
    const mine = (timer = new AbortController());
    clock.sleep(left, mine.signal).then(
      () => {
        if (timer !== mine) return;
        timer = undefined;
        if (ledger(agent).now().spent.ms >= ms) over();
        else look();
      },
      () => {},
    );
  };
  const off = agent.session.subscribe(({ type }) => {
    if (type !== "assistant/chunk") look();
  });
  return together(off, hold);
}
