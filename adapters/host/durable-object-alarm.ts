/** The single alarm of an object: shared by the agents at work in it and by whatever else the class needs it for. */
import { TurnloopError, type Agent, type Harness } from "../../src/core.ts";
import type { AgentObjectContext } from "./durable-object-platform.ts";

export interface Alarm {
  /** The session of this object: the name of its id, which not every instance that an alarm begins is told. */
  readonly session: string;
  /** From now on it follows what the agents of the harness do. */
  follow(harness: Harness): void;
  /** What the class itself needs it for: milliseconds since 1970, or undefined. Rejects INVALID_OPTIONS. */
  mine(time: number | undefined): Promise<void>;
  /**
   * It has rung, which has consumed it: sets it anew, before anything that may die. Answers with what to do: nothing;
   * to take up the agent; or to leave it alone, as the instances of this object died too often of it.
   */
  rang(fresh: boolean): Promise<"nothing" | "take-up" | "give-up">;
}

/** What is kept of it. */
interface Kept {
  readonly session?: string;
  /** When the agents need it: while they work, and when a question runs out. */
  readonly own?: number;
  readonly mine?: number;
  /** How many instances were begun by it since the agents last rested. */
  readonly recoveries: number;
}

const KEY = "turnloop";
/** Far below the time after which an idle object is evicted. */
const HEARTBEAT_MS = 30_000;
/** The log allows a turn three attempts; this ends it where not even the log can be opened. */
const RECOVERIES = 5;

export function createAlarm({ id, storage }: AgentObjectContext): Alarm {
  let kept = (storage.kv.get(KEY) as Kept | undefined) ?? { recoveries: 0 };
  const session = id.name ?? kept.session ?? id.toString();
  let harness: Harness | undefined;
  let awake: ReturnType<typeof setInterval> | undefined;

  function keep(patch: { readonly [K in keyof Kept]?: Kept[K] | undefined }): void {
    const entries = Object.entries({ ...kept, session, ...patch }).filter(([, value]) => value !== undefined);
    kept = Object.fromEntries(entries) as unknown as Kept;
    storage.kv.put(KEY, kept);
  }

  /** What was written before is confirmed together with what is written next, or sooner. */
  function set(): Promise<void> {
    const times = [kept.own, kept.mine].filter((time) => time !== undefined);
    return times.length > 0 ? storage.setAlarm(Math.min(...times)) : storage.deleteAlarm();
  }

  /** An object that has a timer does not hibernate: what it waits for may be in its memory alone, such as a tool's body. */
  function stayAwake(atWork: boolean): void {
    if (atWork) awake ??= setInterval(() => {}, HEARTBEAT_MS);
    else {
      clearInterval(awake);
      awake = undefined;
    }
  }

  function settle(): void {
    const agents = harness!.agents.list();
    const now = Date.now();
    let own: number | undefined;
    const atWork = agents.some((agent) => isAtWork(agent, kept.own !== undefined));
    stayAwake(atWork);
    if (atWork) {
      const goesOn = kept.own !== undefined && kept.own > now && kept.own <= now + HEARTBEAT_MS;
      own = goesOn ? kept.own : now + HEARTBEAT_MS;
    } else {
      own = nextExpiry(agents);
      if (kept.recoveries > 0) keep({ recoveries: 0 });
    }
    if (own === kept.own) return;
    keep({ own });
    set().catch((cause: unknown) =>
      harness!.report({ code: "ALARM_FAILED", message: "the alarm of the object could not be set", cause }),
    );
  }

  return {
    session,
    follow(followed) {
      harness = followed;
      harness.hooks.on("agent/created", ({ agent }) => {
        agent.subscribe(settle);
        settle();
      });
      harness.hooks.on("agent/disposed", settle);
    },
    async mine(time) {
      if (time !== undefined && !Number.isFinite(time))
        throw new TurnloopError("INVALID_OPTIONS", "an alarm is set in milliseconds since 1970");
      keep({ mine: time });
      return set();
    },
    async rang(fresh) {
      const now = Date.now();
      const { own, mine } = kept;
      const isMine = mine !== undefined && mine <= now;
      const isOwn = own !== undefined && (own <= now || !isMine);
      const recoveries = kept.recoveries + (isOwn && fresh ? 1 : 0);
      const givesUp = recoveries > RECOVERIES;
      keep({
        recoveries: givesUp ? 0 : recoveries,
        mine: isMine ? undefined : mine,
        own: givesUp ? undefined : isOwn ? now + HEARTBEAT_MS : own,
      });
      await set();
      await storage.sync();
      if (givesUp) return "give-up";
      return isOwn ? "take-up" : "nothing";
    },
  };
}

/** A model or a tool is at work; or it was, and what came of it is not stored yet. */
function isAtWork(agent: Agent, wasAtWork: boolean): boolean {
  const { status, waiting, durable } = agent.getSnapshot();
  if (status === "running" && !waiting) return true;
  return wasAtWork && (durable === "pending" || durable === "degraded");
}

function nextExpiry(agents: readonly Agent[]): number | undefined {
  const times = agents
    .flatMap((agent) => agent.getSnapshot().interactions)
    .map(({ expiresAt }) => expiresAt)
    .filter((time) => time !== undefined);
  return times.length > 0 ? Math.min(...times) : undefined;
}
