/** Whole turns: of one answer that streams many chunks, and of many steps with a tool call each. */
import { RESULT, textModel, toolModel, type Stream } from "../mock.ts";
import { prepare, type Side } from "../side.ts";
import { perUnit, repeat, timeOf, type Figure } from "../timing.ts";

const BUDGET_MS = 200;

/** One turn; each chunk is logged, and a subscriber is told. */
export async function stream(side: Side): Promise<Figure[]> {
  const once = (chunks: number) => () => timed(side, textModel(chunks), chunks);
  await repeat(BUDGET_MS, once(1000));
  await repeat(BUDGET_MS, once(1));
  const figures: Figure[] = [];
  for (const chunks of [1, 100, 10_000, 40_000]) {
    const row = `${count(chunks)} chunk${chunks === 1 ? "" : "s"}`;
    figures.push(perUnit(row, "µs/chunk", await repeat(BUDGET_MS, once(chunks)), chunks));
  }
  return figures;
}

/** One turn; each step has a request, four chunks and a tool call. */
export async function tools(side: Side): Promise<Figure[]> {
  const once = (steps: number) => () => timed(side, toolModel(steps), steps * 4, async () => RESULT);
  await repeat(BUDGET_MS * 2, once(200));
  const figures: Figure[] = [];
  for (const steps of [50, 200, 1000, 5000]) {
    figures.push(perUnit(`${count(steps)} steps`, "µs/step", await repeat(BUDGET_MS, once(steps)), steps));
  }
  const perStep = (row: string): Figure => figures.find((figure) => figure.row === row)!;
  const [short, long] = [perStep("200 steps"), perStep("5,000 steps")];
  const growth = { median: long.median / short.median, min: long.min / short.min };
  return [...figures, { row: "a step of 5,000 / of 200", unit: "", ...growth }];
}

/** The turn alone: what comes before it and after it is not counted. Whoever loses events must not look fast. */
async function timed(side: Side, model: Stream, atLeast: number, tool?: () => unknown): Promise<number> {
  const { turn, dispose } = await prepare(side, model, tool);
  let told = 0;
  const ms = await timeOf(async () => ({ told } = await turn()));
  if (told < atLeast) throw new Error(`${side} told of ${told} events, not of ${atLeast} and more`);
  await dispose();
  return ms;
}

function count(value: number): string {
  return value.toLocaleString("en-US");
}
