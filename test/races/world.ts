/** An agent that is walked through a whole turn: a retry, a question of each kind, contexts, a second step. */
import {
  createHarness,
  defineTool,
  memoryStorage,
  TurnloopError,
  type Agent,
  type AgentHandle,
  type AgentStatus,
  type Harness,
  type JsonValue,
  type Model,
  type ModelChunk,
  type ModelRequest,
  type SessionStorage,
} from "turnloop";
import { testClock, type TestClock } from "../support/clock.ts";
import { clientTool, tool } from "../support/calls.ts";
import { deferred } from "../support/wait.ts";
import { createLedger, type Ledger } from "./ledger.ts";

/** What is done where the loop is: answers with what the place has to wait for. */
export type Visit = () => Promise<void> | undefined;
/** Places without a hook of their own. */
export type Place = "model" | "validate" | "guard" | "body" | "store tool/start" | "store turn/end";

export interface World {
  readonly clock: TestClock;
  readonly harness: Harness;
  readonly agent: Agent;
  readonly handle: AgentHandle;
  readonly owner: AgentHandle;
  readonly statuses: readonly AgentStatus[];
  readonly diagnostics: readonly string[];
  /** What went wrong where nobody could be told. */
  readonly faults: string[];
  readonly ledger: Ledger;
  /** Who is called at a place. */
  readonly places: Map<Place, Visit>;
  /** The next writes fail. */
  failWrites(count: number): void;
  /** Whether another writer has the session. */
  conflict: boolean;
  /** Until nothing more happens by itself. */
  rest(): Promise<void>;
  /** Answers what is asked. */
  answer(): void;
  /** Answers what is asked, and lets the time pass. Whether all came to its end. */
  finish(): Promise<boolean>;
  /** Follows the end of a life, which must come. */
  ending(what: string, promise: Promise<void>): void;
  /** Another process opens the session. */
  reopen(): Promise<void>;
}

const CALLS = ["asks", "look", "work", "remote"];

