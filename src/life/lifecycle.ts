/** The one transaction in which an agent begins, and the one way in which it ends. */
import type { Agent, AgentHandle, AgentOptions, LifecycleOptions, ResumeAgentOptions } from "../agent/types.ts";
import type { AgentRegistry } from "../agent/registry.ts";
import type { Stoppable } from "../agent/stoppable.ts";
import { failureOf, messageOf, TurnloopError } from "../errors.ts";
import { takenOver, type Lease } from "../storage/leases.ts";
import type { Opening } from "../storage/sessions.ts";
import type { Archive } from "../storage/archive.ts";
import { build, type Built, type Ground } from "./build.ts";
import { drive } from "../loop/driver.ts";
import { reopen } from "./reopen.ts";

/** Where agents are entered, and what ends them. */
export interface Owners {
  readonly registry: AgentRegistry;
  /** Throws when nothing new may begin. */
  readonly check: () => void;
  /** Every agent that is being made or is live, with its owner and what ends it. */
  readonly lives: Map<Agent, { readonly owner: Agent | undefined; readonly begun: Begun }>;
}

export interface Birth {
  readonly archive: Archive;
  /** How many of its events are stored. */
  readonly stored: number;
  readonly source: "startup" | "resume";
  readonly options: AgentOptions & LifecycleOptions & Pick<ResumeAgentOptions, "interrupted">;
  /** Stopped when its signal aborts, or its harness or its owner ends. */
  readonly work: Stoppable;
  /** Its place among those that are made of the same id. */
  readonly opening?: Opening;
  /** The right to write it: released when the agent has ended. */
  readonly lease: Lease;
}

/** A handle that also tells when the end of its agent begins, by whomever. */
export interface Begun extends AgentHandle {
  onEnding?(listener: (ended: Promise<void>) => void): () => void;
}

/**
 * Prepares in private, awaits `setup`, enters both registries, tells, then starts the loop. Whatever fails or
 * aborts on the way takes back all of it: what was told to be there is told to be gone.
 */
export async function begin(ground: Ground, owners: Owners, birth: Birth): Promise<Begun> {
  const { work, options } = birth;
  const { setup } = options;
  work.check();
  const built = build(ground, birth.archive, birth.stored, options);
  const life = createLife(ground, owners, built, birth);
  try {
    work.check();
    if (setup) await work.wait(Promise.resolve(built.scope).then(setup));
    life.publish();
  } catch (thrown) {
    await life.begun.dispose();
    throw thrown;
  }
  return life.begun;
}

/** The same at once: no setup, and nothing to wait for. */
export function beginNow(ground: Ground, owners: Owners, birth: Birth): Begun {
  const built = build(ground, birth.archive, birth.stored, birth.options);
  const life = createLife(ground, owners, built, birth);
  try {
    life.publish();
  } catch (thrown) {
    void life.begun.dispose();
    throw thrown;
  }
  return life.begun;
}

/** An abort's own reason, where it is an error. */
export function abortReason({ reason }: AbortSignal): Error {
  return reason instanceof Error
    ? reason
    : new TurnloopError("ABORTED", `it was aborted: ${messageOf(reason)}`, { cause: reason });
}

interface Life {
  readonly begun: Begun;
  /** Enters and announces it, and starts its loop. */
  publish(): void;
}

function createLife(
  ground: Ground,
  owners: Owners,
  built: Built,
  { source, options: { owner, interrupted = ground.interrupted }, work, opening, lease }: Birth,
): Life {
  const { agent, core, instance, live } = built;
  const { hooks } = instance;
  const { session } = live.log;
  let ending: Promise<void> | undefined;
  let running: Promise<void> | undefined;
  let telling = false;
  let told = (): void => {};
  const endListeners = new Set<(ended: Promise<void>) => void>();
  /** What takes back the entries and the announcements that were made: agent before session. */
  const undo: { agent: (() => void)[]; session: (() => void)[] } = { agent: [], session: [] };

  function check(): void {
    work.check();
    owners.check();
    if (ending) throw new TurnloopError("AGENT_DISPOSED", `the agent ${agent.id} was disposed while it was made`);
    if (live.recorder.lost) throw live.recorder.lost;
    if (owner?.status === "disposed") throw new TurnloopError("AGENT_DISPOSED", `the owner ${owner.id} is disposed`);
  }

  const life: Life = {
    publish() {
      check();
      undo.session.push(ground.sessions.enter(live, opening));
      undo.agent.push(owners.registry.enter(agent, owner));
      // What a seed has left open was never this session's own.
      reopen(instance, source === "resume" ? interrupted : "close");
      telling = true;
      try {
        undo.session.push(() => hooks.emit("session/disposed", { session }));
        hooks.emit("session/created", { session });
        check();
        undo.agent.push(() => hooks.emit("agent/disposed", { agent }));
        hooks.emit("agent/created", { agent });
        check();
        hooks.emit("agent/session-start", { agent, source });
        check();
      } finally {
        telling = false;
        told();
      }
      check();
      live.recorder.begin();
      // It begins behind this frame, so that whoever hears of it finds it running.
      const begun = Promise.resolve(instance).then(drive);
      running = begun.catch((cause: unknown) => {
        core.ended();
        ground.report(failureOf("LOOP_FAILED", "the loop has ended", cause, agent.id));
      });
      instance.desk.reopen();
    },

    begun: {
      agent,
      dispose() {
        if (!ending) {
          // What a listener of the announcement asks for waits for the announcement to end.
          ending = telling ? new Promise((resolve) => (told = () => resolve(teardown()))) : teardown();
          for (const listener of endListeners) listener(ending);
        }
        return ending;
      },
      onEnding(listener) {
        if (ending) listener(ending);
        else endListeners.add(listener);
        return () => void endListeners.delete(listener);
      },
    },
  };

  /** The loop, then the agent, then the session, then the layer. A stage that fails stops none of the others. */
  async function teardown(): Promise<void> {
    if (!running)
      work.stop(new TurnloopError("AGENT_DISPOSED", `the agent ${agent.id} was disposed while it was made`));
    const children = [...owners.lives.values()]
      .filter((child) => child.owner === agent)
      .map((child) => child.begun.dispose());
    core.activity?.stop({ kind: "disposed" });
    if (running) core.become("disposed");
    else core.bury();
    // Without a loop or a listener on the stack there is nothing to wait for.
    if (running || children.length > 0 || core.idleFlushes.size > 0) {
      await Promise.allSettled([...children, running, ...core.idleFlushes]);
      if (running && live.recorder.stored < live.log.seq)
        await instance.flush().catch((error: unknown) => instance.tellError(error));
    }
    instance.desk.close();
    try {
      for (const off of [...undo.agent, ...undo.session]) off();
      await live.close();
    } finally {
      await lease.release();
      owners.lives.delete(agent);
      built.unwind();
    }
  }

  owners.lives.set(agent, { owner, begun: life.begun });
  lease.onLost(() => {
    const error = takenOver(agent.id);
    live.recorder.lose(error);
    if (!running) work.stop(error);
  });
  return life;
}
