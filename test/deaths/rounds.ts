/**
 * Lives that end at random moments, one after another on the same sessions, and what is left of each: a few always,
 * many with `--mode soak`. SEED and ROUNDS say which, and how many.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { Examined, ExamineOptions } from "./examine.ts";
import { hashOf, moments, type Moment, type Told } from "./life.ts";
import { randomOf } from "./random.ts";
import { createWitness } from "./verdict.ts";

const soaks = import.meta.env.MODE === "soak";
const rounds = Number(process.env["ROUNDS"] ?? (soaks ? 50 : 5));
const seed = Number(process.env["SEED"] ?? (soaks ? Date.now() % 1_000_000_000 : 1));

console.log(`${rounds} deaths of each kind; SEED=${seed} has the same again`);

/** How long all the rounds of one kind may take. */
export const ROUNDS_MS = rounds * 20_000;

export interface Life {
  readonly moment: Moment;
  /** To be called with all that it tells. */
  hear(told: Told): void;
  /** Resolves when it shall die: some time after it came to the moment for the nth time. */
  readonly end: Promise<void>;
}

export interface Mortal {
  /** Lives, and dies at the end; resolves when it is dead. */
  liveAndDie(life: Life): Promise<void>;
  /** What the next life finds, and says. Whatever it tells is heard too. */
  examine(options: Omit<ExamineOptions, "tell">, hear: Life["hear"]): Promise<Examined>;
}

/**
 * `kind` is a word for the seed; without a moment, the lives end in each of them by turns. Answers
 * how many ended in the middle of a turn.
 */
export async function dieOften(kind: string, { liveAndDie, examine }: Mortal, only?: Moment): Promise<number> {
  const random = randomOf(seed + hashOf(kind));
  const witness = createWitness();
  let cut = 0;
  for (let round = 1; round <= rounds; round += 1) {
    const moment = only ?? moments[round % moments.length]!;
    let left = 1 + random.below(moment === "stream" ? 100 : 10);
    const delay = random.upTo(4);
    const end = Promise.withResolvers<void>();
    const hear = (told: Told): void => {
      witness.hear(told);
      if (told.kind === "reached" && (left -= 1) === 0) void sleep(delay).then(() => end.resolve());
    };
    await liveAndDie({ moment, hear, end: end.promise });

    const allow = round === rounds;
    const interrupted = random.below(2) === 0 ? "close" : "continue";
    const found = await examine({ interrupted, allow }, hear);
    witness.judge(found);
    const paid = allow ? found.interactions.length : 0;
    expect(witness.runsOf("pay"), "the runs of what a person allows in the end").toBe(paid);
    if (found.cut) cut += 1;
  }
  console.log(`${kind}: ${rounds} deaths, ${cut} of them in the middle of a turn`);
  return cut;
}
