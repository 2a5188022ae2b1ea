/**
 * Durable Objects that end at random moments in the middle of their work, with workerd or without it, and what is
 * left of their sessions. A few always; many with `--mode soak`. SEED and ROUNDS say which, and how many.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Examined } from "../deaths/examine.ts";
import { moments, type Told } from "../deaths/life.ts";
import { randomOf } from "../deaths/random.ts";
import { rounds, seed } from "../deaths/rounds.ts";
import { createWitness } from "../deaths/verdict.ts";
import { createMachine, type Machine, type Workerd } from "./workerd.ts";

let machine: Machine;
let workerd: Workerd;
let server: Server;
/** Who hears what an object tells, by its name. */
const ears = new Map<string, (told: Told) => void>();

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const told = JSON.parse(await text(request)) as Told;
    ears.get(request.url!.slice(1))?.(told);
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  machine = await createMachine();
  workerd = await machine.start();
}, 60_000);

afterAll(async () => {
  await workerd.kill();
  machine.destroy();
  server.closeAllConnections();
  server.close();
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
    const random = randomOf(seed + name.length);
    const witness = createWitness();
    const outside = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${encodeURIComponent(name)}`;
    let cut = 0;
    for (let round = 1; round <= rounds; round += 1) {
      const moment = moments[random.below(moments.length)]!;
      let left = 1 + random.below(moment === "stream" ? 100 : 10);
      const reached = new Promise<void>((resolve) => {
        ears.set(encodeURIComponent(name), (told) => {
          witness.hear(told);
          if (told.kind === "reached" && (left -= 1) === 0) resolve();
        });
      });
      const life = workerd.ask(name, "live", { moment, outside }).then(
        () => "it ended by itself",
        () => undefined,
      );
      await Promise.race([reached, life]);
      await sleep(random.upTo(4));
      await die();
      expect(await life).toBeUndefined();

      const allow = round === rounds;
      const interrupted = random.below(2) === 0 ? "close" : "continue";
      const query = { interrupted, outside, ...(allow && { allow: "" }) };
      const found = (await workerd.ask(name, "examine", query)) as Examined;
      witness.judge(found);
      expect(witness.runsOf("pay"), "the runs of what a person allows").toBe(allow ? found.interactions.length : 0);
      if (found.cut) cut += 1;
    }
    expect(cut, "the deaths in the middle of a turn").toBeGreaterThan(0);
  },
  rounds * 20_000,
);
