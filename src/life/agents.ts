/** The agents of a harness: begun, resumed, joined, forked, found. */
import { createStoppable, type Stoppable } from "../agent/stoppable.ts";
import { createRegistry, type AgentRegistry } from "../agent/registry.ts";
import type {
  Agent,
  AgentFactory,
  AgentHandle,
  Agents,
  CreateAgentOptions,
  ForkAgentOptions,
  LifecycleOptions,
  OpenAgentOptions,
} from "../agent/types.ts";
import { TurnloopError } from "../errors.ts";
import { defined, jsonEqual } from "../json.ts";
import { soonGranted } from "../storage/leases.ts";
import { exists, notFound } from "../storage/stored.ts";
import type { Ground } from "./build.ts";
import { createBirths } from "./births.ts";
import { beginNow, type Begun, type Birth, type Owners } from "./lifecycle.ts";
import { checkId, checkOptions, createForeignMaker, createMaker, type Maker } from "./makers.ts";
import { createSharing, type Make } from "./sharing.ts";

export interface AgentService extends Agents {
  /** Ends all of them, those that are being made too; nothing new begins. */
  close(): Promise<void>;
}

export function createAgents(ground: Ground): AgentService {
  const { hooks, newId, report, sessions } = ground;
  const registry: AgentRegistry = createRegistry(hooks);
  const sharing = createSharing();
  const owners: Owners = { registry, lives: new Map(), check: () => births.check() };
  const births = createBirths(owners);
  const maker = createMaker(ground, owners, sharing.hold);
  let factory: AgentFactory | undefined;
  const made = new Set<AgentHandle>();

  /** The one that makes what is asked for now, whatever is set meanwhile. */
  const nextMaker = (): Maker => (factory ? createForeignMaker(factory, made) : maker);

  async function born(
    options: LifecycleOptions,
    make: (maker: Maker, work: Stoppable) => Promise<Begun>,
  ): Promise<AgentHandle> {
    const next = nextMaker();
    return next.hold(await births.bear(options, (work) => make(next, work)));
  }

  /** Whoever opens a session without its context, such as a host that is asked for it, gets the harness's. */
  async function withContext(options: OpenAgentOptions, work: Stoppable): Promise<OpenAgentOptions> {
    if (options.context !== undefined) return options;
    const context = await work.wait(Promise.resolve(options.id).then(ground.contextOf));
    return context === undefined ? options : { ...options, context };
  }

  /** What a new session begins with that goes on from another one's turn. */
  async function cut(options: ForkAgentOptions, work: Stoppable): Promise<CreateAgentOptions> {
    const { from, at, before, id, ...rest } = options;
    if (id !== undefined && (registry.get(id) || (await work.wait(sessions.isStored(id))))) throw exists(id);
    const live = sessions.live(from);
    const source = live
      ? { header: live.log.session.header, events: live.log.slice(0, live.log.seq) }
      : await work.wait(sessions.read(from));
    if (!source) throw notFound(from);
    const { cutForFork } = await work.wait(import("./fork.ts"));
    const seed = cutForFork(source.events, { at, before });
    const { cwd } = source.header.meta;
    return {
      ...rest,
      ...defined({ id, meta: cwd === undefined ? cwd : { cwd } }),
      seed,
      parent: { id: from, seq: seed.length },
    };
  }

  const agents: AgentService = {
    get: registry.get,
    list: registry.list,
    roots: registry.roots,
    isOwnedBy: registry.isOwnedBy,
    register: registry.register,

    async open(options) {
      checkId(options?.id);
      checkOptions(ground, options);
      const { owner } = options;
      const make: Make = (shared) =>
        births.bear(
          defined({ owner }),
          async (work) => nextMaker().open(ground.contextOf ? await withContext(options, work) : options, work),
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

    create: async (options = {}) => born(options, (next, work) => next.create(options, work)),

    async resume(options) {
      checkId(options?.id);
      if (registry.get(options.id))
        throw new TurnloopError("SESSION_LIVE", `the session ${options.id} is live already; \`open\` joins it`);
      return born(options, (next, work) => next.resume(options, work));
    },

    async fork(options) {
      checkId(options?.from);
      return born(options, async (next, work) => next.create(await cut(options, work), work));
    },

    start(options = {}) {
      checkOptions(ground, options);
      births.check();
      if (factory) {
        if (!factory.start)
          throw new TurnloopError("UNSUPPORTED", "the factory that was set cannot `start`; use `create`");
        return factory.start(options);
      }
      const header = sessions.header({ id: newId(), meta: defined({ cwd: options.cwd }) });
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
      message: `the agent ${agent.id} is live already; the options of this \`open\` are ignored`,
      sessionId: agent.id,
    });
  }

  return agents;
}
