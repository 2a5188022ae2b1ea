/** One of the clients of a session: says what its schedule wants, and answers whatever is asked. */
import type { Agent, AgentHandle, SessionEvent } from "turnloop";
import { connectAgent, type Connection } from "turnloop/transport";
import type { Random } from "../deaths/random.ts";
import { ASKS } from "./agents.ts";

export interface Client {
  readonly agent: Agent;
  /** The ids of what it has sent or steered, and what it has configured. */
  readonly sent: readonly string[];
  readonly configured: readonly number[];
  readonly cancels: number;
  /** What it has been told, in order. */
  readonly told: readonly SessionEvent[];
  /** Resolves when it has done all that it wants, and the host has taken it. */
  readonly done: Promise<void>;
  dispose(): Promise<void>;
}

export interface ClientOptions {
  readonly name: string;
  readonly session: string;
  readonly actions: number;
  readonly random: Random;
  connect(): Connection | Promise<Connection>;
}

export async function createClient({ name, session, actions, random, connect }: ClientOptions): Promise<Client> {
  const handle = await connectAgent({ connect, session, onDiagnostic() {} });
  const { agent } = handle;
  const told: SessionEvent[] = [];
  const sent: string[] = [];
  const configured: number[] = [];
  let cancels = 0;
  agent.session.subscribe((event) => void told.push(event), { from: 0 });
  answerAll(handle);

  const acts: readonly (() => void)[] = [
    () => void sent.push(agent.send(`${name} wants ${ASKS[random.below(ASKS.length)]}`)),
    () => void sent.push(agent.steer(`${name} steers to ${ASKS[random.below(ASKS.length)]}`)),
    () => {
      configured.push(random.below(1_000_000_000) / 1_000_000_000);
      agent.configure({ temperature: configured.at(-1)! });
    },
    () => {
      cancels += 1;
      agent.cancel(`${name} has had enough`, { queue: "keep" });
    },
    () => void agent.withdraw(sent.at(-1) ?? "").catch(() => {}),
  ];

  async function act(): Promise<void> {
    for (let i = 0; i < actions; i += 1) {
      acts[[0, 0, 0, 0, 1, 1, 2, 3, 4][random.below(9)]!]!();
      await progress(agent, random.below(40));
    }
    await agent.flush().catch(() => {});
  }

  return {
    agent,
    sent,
    configured,
    get cancels() {
      return cancels;
    },
    told,
    done: act(),
    dispose: () => handle.dispose(),
  };
}

/** All clients answer; the first counts. */
function answerAll({ agent }: AgentHandle): void {
  const answered = new Set<string>();
  const look = (): void => {
    for (const { id } of agent.interactions) {
      if (answered.has(id)) continue;
      answered.add(id);
      void agent.respond(id, { decision: "allow" }).catch(() => {});
    }
  };
  agent.subscribe(look);
  look();
}

/** When so many more events have come, or nothing is under way. */
function progress(agent: Agent, events: number): Promise<void> {
  return new Promise((resolve) => {
    let left = events;
    const look = (): void => {
      if (left > 0 && agent.status !== "idle") return;
      offEvents();
      offState();
      resolve();
    };
    const offEvents = agent.session.subscribe(() => {
      left -= 1;
      look();
    });
    const offState = agent.subscribe(look);
    queueMicrotask(look);
  });
}
