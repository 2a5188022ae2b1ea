/** Durable Objects that end at random moments in the middle of their work, with workerd or without it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEars, type Ears } from "../deaths/ears.ts";
import type { Examined } from "../deaths/examine.ts";
import { dieOften, ROUNDS_MS } from "../deaths/rounds.ts";
import { createMachine, type Machine, type Workerd } from "./workerd.ts";

let ears: Ears;
let machine: Machine;
let workerd: Workerd;

beforeAll(async () => {
  ears = await openEars();
  machine = await createMachine();
  workerd = await machine.start();
}, 60_000);

afterAll(async () => {
  await workerd.kill();
  machine.destroy();
  ears.close();
});

const deaths = {
  "killed together with workerd": async () => {
    await workerd.kill();
    workerd = await machine.start();
  },
  "aborted as in a deploy": () => workerd.abortObjects(),
};

test.each(Object.entries(deaths))(
  "an object that is %s leaves whole sessions, and its next instance goes on",
  async (name, die) => {
    const cut = await dieOften(`an object ${name}`, {
      async liveAndDie({ moment, hear, end }) {
        const life = workerd.ask(name, "live", { moment, outside: ears.listen(name, hear) }).then(
          () => "it ended by itself",
          () => undefined,
        );
        await Promise.race([end, life]);
        await die();
        expect(await life).toBeUndefined();
      },
      async examine({ interrupted, allow }, hear) {
        const query = { interrupted, outside: ears.listen(name, hear), ...(allow && { allow: "" }) };
        return (await workerd.ask(name, "examine", query)) as Examined;
      },
    });
    expect(cut, "the deaths in the middle of a turn").toBeGreaterThan(0);
  },
  ROUNDS_MS,
);
