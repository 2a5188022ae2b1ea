/**
 * Random programs: several visitors in random windows, each with an action of its own, and actions from outside.
 * A few always; many, from a seed of the day, with `--mode soak`. SEED and PROGRAMS say which, and how many.
 */
import { expect, test } from "vitest";
import { deferred } from "../support/wait.ts";
import { ACTIONS, pairsOf, perform, type Action, type Form } from "./actions.ts";
import { settledEnd } from "./race.ts";
import { WINDOWS, type Window } from "./windows.ts";
import { createWorld, type World } from "./world.ts";

const SOAKS = import.meta.env.MODE === "soak";
const PROGRAMS = Number(process.env["PROGRAMS"] ?? (SOAKS ? 4000 : 200));
const SEED = Number(process.env["SEED"] ?? (SOAKS ? Date.now() % 1_000_000_000 : 1));
const PER_TEST = 50;

type Random = (below: number) => number;

/** Mulberry32: the same numbers for the same seed. */
function randomFrom(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

interface Visitor {
  readonly window: Window;
  readonly action: Action;
  readonly form: Form;
  /** At which of its visits it acts. */
  readonly at: number;
}

function makeVisitor(random: Random): Visitor {
  const inside = WINDOWS.filter(({ kind }) => kind !== "outside");
  for (;;) {
    const window = inside[random(inside.length)]!;
    const pairs = pairsOf(window).filter(({ action, form }) => mayMeet(window, action, form));
    const pair = pairs[random(pairs.length)];
    if (pair) return { window, ...pair, at: 1 + random(3) };
  }
}

/** What would make it impossible to say what becomes of a message is left to the matrix. */
function mayMeet({ name }: Window, action: Action, form: Form): boolean {
  const fails = action === "throw" || action === "reject" || form === "pending, then rejected";
  if (action === "respond" || (name === "agent/prompt-submit" && fails)) return false;
  return !(name.startsWith("store") && form === "pending for ever");
}

/** Does it unless it is too late for it. */
function visit(world: World, action: Action): Promise<void> | undefined {
  const { agent } = world;
  if (agent.status === "disposed" || agent.session.durable === "lost") return undefined;
  return perform(world, action);
}

async function runProgram(seed: number): Promise<string[]> {
  const random = randomFrom(seed);
  const visitors = Array.from({ length: 1 + random(4) }, () => makeVisitor(random));
  const outside = Array.from({ length: random(4) }, () => ({ step: random(8), action: outsideAction(random) }));
  const world = await createWorld();
  const gates: (() => void)[] = [];
  let active = true;

  for (const { window, action, form, at } of visitors) {
    let visits = 0;
    window.install(world, () => {
      visits += 1;
      if (!active || visits !== at) return undefined;
      if (form === "within") return visit(world, action);
      const gate = deferred();
      if (!form.startsWith("pending")) {
        return Promise.resolve().then(() => {
          void visit(world, action);
          throw new Error("broken");
        });
      }
      gates.push(() => {
        void visit(world, action);
        if (form === "pending, then resolved") gate.resolve();
        if (form === "pending, then rejected") gate.reject(new Error("broken"));
      });
      return gate.promise;
    });
  }

  world.ledger.idle(world.agent);
  world.ledger.accept(world.agent, "send");
  for (let step = 0; step < 10; step += 1) {
    await world.rest();
    for (const one of outside) if (one.step === step) void visit(world, one.action);
    while (gates.length > 0 && random(2) === 0) gates.shift()!();
    await world.rest();
    if (random(3) > 0) world.answer();
    await world.clock.advance(random(200));
  }
  active = false;
  for (const open of gates) open();
  const faults = await settledEnd(world, visitors.length + 1);
  return faults.map((fault) => `${fault} (seed ${seed}: ${describe(visitors)}; outside ${JSON.stringify(outside)})`);
}

function outsideAction(random: Random): Action {
  const able = ACTIONS.filter((action) => !["throw", "reject", "respond"].includes(action));
  return able[random(able.length)]!;
}

function describe(visitors: readonly Visitor[]): string {
  return visitors.map(({ window, action, form, at }) => `${window.name} (${at}): ${action}, ${form}`).join("; ");
}

const batches = Array.from({ length: Math.ceil(PROGRAMS / PER_TEST) }, (_, i) => ({ first: SEED + i * PER_TEST }));

test.each(batches)(
  "random programs from seed $first on keep every promise",
  async ({ first }) => {
    const faults: string[] = [];
    for (let i = 0; i < PER_TEST; i += 1) faults.push(...(await runProgram(first + i)));
    expect(faults.length, faults.join("\n")).toBe(0);
  },
  120_000,
);
