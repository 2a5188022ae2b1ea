/** The agents of a harness: begun, resumed, joined, forked, found. */
import { createStoppable, type Stoppable } from "../agent/stoppable.ts";
import { createRegistry, type AgentRegistry } from "../agent/registry.ts";
import type {
  Agent,
  AgentFactory,
  AgentHandle,
  Agents,
  AgentOptions,
  CreateAgentOptions,
  LifecycleOptions,
  OpenAgentOptions,
  ResumeAgentOptions,
} from "../agent/types.ts";
import { TurnloopError } from "../errors.ts";
import { jsonEqual } from "../json.ts";
import { requireModel } from "../model/registry.ts";
import type { Archive } from "../storage/archive.ts";
import { soonGranted } from "../storage/leases.ts";
import { exists, notFound } from "../storage/stored.ts";
import type { Ground } from "./build.ts";
import { cutForFork } from "./fork.ts";
import { createBirths } from "./births.ts";
import { checkClaim, checkInterrupted, withLease } from "./claims.ts";
import { begin, beginNow, type Begun, type Birth, type Owners } from "./lifecycle.ts";
import { createSharing, type Make } from "./sharing.ts";

export interface AgentService extends Agents {
  /** Ends all of them, those that are being made too; nothing new begins. */
  close(): Promise<void>;
}

/** What keeps others from a session while an agent is made of it. */
type Place = Pick<Birth, "opening" | "lease">;

