/** What makes the agents of a harness: the harness itself, or the factory that was set. */
import type { Stoppable } from "../agent/stoppable.ts";
import type {
  AgentFactory,
  AgentHandle,
  AgentOptions,
  CreateAgentOptions,
  LifecycleOptions,
  OpenAgentOptions,
  ResumeAgentOptions,
} from "../agent/types.ts";
import { TurnloopError } from "../errors.ts";
import { defined } from "../json.ts";
import { requireModel } from "../model/registry.ts";
import type { Archive } from "../storage/archive.ts";
import { exists, notFound } from "../storage/stored.ts";
import type { Ground } from "./build.ts";
import { checkClaim, checkInterrupted, withLease } from "./claims.ts";
import { begin, type Begun, type Birth, type Owners } from "./lifecycle.ts";

/** What it makes is of one agent each; the work tells when nobody wants it any more. */
export interface Maker {
  create(options: CreateAgentOptions, work: Stoppable): Promise<Begun>;
  /** SESSION_NOT_FOUND. */
  resume(options: ResumeAgentOptions, work: Stoppable): Promise<Begun>;
  /** Resumes what is stored, else creates. */
  open(options: OpenAgentOptions, work: Stoppable): Promise<Begun>;
  /** Takes in what was created or resumed, so that others can join it. */
  hold(begun: Begun): AgentHandle;
}

/** Throws for options that can never work. */
export function checkOptions(
  { models }: Ground,
  options: AgentOptions & LifecycleOptions & Pick<ResumeAgentOptions, "interrupted">,
): void {
  if (options.model !== undefined) requireModel(models, options.model);
  checkClaim(options);
  checkInterrupted(options.interrupted);
}

/** Throws INVALID_ID. */
export function checkId(id: unknown): asserts id is string {
  if (typeof id !== "string" || id === "")
    throw new TurnloopError("INVALID_ID", "an agent needs an `id`: text that is not empty");
}

/** What keeps others from a session while an agent is made of it. */
type Place = Pick<Birth, "opening" | "lease">;

export function createMaker(ground: Ground, owners: Owners, hold: Maker["hold"]): Maker {
  const { sessions } = ground;

  /** Nobody else begins or changes the session from here to the agent that is made of it. */
  async function prepared<T>(
    id: string,
    options: LifecycleOptions,
    work: Stoppable,
    make: (place: Place) => Promise<T>,
  ): Promise<T> {
    const opening = sessions.opening(id, (error) => work.stop(error));
    try {
      return await withLease(sessions.leases, id, options, work, (lease) => make({ opening, lease }));
    } finally {
      opening.end();
    }
  }

  /** What a new session begins with, checked. */
  function newArchive({ id, meta, seed, parent }: CreateAgentOptions): Archive {
    if (id !== undefined) checkId(id);
    const events = sessions.seed(seed ?? []);
    const header = sessions.header(defined({ id, meta, parent, seedLength: seed && events.length }));
    if (owners.registry.get(header.id)) throw exists(header.id);
    return { header, events };
  }

  async function beginNew(archive: Archive, options: CreateAgentOptions, work: Stoppable, place: Place) {
    const { id } = options;
    if (id !== undefined && (await work.wait(sessions.isStored(id)))) throw exists(id);
    return begin(ground, owners, { archive, stored: 0, source: "startup", options, work, ...place });
  }

  async function beginStored(options: ResumeAgentOptions, work: Stoppable, place: Place): Promise<Begun | undefined> {
    const archive = await work.wait(sessions.read(options.id));
    if (!archive) return undefined;
    const stored = archive.events.length;
    return begin(ground, owners, { archive, stored, source: "resume", options, work, ...place });
  }

  return {
    hold,

    async create(options, work) {
      checkOptions(ground, options);
      const archive = newArchive(options);
      const { id } = archive.header;
      try {
        return await prepared(id, options, work, (place) => beginNew(archive, options, work, place));
      } catch (thrown) {
        // Another `create` of the id was faster.
        throw TurnloopError.is(thrown, "SESSION_LIVE") ? exists(id) : thrown;
      }
    },

    async resume(options, work) {
      checkOptions(ground, options);
      const begun = await prepared(options.id, options, work, (place) => beginStored(options, work, place));
      if (!begun) throw notFound(options.id);
      return begun;
    },

    open: (options, work) =>
      prepared(
        options.id,
        options,
        work,
        async (place) =>
          (await beginStored(options, work, place)) ?? beginNew(newArchive(options), options, work, place),
      ),
  };
}

/** `made` keeps what is live of what the factory made: it ends with the harness. */
export function createForeignMaker(factory: AgentFactory, made: Set<AgentHandle>): Maker {
  /** What comes too late ends at once. */
  async function taken(work: Stoppable, making: Promise<AgentHandle>): Promise<AgentHandle> {
    const { agent, dispose } = await making;
    const own: AgentHandle = {
      agent,
      dispose() {
        made.delete(own);
        return dispose();
      },
    };
    made.add(own);
    if (work.failure) await own.dispose();
    work.check();
    return own;
  }

  const maker: Maker = {
    // It says itself who may join what it has made.
    hold: (begun) => begun,
    create: (options, work) => taken(work, factory.create({ ...options, signal: work.signal })),
    resume: (options, work) => taken(work, factory.resume({ ...options, signal: work.signal })),
    async open(options, work) {
      try {
        return await maker.resume(options, work);
      } catch (thrown) {
        if (!TurnloopError.is(thrown, "SESSION_NOT_FOUND")) throw thrown;
        return maker.create(options, work);
      }
    },
  };
  return maker;
}
