/** Section A: the signal of a beginning. It ends the beginning, and nothing that comes after. */
import { TurnloopError } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { local } from "../support/fixture.ts";
import {
  calm,
  codeOf,
  held,
  promptly,
  reasonOf,
  stage,
  toldBy,
  ways,
  WAYS,
  type HeldStorage,
} from "../support/lifecycle.ts";
import { deferred, endOf, textOf } from "../support/wait.ts";

for (const way of ways) {
  local(
    `#5 ${way}: an abort while it loads ends the beginning, and what is loaded later is not published`,
    async () => {
      let storage!: HeldStorage;
      const { harness, begin } = await stage(way, {}, (inner) => (storage = held(inner, "load")));
      const told = toldBy(harness.hooks);
      const controller = new AbortController();
      const reason = new Error("enough");
      let composed = false;
      const beginning = reasonOf(begin({ signal: controller.signal, setup: () => void (composed = true) }));
      await storage.reached;
      controller.abort(reason);
      try {
        expect(await promptly(beginning)).toBe(reason);
      } finally {
        storage.release();
      }
      await calm();
      expect(told).toEqual([]);
      expect(composed).toBe(false);
      // #24 #26: the id is free again.
      expect((await begin()).agent.id).toBe("s");
    },
  );

  local(`#5 ${way}: an abort while setup runs ends the beginning, and a setup that goes on is ignored`, async () => {
    const { harness, begin } = await stage(way);
    const told = toldBy(harness.hooks);
    const controller = new AbortController();
    const reason = new Error("enough");
    const entered = deferred();
    const gate = deferred();
    const undone: string[] = [];
    const beginning = reasonOf(
      begin({
        signal: controller.signal,
        async setup(scope) {
          scope.use(() => () => void undone.push("plugin"));
          entered.resolve();
          await gate.promise;
        },
      }),
    );
    await entered.promise;
    controller.abort(reason);
    expect(await promptly(beginning)).toBe(reason);
    expect(undone).toEqual(["plugin"]);
    gate.resolve();
    await calm();
    expect(told).toEqual([]);
  });

  local(`#5 ${way}: a setup that rejects after the abort changes nothing, and is not unhandled`, async () => {
    const { begin } = await stage(way);
    const controller = new AbortController();
    const entered = deferred();
    const gate = deferred();
    const beginning = reasonOf(
      begin({
        signal: controller.signal,
        async setup() {
          entered.resolve();
          await gate.promise;
          throw new Error("too late");
        },
      }),
    );
    await entered.promise;
    controller.abort("enough");
    const reason = await promptly(beginning);
    gate.resolve();
    await calm();
    expect(TurnloopError.is(reason, "ABORTED")).toBe(true);
  });

  local(
    `#5 ${way}: the signal is let go of before the handle is there, and aborting it later does nothing`,
    async () => {
      const { harness, begin } = await stage(way, { model: scriptedModel(["hi"]) });
      const controller = new AbortController();
      const { signal, listeners } = counted(controller.signal);
      const { agent } = await begin({ signal, async setup() {} });
      expect(listeners()).toBe(0);
      controller.abort(new Error("too late"));
      await calm();
      agent.send("hello");
      await agent.whenIdle();
      expect(endOf(agent.session)).toEqual({ kind: "completed" });
      expect(harness.agents.get("s")).toBe(agent);
    },
  );

  local(`#6 D4 ${way}: a signal that is aborted already rejects with its own reason, before anything`, async () => {
    const { harness, begin } = await stage(way);
    const told = toldBy(harness.hooks);
    let composed = false;
    const setup = (): void => void (composed = true);
    const reason = new RangeError("enough");
    expect(await reasonOf(begin({ setup, signal: AbortSignal.abort(reason) }))).toBe(reason);
    const plain = AbortSignal.abort();
    expect(await reasonOf(begin({ setup, signal: plain }))).toBe(plain.reason);
    expect(composed).toBe(false);
    expect(told).toEqual([]);
    expect(harness.agents.list()).toEqual([]);
  });

  for (const [when, aborts] of [
    ["before", (controller: AbortController, reason: unknown) => controller.abort(reason)],
    ["during setup", undefined],
  ] as const) {
    local(`#6 ${way}: a reason that is no error, ${when}, becomes the cause of an ABORTED`, async () => {
      const { begin } = await stage(way);
      for (const reason of ["enough", null, { why: "enough" }]) {
        const controller = new AbortController();
        aborts?.(controller, reason);
        const error = await reasonOf(
          begin({
            signal: controller.signal,
            setup: async () => {
              controller.abort(reason);
              await new Promise(() => {});
            },
          }),
        );
        expect(TurnloopError.is(error, "ABORTED")).toBe(true);
        expect((error as Error).cause).toBe(reason);
      }
    });
  }

  local(
    `#7 ${way}: an abort from inside the building of the layer skips setup, and joins the same clean-up`,
    async () => {
      const { harness, begin } = await stage(way);
      const told = toldBy(harness.hooks);
      const controller = new AbortController();
      const reason = new Error("enough");
      let composed = false;
      const beginning = begin({
        signal: controller.signal,
        setup: () => void (composed = true),
        // Read while the agent is built.
        call: {
          get temperature(): number {
            controller.abort(reason);
            return 1;
          },
        },
      });
      expect(await reasonOf(beginning)).toBe(reason);
      expect(composed).toBe(false);
      expect(told).toEqual([]);
      const { agent } = await begin();
      expect(agent.id).toBe("s");
    },
  );
}

