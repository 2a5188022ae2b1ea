/**
 * Schedules: three clients on bad lines for each of several sessions, and a host that is killed meanwhile. A few always,
 * many with `--mode soak`. SEED and SCHEDULES say which, and how many.
 */
import type { SessionEvent } from "turnloop";
import type { Connection } from "turnloop/transport";
import { hashOf } from "../deaths/life.ts";
import { randomOf, type Random } from "../deaths/random.ts";
import type { Effect } from "./agents.ts";
import { createClient, type Client } from "./client.ts";
import { badLine } from "./line.ts";
import { judge } from "./verdict.ts";

const soaks = import.meta.env.MODE === "soak";
const seed = Number(process.env["SEED"] ?? (soaks ? Date.now() % 1_000_000_000 : 1));

export interface Host {
  /** A connection to a session of the life that is lived now; rejects while there is none. */
  dial(session: string, wire: number): Connection | Promise<Connection>;
  /** SIGKILL, and another life on what is left. */
  restart(): Promise<void>;
  /** Of a session that rests. */
  read(session: string): Promise<readonly SessionEvent[]>;
  readonly effects: readonly Effect[];
}

/** Sessions that are under way at once; the host's death is the death of all. */
const AT_ONCE = 10;
const CLIENTS = 3;
/** At most, for each lot: all may be over before. */
const DEATHS = 3;

/** How many schedules of this kind are run: `always` in every run, ten times as many in a soak. */
export function countOf(always: number): number {
  return Number(process.env["SCHEDULES"] ?? (soaks ? always * 10 : always));
}

export async function runSchedules(kind: string, host: Host, count: number): Promise<void> {
  console.log(`${count} schedules of ${kind}; SEED=${seed} has the same again`);
  const random = randomOf(seed + hashOf(kind));
  let deaths = 0;
  for (let done = 0; done < count; done += AT_ONCE) {
    const sessions = Array.from({ length: Math.min(AT_ONCE, count - done) }, (_, i) => `s${done + i}`);
    deaths += await runBatch(host, sessions, random);
  }
  console.log(`${kind}: ${count} schedules, ${deaths} deaths of the host`);
}

/** Answers how often the host died. */
async function runBatch(host: Host, sessions: readonly string[], random: Random): Promise<number> {
  const all = await Promise.all(
    sessions.map((session) => Promise.all(Array.from({ length: CLIENTS }, (_, i) => join(host, session, i, random)))),
  );
  const clients = all.flat();
  const acted = Promise.all(clients.map(({ done }) => done));
  let over = false;
  void acted.then(() => (over = true));
  let deaths = 0;
  for (let death = 1; death <= DEATHS; death += 1) {
    await Promise.race([acted, seen(clients, random.below(clients.length * 25))]);
    if (over) break;
    await host.restart();
    deaths += 1;
  }
  await acted;
  for (const [index, session] of sessions.entries()) await settle(host, session, all[index]!);
  return deaths;
}

function join(host: Host, session: string, place: number, random: Random): Promise<Client> {
  // Each has chances of its own, whatever the others do.
  const own = randomOf(random.below(1_000_000_000));
  const connect = badLine(() => host.dial(session, place), own);
  return createClient({ name: `client ${place}`, session, actions: 4, random: own, connect });
}

/** When the clients have been told of so many events, all together. */
function seen(clients: readonly Client[], count: number): Promise<void> {
  return new Promise((resolve) => {
    let left = count;
    const offs = clients.map(({ agent }) =>
      agent.session.subscribe(() => {
        left -= 1;
        if (left > 0) return;
        for (const off of offs) off();
        resolve();
      }),
    );
  });
}

/** All rests, all clients know it, and the verdict holds. */
async function settle(host: Host, session: string, clients: readonly Client[]): Promise<void> {
  for (const { agent } of clients) await agent.whenIdle();
  const last = Math.max(...clients.map(({ agent }) => agent.session.seq));
  for (const { agent } of clients) await upTo(agent, last);
  const stored = await host.read(session);
  for (const { agent } of clients) await upTo(agent, stored.length);
  judge(
    clients,
    stored,
    host.effects.filter((effect) => effect.session === session),
  );
  await Promise.all(clients.map((client) => client.dispose()));
}

function upTo({ session }: Client["agent"], seq: number): Promise<void> {
  return new Promise((resolve) => {
    if (session.seq >= seq) return resolve();
    const off = session.subscribe(() => {
      if (session.seq < seq) return;
      off();
      resolve();
    });
    return undefined;
  });
}
