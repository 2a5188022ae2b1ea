/** G to N at once: whatever hooks and models do, in whatever order, the promises of every session hold. */
import fc from "fast-check";
import type { HookName, SessionEventType, SessionView } from "turnloop";
import type { ScriptedAnswer } from "turnloop/testing";
import { expect, test } from "vitest";
import { dataOf, scene, tool, type Scene } from "../support/scene.ts";
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

const deeds: fc.Arbitrary<Deed[]> = fc.array(
  fc.record({
    place: fc.constantFrom(...HOOKS, ...EVENTS),
    after: fc.nat(3),
    deed: fc.constantFrom(...DEEDS),
    and: fc.constantFrom(undefined, undefined, undefined, "cancel", "dispose"),
  }),
  { maxLength: 6 },
);

/** Does what the plan says, wherever it says so. */
function perform({ agent, dispose, hooks }: Scene, plan: readonly Deed[], say: () => void): void {
  const alive = (): boolean => agent.status !== "disposed";
  const act = ({ place, deed, and }: Deed): unknown => {
    if (!alive()) return undefined;
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
      case "send":
      case "steer":
      case "inject":
        if (and === undefined) agent[deed](deed, { source: { kind: "plan" } });
        break;
      case "dispose":
        void dispose();
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
  say();
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

test("#92 #96 #99 #118 D13 D15 no plan of hooks, listeners and models breaks a promise or loses a message", async () => {
  const answers = fc.array(fc.constantFrom(...Object.keys(ANSWERS)), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(answers, deeds, fc.nat(2), async (script, plan, retries) => {
      const one: Scene = await scene(
        [...script.map((name) => ANSWERS[name]!), ...Array.from({ length: 60 }, () => "done")].map((answer) => () => {
          if (answer === ANSWERS["hang"]) setImmediate(() => one.agent.cancel("the model hangs"));
          return answer;
        }),
        { tools: [tool("look"), { ...tool("peek"), parallel: true }] },
      );
      const { agent, session, hooks } = one;
      let left = retries;
      hooks.on("agent/request-error", (_, next) => ((left -= 1) >= 0 ? { kind: "retry" } : next()));
      perform(one, plan, () => {
        agent.send("one");
        agent.send("two");
      });
      await agent.whenIdle();
      if (agent.status !== "disposed") {
        agent.send("three");
        await agent.whenIdle();
      }
      const disposed = (agent.status as string) === "disposed";
      await one.dispose();
      const ends = dataOf(session, "turn/end").length;
      expect(dataOf(session, "turn/start")).toHaveLength(ends);
      for (const [id, fate] of fates(session)) {
        const still = agent.queue.some((message) => message.id === id) ? ["still queued"] : [];
        expect([...fate, ...still], `the fate of ${id}`).toHaveLength(1);
        if (!disposed) expect(still).toEqual([]);
      }
      expect(await settleTest()).toEqual([]);
    }),
    { numRuns: 150, seed: 7 },
  );
}, 60_000);