local("#5 an abort in the middle of a load's events ends it, and frees the id", async () => {
  const reading = deferred();
  const { begin } = await stage("resume", {}, (inner) => ({
    ...inner,
    async load(id, options) {
      const stored = await inner.load(id, options);
      return (
        stored && {
          ...stored,
          batches: (async function* () {
            yield* stored.batches;
            reading.resolve();
            await new Promise(() => {});
          })(),
        }
      );
    },
  }));
  const controller = new AbortController();
  const reason = new Error("enough");
  const beginning = reasonOf(begin({ signal: controller.signal }));
  await reading.promise;
  controller.abort(reason);
  expect(await promptly(beginning)).toBe(reason);
});

local("#5 an abort that comes with the failure of setup: what came first is the reason", async () => {
  const { begin } = await stage("create");
  const controller = new AbortController();
  const first = new Error("first");
  const beginning = begin({
    signal: controller.signal,
    setup() {
      controller.abort(first);
      throw new Error("second");
    },
  });
  expect(await reasonOf(beginning)).toBe(first);
});

local("#6 an id that can never be is refused before the signal is looked at, and each time the same way", async () => {
  const { harness } = await stage("create");
  const signal = AbortSignal.abort(new Error("enough"));
  expect(await codeOf(harness.agents.open({ id: "", signal }))).toBe("INVALID_ID");
  expect(await codeOf(harness.agents.resume({ id: "", signal }))).toBe("INVALID_ID");
});

local("#24 #26 a load that fails rejects with a TurnloopError that has its cause, and the id is free", async () => {
  for (const way of ways) {
    let broken: Error | undefined = new Error("the disk is gone");
    const { harness, begin } = await stage(way, {}, (inner) => ({
      ...inner,
      load: (...args) => (broken ? Promise.reject(broken) : inner.load(...args)),
    }));
    const told = toldBy(harness.hooks);
    const error = await reasonOf(begin());
    expect([way, TurnloopError.is(error), (error as Error).cause === broken]).toEqual([way, true, true]);
    expect(told).toEqual([]);
    broken = undefined;
    const { agent } = await begin();
    expect(told.at(-1)).toBe(`agent/session-start s ${WAYS[way]}`);
    agent.send("hello");
    await agent.whenIdle();
    expect(textOf(agent.session.deriveMessages().at(-1)!.content)).toBe("one");
  }
});

local("#24 a load whose events break off rejects with a TurnloopError that has its cause", async () => {
  const cause = new Error("a bad sector");
  const { begin } = await stage("resume", {}, (inner) => ({
    ...inner,
    async load(id, options) {
      const stored = await inner.load(id, options);
      return (
        stored && {
          ...stored,
          batches: (async function* () {
            yield* stored.batches;
            throw cause;
          })(),
        }
      );
    },
  }));
  const error = await reasonOf(begin());
  expect(TurnloopError.is(error)).toBe(true);
  expect((error as Error).cause).toBe(cause);
});

/** The signal, and how many listeners it has. */
function counted(signal: AbortSignal): { signal: AbortSignal; listeners(): number } {
  let count = 0;
  const add = signal.addEventListener.bind(signal) as (...args: unknown[]) => void;
  const remove = signal.removeEventListener.bind(signal) as (...args: unknown[]) => void;
  Object.assign(signal, {
    addEventListener(...args: unknown[]) {
      count += 1;
      add(...args);
    },
    removeEventListener(...args: unknown[]) {
      count -= 1;
      remove(...args);
    },
  });
  return { signal, listeners: () => count };
}
