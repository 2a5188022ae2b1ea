/** The inbox, for any program of verbs: what becomes of every message is what a model of a few lines says. */
import * as fc from "fast-check";
import {
  createHarness,
  defineTool,
  memoryStorage,
  type Agent,
  type Harness,
  type Model,
  type SessionEvent,
} from "turnloop";
import { expect, test } from "vitest";
import { turnOfTheEventLoop } from "../support/failing-storage.ts";
import { deferred } from "../support/wait.ts";

type Verb =
  | { readonly do: "send" | "steer" | "inject" | "cancel" | "keep" }
  | { readonly do: "withdraw" | "again"; readonly which: number };
/** Verbs in one turn of the event loop, then all comes to rest; or the world goes on; or the process is another. */
type Step =
  | { readonly do: "verbs"; readonly verbs: readonly Verb[] }
  | { readonly do: "answer" | "call" | "finish" | "reopen" };

const verb: fc.Arbitrary<Verb> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom("send", "steer", "inject") }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("cancel", "keep") }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("withdraw", "again"), which: fc.nat({ max: 30 }) }) },
);
const program: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant("verbs" as const),
        verbs: fc.array(verb, { minLength: 1, maxLength: 4 }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("answer", "call", "finish") }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("reopen" as const) }) },
  ),
  { minLength: 3, maxLength: 14 },
);

/** What a turn did with messages, and how it ended. */
interface TurnSeen {
  readonly kind: string;
  readonly said: string[];
  readonly steered: string[];
  readonly injected: string[];
  end: string | undefined;
}
interface Entry {
  readonly id: string;
  as: "send" | "steer" | "inject";
}

/** The reference: an inbox, the open turn, and the few rules by which one becomes the other. */
function createReference() {
  let queue: Entry[] = [];
  const turns: TurnSeen[] = [];
  const dropped: string[] = [];
  let state: "idle" | "asking" | "calling" = "idle";
  let stopping = false;

  const open = (): TurnSeen | undefined => (state === "idle" ? undefined : turns.at(-1));
  const begin = (kind: string): TurnSeen => {
    const turn: TurnSeen = { kind, said: [], steered: [], injected: [], end: undefined };
    turns.push(turn);
    return turn;
  };
  /** Those that fit leave the inbox, in its order. */
  const take = (fits: (entry: Entry) => boolean): string[] => {
    const taken = queue.filter(fits).map(({ id }) => id);
    queue = queue.filter((entry) => !fits(entry));
    return taken;
  };
  const end = (how: string): void => {
    const turn = turns.at(-1)!;
    if (state === "calling") turn.injected.push(...take(({ as }) => as === "inject"));
    turn.end = how;
    state = "idle";
    stopping = false;
  };
  /** After the tools, or after an answer without any: steering makes another step. */
  const endStep = (called: boolean): void => {
    const turn = turns.at(-1)!;
    turn.injected.push(...take(({ as }) => as === "inject"));
    const steering = take(({ as }) => as === "steer");
    turn.steered.push(...steering);
    state = "asking";
    if (!called && steering.length === 0) end("completed");
  };

  return {
    turns,
    dropped,
    get queue() {
      return queue;
    },
    get state() {
      return state;
    },
    verb(what: Verb["do"], id: string) {
      switch (what) {
        case "send":
        case "steer":
          queue.push({ id, as: what === "steer" && state !== "idle" ? "steer" : "send" });
          return;
        case "inject":
          if (state === "calling") queue.push({ id, as: "inject" });
          else if (state === "asking") open()!.injected.push(id);
          else Object.assign(begin("injection"), { end: "completed" }).injected.push(id);
          return;
        case "cancel":
          dropped.push(...take(({ as }) => as !== "inject"));
          stopping = state !== "idle";
          return;
        case "keep":
          stopping = state !== "idle";
          return;
        case "withdraw":
          dropped.push(...take((entry) => entry.id === id && entry.as !== "inject"));
      }
    },
    answer: () => endStep(false),
    call: () => void (state = "calling"),
    finish: () => endStep(true),
    reopen() {
      if (state !== "idle") end("disposed");
    },
    /** What a stop, and what is queued, come to once nothing is on the stack. */
    rest() {
      if (stopping) end("aborted");
      if (state !== "idle" || queue.length === 0) return;
      begin("message").said.push(...take(() => true));
      state = "asking";
    },
  };
}

