/** What the processes have measured, put together: a row for each thing, and in it each setting beside the floor. */
import type { Setting } from "./side.ts";
import { median, type Figure, type Sample } from "./timing.ts";

/** Two processes that ran one behind the other, on one scenario. */
export interface Pair {
  readonly scenario: string;
  readonly setting: Setting;
  readonly floor: readonly Told[];
  readonly ours: readonly Told[];
}

/** A figure as a process tells it: in JSON there is no infinity, and null is a turn that never ended. */
export interface Told extends Omit<Figure, "median" | "min"> {
  readonly median: number | null;
  readonly min: number | null;
}

export interface Row {
  readonly scenario: string;
  readonly row: string;
  readonly unit: string;
  /** Undefined: the floor never ends. */
  readonly floor: Sample | undefined;
  readonly settings: Readonly<Partial<Record<Setting, Compared>>>;
}

export interface Compared extends Sample {
  /** To the floor: the median of the pairs, and the best of all to the best of all. */
  readonly ratio: Sample | undefined;
}

export function rowsOf(pairs: readonly Pair[]): Row[] {
  return [...Map.groupBy(pairs, ({ scenario }) => scenario)].flatMap(([scenario, all]) =>
    all[0]!.ours.map(({ row, unit }): Row => {
      const settings: Partial<Record<Setting, Compared>> = {};
      for (const [setting, some] of Map.groupBy(all, (pair) => pair.setting)) settings[setting] = compare(some, row);
      return { scenario, row, unit, floor: sumUp(all.map((pair) => on(pair.floor, row))), settings };
    }),
  );
}

function compare(pairs: readonly Pair[], row: string): Compared {
  const floors = pairs.map((pair) => on(pair.floor, row));
  const ours = pairs.map((pair) => on(pair.ours, row));
  const floor = sumUp(floors);
  const sample = sumUp(ours);
  if (!sample) throw new Error(`${row}: the turn never ended`);
  if (!floor) return { ...sample, ratio: undefined };
  const ratios = ours.map((one, i) => one.median! / floors[i]!.median!);
  return { ...sample, ratio: { median: median(ratios), min: sample.min / floor.min } };
}

function on(figures: readonly Told[], row: string): Told {
  return figures.find((figure) => figure.row === row)!;
}

/** The median of the medians, and the least of all. Undefined for what never ended. */
function sumUp(figures: readonly Told[]): Sample | undefined {
  if (figures.some((figure) => figure.median === null)) return undefined;
  return { median: median(figures.map((one) => one.median!)), min: Math.min(...figures.map((one) => one.min!)) };
}