export function createAgents(ground: Ground): AgentService {
  const { hooks, models, newId, report, sessions } = ground;
  const registry: AgentRegistry = createRegistry(hooks);
  const sharing = createSharing();
  const owners: Owners = { registry, lives: new Map(), check: () => births.check() };
  const births = createBirths(owners);
  let factory: AgentFactory | undefined;
  const made = new Set<AgentHandle>();

  /** What a set factory makes ends with the harness; what comes too late ends at once. */
  async function foreign(work: Stoppable, making: Promise<AgentHandle>): Promise<AgentHandle> {
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

  /** Throws for options that can never work. */
  function check(options: AgentOptions & LifecycleOptions & Pick<ResumeAgentOptions, "interrupted">): void {
    if (options.model !== undefined) requireModel(models, options.model);
    checkClaim(options);
    checkInterrupted(options.interrupted);
  }

  function checkId(id: unknown): asserts id is string {
    if (typeof id !== "string" || id === "")
      throw new TurnloopError("INVALID_ID", "an agent needs an `id`: text that is not empty");
  }

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
    const header = sessions.header({
      ...(id !== undefined && { id }),
      meta,
      parent,
      ...(seed && { seedLength: events.length }),
    });
    if (registry.get(header.id)) throw exists(header.id);
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

  async function createNew(options: CreateAgentOptions, work: Stoppable): Promise<Begun> {
    check(options);
    const archive = newArchive(options);
    const { id } = archive.header;
    try {
      return await prepared(id, options, work, (place) => beginNew(archive, options, work, place));
    } catch (thrown) {
      // Another `create` of the id was faster.
      throw TurnloopError.is(thrown, "SESSION_LIVE") ? exists(id) : thrown;
    }
  }

  async function resumeStored(options: ResumeAgentOptions, work: Stoppable): Promise<Begun | undefined> {
    check(options);
    return prepared(options.id, options, work, (place) => beginStored(options, work, place));
  }

  async function resumeOrCreate(options: OpenAgentOptions, work: Stoppable): Promise<Begun> {
    const set = factory;
    if (!set) {
      return prepared(
        options.id,
        options,
        work,
        async (place) =>
          (await beginStored(options, work, place)) ?? beginNew(newArchive(options), options, work, place),
      );
    }
    try {
      return await foreign(work, set.resume({ ...options, signal: work.signal }));
    } catch (thrown) {
      if (!TurnloopError.is(thrown, "SESSION_NOT_FOUND")) throw thrown;
      return foreign(work, set.create({ ...options, signal: work.signal }));
    }
  }

  /** Whoever opens a session without its context, such as a host that is asked for it, gets the harness's. */
  async function withContext(options: OpenAgentOptions, work: Stoppable): Promise<OpenAgentOptions> {
    if (options.context !== undefined) return options;
    const context = await work.wait(Promise.resolve(options.id).then(ground.contextOf));
    return context === undefined ? options : { ...options, context };
  }

  const agents: AgentService = {
    get: registry.get,
    list: registry.list,
    roots: registry.roots,
    isOwnedBy: registry.isOwnedBy,
    register: registry.register,

    async open(options) {
      checkId(options?.id);
      check(options);
      const { owner } = options;
      const make: Make = (shared) =>
        births.bear(
          { ...(owner && { owner }) },
          async (work) => resumeOrCreate(ground.contextOf ? await withContext(options, work) : options, work),
          shared,
        );
      for (;;) {
        const agent = registry.get(options.id);
        const life = agent && owners.lives.get(agent);
        // An agent whose log has lost against another writer's gives way to that.
        if (life && agent.getSnapshot().durable === "lost") await life.begun.dispose();
        else if (life && !sharing.has(options.id)) sharing.hold(life.begun);
        else if (agent && !sharing.has(options.id)) return { agent, async dispose() {} };
        else if (!agent && sessions.live(options.id)) {
          throw new TurnloopError("SESSION_LIVE", `the session ${options.id} lives here without an agent`);
        }
        try {
          return await sharing.open(options.id, options.signal, make, (joined) => tellJoined(joined, options));
        } catch (thrown) {
          // Somebody else was faster with the same id: there is something to join, or to resume.
          if (!TurnloopError.is(thrown, "SESSION_LIVE") && !TurnloopError.is(thrown, "SESSION_EXISTS")) throw thrown;
        }
      }
    },

    async create(options = {}) {
      const set = factory;
      if (!set) return sharing.hold(await births.bear(options, (work) => createNew(options, work)));
      return births.bear(options, (work) => foreign(work, set.create({ ...options, signal: work.signal })));
    },

    async resume(options) {
      checkId(options?.id);
      if (registry.get(options.id))
        throw new TurnloopError("SESSION_LIVE", `the session ${options.id} is live already; \`open\` joins it`);
      const set = factory;
      if (set) return births.bear(options, (work) => foreign(work, set.resume({ ...options, signal: work.signal })));
      const begun = await births.bear(options, (work) => resumeStored(options, work));
      if (!begun) throw notFound(options.id);
      return sharing.hold(begun);
    },

    async fork({ from, at, before, id, ...options }) {
      checkId(from);
      const cut = async (work: Stoppable): Promise<CreateAgentOptions> => {
        if (id !== undefined && (registry.get(id) || (await work.wait(sessions.isStored(id))))) throw exists(id);
        const live = sessions.live(from);
        const source = live
          ? { header: live.log.session.header, events: live.log.slice(0, live.log.seq) }
          : await work.wait(sessions.read(from));
        if (!source) throw notFound(from);
        const seed = cutForFork(source.events, { at, before });
        const { cwd } = source.header.meta;
        return {
          ...options,
          ...(id !== undefined && { id }),
          ...(cwd !== undefined && { meta: { cwd } }),
          seed,
          parent: { id: from, seq: seed.length },
        };
      };
      const set = factory;
      if (set) {
        return births.bear(options, async (work) =>
          foreign(work, set.create({ ...(await cut(work)), signal: work.signal })),
        );
      }
      return sharing.hold(await births.bear(options, async (work) => createNew(await cut(work), work)));
    },

    start(options = {}) {
      check(options);
      births.check();
      if (factory) {
        if (!factory.start)
          throw new TurnloopError(
            "UNSUPPORTED",
            "the factory that was set cannot start an agent at once; use `create`",
          );
        return factory.start(options);
      }
      const header = sessions.header({ id: newId(), ...(options.cwd !== undefined && { meta: { cwd: options.cwd } }) });
      const birth: Birth = {
        archive: { header, events: [] },
        stored: 0,
        source: "startup",
        options,
        work: createStoppable(),
        // The id is new, so that nobody else can have it; and there is no time to wait.
        lease: soonGranted(sessions.leases.take(header.id)),
      };
      return sharing.hold(beginNow(ground, owners, birth)).agent;
    },

    setFactory(next) {
      if (factory) throw new TurnloopError("FACTORY_SET", "a factory is set already; undo that first");
      factory = next;
      return () => {
        if (factory === next) factory = undefined;
      };
    },

    async close() {
      births.close();
      while (owners.lives.size > 0 || births.pending.size > 0 || made.size > 0) {
        const ends = [...owners.lives.values()].map((life) => life.begun.dispose());
        for (const handle of made) ends.push(handle.dispose());
        await Promise.allSettled([...ends, ...births.pending]);
      }
    },
  };

  function tellJoined(agent: Agent, { model, call, context, meta, setup, owner }: OpenAgentOptions): void {
    const { options, session } = agent;
    const differs =
      setup !== undefined ||
      (owner !== undefined && !registry.isOwnedBy(agent.id, owner)) ||
      (model !== undefined && model !== options.model) ||
      (call !== undefined && !jsonEqual(call, options.call)) ||
      (context !== undefined && context !== options.context) ||
      (meta !== undefined && !jsonEqual(meta, session.header.meta));
    if (!differs) return;
    report({
      code: "OPEN_JOINED",
      message: `the agent ${agent.id} is live already, so the options of this \`open\` are ignored`,
      sessionId: agent.id,
    });
  }

  return agents;
}
