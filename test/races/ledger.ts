/** What was accepted, what became of it, and who was told that all is done: nothing lost, doubled, swapped or early. */
import type { Agent, SessionEvent, SessionView } from "turnloop";

type Verb = "send" | "steer" | "inject";
/** Where a message has ended. */
export interface Fate {
  readonly id: string;
  readonly how: "user" | "steering" | "context" | "blocked" | "dropped";
  readonly seq: number;
}

export interface Ledger {
  /** Performs the verb under an id of its own. */
  accept(agent: Agent, verb: Verb): string;
  /** Whatever waits now may be dropped by whoever comes next, or is: by a cancel. */
  cancelled(): void;
  /** This message may be dropped. */
  mayDrop(id: string): void;
  /** The tail of the log is lost: what is not in this one is as if it had never been. */
  lose(session: SessionView): void;
  /** Follows a `whenIdle` that begins now. */
  idle(agent: Agent): void;
  /** How many of these are not told yet. */
  readonly waiting: number;
  /** Every way in which the log is not what was accepted, now that nothing is queued any more. */
  broken(session: SessionView): string[];
}

export function createLedger(current: () => SessionView, faults: string[]): Ledger {
  let accepted: { readonly id: string; readonly verb: Verb }[] = [];
  const droppable = new Set<string>();
  /** Cancels: what had been accepted, and where the log stood. */
  let cancels: { readonly ids: readonly string[]; readonly seq: number }[] = [];
  let waiting = 0;
  let count = 0;

  return {
    accept(agent, verb) {
      count += 1;
      const id = `m${count}`;
      const entry = { id, verb };
      accepted.push(entry);
      try {
        agent[verb](count === 1 ? "go" : `${verb} ${id}`, { id });
      } catch (thrown) {
        accepted = accepted.filter((other) => other !== entry);
        throw thrown;
      }
      return id;
    },
    cancelled() {
      const ids = accepted.filter(({ verb }) => verb !== "inject").map(({ id }) => id);
      cancels.push({ ids, seq: current().seq });
      for (const id of ids) droppable.add(id);
    },
    mayDrop: (id) => void droppable.add(id),
    lose({ events, seq }) {
      const known = new Set(events.flatMap((event) => (event.type === "inbox/queued" ? [event.data.id] : [])));
      for (const { id } of fatesIn(events)) known.add(id);
      accepted = accepted.filter(({ id }) => known.has(id));
      cancels = cancels.filter((cancel) => cancel.seq < seq && events[cancel.seq]?.type === "agent/cancelled");
    },
    get waiting() {
      return waiting;
    },
    idle(agent) {
      const { session } = agent;
      const before = accepted.filter(({ verb }) => verb !== "inject").map(({ id }) => id);
      const open = openTurn(session);
      waiting += 1;
      const told = (): void => {
        waiting -= 1;
        if (agent.status === "disposed" || session.durable === "lost") return;
        const fates = new Set(fatesIn(session.events).map(({ id }) => id));
        for (const id of before) if (!fates.has(id)) faults.push(`whenIdle came before the end of ${id}`);
        if (open !== undefined && openTurn(session) === open) faults.push(`whenIdle came within turn ${open}`);
      };
      agent.whenIdle().then(told, (error: unknown) => faults.push(`whenIdle was refused: ${String(error)}`));
    },
    broken(session) {
      const fates = fatesIn(session.events);
      const places = new Map(accepted.map(({ id }, place) => [id, place]));
      const broken: string[] = [];
      for (const { id } of accepted) {
        const ends = fates.filter((fate) => fate.id === id);
        if (ends.length > 1) broken.push(`${id} has ended as ${ends.map(({ how }) => how).join(" and ")}`);
        if (ends.length === 0) broken.push(`${id} is lost`);
        if (ends[0]?.how === "dropped" && !droppable.has(id)) broken.push(`${id} was dropped, and nobody asked for it`);
        const { seq = 0, how } = ends[0] ?? {};
        if (how !== "dropped" && cancels.some((cancel) => cancel.ids.includes(id) && seq > cancel.seq))
          broken.push(`${id} has run although it was cancelled`);
      }
      for (const how of ["user", "steering", "context"]) {
        const order = fates.filter((fate) => fate.how === how && places.has(fate.id)).map(({ id }) => id);
        const sorted = order.toSorted((a, b) => places.get(a)! - places.get(b)!);
        if (String(order) !== String(sorted)) broken.push(`as ${how} they came in the order ${order.join()}`);
      }
      return broken;
    },
  };
}

export function fatesIn(events: readonly SessionEvent[]): Fate[] {
  return events.flatMap((event): Fate[] => {
    const { seq } = event;
    switch (event.type) {
      case "user/message":
        return [{ id: event.data.id, how: "user", seq }];
      case "steering/message":
        return [{ id: event.data.id, how: "steering", seq }];
      case "context/message":
        return [{ id: event.data.id, how: "context", seq }];
      case "prompt/blocked":
        return [{ id: event.data.id, how: "blocked", seq }];
      case "inbox/dropped":
        return event.data.ids.map((id) => ({ id, how: "dropped", seq }));
      case "agent/cancelled":
        return event.data.dropped.map((id) => ({ id, how: "dropped", seq }));
      default:
        return [];
    }
  });
}

/** The number of the turn that is open. */
export function openTurn({ events }: SessionView): number | undefined {
  const last = events.findLast((event) => event.type === "turn/start" || event.type === "turn/end");
  return last?.type === "turn/start" ? last.data.turn : undefined;
}
