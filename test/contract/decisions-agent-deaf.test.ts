/** D17: nothing deaf, be it a hook, a model, a tool or a store, holds up a cancel or a disposal. */
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { faultyStage, hangs, holds } from "../support/failing-storage.ts";
import { harnessWith, local } from "../support/fixture.ts";
import { heldTool, text, textsOf } from "../support/held.ts";
import { calm, codeOf, isPending, promptly } from "../support/lifecycle.ts";
import { dataOf } from "../support/scene.ts";
import { deferred, endOf, eventOf, typesOf } from "../support/wait.ts";

const AWAITED = [
  "agent/prompt-submit",
  "prompt/assemble",
  "agent/session-prefix",
  "agent/pre-step",
  "agent/request",
  "model/stream",
  "agent/step-result",
  "tools/pre-execute",
  "tools/execute",
  "tools/post-execute",
  "agent/turn-continuation",
  "agent/turn-stop",
] as const;

/** An agent whose hook of this name waits until `settle`, and `reached` it. */
async function deafHook(name: (typeof AWAITED)[number]) {
  const harness = harnessWith({ model: scriptedModel([calls("look"), "done"]), tools: [tool("look")] });
  const reached = deferred();
  const gate = deferred<undefined>();
  // Every hook of the table is awaited; what each is handed and answers is of no interest here.
  (harness.hooks.on as (hook: string, listener: () => unknown) => void)(name, () => {
    reached.resolve();
    return gate.promise;
  });
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  agent.send("go");
  await reached.promise;
  return { agent, dispose, gate };
}

for (const name of AWAITED) {
  local(`D17 a deaf listener of ${name} does not hold up a cancel, and what it says later is ignored`, async () => {
    const { agent, gate } = await deafHook(name);
    agent.cancel("enough");
    await promptly(agent.whenIdle());
    expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "enough" });
    const { seq } = agent.session;
    gate.resolve(undefined);
    await calm();
    expect(agent.session.seq).toBe(seq);
  });

  local(`D17 a deaf listener of ${name} does not hold up a disposal`, async () => {
    const { agent, dispose, gate } = await deafHook(name);
    await promptly(dispose());
    expect(endOf(agent.session)).toEqual({ kind: "disposed" });
    gate.reject(new Error("too late"));
    await calm();
    expect(typesOf(agent.session).at(-1)).toBe("turn/end");
  });
}

for (const hang of ["polite", "deaf"] as const) {
  local(`D17 a ${hang} model that hangs holds up neither a cancel nor a disposal`, async () => {
    const answer = { text: "on", hang };
    const harness = harnessWith({ model: scriptedModel([answer, answer]) });
    const { agent, dispose } = await harness.agents.open({ id: "s" });
    for (const turn of [1, 2]) {
      agent.send("go");
      await eventOf(agent.session, "assistant/chunk", ({ data }) => data.turn === turn);
      if (turn === 1) agent.cancel("enough");
      await promptly(turn === 1 ? agent.whenIdle() : dispose());
    }
    expect(dataOf(agent.session, "turn/end").map(({ reason }) => reason.kind)).toEqual(["aborted", "disposed"]);
  });
}

local("D17 a model that answers nothing and ignores its signal does not hold up a cancel", async () => {
  const asked = deferred();
  const harness = harnessWith({
    model: {
      id: "deaf",
      stream: () => ({
        [Symbol.asyncIterator]: () => ({
          next: () => {
            asked.resolve();
            return new Promise(() => {});
          },
          return: () => new Promise(() => {}),
        }),
      }),
    },
  });
  const { agent } = await harness.agents.open({ id: "s" });
  agent.send("go");
  await asked.promise;
  agent.cancel("enough");
  await promptly(agent.whenIdle());
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "enough" });
});

local(
  "D17 H4 a model that ends quietly when its signal aborts has not answered: the signal is checked again",
  async () => {
    const model = scriptedModel([]);
    model.stream = async function* (_request, { signal }) {
      yield { type: "delta", index: 0, text: "half" };
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      yield { type: "delta", index: 0, text: " and more" };
      yield { type: "finish", reason: { kind: "stop" } };
    };
    const { agent } = await harnessWith({ model }).agents.open({ id: "s" });
    agent.send("go");
    await eventOf(agent.session, "assistant/chunk");
    agent.cancel("enough");
    await agent.whenIdle();
    await calm();
    expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "enough" });
    expect(dataOf(agent.session, "assistant/message")).toMatchObject([{ interrupted: true, content: text("half") }]);
    expect(dataOf(agent.session, "assistant/chunk")).toHaveLength(1);
  },
);

