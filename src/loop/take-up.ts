/** Where an open turn goes on: a fold of its log, whether it was parked or its host has died in it. */
import { TurnloopError } from "../errors.ts";
import { defined } from "../json.ts";
import { lastStep } from "../session/last-step.ts";
import type { TurnEndReason } from "../session/types.ts";
import { prepare, type Turn } from "./instance.ts";
import { takenMessages } from "./prompts.ts";
import { conclude } from "./step.ts";
import { writeWaiting } from "./waiting.ts";

/** Answers with how the turn ends when nothing is left to run; undefined when steps follow. */
export async function takeUp(turn: Turn): Promise<TurnEndReason | undefined> {
  const { activity, instance } = turn;
  const { log } = instance;
  const open = log.state.open!;
  if (open.cancelled !== undefined) activity.stop({ kind: "aborted", reason: open.cancelled });
  activity.check();
  await markStored(turn);
  if (instance.hooks.heard("agent/turn-start")) await prepare(turn);
  // It goes on among its calls.
  if (open.step) return undefined;
  if (open.steps === 0) return takenMessages(turn);
  writeWaiting(log);
  const { settled, called, steered, failed } = lastStep(log)!;
  if (failed) {
    const { step, error } = failed.data;
    return defined({ kind: "error" as const, step, message: error.message, code: error.code });
  }
  return settled ? conclude(turn, called || steered) : undefined;
}

/** Nothing runs before the log is sure to tell that it was tried once more. */
async function markStored({ activity, instance }: Turn): Promise<void> {
  const { log, recorder } = instance;
  const { resumed } = log.state.open!;
  if (resumed === undefined || recorder.stored > resumed) return;
  try {
    await activity.wait(recorder.settle());
  } catch (cause) {
    activity.check();
    throw new TurnloopError("STORAGE_UNAVAILABLE", "the storage does not answer, so the turn is not resumed", {
      cause,
    });
  }
}
