/** Runs one window with one action, and says every way in which what follows is not what was promised. */
import { TurnloopError, type TurnEndReason } from "turnloop";
import { deferred } from "../support/wait.ts";
import { cancels, ends, momentOf, perform, type Action, type Form, type Moment } from "./actions.ts";
import { openTurn } from "./ledger.ts";
import type { Window } from "./windows.ts";
import { createWorld, type World } from "./world.ts";

export async function race(window: Window, action: Action, form: Form): Promise<string[]> {
  const world = await createWorld();
  const { faults } = world;
  const unhandled = (error: unknown): void => void faults.push(`unhandled: ${String(error)}`);
  process.on("unhandledRejection", unhandled);
  try {
    const { moment, stuck } = await play(world, window, action, form);
    if (faults.length === 0) faults.push(...brokenEnd(world, { window, action, form, moment, stuck }));
    const fails =
      window.failing === "fails" &&
      (action === "throw" || action === "reject" || (form === "pending, then rejected" && !stuck));
    if (window.name === "agent/prompt-submit" && fails && !cancels(action) && !ends(action) && !dropsTheFirst(world))
      faults.push("the message on which a listener of prompt-submit has failed was not dropped");
    if (cancels(action) || ends(action)) faults.push(...afterStop(world, moment));
    await checkAfter(world);
    return [...new Set(faults)];
  } finally {
    process.off("unhandledRejection", unhandled);
  }
}

/** Brings a world to its end, with a cancel where nothing else helps, and says what was not as promised. */
export async function settledEnd(world: World, rescues: number): Promise<string[]> {
  const { faults, ledger } = world;
  const unhandled = (error: unknown): void => void faults.push(`unhandled: ${String(error)}`);
  process.on("unhandledRejection", unhandled);
  try {
    for (let left = rescues; !(await world.finish()); left -= 1) {
      if (left === 0) return [...faults, "no cancel has brought it to an end"];
      ledger.cancelled();
      world.agent.cancel("rescue");
    }
    await checkAfter(world);
    return [...new Set(faults)];
  } finally {
    process.off("unhandledRejection", unhandled);
  }
}

/** What must hold in the end, whatever has happened: and that life goes on. */
async function checkAfter(world: World): Promise<void> {
  const { agent, faults, ledger, places } = world;
  faults.push(...brokenStatuses(world));
  places.clear();
  if (world.conflict) await checkLost(world);
  else if (agent.status === "disposed") await checkDisposed(world, openTurn(agent.session) === undefined);
  else await checkNext(world);
  faults.push(...brokenStatuses(world));
  faults.push(...ledger.broken(world.agent.session));
  world.ending("the last disposal", world.harness.dispose());
  if (!(await world.finish())) faults.push("the last disposal has not come to an end");
  faults.push(...world.diagnostics.filter((code) => ["LOOP_FAILED", "TURN_NOT_CLOSED"].includes(code)));
  if (ledger.waiting > 0) faults.push(`${ledger.waiting} whenIdle have never come`);
}

interface Played {
  /** Where it was done. */
  readonly moment: Moment;
  /** The window held the turn up until it was cancelled. */
  readonly stuck: boolean;
}