/** The same, read from a log. */
function seenIn(events: readonly SessionEvent[]): { turns: TurnSeen[]; dropped: string[] } {
  const turns: TurnSeen[] = [];
  const dropped: string[] = [];
  for (const event of events) {
    const turn = turns.at(-1)!;
    if (event.type === "turn/start") {
      turns.push({ kind: event.data.trigger.kind, said: [], steered: [], injected: [], end: undefined });
    } else if (event.type === "user/message") turn.said.push(event.data.id);
    else if (event.type === "steering/message") turn.steered.push(event.data.id);
    else if (event.type === "context/message") turn.injected.push(event.data.id);
    else if (event.type === "turn/end") turn.end = event.data.reason.kind;
    else if (event.type === "inbox/dropped") dropped.push(...event.data.ids);
    else if (event.type === "agent/cancelled") dropped.push(...event.data.dropped);
  }
  return { turns, dropped };
}

/** An agent whose model and tool wait until they are told what to do. */
function createWorld() {
  const storage = memoryStorage();
  let answer = deferred<"text" | "call">();
  let body = deferred();
  const model: Model = {
    id: "gate/model",
    async *stream() {
      answer = deferred();
      if ((await answer.promise) === "call") {
        yield { type: "block-start", index: 0, block: { type: "tool-call", name: "work" } };
        yield { type: "finish", reason: { kind: "tool-calls" } };
      } else {
        yield { type: "delta", index: 0, text: "said" };
        yield { type: "finish", reason: { kind: "stop" } };
      }
    },
  };
  const work = defineTool({
    name: "work",
    description: "works",
    inputSchema: { type: "object" },
    execute() {
      body = deferred();
      return body.promise;
    },
  });
  let harness: Harness;
  let agent: Agent;
  return {
    get agent() {
      return agent;
    },
    answer: (how: "text" | "call") => answer.resolve(how),
    finish: () => body.resolve(),
    async open() {
      harness = createHarness({ storage, model, tools: [work] });
      ({ agent } = await harness.agents.open({ id: "s" }));
    },
    close: () => harness.dispose(),
    /** Until nothing happens any more by itself. */
    async rest() {
      for (let seq = -1, calm = 0; calm < 4;) {
        await turnOfTheEventLoop();
        calm = agent.session.seq === seq ? calm + 1 : 0;
        ({ seq } = agent.session);
      }
    },
  };
}

function perform(agent: Agent, { do: what, ...rest }: Verb, id: string): void {
  switch (what) {
    case "send":
    case "steer":
    case "inject":
      agent[what](id, { id });
      return;
    case "cancel":
      agent.cancel("stop");
      return;
    case "keep":
      agent.cancel("stop", { queue: "keep" });
      return;
    case "withdraw":
      void agent.withdraw(id);
      return;
    case "again":
      // An id that was accepted before, here or by another process, is accepted once.
      agent.send(`again ${JSON.stringify(rest)}`, { id });
  }
}

test("every message comes to the one end that the reference says, in its turn and its place, or is still queued", async () => {
  await fc.assert(
    fc.asyncProperty(program, async (steps) => {
      const world = createWorld();
      const reference = createReference();
      const ids: string[] = [];
      await world.open();
      for (const step of steps) {
        switch (step.do) {
          case "verbs":
            for (const one of step.verbs) {
              let id: string | undefined;
              if ("which" in one) {
                id = ids[one.which % Math.max(ids.length, 1)];
                if (id === undefined) continue;
                // Taking back what waits for the end of a tool batch is no part of this.
                if (one.do === "withdraw" && reference.queue.some((entry) => entry.id === id && entry.as === "inject"))
                  continue;
              } else {
                id = `m${ids.length + 1}`;
                if (one.do !== "cancel" && one.do !== "keep") ids.push(id);
              }
              perform(world.agent, one, id);
              reference.verb(one.do, id);
            }
            break;
          case "answer":
          case "call":
            if (reference.state !== "asking") continue;
            world.answer(step.do === "call" ? "call" : "text");
            reference[step.do]();
            break;
          case "finish":
            if (reference.state !== "calling") continue;
            world.finish();
            reference.finish();
            break;
          case "reopen":
            await world.close();
            reference.reopen();
            await world.open();
        }
        await world.rest();
        reference.rest();
        const { turns, dropped } = reference;
        expect(seenIn(world.agent.session.events)).toEqual({ turns, dropped });
        expect(world.agent.queue.map(({ id, as }) => ({ id, as }))).toEqual(reference.queue);
        expect(world.agent.status).toBe(reference.state === "idle" ? "idle" : "running");
      }
      await world.close();
    }),
    { numRuns: 150 },
  );
}, 30_000);
