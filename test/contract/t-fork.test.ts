/** T #230 and D2: forking a session, live or stored. */
import { createHarness, memoryStorage } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { describe, expect } from "vitest";
import { local } from "../support/fixture.ts";
import {
  assistant,
  called,
  headerOf,
  line,
  logOf,
  plainTurn,
  queued,
  said,
  started,
  stepEnd,
  stepStart,
  store,
  storageOf,
  turnEnd,
  turnStart,
  user,
} from "../support/made-log.ts";
import { eventOf, typesOf } from "../support/wait.ts";

const code = (is: string): unknown => expect.objectContaining({ code: is });
const three = logOf(plainTurn(1), plainTurn(2), plainTurn(3));

describe("where it cuts", () => {
  local("#230 D2 at the end of the last turn by default, and the child goes on by itself", async () => {
    const model = scriptedModel(["answer 4"]);
    const storage = await storageOf(three);
    const { agents } = createHarness({ model, storage });
    const { agent } = await agents.fork({ from: "s", id: "child" });
    expect(agent.session.events).toEqual(three);
    agent.send("question 4");
    await agent.whenIdle();
    expect(said(model.requests[0]!.messages)).toEqual([
      ...[1, 2, 3].flatMap((n) => [`user: question ${n}`, `assistant: answer ${n}`]),
      "user: question 4",
    ]);
    expect(await eventOf(agent.session, "turn/end", ({ data }) => data.turn === 4)).toBeDefined();
    expect((await storage.load("s"))!.length).toBe(three.length);
  });

  local("#230 D2 an open turn is left out, and so is what stands behind the last end", async () => {
    const open = logOf(
      plainTurn(1),
      queued("waits"),
      line("session/titled", { title: "t" }),
      turnStart(2),
      user("hello"),
    );
    const { agents } = createHarness({ storage: await storageOf(open) });
    const { agent } = await agents.fork({ from: "s" });
    expect(agent.session.events).toEqual(open.slice(0, 6));
  });

  local("#230 D2 at the end of a turn that is named", async () => {
    const { agents } = createHarness({ storage: await storageOf(three) });
    const { agent } = await agents.fork({ from: "s", at: 11 });
    expect(agent.session.events).toEqual(three.slice(0, 12));
  });

  local("#230 D2 before the turn whose first user message is named", async () => {
    const { agents } = createHarness({ storage: await storageOf(three) });
    const second = await agents.fork({ from: "s", before: "question 2" });
    expect(second.agent.session.events).toEqual(three.slice(0, 6));
    const first = await agents.fork({ from: "s", before: "question 1" });
    expect(first.agent.session.events).toEqual([]);
    expect(first.agent.session.header).toMatchObject({ parent: { id: "s", seq: 0 }, seedLength: 0 });
  });

  const mixed = logOf(
    plainTurn(1),
    turnStart(2),
    user("first"),
    user("second"),
    turnEnd(2),
    turnStart(3),
    user("open"),
  );
  const bad: readonly (readonly [string, object])[] = [
    ["an event that ends no turn", { at: 5 - 1 }],
    ["an end that is not there", { at: 99 }],
    ["a negative seq", { at: -1 }],
    ["a seq that is no whole number", { at: 5.5 }],
    ["a message that is not there", { before: "nobody" }],
    ["the second message of a turn", { before: "second" }],
    ["both an end and a message", { at: 5, before: "first" }],
  ];
  for (const [what, where] of bad) {
    local(`#230 D2 ${what}: INVALID_BOUNDARY, and no child`, async () => {
      const storage = await storageOf(mixed);
      const { agents } = createHarness({ storage });
      await expect(agents.fork({ from: "s", id: "child", ...where })).rejects.toEqual(code("INVALID_BOUNDARY"));
      expect(agents.get("child")).toBeUndefined();
      expect(await storage.load("child")).toBeUndefined();
    });
  }

  local("#230 D2 before the message of a turn that is still open", async () => {
    const { agents } = createHarness({ storage: await storageOf(mixed) });
    const { agent } = await agents.fork({ from: "s", before: "open" });
    expect(agent.session.events).toEqual(mixed.slice(0, 10));
  });
});