async function play(world: World, window: Window, action: Action, form: Form): Promise<Played> {
  const { agent, faults, ledger } = world;
  const gate = deferred();
  let moment: Moment | undefined;
  let arrived = false;
  const act = (): Promise<void> | undefined => {
    moment = momentOf(agent);
    return perform(world, action);
  };
  window.install(world, () => {
    if (arrived) return undefined;
    arrived = true;
    if (form === "within") return act();
    if (form.startsWith("pending")) return gate.promise;
    return Promise.resolve().then(() => {
      void act();
      throw new Error("broken");
    });
  });

  if (window.name === "idle") void act();
  if (momentOf(agent).alive) {
    ledger.idle(agent);
    ledger.accept(agent, "send");
    ledger.idle(agent);
    if (window.name === "sent, and not woken") void act();
  }
  // D15: the message on which a listener of prompt-submit fails is dropped.
  if (window.name === "agent/prompt-submit") ledger.mayDrop("m1");
  if (form.startsWith("pending")) {
    // Only what the window waits for is left open: what is asked before is answered on the way.
    for (let round = 0; !arrived && round < 10; round += 1) await step(world);
    await world.rest();
    if (arrived) void act();
    await world.rest();
    if (form === "pending, then resolved") gate.resolve();
    if (form === "pending, then rejected") gate.reject(new Error("broken"));
  }
  let stuck = false;
  if (!(await world.finish())) {
    stuck = true;
    if (form !== "pending for ever" || window.deaf !== "waits") faults.push("it has not come to an end");
    ledger.cancelled();
    agent.cancel("rescue");
    if (!(await world.finish())) faults.push("a cancel has not brought it to an end");
  }
  if (!moment) faults.push("nobody has come to the window");
  return { moment: moment ?? momentOf(agent), stuck };
}

/** One answer to all that is asked. */
async function step(world: World): Promise<void> {
  await world.rest();
  world.answer();
  await world.rest();
  await world.clock.advance(200);
}

interface Case extends Played {
  readonly window: Window;
  readonly action: Action;
  readonly form: Form;
}

/** The turn that was open in the window, or was to come, has not ended as it should. */
function brokenEnd(world: World, the: Case): string[] {
  const { agent } = world;
  const { window, action, moment } = the;
  const turn = moment.turn ?? 1;
  const told = agent.session.events.find((one) => one.type === "turn/end" && one.data.turn === turn);
  const reason = told?.type === "turn/end" ? told.data.reason : undefined;
  const wanted = wantedEnd(the, told !== undefined && told.seq < moment.seq);
  if (action === "another writer") {
    const fits = reason?.kind === "error" && (reason.code === "SESSION_CONFLICT" || reason.message === "broken");
    if (window.late || the.form === "pending for ever" || moment.turn === undefined || fits) return [];
    return [`turn ${turn} ended as ${JSON.stringify(reason)}, and another writer has its session`];
  }
  const shown = (end: unknown): string => JSON.stringify(end) ?? "no end";
  if (typeof wanted === "object" && "anything" in wanted) return [];
  const fits = Object.entries(wanted ?? {}).every(
    ([key, value]) => (reason as unknown as Record<string, unknown> | undefined)?.[key] === value,
  );
  return (wanted === undefined) === (reason === undefined) && fits
    ? []
    : [`turn ${turn} should end as ${shown(wanted)}, and has ended as ${shown(reason)}`];
}

type Wanted =
  | Partial<TurnEndReason & { message: string; code: string; reason: string }>
  | { anything: true }
  | undefined;

function wantedEnd({ window, action, form, moment, stuck }: Case, over: boolean): Wanted {
  if (over) return { kind: "completed" };
  if (moment.turn === undefined) {
    // No turn has begun: what was queued is gone, or waits for the next opening.
    if (window.name === "idle") return ends(action) ? undefined : { kind: "completed" };
    if (action === "cancel" || ends(action)) return undefined;
    return { kind: "completed" };
  }
  // What is cancelled does not wait for an answer any more.
  if (ends(action)) return moment.parked && !cancels(action) ? undefined : { kind: "disposed" };
  if (cancels(action)) return { kind: "aborted", reason: "stop" };
  if (stuck) return { kind: "aborted", reason: "rescue" };
  const rejected = action === "throw" || action === "reject" || form === "pending, then rejected";
  if (rejected && window.failing === "fails") return { kind: "error", message: "broken" };
  if (form === "pending for ever" && window.deaf === "unavailable")
    return { kind: "error", code: "STORAGE_UNAVAILABLE" };
  return { kind: "completed" };
}