export async function createWorld(): Promise<World> {
  const clock = testClock();
  const places: World["places"] = new Map();
  const faults: string[] = [];
  const diagnostics: string[] = [];
  const ledger = createLedger(() => world.agent.session, faults);
  const asked = deferred();
  let owing = 0;
  let failing = 0;
  let overloaded = true;
  let statuses: AgentStatus[] = [];
  let life: { harness: Harness; handle: AgentHandle; owner: AgentHandle };

  const visit = (place: Place): ReturnType<Visit> => places.get(place)?.();
  const disk = memoryStorage();
  const storage: SessionStorage = {
    ...disk,
    async append(batch) {
      if (batch.id === "s") {
        if (world.conflict) throw new TurnloopError("SESSION_CONFLICT", "somebody else writes this session");
        if (failing > 0) {
          failing -= 1;
          throw new Error("the disk is busy");
        }
        for (const type of ["tool/start", "turn/end"] as const) {
          if (!batch.events.some((event) => event.type === type)) continue;
          await Promise.resolve();
          await visit(`store ${type}`);
        }
      }
      await disk.append(batch);
    },
  };

  /** A model object of its own for each life, as each is watched by its own harness. */
  const makeModel = (): Model => ({
    id: "races/model",
    async *stream(request, { signal }) {
      if (signal.aborted) faults.push("the model was called after the stop");
      if (overloaded) {
        overloaded = false;
        throw new Error("overloaded");
      }
      for (const chunk of answerTo(request)) {
        yield chunk;
        if (chunk.type === "delta") await visit("model");
      }
    },
  });

  const look = defineTool({
    name: "look",
    description: "looks",
    inputSchema: { type: "object" },
    parallel: true,
    // From here on an approval is open, for all that comes.
    validate: async (args: unknown) => {
      await asked.promise;
      await visit("validate");
      return args;
    },
    async execute(_: unknown, { signal }) {
      if (signal.aborted) faults.push("the body was started after the stop");
      await visit("body");
      return "seen";
    },
  });
  const tools = [
    tool("asks", () => "done", { needsApproval: true, parallel: true }),
    look,
    tool("work", (_, call) => call.ask("which one?"), { idempotent: true }),
    clientTool("remote"),
  ];

  async function open(): Promise<void> {
    const harness = createHarness({
      clock,
      storage,
      tools,
      model: makeModel(),
      onDiagnostic: ({ code }) => diagnostics.push(code),
    });
    statuses = [];
    harness.hooks.on("agent/request-error", ({ attempt }) => ({ kind: attempt === 1 ? "retry" : "fail" }));
    harness.hooks.on("tools/post-execute", async ({ execution }, next) => {
      const decision = await next();
      if (execution.name !== "look") return decision;
      return { ...decision, additionalContext: { content: "it is dark", source: { kind: "policy" } } };
    });
    harness.hooks.on("agent/status", ({ agent, status }) => {
      if (agent.id === "s") statuses.push(status);
    });
    harness.hooks.on("interaction/requested", () => asked.resolve());
    harness.tools.guard(({ name }) => {
      // The answer of a guard is taken at once: what it would wait for is part of the answer.
      if (name === "look") return visit("guard") as unknown as undefined;
      return undefined;
    });
    const owner = await harness.agents.open({ id: "owner" });
    const handle = await harness.agents.open({ id: "s", owner: owner.agent });
    life = { harness, handle, owner };
  }

  const world: World = {
    clock,
    places,
    faults,
    diagnostics,
    ledger,
    conflict: false,
    get harness() {
      return life.harness;
    },
    get handle() {
      return life.handle;
    },
    get agent() {
      return life.handle.agent;
    },
    get owner() {
      return life.owner;
    },
    get statuses() {
      return statuses;
    },
    failWrites: (count) => void (failing = count),
    async rest() {
      const { session } = world.agent;
      for (let seq = -1, calm = 0; calm < 4;) {
        await turnOfTheEventLoop();
        calm = session.seq === seq ? calm + 1 : 0;
        ({ seq } = session);
      }
    },
    answer() {
      const { agent } = world;
      if (agent.status === "disposed" || agent.session.durable === "lost") return;
      for (const { id, kind } of agent.interactions) {
        agent.respond(id, answerOf(kind)).catch((error: unknown) => {
          // An answer that could not be stored is refused.
          if (agent.session.durable !== "lost" && agent.status !== "disposed")
            faults.push(`the answer to ${id} was refused: ${String(error)}`);
        });
      }
    },
    async finish() {
      for (let still = 0, ms = 200; still < 3; ms = 5000) {
        await world.rest();
        const { agent } = world;
        const { seq } = agent.session;
        if (owing === 0 && isAtEnd(agent)) return true;
        world.answer();
        await world.rest();
        await clock.advance(ms);
        still = agent.session.seq === seq ? still + 1 : 0;
      }
      await world.rest();
      return owing === 0 && isAtEnd(world.agent);
    },
    ending(what, promise) {
      owing += 1;
      promise
        .catch((error: unknown) => faults.push(`${what} was refused: ${String(error)}`))
        .finally(() => void (owing -= 1));
    },
    reopen: open,
  };
  await open();
  return world;
}

/** Nothing runs, and nothing is to be run. */
function isAtEnd(agent: Agent): boolean {
  if (agent.status === "disposed" || agent.session.durable === "lost") return agent.status !== "running";
  return agent.status === "idle" && agent.queue.every(({ as }) => as === "inject");
}

/** Calls every tool once it is told to go; all else it answers in a few words. */
function* answerTo({ messages }: ModelRequest): Generator<ModelChunk> {
  const said = JSON.stringify(messages);
  const called = messages.some(({ content }) => content.some(({ type }) => type === "tool-call"));
  yield { type: "block-start", index: 0, block: { type: "text" } };
  yield { type: "delta", index: 0, text: "well" };
  yield { type: "block-end", index: 0 };
  const calls = said.includes('"go"') && !called ? CALLS : [];
  for (const [i, name] of calls.entries()) {
    yield { type: "block-start", index: i + 1, block: { type: "tool-call", name } };
    yield { type: "block-end", index: i + 1 };
  }
  yield { type: "usage", usage: { input: 1, output: 1 } };
  yield { type: "finish", reason: { kind: calls.length > 0 ? "tool-calls" : "stop" } };
}

/** An answer that suits the kind of interaction. */
export function answerOf(kind: string): JsonValue {
  return kind === "approval" ? { decision: "allow" } : kind === "client-tool" ? { value: "done" } : "this one";
}

function turnOfTheEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
