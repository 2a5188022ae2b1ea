/** G to N at once: whatever hooks and models do, in whatever order, the promises of every session hold. */
import { array, assert, asyncProperty, constantFrom, double, nat, record, type Arbitrary } from "fast-check";
import type { HookName, SessionEventType, SessionView } from "turnloop";
import type { ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { dataOf, leftBehind, scene, tool, type Scene } from "../support/scene.ts";
import { settleTest } from "../support/turnloop.ts";

const HOOKS = [
  "agent/prompt-submit",
  "agent/session-prefix",
  "agent/pre-step",
  "agent/request",
  "agent/request-error",
  "agent/step-result",
  "agent/turn-continuation",
  "agent/turn-stop",
  "prompt/assemble",
  "model/stream",
  "tools/pre-execute",
  "tools/execute",
  "tools/post-execute",
  "session/flush",
] as const satisfies readonly HookName[];

const EVENTS = [
  "turn/start",
  "turn/end",
  "step/start",
  "step/end",
  "user/message",
  "request/header",
  "assistant/chunk",
  "assistant/message",
  "tool/call",
  "tool/start",
  "tool/result",
  "request/failed",
] as const satisfies readonly SessionEventType[];

const DEEDS = ["throw", "reject", "hang", "cancel", "cancel keep", "send", "steer", "inject", "dispose"] as const;

const ANSWERS: Readonly<Record<string, ScriptedAnswer>> = {
  text: "some words",
  calls: {
    text: "so",
    toolCalls: [
      { name: "look", args: {} },
      { name: "none", args: {} },
    ],
  },
  together: {
    toolCalls: [
      { name: "peek", args: {} },
      { name: "peek", args: {} },
    ],
  },
  error: { text: "half", error: { message: "no" } },
  empty: { chunks: [] },
  limit: { text: "half", toolCalls: [{ name: "look", args: {} }], finish: "max-tokens" },
  hang: { text: "half", hang: "deaf" },
};

interface Deed {
  readonly place: (typeof HOOKS)[number] | (typeof EVENTS)[number];
  /** How often it must have been passed before. */
  readonly after: number;
  readonly deed: (typeof DEEDS)[number];
  /** Also cancel or dispose in the same moment. */
  readonly and: "cancel" | "dispose" | undefined;
}

const deeds: Arbitrary<Deed[]> = array(
  record({
    place: constantFrom(...HOOKS, ...EVENTS),
    after: constantFrom(0, 0, 0, 1, 2),
    deed: constantFrom(...DEEDS),
    and: constantFrom(undefined, undefined, "cancel", "cancel", "dispose"),
  }),
  { maxLength: 6 },
);

/** Does what the plan says, wherever it says so. */
function perform({ agent, dispose, hooks }: Scene, plan: readonly Deed[]): void {
  const alive = (): boolean => agent.status !== "disposed";
  const act = ({ place, deed, and }: Deed): unknown => {
    if (!alive()) return undefined;
    if (deed === "send" || deed === "steer" || deed === "inject") agent[deed](deed, { source: { kind: "plan" } });
    if (and === "cancel") agent.cancel("and cancel");
    if (and === "dispose") void dispose();
    switch (deed) {
      case "throw":
        throw new Error("boom");
      case "reject":
        return new Promise((_, reject) => setImmediate(() => reject(new Error("boom later"))));
      case "hang":
        // Nobody but the clock ends the waiting for a flush: that is a test of its own.
        if (place === "session/flush") break;
        setImmediate(() => agent.cancel("it hangs"));
        return new Promise(() => {});
      case "cancel":
        agent.cancel("cancel");
        break;
      case "cancel keep":
        agent.cancel("cancel keep", { queue: "keep" });
        break;
      case "dispose":
        void dispose();
        break;
      case "send":
      case "steer":
      case "inject":
    }
    return undefined;
  };
  const passed = new Map<string, number>();
  const pass = (place: Deed["place"]): unknown => {
    const times = passed.get(place) ?? 0;
    passed.set(place, times + 1);
    const found = plan.find((one) => one.place === place && one.after === times);
    return found && act(found);
  };
  for (const name of HOOKS) {
    hooks.on(name, (async (_: unknown, next?: () => unknown) => (await pass(name)) ?? next?.()) as never);
  }
  for (const type of EVENTS) agent.on(type, () => pass(type) as undefined);
}

/** What became of each accepted message. */
function fates(session: SessionView): Map<string, string[]> {
  const fate = new Map(dataOf(session, "inbox/queued").map(({ id }) => [id, [] as string[]]));
  for (const { type, data } of session.events) {
    if (type === "inbox/dropped") for (const id of data.ids) fate.get(id)?.push(type);
    else if (type === "agent/cancelled") for (const id of data.dropped) fate.get(id)?.push(type);
    else if (/^(user|context|steering)\/message$|^prompt\/blocked$/.test(type))
      fate.get((data as { id: string }).id)?.push(type);
  }
  return fate;
}

const scripts = array(constantFrom("calls", "together", ...Object.keys(ANSWERS)), { maxLength: 5 });

/** Three messages, answered as the script says, while the plan happens. */
async function live(script: readonly string[], plan: readonly Deed[], retries: number): Promise<Scene> {
  const answers = [...script.map((name) => ANSWERS[name]!), ...Array.from({ length: 60 }, () => "done")];
  const one: Scene = await scene(
    answers.map((answer) => () => {
      if (answer === ANSWERS["hang"]) setImmediate(() => one.agent.cancel("the model hangs"));
      return answer;
    }),
    { tools: TOOLS },
  );
  const { agent, hooks } = one;
  let left = retries;
  hooks.on("agent/request-error", (_, next) => ((left -= 1) >= 0 ? { kind: "retry" } : next()));
  perform(one, plan);
  agent.send("one");
  agent.send("two");
  await agent.whenIdle();
  if (agent.status !== "disposed") agent.send("three");
  await agent.whenIdle();
  return one;
}

const TOOLS = [tool("look"), { ...tool("peek"), parallel: true }];

test("#92 #96 #99 #118 #149 D15 no plan of hooks, listeners and models breaks a promise or loses a message", async () => {
  await assert(
    asyncProperty(scripts, deeds, nat(2), async (script, plan, retries) => {
      const { agent, session, model, dispose } = await live(script, plan, retries);
      const { status } = agent;
      await dispose();
      expect(dataOf(session, "turn/start")).toHaveLength(dataOf(session, "turn/end").length);
      for (const [id, fate] of fates(session)) {
        const still = agent.queue.some((message) => message.id === id) ? ["still queued"] : [];
        expect([...fate, ...still], `the fate of ${id}`).toHaveLength(1);
        expect(still.length > 0 && status !== "disposed", `${id} is still queued`).toBe(false);
      }
      // Nothing here replaces anything, so each request begins with the one before.
      const requests = model.requests.map(({ messages }) => messages.map((message) => JSON.stringify(message)));
      for (const [i, request] of requests.slice(1).entries())
        expect(request.slice(0, requests[i]!.length)).toEqual(requests[i]);
      expect(await settleTest()).toEqual([]);
    }),
    { numRuns: 150, seed: 7 },
  );
}, 60_000);

test("#235 D13 D14 D22 a host that dies at any moment of it leaves what the next one can go on with", async () => {
  await assert(
    asyncProperty(scripts, deeds, double({ min: 0, max: 1, noNaN: true }), async (script, plan, when) => {
      const { session, dispose } = await live(script, plan, 1);
      await dispose();
      const { events } = session;
      const storage = await leftBehind(session, events.slice(0, Math.ceil(when * (events.length - 1)) + 1));
      const again = await scene(
        Array.from({ length: 20 }, () => "again"),
        { storage, tools: TOOLS },
      );
      await again.agent.whenIdle();
      expect(await again.say("is anybody there?")).toEqual({ kind: "completed" });
      for (const [id, fate] of fates(again.session)) expect(fate, `the fate of ${id}`).toHaveLength(1);
      expect(await settleTest()).toEqual([]);
    }),
    { numRuns: 150, seed: 11 },
  );
}, 60_000);
