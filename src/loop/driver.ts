/** Drives one agent for its whole life: waits, runs a turn, stores it, and survives whatever the turn met. */
import { queuedMessages } from "../session/state.ts";
import type { Instance } from "./instance.ts";
import { runTurn } from "./turn.ts";

/** Resolves when the agent is disposed and its last turn has ended. */
export async function drive(instance: Instance): Promise<void> {
  const { core } = instance;
  const alive = (): boolean => core.agent.status !== "disposed";
  while (alive()) {
    // An open turn is one that was parked: it goes on before anything else.
    if (!hasWork(instance)) await core.wake();
    if (alive() && hasWork(instance)) await work(instance);
    // All of it is done, or was withdrawn or cancelled before it began.
    if (alive() && !hasWork(instance)) core.become("idle");
  }
  core.ended();
}

function hasWork({ core, log, recorder }: Instance): boolean {
  return core.hasWork() || (log.state.open !== undefined && !log.closed && !recorder.lost);
}

/** One turn, unless a listener of the status has taken away what there was to do. */
async function work(instance: Instance): Promise<void> {
  const { core, log, recorder } = instance;
  const activity = core.begin();
  core.become("running");
  if (core.agent.status === "disposed" || !hasWork(instance)) {
    core.activity = undefined;
    return;
  }
  // A cancel from the listener ends a parked turn; else it took what was queued, and what came after it begins anew.
  const anew = activity.stopped !== undefined && !log.state.open;
  const running = anew ? core.begin() : activity;
  const terminal = await runTurn(instance, running);
  core.activity = undefined;
  if (log.state.open) return;
  const { lost } = recorder;
  if (lost) log.close(() => lost);
  await instance.flush().catch((error: unknown) => {
    const { stopped } = running;
    // What has ended the turn was told with its end.
    if (stopped?.kind !== "failed" || stopped.error !== error) instance.tellError(error);
  });
  if (terminal) dropSteering(instance);
}

/** A policy has stopped the turn: steering that came until here was meant for it. */
function dropSteering({ log }: Instance): void {
  const ids = queuedMessages(log.state)
    .filter((entry) => entry.as === "steer")
    .map((entry) => entry.id);
  if (ids.length > 0 && !log.closed) log.write("inbox/dropped", { ids: Object.freeze(ids), reason: "stopped" });
}
