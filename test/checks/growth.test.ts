/** How much work a chunk and a step are, counted without a clock: the same at the end of a long turn as at its start. */
import type { HookName, ModelRequest, SessionView } from "turnloop";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Dispatch } from "../../src/hooks/hooks.ts";
import { startCounting, type Counts } from "../bench/counts.ts";
import { RESULT, textModel, toolModel, type Stream } from "../bench/mock.ts";
import { median } from "../bench/timing.ts";

/** How often each hook was dispatched, by whether anybody listened. */
const dispatched = vi.hoisted(() => ({ heard: new Map<string, number>(), unheard: new Map<string, number>() }));

vi.mock(import("../../src/hooks/hooks.ts"), async (importOriginal) => {
  const original = await importOriginal();
  const createHooks: typeof original.createHooks = (...args) => {
    const hooks = original.createHooks(...args);
    const counted = (kind: "emit" | "waterfall" | "serial" | "parallel"): never => {
      const dispatch = hooks[kind] as (name: HookName, ...rest: unknown[]) => unknown;
      const counting = (name: HookName, ...rest: unknown[]): unknown => {
        const counts = hooks.heard(name) ? dispatched.heard : dispatched.unheard;
        counts.set(name, (counts.get(name) ?? 0) + 1);
        return dispatch(name, ...rest);
      };
      // The same function but for the count.
      return counting as never;
    };
    return {
      ...hooks,
      emit: counted("emit"),
      waterfall: counted("waterfall"),
      serial: counted("serial"),
      parallel: counted("parallel"),
    } satisfies Dispatch;
  };
  return { ...original, createHooks };
});

interface Measured {
  readonly requests: readonly ModelRequest[];
  /** What was counted when each request came, and at the end. */
  readonly counts: readonly Counts[];
  readonly session: SessionView;
  readonly heard: ReadonlyMap<string, number>;
  readonly unheard: ReadonlyMap<string, number>;
}

/** One turn on a harness of its own, which listens to these hooks. */
async function measure(stream: Stream, hooks: readonly HookName[] = []): Promise<Measured> {
  // The package was loaded before its hooks could be counted; and the watch of tests would be counted too.
  vi.resetModules();
  const { unwatchedHarness } = await import("../support/unwatched.ts");
  const { defineTool, run } = await import("turnloop");
  const requests: ModelRequest[] = [];
  const counts: Counts[] = [];
  let copied = 0;
  // Each request has a list of its own of the whole history: that copy, of references, is all that may grow.
  const note = (): void => void counts.push({ ...counting.read(), walked: counting.read().walked - copied });
  const model = {
    id: "mock/model",
    stream(request: ModelRequest, { signal }: { readonly signal: AbortSignal }) {
      copied += request.messages.length;
      note();
      requests.push(request);
      return stream(signal);
    },
  };
  const inputSchema = { type: "object", properties: { q: { type: "string" }, n: { type: "number" } } };
  const look = defineTool({ name: "look", description: "Looks", inputSchema, execute: () => RESULT });
  const harness = unwatchedHarness({ model, tools: [look], system: "You look things up." });
  onTestFinished(() => harness.dispose());
  for (const name of hooks) {
    // Each kind of hook takes this for an answer.
    harness.hooks.on(name, ((_payload: unknown, next?: () => unknown) => next?.()) as never);
  }
  const { agent } = await harness.agents.create();
  dispatched.heard.clear();
  dispatched.unheard.clear();
  const counting = startCounting();
  try {
    await run(agent, "hi").result;
    note();
  } finally {
    counting.stop();
  }
  const { heard, unheard } = dispatched;
  return { requests, counts, session: agent.session, heard: new Map(heard), unheard: new Map(unheard) };
}

const WHAT = ["freezes", "names", "walked", "json"] as const;

/** What a step costs today; to lower when it can be, and to raise for a reason. */
const STEP: Counts = { freezes: 49, names: 13, walked: 79, json: 1 };
/** The same for a chunk: the chunk, the data of its event, and the event are frozen. */
const CHUNK: Counts = { freezes: 3, names: 0, walked: 4, json: 0 };

