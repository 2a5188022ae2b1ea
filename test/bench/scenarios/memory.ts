/** The heap that a turn leaves in use while its log is held, for each event that a subscriber was told of. */
import { setTimeout as sleep } from "node:timers/promises";
import { RESULT, textModel, toolModel, type Stream } from "../mock.ts";
import { prepare, type Side, type Tool } from "../side.ts";
import { collectGarbage, sampleOf, type Figure } from "../timing.ts";

const TIMES = 3;

export async function memory(side: Side): Promise<Figure[]> {
  const measure = async (row: string, make: () => Stream, tool?: Tool): Promise<Figure> => {
    const held: number[] = [];
    // The first time warms up.
    for (let i = 0; i <= TIMES; i += 1) held.push(await heldPerEvent(side, make(), tool));
    return { row, unit: "bytes/event", ...sampleOf(held.slice(1)) };
  };
  return [
    await measure("10,000 chunks", () => textModel(10_000)),
    await measure(
      "1,000 steps",
      () => toolModel(1000),
      () => RESULT,
    ),
  ];
}

async function heldPerEvent(side: Side, stream: Stream, tool?: Tool): Promise<number> {
  const before = await settledHeap();
  const { turn, dispose } = await prepare(side, stream, tool);
  const { kept, told } = await turn();
  const after = await settledHeap();
  // Only now may it be collected.
  if (kept === undefined) throw new Error("nothing was kept");
  await dispose();
  return (after - before) / told;
}

/** The engine's own doings come and go in the heap: the lowest of three looks counts. */
async function settledHeap(): Promise<number> {
  let lowest = Infinity;
  for (let i = 0; i < 3; i += 1) {
    await sleep(10);
    collectGarbage();
    lowest = Math.min(lowest, process.memoryUsage().heapUsed);
  }
  return lowest;
}