local(
  "D17 H9 a deaf tool holds up neither a cancel nor a disposal, and its context is inert from then on",
  async () => {
    for (const stop of ["cancel", "dispose"] as const) {
      const held = heldTool();
      const harness = harnessWith({ model: scriptedModel([calls("held")]), tools: [held.tool] });
      const { agent, dispose } = await harness.agents.open({ id: "s" });
      agent.send("go");
      const call = await held.started;
      call.progress("half");
      if (stop === "cancel") agent.cancel("enough");
      await promptly(stop === "cancel" ? agent.whenIdle() : dispose());
      expect(call.signal.aborted).toBe(true);
      const { seq } = agent.session;
      call.progress("more");
      expect(await codeOf(call.ask("still there?"))).toBe("INTERACTION_CANCELLED");
      held.answer("too late");
      await calm();
      expect(agent.session.seq).toBe(seq);
      expect(dataOf(agent.session, "tool/progress").map(({ value }) => value)).toEqual(["half"]);
      expect(dataOf(agent.session, "tool/result").map(({ error }) => error?.code)).toEqual(["TOOL_ABORTED"]);
    }
  },
);

local("D17 the signals of hooks, model and tool abort with an error of this package that has the reason", async () => {
  const held = heldTool();
  const signals: AbortSignal[] = [];
  const harness = harnessWith({ model: scriptedModel([calls("held")]), tools: [held.tool] });
  const take = ({ signal }: { readonly signal: AbortSignal }): void => void signals.push(signal);
  harness.hooks.on("agent/pre-step", take);
  harness.hooks.on("model/stream", (payload, next) => (take(payload), next()));
  const { agent } = await harness.agents.open({ id: "s" });
  agent.send("go");
  signals.push((await held.started).signal);
  agent.cancel("enough");
  expect(signals.map(({ reason }) => `${(reason as { code: string }).code}: ${(reason as Error).message}`)).toEqual(
    Array(3).fill("ABORTED: enough"),
  );
  await agent.whenIdle();
});

local("D17 D22 a store that does not answer before a body holds up no cancel", async () => {
  const { storage, open } = faultyStage({ model: scriptedModel([calls("look")]), tools: [tool("look")] });
  const agent = await open();
  storage.always(holds);
  agent.send("go");
  await eventOf(agent.session, "tool/start");
  agent.cancel("enough");
  await calm();
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "enough" });
});

local(
  "D17 D25 the wait for the flush of a turn is bounded: past it the session is degraded, and the next turn runs",
  async () => {
    const { clock, storage, open } = faultyStage({ model: scriptedModel(["one", "two"]) });
    const agent = await open();
    storage.always(hangs);
    agent.send("go");
    await clock.sleeping(5000);
    agent.send("next");
    expect(await isPending(agent.whenIdle())).toBe(true);
    expect(dataOf(agent.session, "turn/start")).toHaveLength(1);
    await clock.advance(5000);
    await promptly(agent.whenIdle());
    expect(agent.getSnapshot().durable).toBe("degraded");
    expect(textsOf(agent.session)).toEqual(["go", "next"]);
  },
);

local("D17 a store that never answers does not hold up a disposal for longer than that", async () => {
  const { clock, storage, harness } = faultyStage({ model: scriptedModel(["one"]) });
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  storage.always(() => new Promise(() => {}));
  agent.send("go");
  await clock.sleeping(5000);
  const disposed = dispose();
  await clock.advance(10_000);
  await promptly(disposed);
  expect(agent.status).toBe("disposed");
});

local("D17 a listener of session/flush that never settles holds up neither the next turn nor a disposal", async () => {
  const { clock, harness } = faultyStage({ model: scriptedModel(["one", "two"]) });
  const gate = deferred();
  harness.hooks.on("session/flush", () => gate.promise);
  const { agent, dispose } = await harness.agents.open({ id: "s" });
  try {
    agent.send("go");
    await eventOf(agent.session, "turn/end");
    agent.send("next");
    await calm();
    await clock.advance(5000);
    await promptly(eventOf(agent.session, "turn/end", ({ data }) => data.turn === 2));
    const disposed = dispose();
    await calm();
    await clock.advance(10_000);
    await promptly(disposed);
  } finally {
    gate.resolve();
  }
});