function dropsTheFirst({ agent }: World): boolean {
  return agent.session.events.some(
    ({ type, data }) => type === "inbox/dropped" && data.reason === "error" && data.ids.includes("m1"),
  );
}

const CLOSING =
  /^(inbox|interaction\/resolved|agent\/cancelled|context\/message|tool\/(call|result)|assistant\/message|step\/end|turn\/end)/;

/** Once a turn is stopped it is only closed. */
function afterStop({ agent }: World, { turn, seq }: Moment): string[] {
  if (turn === undefined) return [];
  const after = agent.session.events.slice(seq);
  const end = after.findIndex((one) => one.type === "turn/end");
  return (end < 0 ? after : after.slice(0, end)).flatMap(({ type }) =>
    CLOSING.test(type) ? [] : [`${type} was written after the stop`],
  );
}

function brokenStatuses({ statuses, agent }: World): string[] {
  const legal = statuses.every((status, i) => {
    const before = i === 0 ? "idle" : statuses[i - 1];
    return status !== before && before !== "disposed";
  });
  const last = statuses.at(-1) ?? "idle";
  return legal && last === agent.status ? [] : [`the statuses were ${statuses.join()}, and it is ${agent.status}`];
}

/** The next message has a turn of its own, or at least is in it. */
async function checkNext(world: World): Promise<void> {
  const { agent, faults, ledger } = world;
  const id = ledger.accept(agent, "send");
  ledger.idle(agent);
  if (!(await world.finish())) faults.push("the next message has not come to an end");
  const { events } = agent.session;
  const at = events.findIndex((one) => one.type === "user/message" && one.data.id === id);
  const end = events.slice(at).find((one) => one.type === "turn/end");
  if (at < 0 || end?.type !== "turn/end" || end.data.reason.kind !== "completed")
    faults.push(`the turn of the next message ended as ${JSON.stringify(end?.data)}`);
}

/** It takes nothing more; and another process goes on where it was. */
async function checkDisposed(world: World, closed: boolean): Promise<void> {
  const { agent, faults } = world;
  const { seq } = agent.session;
  refuses(world, "AGENT_DISPOSED");
  await world.clock.advance(5000);
  await world.rest();
  if (agent.session.seq !== seq) faults.push("something was written after the disposal");
  await world.harness.dispose();
  await world.reopen();
  if (closed !== (openTurn(world.agent.session) === undefined) && world.agent.status === "idle")
    faults.push("opening it again has changed where it stood");
  if (!(await world.finish())) faults.push("after it was opened again it has not come to an end");
  await checkNext(world);
}

/** It is lost with the next write, and says so; opened again it is what the other writer made of it. */
async function checkLost(world: World): Promise<void> {
  const { faults, ledger } = world;
  const isDisposed = (): boolean => world.agent.status === "disposed";
  if (!isDisposed() && world.agent.session.durable !== "lost") {
    ledger.accept(world.agent, "send");
    await world.finish();
  }
  const { status, session } = world.agent;
  // What is disposed before its next write cannot know.
  if (!isDisposed() && session.durable !== "lost") faults.push(`another writer has it, and it is ${session.durable}`);
  refuses(world, isDisposed() ? "AGENT_DISPOSED" : "READ_ONLY");
  if (status === "running") faults.push("its session is lost, and it is running");
  world.conflict = false;
  await world.harness.dispose();
  await world.reopen();
  ledger.lose(world.agent.session);
  if (!(await world.finish())) faults.push("the other writer's session has not come to an end");
  await checkNext(world);
}

function refuses({ agent, faults }: World, code: string): void {
  for (const verb of ["send", "steer", "inject"] as const) {
    try {
      agent[verb]("too late");
      faults.push(`it took a ${verb}`);
    } catch (thrown) {
      if (!TurnloopError.is(thrown, code)) faults.push(`a ${verb} was refused by ${String(thrown)}`);
    }
  }
}
