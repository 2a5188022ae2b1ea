/** What is done in a window, and in which form. */
import type { World } from "./world.ts";
import { openTurn } from "./ledger.ts";
import type { Window } from "./windows.ts";

export const ACTIONS = [
  "nothing",
  "cancel",
  "cancel, then send",
  "cancel that keeps the queue",
  "cancel, then dispose",
  "send",
  "steer",
  "inject",
  "respond",
  "dispose",
  "disposal of the owner",
  "disposal of the harness",
  "throw",
  "reject",
  "a storage that fails twice",
  "another writer",
] as const;
export type Action = (typeof ACTIONS)[number];

export const FORMS = [
  "within",
  "just behind, then rejected",
  "pending, then resolved",
  "pending, then rejected",
  "pending for ever",
] as const;
export type Form = (typeof FORMS)[number];

const FAILURES: ReadonlySet<Action> = new Set(["throw", "reject"]);

/** All that can be done in the window. */
export function pairsOf({ kind, asks, name }: Window): { action: Action; form: Form }[] {
  return ACTIONS.flatMap((action) => {
    if (action === "respond" && !asks) return [];
    if (kind === "outside") return action === "nothing" || FAILURES.has(action) ? [] : [{ action, form: FORMS[0] }];
    // A listener that only fails has nothing to do while it is pending.
    const forms = FAILURES.has(action) ? FORMS.slice(0, 1) : FORMS.filter((form) => fits(form, kind));
    return (
      forms
        .filter((form) => action !== "nothing" || form !== "within")
        // A storage that hangs never says that somebody else writes.
        .filter((form) => action !== "another writer" || form !== "pending for ever" || !name.startsWith("store"))
        .map((form) => ({ action, form }))
    );
  });
}

function fits(form: Form, kind: Window["kind"]): boolean {
  return form === "within" || form.startsWith("pending") === (kind === "asked");
}

export const ends = (action: Action): boolean => action.includes("dispos");
export const cancels = (action: Action): boolean => action.startsWith("cancel");

/** Where the loop was when something was done. */
export interface Moment {
  readonly seq: number;
  readonly alive: boolean;
  /** The number of the open turn. */
  readonly turn: number | undefined;
  /** The open turn waits for an answer, and for nothing else. */
  readonly parked: boolean;
}

export function momentOf({ session, status }: World["agent"]): Moment {
  const { seq, events } = session;
  const turn = openTurn(session);
  const here = events.slice(events.findLastIndex(({ type }) => type === "turn/start"));
  const answered = new Set(here.flatMap((one) => (one.type === "tool/result" ? [one.data.callId] : [])));
  const resolved = new Set(here.flatMap((one) => (one.type === "interaction/resolved" ? [one.data.id] : [])));
  const asked = here.flatMap((one) => (one.type === "interaction/requested" ? [one.data] : []));
  const unanswered = asked.filter(({ callId }) => !answered.has(callId!));
  const started = here.flatMap((one) =>
    one.type === "tool/start" && !answered.has(one.data.callId) ? [one.data.callId] : [],
  );
  /** A started call may wait for its client, or, being idempotent, for its question. */
  const waits = (callId: string): boolean =>
    asked.some(
      (one) =>
        one.callId === callId && (one.kind === "client-tool" || (one.kind === "question" && !resolved.has(one.id))),
    );
  return {
    seq,
    alive: status !== "disposed",
    turn,
    parked: turn !== undefined && unanswered.length > 0 && started.every(waits),
  };
}

/** Does it, here and now. Never throws, but where that is what is to be done. */
export function perform(world: World, action: Action): Promise<void> | undefined {
  const { agent, ledger } = world;
  switch (action) {
    case "throw":
      throw new Error("broken");
    case "reject":
      return Promise.reject(new Error("broken"));
    default:
      ledger.idle(agent);
      try {
        act(world, action);
      } catch (thrown) {
        // Somebody who heard of its first half may have ended the agent.
        if (agent.status !== "disposed") world.faults.push(`${action} has thrown ${String(thrown)}`);
      }
      if (world.agent.status !== "disposed") ledger.idle(agent);
      return undefined;
  }
}

function act(world: World, action: Exclude<Action, "throw" | "reject">): void {
  const { agent, ledger } = world;
  switch (action) {
    case "nothing":
      return;
    case "cancel":
    case "cancel, then send":
      ledger.cancelled();
      agent.cancel("stop");
      if (action !== "cancel") ledger.accept(agent, "send");
      return;
    case "cancel that keeps the queue":
      agent.cancel("stop", { queue: "keep" });
      return;
    case "send":
    case "steer":
    case "inject":
      ledger.accept(agent, action);
      return;
    case "respond":
      if (agent.interactions.length === 0) world.faults.push("nothing waits for an answer");
      world.answer();
      return;
    case "cancel, then dispose":
      ledger.cancelled();
      agent.cancel("stop");
      world.ending("the disposal", world.handle.dispose());
      return;
    case "dispose":
      world.ending("the disposal", world.handle.dispose());
      return;
    case "disposal of the owner":
      world.ending("the disposal of the owner", world.owner.dispose());
      return;
    case "disposal of the harness":
      world.ending("the disposal of the harness", world.harness.dispose());
      return;
    case "a storage that fails twice":
      world.failWrites(2);
      return;
    case "another writer":
      world.conflict = true;
  }
}
