/** Section A: a beginning that fails leaves nothing behind, and what was told to be there is told to be gone. */
import { memoryStorage, TurnloopError, type HookName } from "turnloop";
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
import { storedEvents } from "../support/mortal.ts";
import { deferred } from "../support/wait.ts";

for (const way of ways) {
  for (const thrown of [new Error("no"), "no", undefined, null, { code: "no" }, 0]) {
    const what = thrown instanceof Error ? "an error" : JSON.stringify(thrown);
    local(`#8 D4 ${way}: setup that throws ${what} rejects with that very value, and leaves nothing`, async () => {
      const { harness, begin } = await stage(way);
      const told = toldBy(harness.hooks);
      const undone: string[] = [];
      const beginning = begin({
        setup(scope) {
          scope.use(() => () => void undone.push("plugin"));
          throw thrown;
        },
      });
      expect(await reasonOf(beginning)).toBe(thrown);
      expect(told).toEqual([]);
      expect(undone).toEqual(["plugin"]);
      expect(harness.agents.list()).toEqual([]);
      expect(harness.sessions.get("s")).toBeUndefined();
    });
  }

  local(`#8 D4 ${way}: setup that rejects does the same, and frees the id`, async () => {
    const { harness, begin } = await stage(way);
    const told = toldBy(harness.hooks);
    const reason = { not: "an error" };
    expect(await reasonOf(begin({ setup: () => Promise.reject(reason) }))).toBe(reason);
    expect(told).toEqual([]);
    const { agent } = await begin();
    agent.send("hello");
    await agent.whenIdle();
    expect(agent.session.events.at(-1)).toMatchObject({ type: "turn/end", data: { reason: { kind: "completed" } } });
  });

  for (const [by, code] of [
    ["the harness", "HARNESS_DISPOSED"],
    ["its owner", "AGENT_DISPOSED"],
  ] as const) {
    local(`#9 ${way}: a setup that never settles does not hold up the disposal of ${by}`, async () => {
      const { harness, begin } = await stage(way);
      const parent = await harness.agents.create({ id: "parent" });
      const told = toldBy(harness.hooks);
      const entered = deferred();
      const gate = deferred();
      const beginning = codeOf(
        begin({
          owner: parent.agent,
          async setup() {
            entered.resolve();
            await gate.promise;
          },
        }),
      );
      await entered.promise;
      const disposed = by === "the harness" ? harness.dispose() : parent.dispose();
      expect(await promptly(beginning)).toBe(code);
      await promptly(disposed);
      gate.resolve();
      await calm();
      expect(told.filter((line) => line.includes(" s"))).toEqual([]);
      expect(harness.agents.get("s")).toBeUndefined();
    });

    local(`#9 ${way}: a load that never settles does not hold up the disposal of ${by}`, async () => {
      let storage!: HeldStorage;
      const { harness, begin } = await stage(way, {}, (inner) => (storage = held(inner, "load")));
      const parent = await harness.agents.create();
      const told = toldBy(harness.hooks);
      const beginning = codeOf(begin({ owner: parent.agent }));
      await storage.reached;
      const disposed = by === "the harness" ? harness.dispose() : parent.dispose();
      try {
        expect(await promptly(beginning)).toBe(code);
        await promptly(disposed);
      } finally {
        storage.release();
      }
      await calm();
      expect(told.filter((line) => line.includes(" s"))).toEqual([]);
    });
  }

  const start = `agent/session-start s ${WAYS[way]}`;
  const lives: readonly (readonly [
    HookName & ("session/created" | "agent/created" | "agent/session-start"),
    string[],
  ])[] = [
    ["session/created", ["session/created s", "session/disposed s"]],
    ["agent/created", ["session/created s", "agent/created s", "agent/disposed s", "session/disposed s"]],
    ["agent/session-start", ["session/created s", "agent/created s", start, "agent/disposed s", "session/disposed s"]],
  ];
  for (const [during, expected] of lives) {
    for (const cause of ["an abort", "the end of the harness", "the end of its owner"] as const) {
      local(
        `#12 #13 #14 ${way}: ${cause} during ${during} takes back in order what was told, and no more`,
        async () => {
          const model = scriptedModel(["never asked"]);
          const storage = memoryStorage();
          const { harness, begin } = await stage(way, { model, storage });
          const stored = await storedEvents(storage, "s");
          const parent = await harness.agents.create({ id: "parent" });
          const controller = new AbortController();
          const reason = new Error("enough");
          const ends: Promise<void>[] = [];
          const early = toldBy(harness.hooks);
          harness.hooks.on(during, ({ ...payload }) => {
            if (("agent" in payload ? payload.agent : payload.session).id !== "s") return;
            if ("agent" in payload) payload.agent.send("a message that never runs");
            if (cause === "an abort") controller.abort(reason);
            else if (cause === "the end of the harness") ends.push(harness.dispose());
            else ends.push(parent.dispose());
          });
          const late = toldBy(harness.hooks);
          const beginning = begin({ owner: parent.agent, signal: controller.signal });
          if (cause === "an abort") expect(await reasonOf(beginning)).toBe(reason);
          else expect(TurnloopError.is(await reasonOf(beginning))).toBe(true);
          await Promise.all(ends);
          await calm();
          const ofChild = (told: string[]): string[] => told.filter((line) => / s( |$)/.test(line));
          expect(ofChild(early)).toEqual(expected);
          expect(ofChild(late)).toEqual(expected);
          expect(model.requests).toEqual([]);
          expect(harness.agents.get("s")).toBeUndefined();
          expect(harness.sessions.get("s")).toBeUndefined();
          expect(await storedEvents(storage, "s")).toEqual(stored);
        },
      );
    }
  }
}

