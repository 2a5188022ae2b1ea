/** The agents of a harness: begun, resumed, joined, forked, found. */
import { createRegistry, type AgentRegistry } from "../agent/registry.ts";
import type {
  Agent,
  AgentFactory,
  Agents,
  AgentOptions,
  CreateAgentOptions,
  LifecycleOptions,
  OpenAgentOptions,
  ResumeAgentOptions,
} from "../agent/types.ts";
import { TurnloopError } from "../errors.ts";
import { jsonEqual } from "../json.ts";
import { exists, notFound } from "../storage/sessions.ts";
import type { SessionStorage } from "../storage/types.ts";
import type { Ground } from "./build.ts";
import { cutForFork } from "./fork.ts";
import { abortReason, begin, beginNow, type Begun, type Birth, type Owners } from "./lifecycle.ts";
import { createSharing, unlessAborted } from "./sharing.ts";

export interface AgentService extends Agents {
  /** Ends all of them, those that are being made too; nothing new begins. */
  close(): Promise<void>;
}

export function createAgents(ground: Ground, storage: SessionStorage): AgentService {
  const { hooks, models, newId, report, sessions } = ground;
  const registry: AgentRegistry = createRegistry(hooks);
  const sharing = createSharing();
  const births = new Set<Promise<unknown>>();
  const closing = new AbortController();
  let factory: AgentFactory | undefined;

  const owners: Owners = {
    registry,
    lives: new Map(),
    checkOpen() {
      if (closing.signal.aborted) throw abortReason(closing.signal);
    },
  };

  /** Throws for options that can never work. */
  function check({ model, claim, interrupted }: AgentOptions & LifecycleOptions & { interrupted?: string }): void {
    if (model !== undefined && !models.get(model)) {
      throw new TurnloopError(
        "NO_ADAPTER",
        `there is no model named ${model}; the harness knows ${models.names().join(", ") || "none"}`,
      );
    }
    if (claim !== undefined) throw new TurnloopError("UNSUPPORTED", "`claim` is not supported yet");
    if (interrupted === "continue")
      throw new TurnloopError("UNSUPPORTED", '`interrupted: "continue"` is not supported yet');
  }

  function checkId(id: unknown): asserts id is string {
    if (typeof id !== "string" || id === "")
      throw new TurnloopError("INVALID_ID", "an agent needs an `id`: text that is not empty");
  }

  /** A birth that the harness waits for when it is disposed, and that its own signal can abort. */
  function track<T>(birth: Promise<T>): Promise<T> {
    births.add(birth);
    const done = (): void => void births.delete(birth);
    birth.then(done, done);
    return birth;
  }

  function load<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    return unlessAborted(unlessAborted(promise, signal), closing.signal);
  }

  function checkBirth({ signal }: LifecycleOptions): void {
    owners.checkOpen();
    if (signal?.aborted) throw abortReason(signal);
  }

  async function createNew(options: CreateAgentOptions): Promise<Begun> {
    const { id, meta, seed, parent, signal } = options;
    check(options);
    checkBirth(options);
    if (id !== undefined) checkId(id);
    const events = sessions.seed(seed ?? []);
    const header = sessions.header({
      ...(id !== undefined && { id }),
      meta,
      parent,
      ...(seed && { seedLength: events.length }),
    });
    if (registry.get(header.id)) throw exists(header.id);
    if (id !== undefined && (await load(storage.load(id), signal))) throw exists(id);
    return begin(ground, owners, {
      archive: { header, events },
      stored: 0,
      source: "startup",
      options,
    });
  }

  async function resumeStored(options: ResumeAgentOptions): Promise<Begun | undefined> {
    check(options);
    checkId(options.id);
    checkBirth(options);
    const archive = await load(sessions.read(options.id), options.signal);
    if (!archive) return undefined;
    return begin(ground, owners, {
      archive,
      stored: archive.events.length,
      source: "resume",
      options,
    });
  }

  async function resumeOrCreate(options: OpenAgentOptions): Promise<Begun> {
    if (!factory) return (await resumeStored(options)) ?? createNew(options);
    try {
      return await factory.resume(options);
    } catch (thrown) {
      if (!TurnloopError.is(thrown, "SESSION_NOT_FOUND")) throw thrown;
      return factory.create(options);
    }
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
      const opening = (signal: AbortSignal): Promise<Begun> => track(resumeOrCreate({ ...options, signal }));
      for (;;) {
        const agent = registry.get(options.id);
        const life = agent && owners.lives.get(agent);
        if (agent && !life) return { agent, async dispose() {} };
        if (life && !sharing.has(options.id)) sharing.hold(life.begun);
        try {
          return await sharing.open(options.id, options.signal, opening, (joined) => tellJoined(joined.agent, options));
        } catch (thrown) {
          // Somebody else's `create` was faster: then there is something to join.
          const lost = TurnloopError.is(thrown, "SESSION_LIVE") || TurnloopError.is(thrown, "SESSION_EXISTS");
          if (!lost || !registry.get(options.id)) throw thrown;
        }
      }
    },

    create: (options = {}) => track(factory ? factory.create(options) : createNew(options).then(sharing.hold)),

    async resume(options) {
      checkId(options?.id);
      if (registry.get(options.id))
        throw new TurnloopError("SESSION_LIVE", `the session ${options.id} is live already; \`open\` joins it`);
      if (factory) return track(factory.resume(options));
      const begun = await track(resumeStored(options));
      if (!begun) throw notFound(options.id);
      return sharing.hold(begun);
    },

    async fork({ from, at, before, id, ...options }) {
      checkId(from);
      if (id !== undefined && (registry.get(id) || (await storage.load(id)))) throw exists(id);
      const live = sessions.live(from);
      const source = live
        ? { header: live.log.session.header, events: live.log.slice(0, live.log.seq) }
        : await sessions.read(from);
      if (!source) throw notFound(from);
      const seed = cutForFork(source.events, { at, before });
      const { cwd } = source.header.meta;
      return agents.create({
        ...options,
        ...(id !== undefined && { id }),
        ...(cwd !== undefined && { meta: { cwd } }),
        seed,
        parent: { id: from, seq: seed.length },
      });
    },

    start(options = {}) {
      check(options);
      owners.checkOpen();
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
      closing.abort(new TurnloopError("HARNESS_DISPOSED", "the harness is disposed; create another"));
      while (owners.lives.size > 0 || births.size > 0) {
        await Promise.allSettled([...[...owners.lives.values()].map((life) => life.begun.dispose()), ...births]);
      }
    },
  };

  function tellJoined(agent: Agent, { model, call, context, meta, setup }: OpenAgentOptions): void {
    const { options, session } = agent;
    const differs =
      setup !== undefined ||
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
