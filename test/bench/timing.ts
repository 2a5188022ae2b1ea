/** Measuring one thing in this process: warmed up, many times, without the garbage of what came before. */

export interface Sample {
  readonly median: number;
  readonly min: number;
}

/** What one process has found out about one row of the table. */
export interface Figure extends Sample {
  readonly row: string;
  readonly unit: string;
}

/** Needs `node --expose-gc`. */
export function collectGarbage(): void {
  globalThis.gc!();
  globalThis.gc!();
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function sampleOf(values: readonly number[]): Sample {
  return { median: median(values), min: Math.min(...values) };
}

/** Repeats until `budgetMs` are spent, at least three times. `once` answers with the milliseconds that count. */
export async function repeat(budgetMs: number, once: () => Promise<number>): Promise<Sample> {
  collectGarbage();
  const times: number[] = [];
  const end = performance.now() + budgetMs;
  while (times.length < 3 || performance.now() < end) {
    times.push(await once());
    // What the run has left to the event loop is not the next one's.
    await new Promise(setImmediate);
  }
  return sampleOf(times);
}

/** The milliseconds that `work` takes. */
export async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

export function perUnit(row: string, unit: string, sample: Sample, count: number): Figure {
  return { row, unit, median: (sample.median * 1000) / count, min: (sample.min * 1000) / count };
}
