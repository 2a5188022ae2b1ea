/** What policies need of the hooks: whatever the listeners in front decide is seen by those behind, and by the body. */
import { createHarness, memoryStorage, type Plugin, type ToolCallContext } from "turnloop";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { expect, test, vi } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { dataOf, scene, type Scene } from "../support/scene.ts";
import { eventOf } from "../support/wait.ts";

test("of two listeners that narrow the signal of a body, the inner one and the body see what the outer one hands on", async () => {
  const outer = new AbortController();
  const seen: AbortSignal[] = [];
  const one = await scene([calls("work"), "fine"], {
    tools: [tool("work", (_, { signal }) => void seen.push(signal))],
  });
  one.hooks.on("tools/execute", (_, next) => next({ signal: outer.signal }));
  one.hooks.on("tools/execute", ({ execution: { signal } }, next) => {
    seen.push(signal);
    return next({ signal: AbortSignal.any([signal]) });
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(seen[0]).toBe(outer.signal);
  outer.abort();
  expect(seen.map((signal) => signal.aborted)).toEqual([true, true]);
});

test("the same for the signal of a model, and a listener that hands on nothing changes nothing", async () => {
  const outer = new AbortController();
  const seen: AbortSignal[] = [];
  const model = scriptedModel(["fine"]);
  const one = await scene([], {
    model: {
      ...model,
      stream: (request, options) => {
        seen.push(options.signal);
        return model.stream(request, options);
      },
    },
  });
  one.hooks.on("model/stream", (_, next) => next({ signal: outer.signal }));
  one.hooks.on("model/stream", (_, next) => next());
  one.hooks.on("model/stream", ({ signal }, next) => {
    seen.push(signal);
    return next();
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(seen).toEqual([outer.signal, outer.signal]);
  expect(seen.every((signal) => signal === outer.signal)).toBe(true);
});

test("a body for which a policy has answered is nobody's: it asks nothing, tells nothing, and its outcome is lost", async () => {
  let late: ToolCallContext | undefined;
  let finish = (): void => {};
  const one = await scene([calls("slow"), "fine"], {
    tools: [
      tool("slow", (_, call) => {
        late = call;
        return new Promise<string>((resolve) => {
          finish = () => resolve("too late");
        });
      }),
    ],
  });
  one.hooks.on("tools/execute", (_, next) => {
    void next();
    return { content: [{ type: "text", text: "given up" }], isError: true };
  });
  const refused = vi.fn<(thrown: unknown) => void>();
  one.agent.on("step/end", ({ data }) => {
    if (data.step !== 1) return;
    late!.progress(1);
    late!.ask("still there?").catch(refused);
    finish();
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(dataOf(one.session, "tool/progress")).toEqual([]);
  expect(dataOf(one.session, "interaction/requested")).toEqual([]);
  expect(refused).toHaveBeenCalledWith(expect.objectContaining({ code: "INTERACTION_CANCELLED" }));
  expect(dataOf(one.session, "tool/result")).toMatchObject([{ content: [{ text: "given up" }] }]);
});

test("a policy that may stop the turn is told whether it would go on: calls, steering and other policies count", async () => {
  const one = await scene([calls("work"), "first", "second", "third"], { tools: [tool("work")] });
  const told: boolean[] = [];
  one.hooks.on("agent/turn-stop", ({ goesOn }) => void told.push(goesOn));
  one.hooks.on("agent/turn-continuation", async ({ step }, next) =>
    step === 3 ? { action: "continue", reason: { content: "more", source: { kind: "policy" } } } : next(),
  );
  one.agent.on("step/end", ({ data }) => void (data.step === 2 && one.agent.steer("wait")));
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(told).toEqual([true, true, true, false]);
});

test("a policy for failures is told with which configuration the request failed", async () => {
  const models: string[] = [];
  const broken = scriptedModel([{ error: { message: "no" } }]);
  const one = await scene([], { model: "a", models: { a: broken, b: scriptedModel([{ error: { message: "no" } }]) } });
  one.hooks.on("agent/request-error", ({ config }) => {
    models.push(config.model);
    return config.model === "a" ? { kind: "retry", config: { ...config, model: "b" } } : { kind: "fail" };
  });
  expect(await one.say("go")).toMatchObject({ kind: "error" });
  expect(models).toEqual(["a", "b"]);
});

test("an answer that comes when its turn has ended is told what became of the question", async () => {
  const one = await scene([calls("work"), "fine"], { tools: [tool("work")] });
  one.hooks.on("tools/pre-execute", () => ({ kind: "ask" }));
  const said = one.say("go");
  const { data } = await eventOf(one.session, "interaction/requested");
  one.agent.cancel();
  await said;
  await expect(one.agent.respond(data.id, { decision: "allow" })).rejects.toThrow(/cancelled already/);
});

test("who opens a session without a context gets that of the harness, also when the session is opened again", async () => {
  const storage = memoryStorage();
  const context = vi.fn<(id: string) => Promise<object>>(async (id) => ({ user: `owner of ${id}` }));
  const seen: unknown[] = [];
  const open = (): ReturnType<typeof createHarness> =>
    createHarness({
      storage,
      context,
      model: scriptedModel([calls("look"), "fine"]),
      tools: [tool("look", (_, call) => void seen.push(call.context))],
    });
  for (let life = 0; life < 2; life += 1) {
    const harness = open();
    const { agent } = await harness.agents.open({ id: "s" });
    agent.send("go");
    await agent.whenIdle();
    await harness.dispose();
  }
  const harness = open();
  const { agent } = await harness.agents.open({ id: "s", context: "my own" });
  expect(agent.options.context).toBe("my own");
  await harness.dispose();
  expect(seen).toEqual([{ user: "owner of s" }, { user: "owner of s" }]);
  expect(context).toHaveBeenCalledTimes(2);
});

test("agent/turn-start is waited for before a turn begins, and before one goes on that was parked", async () => {
  const storage = memoryStorage();
  const seen: string[] = [];
  const watch: Plugin = ({ hooks }) => {
    hooks.on("agent/turn-start", async ({ turn }) => {
      await Promise.resolve();
      seen.push(`ready ${turn}`);
    });
    hooks.on("agent/prompt-submit", (_, next) => {
      seen.push("asked");
      return next();
    });
  };
  const tools = [tool("pay", () => seen.push("paid"), { needsApproval: true })];
  const open = (answers: readonly ScriptedAnswer[]): Promise<Scene> =>
    scene(answers, { storage, tools, plugins: [watch] });
  const first = await open([calls("pay")]);
  first.agent.send("go");
  await eventOf(first.session, "interaction/requested");
  await first.harness.dispose();
  expect(seen).toEqual(["ready 1", "asked"]);

  const second = await open(["fine", "again"]);
  const [question] = second.agent.interactions;
  await second.agent.respond(question!.id, { decision: "allow" });
  await second.agent.whenIdle();
  expect(seen).toEqual(["ready 1", "asked", "ready 1", "paid"]);
  second.agent.continue();
  await second.agent.whenIdle();
  expect(seen.at(-1)).toBe("ready 2");
});

test("a listener of agent/turn-start that fails is reported and holds up nothing; one that never ends, no cancel", async () => {
  const one = await scene(["fine", "never"]);
  const off = one.hooks.on("agent/turn-start", async () => {
    throw new Error("not ready");
  });
  expect(await one.say("go")).toEqual({ kind: "completed" });
  expect(one.diagnostics).toEqual(["LISTENER_FAILED"]);
  off();
  one.hooks.on("agent/turn-start", ({ agent }) => {
    queueMicrotask(() => agent.cancel("enough"));
    return new Promise<never>(() => {});
  });
  expect(await one.say("again")).toEqual({ kind: "aborted", reason: "enough" });
});