function between(before: Counts, after: Counts, units = 1): Counts {
  const each = (what: keyof Counts): number => (after[what] - before[what]) / units;
  return { freezes: each("freezes"), names: each("names"), walked: each("walked"), json: each("json") };
}

/** What the most of these steps cost: the test runner may do something of its own in one or the other. */
function usual({ counts }: Measured, from: number, to: number): Counts {
  const costs = Array.from({ length: to - from }, (_, i) => between(counts[from + i]!, counts[from + i + 1]!));
  const middle = (what: keyof Counts): number => median(costs.map((cost) => cost[what]));
  return { freezes: middle("freezes"), names: middle("names"), walked: middle("walked"), json: middle("json") };
}

test("the thousandth step costs what the tenth does, and a turn of a thousand steps five of two hundred", async () => {
  const short = await measure(toolModel(200));
  const long = await measure(toolModel(1000));
  const step = usual(short, 1, 200);
  expect(usual(short, 1, 20)).toEqual(step);
  expect(usual(long, 100, 200)).toEqual(step);
  expect(usual(long, 900, 1000)).toEqual(step);
  for (const what of WHAT) {
    const exponent = Math.log(long.counts.at(-1)![what] / short.counts.at(-1)![what]) / Math.log(5);
    expect(exponent, `how ${what} grow`).toBeCloseTo(1, 1);
    expect(step[what], what).toBeLessThanOrEqual(STEP[what]);
  }
  expect(long.session.seq - short.session.seq).toBe(800 * 10);
});

test("a chunk costs one event, three frozen objects, and no dispatch, however many came before", async () => {
  const few = await measure(textModel(1000));
  const many = await measure(textModel(4000));
  expect(many.session.seq - few.session.seq).toBe(3000);
  const chunk = between(few.counts.at(-1)!, many.counts.at(-1)!, 3000);
  for (const what of WHAT) expect(chunk[what], what).toBeLessThanOrEqual(CHUNK[what] + 0.02);
  expect(few.counts.at(-1)!.freezes).toBeLessThan(1000 * CHUNK.freezes + 100);
  expect(many.heard).toEqual(new Map());
  expect(many.unheard).toEqual(few.unheard);
});

test("a hook that listens is asked once a step, and of a chunk only `session/event` is told", async () => {
  const steps = 20;
  const asked: readonly HookName[] = [
    "prompt/assemble",
    "agent/pre-step",
    "agent/request",
    "model/stream",
    "agent/step-result",
    "agent/turn-continuation",
    "agent/turn-stop",
  ];
  const ofCalls: readonly HookName[] = ["tools/pre-execute", "tools/execute", "tools/post-execute", "tools/result"];
  const words = 50;
  const { heard, session } = await measure(toolModel(steps, words), [...asked, ...ofCalls, "session/event"]);
  expect(heard).toEqual(
    new Map<string, number>([
      ...asked.map((name) => [name, steps + 1] as const),
      ...ofCalls.map((name) => [name, steps] as const),
      ["session/event", session.seq],
    ]),
  );
  expect(session.seq).toBeGreaterThan(steps * words);
});

test("a step dispatches into no hook that nobody listens to", async () => {
  const { heard, unheard } = await measure(toolModel(20));
  expect(heard).toEqual(new Map());
  const often = [...unheard].filter(([, times]) => times >= 20).map(([name]) => name);
  expect(often).toEqual([]);
});

test("each request hands out the messages, the prompt and the tools of the one before, not copies of them", async () => {
  const { requests } = await measure(toolModel(1000));
  expect(requests).toHaveLength(1001);
  requests.slice(1).forEach((request, i) => {
    const before = requests[i]!;
    expect(request.messages.length).toBe(before.messages.length + 2);
    expect(before.messages.every((message, at) => request.messages[at] === message)).toBe(true);
    expect(request.config).toBe(before.config);
    expect(request.tools).toBe(before.tools);
    expect(request.system).toBe(before.system);
  });
});
