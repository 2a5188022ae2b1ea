/** The results as one table, for people. */
import type { Compared, Row } from "./rows.ts";

const SETTINGS = ["plain", "flush", "hooks", "transcript"] as const;
const HEAD = ["", "", "unit", "floor", "turnloop", "x floor", "+ flush", "+ hooks", "+ transcript"];

/** A cell of ratios reads `median (min)`. */
export function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ scenario, row, unit, floor, settings }, i) => [
    rows[i - 1]?.scenario === scenario ? "" : scenario,
    row,
    unit,
    floor ? digits(floor.median) : "never ends",
    settings.plain ? digits(settings.plain.median) : "",
    ...SETTINGS.map((setting) => ratioOf(settings[setting])),
  ]);
  const all = [HEAD, ...lines];
  const widths = HEAD.map((_, column) => Math.max(...all.map((line) => line[column]!.length)));
  const text = all.map((line) => line.map((cell, i) => (i < 3 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))));
  return text.map((line) => line.join("  ").trimEnd()).join("\n");
}

function ratioOf(compared: Compared | undefined): string {
  if (!compared) return "";
  const { ratio } = compared;
  return ratio ? `${digits(ratio.median)} (${digits(ratio.min)})` : "-";
}

/** Three digits are more than a machine can tell. */
function digits(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toPrecision(value >= 10 ? 3 : 2);
}
