/** Runs the tool calls of an answer: one after another, but for those that may overlap. */
import { unansweredCalls } from "../session/state.ts";
import type { Turn } from "./instance.ts";
import { runCall } from "./tool-call.ts";

/** Until every call of the open step has its result; answers whether there were any calls. */
export async function runTools(turn: Turn): Promise<boolean> {
  const { log, tools, maxParallelToolCalls } = turn.instance;
  const running = new Set<Promise<void>>();
  let failure: { readonly thrown: unknown } | undefined;

  const start = (call: Parameters<typeof runCall>[1]): void => {
    const settled: Promise<void> = runCall(turn, call).then(
      () => void running.delete(settled),
      (thrown: unknown) => {
        running.delete(settled);
        failure ??= { thrown };
      },
    );
    running.add(settled);
  };
  /** Waits until at most `most` are running. A failure lets them all end before it surfaces. */
  const drain = async (most: number): Promise<void> => {
    while (running.size > (failure ? 0 : most)) await Promise.race(running);
    if (failure) throw failure.thrown;
  };

  const { calls, step } = log.state.open!;
  for (const call of unansweredCalls(log.state)) {
    if (call.step !== step!.number) continue;
    const shared = tools.lookup(call.block.name)?.parallel === true;
    if (running.size > 0) await drain(shared ? maxParallelToolCalls - 1 : 0);
    if (shared) start(call);
    else await runCall(turn, call);
  }
  if (running.size > 0) await drain(0);
  for (const call of calls.values()) if (call.step === step!.number) return true;
  return false;
}
