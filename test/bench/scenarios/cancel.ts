/** From a cancel to the end of the turn, when a model or a tool stops at the signal, and when it never looks at it. */
import { setTimeout as sleep } from "node:timers/promises";
import { RESULT, stall, stallingModel, toolModel, type Manner, type Stream } from "../mock.ts";
import { prepare, type Side, type Tool } from "../side.ts";
import { repeat, type Figure } from "../timing.ts";

const BUDGET_MS = 200;
/** How long a turn may go on before it counts as one that no cancel ends. */
const HANGS_MS = 300;

export async function cancel(side: Side): Promise<Figure[]> {
  const figures: Figure[] = [];
  const measure = async (row: string, make: (stalled: () => void) => readonly [Stream, Tool]): Promise<void> => {
    const once = (): Promise<number> => cancelled(side, make);
    const sample = (await once()) === Infinity ? { median: Infinity, min: Infinity } : await repeat(BUDGET_MS, once);
    figures.push({ row, unit: "µs", median: sample.median * 1000, min: sample.min * 1000 });
  };
  for (const manner of ["polite", "deaf"] satisfies Manner[]) {
    await measure(`${manner} model`, (stalled) => [stallingModel(manner, stalled), () => RESULT]);
  }
  for (const manner of ["polite", "deaf"] satisfies Manner[]) {
    await measure(`${manner} tool`, (stalled) => [
      toolModel(1),
      (_args, signal) => {
        stalled();
        return stall(manner, signal);
      },
    ]);
  }
  return figures;
}

/** Infinity for a turn that goes on. */
async function cancelled(side: Side, make: (stalled: () => void) => readonly [Stream, Tool]): Promise<number> {
  const { promise: stalled, resolve } = Promise.withResolvers<void>();
  const { turn, cancel: stop, dispose } = await prepare(side, ...make(resolve));
  const ended = turn().then(
    () => performance.now(),
    () => performance.now(),
  );
  await stalled;
  // What the turn has left to the event loop is done first, as it is while a real model is silent.
  await new Promise(setImmediate);
  const start = performance.now();
  stop();
  const patience = new AbortController();
  const hangs = sleep(HANGS_MS, Infinity, { signal: patience.signal });
  const end = await Promise.race([ended, hangs]);
  patience.abort();
  hangs.catch(() => {});
  if (end === Infinity) return Infinity;
  await dispose();
  return end - start;
}