describe("what the child is", () => {
  local(
    "#230 a session of its own, with its lineage, the length of its seed and the cwd, and nothing else",
    async () => {
      const header = headerOf("s", { meta: { cwd: "/work", title: "Old", color: "red" } });
      const { agents } = createHarness({ storage: await storageOf(three, "s", header) });
      const { agent } = await agents.fork({ from: "s", id: "child", at: 5 });
      expect(agent.session.header).toEqual({
        version: 1,
        id: "child",
        createdAt: expect.any(Number),
        meta: { cwd: "/work" },
        parent: { id: "s", seq: 6 },
        seedLength: 6,
      });
    },
  );

  local("#230 a fork of a fork names its own parent", async () => {
    const { agents } = createHarness({ storage: await storageOf(three) });
    await agents.fork({ from: "s", id: "child", at: 11 });
    const { agent } = await agents.fork({ from: "child", id: "grandchild", at: 5 });
    expect(agent.session.header).toMatchObject({ parent: { id: "child", seq: 6 }, seedLength: 6 });
  });

  local("#230 the fork of an empty session is an empty one", async () => {
    const { agents } = createHarness();
    await agents.open({ id: "s" });
    const { agent } = await agents.fork({ from: "s", id: "child" });
    expect(agent.session.events).toEqual([]);
    expect(agent.session.header).toMatchObject({ parent: { id: "s", seq: 0 }, seedLength: 0 });
  });

  local("#230 D2 a live session is forked as it stands now, stored or not, and goes on undisturbed", async () => {
    const model = scriptedModel(["one", { text: "two", hang: "polite" }]);
    const { agents } = createHarness({ model });
    const { agent } = await agents.open({ id: "s" });
    agent.send("first");
    await agent.whenIdle();
    const end = agent.session.seq;
    agent.send("second");
    await eventOf(agent.session, "assistant/chunk", ({ data }) => data.turn === 2);
    const { agent: child } = await agents.fork({ from: "s", id: "child" });
    expect(child.session.events).toEqual(agent.session.events.slice(0, end));
    expect(agent.status).toBe("running");
    child.inject("only here");
    expect(typesOf(agent.session)).not.toContain("context/message");
  });

  local("#230 D22 a call that its source has left without a result has one in the history of the child", async () => {
    const model = scriptedModel(["fine"]);
    const left = logOf(
      turnStart(1),
      user("do"),
      stepStart(1, 1),
      assistant(1, 1, "", "a"),
      called(1, 1, "a"),
      started(1, 1, "a"),
    );
    const { agents } = createHarness({ model, storage: await storageOf(logOf(plainTurn(1))) });
    const { agent } = await agents.create({ id: "source", seed: left });
    const { agent: child } = await agents.fork({ from: agent.id });
    expect(said(child.session.deriveMessages())).toEqual(["user: do", "assistant: calls a", "tool: fails a"]);
    expect(child.session.events.slice(-3)).toMatchObject([
      { type: "tool/result" },
      stepEnd(1, 1),
      { type: "turn/end" },
    ]);
  });

  local("#230 #246 a child is stored whole, and outlives its parent", async () => {
    const storage = await storageOf(three);
    const first = createHarness({ storage });
    const { agent } = await first.agents.fork({ from: "s", id: "child" });
    await agent.flush();
    await first.dispose();
    await storage.delete("s");
    const { agent: again } = await createHarness({ storage }).agents.resume({ id: "child" });
    expect(again.session.events).toEqual(three);
    expect(again.session.header.parent).toEqual({ id: "s", seq: three.length });
  });
});

describe("what it refuses", () => {
  local("#230 SESSION_NOT_FOUND without a source", async () => {
    const { agents } = createHarness();
    await expect(agents.fork({ from: "s" })).rejects.toEqual(code("SESSION_NOT_FOUND"));
  });

  local("#230 SESSION_EXISTS for an id that is taken, which is looked at before the boundary", async () => {
    const storage = memoryStorage();
    await store(storage, "s", three);
    await store(storage, "stored", three);
    const { agents } = createHarness({ storage });
    await agents.open({ id: "live" });
    for (const id of ["stored", "live", "s"]) {
      await expect(agents.fork({ from: "s", id, at: 99 })).rejects.toEqual(code("SESSION_EXISTS"));
    }
  });

  local("#230 an id that is none", async () => {
    const { agents } = createHarness({ storage: await storageOf(three) });
    await expect(agents.fork({ from: "" })).rejects.toEqual(code("INVALID_ID"));
    await expect(agents.fork({ from: "s", id: "" })).rejects.toEqual(code("INVALID_ID"));
  });

  local("#230 of two forks to one id one wins", async () => {
    const { agents } = createHarness({ storage: await storageOf(three) });
    const settled = await Promise.allSettled([
      agents.fork({ from: "s", id: "child" }),
      agents.fork({ from: "s", id: "child", at: 5 }),
    ]);
    const lost = settled.filter((one) => one.status === "rejected");
    expect(lost).toHaveLength(1);
    expect(["SESSION_EXISTS", "SESSION_LIVE"]).toContain((lost[0]!.reason as { code: string }).code);
  });
});