local("#12 an agent that was taken back can be begun anew under its id, and nothing of it is stored", async () => {
  const { harness, begin } = await stage("create");
  const controller = new AbortController();
  const off = harness.hooks.on("agent/session-start", ({ agent }) => {
    agent.send("a message that never runs");
    controller.abort(new Error("enough"));
  });
  await reasonOf(begin({ signal: controller.signal }));
  off();
  const { agent } = await begin();
  expect(agent.session.events).toEqual([]);
});

local("#14 an owner that is gone before the birth begins is refused at once", async () => {
  const { harness, begin } = await stage("create");
  const parent = await harness.agents.create({ id: "parent" });
  await parent.dispose();
  const told = toldBy(harness.hooks);
  expect(await codeOf(begin({ owner: parent.agent }))).toBe("AGENT_DISPOSED");
  expect(told).toEqual([]);
});

local("#9 a setup that awaits the end of its own harness does not hold it up", async () => {
  const { harness, begin } = await stage("create");
  const beginning = codeOf(begin({ setup: () => harness.dispose() }));
  expect(await promptly(beginning)).toBe("HARNESS_DISPOSED");
  await promptly(harness.dispose());
});

for (const [way, code] of [
  ["create", "SESSION_EXISTS"],
  ["resume", "SESSION_LIVE"],
  ["fork", "SESSION_EXISTS"],
] as const) {
  local(
    `#18 D2 ${way}: of two at once both prepare, the first to enter wins, and the other leaves nothing`,
    async () => {
      const { harness, begin } = await stage(way);
      const told = toldBy(harness.hooks);
      const undone: string[] = [];
      const prepared = [deferred(), deferred()];
      const gates = [deferred(), deferred()];
      const born = [0, 1].map((n) =>
        begin({
          async setup(scope) {
            scope.use(() => () => void undone.push(`layer ${n}`));
            scope.hooks.on("session/created", () => void told.push(`heard in layer ${n}`));
            prepared[n]!.resolve();
            await gates[n]!.promise;
          },
        }),
      );
      await Promise.all(prepared.map((one) => one.promise));
      gates[1]!.resolve();
      const { agent } = await born[1]!;
      gates[0]!.resolve();
      expect(await codeOf(born[0]!)).toBe(code);
      expect(undone).toEqual(["layer 0"]);
      expect(told).toEqual([
        "session/created s",
        "heard in layer 1",
        "agent/created s",
        `agent/session-start s ${WAYS[way]}`,
      ]);
      expect(harness.agents.get("s")).toBe(agent);
      agent.send("hello");
      await agent.whenIdle();
      expect(agent.session.events.at(-1)).toMatchObject({ type: "turn/end", data: { reason: { kind: "completed" } } });
    },
  );
}

local("D2 an open that loses its race to a create joins what that has made", async () => {
  const { harness, begin } = await stage("create");
  const prepared = deferred();
  const gate = deferred();
  const opening = harness.agents.open({
    id: "s",
    async setup() {
      prepared.resolve();
      await gate.promise;
    },
  });
  await prepared.promise;
  const created = await begin();
  gate.resolve();
  const joined = await opening;
  expect(joined.agent).toBe(created.agent);
  await created.dispose();
  expect(joined.agent.status).toBe("idle");
  await joined.dispose();
  expect(joined.agent.status).toBe("disposed");
});
