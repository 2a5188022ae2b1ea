/** D23: bodies that wait for a person or run at a client, and what becomes of them when their host ends. */
import { clientTools, type JsonValue, type ToolCallContext } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, clientTool, resultsOf, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { anywhere, local } from "../support/fixture.ts";
import { endings, firstLife, liveOn, typesFrom } from "../support/lives.ts";
import { mortal, storedEvents } from "../support/mortal.ts";
import { dataOf } from "../support/scene.ts";
import { deferred, endOf, snapshotWhere } from "../support/wait.ts";

const q = (n: number, call = 0): string => `call_1_1_1_${call}/${n}`;

/** A tool that asks these questions one after another, and what has happened in its body. */
function asker(questions: readonly JsonValue[], traits: Parameters<typeof tool>[2] = { idempotent: true }) {
  const log: JsonValue[] = [];
  const body = async (_: unknown, call: ToolCallContext): Promise<JsonValue> => {
    log.push("begins");
    const answers: JsonValue[] = [];
    for (const question of questions) answers.push(await call.ask(question));
    log.push(answers);
    return answers;
  };
  return { log, ask: tool("ask", body, traits) };
}

/** A first life whose body waits for its first answer. */
async function waiting(tools: Parameters<typeof firstLife>[0]["tools"], names: string[] = ["ask"]) {
  const first = await firstLife({ model: scriptedModel([calls(...names)]), tools: tools! });
  first.agent.send("go");
  await snapshotWhere(first.agent, (snapshot) => snapshot.waiting);
  return first;
}

anywhere("D23 a body asks under its call's id and a number, and gets what is answered", async (open) => {
  const { ask, log } = asker(["name?", { pick: ["a", "b"] }], {});
  const agent = await open({ model: scriptedModel([calls("ask"), "done"]), tools: [ask] });
  agent.send("go");
  await snapshotWhere(agent, (snapshot) => snapshot.waiting);
  expect(agent.interactions).toEqual([{ id: q(1), kind: "question", payload: "name?", callId: "call_1_1_1_0" }]);
  await agent.respond(q(1), "Ada");
  await snapshotWhere(agent, ({ interactions }) => interactions[0]?.id === q(2));
  expect(agent.interactions[0]!.payload).toEqual({ pick: ["a", "b"] });
  await agent.respond(q(2), ["a"]);
  await agent.whenIdle();
  expect(log).toEqual(["begins", ["Ada", ["a"]]]);
  expect(resultsOf(agent.session)).toEqual([{ tool: "ask", says: '["Ada",["a"]]' }]);
});

for (const how of endings) {
  local(`D23 an idempotent body that asks outlives a host that is ${how}, and runs again with the answer`, async () => {
    const [before, after] = [asker(["name?"]), asker(["name?"])];
    const first = await waiting([before.ask]);
    const stored = await first.end(how);

    const { agent, requested } = await liveOn(first.disk, { model: scriptedModel(["I see"]), tools: [after.ask] });
    await agent.flush();
    expect(agent.session.seq).toBe(stored);
    expect(requested).toEqual([q(1)]);
    expect(after.log).toEqual([]);
    await agent.respond(q(1), "Ada");
    await agent.whenIdle();
    expect(after.log).toEqual(["begins", ["Ada"]]);
    expect(typesFrom(agent.session, stored).slice(0, 4)).toEqual([
      "interaction/resolved",
      "tool/start",
      "tool/result",
      "step/end",
    ]);
    expect(dataOf(agent.session, "tool/start").map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(dataOf(agent.session, "interaction/requested")).toHaveLength(1);
    expect(resultsOf(agent.session)).toEqual([{ tool: "ask", says: '["Ada"]' }]);
    expect(before.log).toEqual(["begins"]);
  });

  local(`D23 a body that may not run again gets its question cancelled when its host is ${how}`, async () => {
    const [before, after] = [asker(["name?"], {}), asker(["name?"], {})];
    const first = await waiting([before.ask]);
    await first.end(how);

    const { agent, requested } = await liveOn(first.disk, { model: scriptedModel([]), tools: [after.ask] });
    expect(requested).toEqual([]);
    expect(agent.interactions).toEqual([]);
    expect(dataOf(agent.session, "interaction/resolved")).toEqual([{ id: q(1), outcome: "cancelled" }]);
    expect(resultsOf(agent.session)).toMatchObject([
      { tool: "ask", code: how === "killed" ? "TOOL_OUTCOME_UNKNOWN" : "TOOL_ABORTED" },
    ]);
    expect(endOf(agent.session)).toEqual({ kind: how === "killed" ? "interrupted" : "disposed" });
    expect(after.log).toEqual([]);
  });

  local(`D23 a body waits for its second answer through a host that is ${how}, and keeps the first`, async () => {
    const questions = ["name?", "age?"];
    const [before, after] = [asker(questions), asker(questions)];
    const first = await waiting([before.ask]);
    await first.agent.respond(q(1), "Ada");
    await snapshotWhere(first.agent, ({ interactions }) => interactions[0]?.id === q(2));
    const stored = await first.end(how);

    const { agent, requested } = await liveOn(first.disk, { model: scriptedModel(["I see"]), tools: [after.ask] });
    await agent.flush();
    expect(agent.session.seq).toBe(stored);
    expect(requested).toEqual([q(2)]);
    expect(after.log).toEqual([]);
    await agent.respond(q(2), 36);
    await agent.whenIdle();
    expect(after.log).toEqual(["begins", ["Ada", 36]]);
    expect(dataOf(agent.session, "interaction/requested").map(({ id }) => id)).toEqual([q(1), q(2)]);
    expect(resultsOf(agent.session)).toEqual([{ tool: "ask", says: '["Ada",36]' }]);
  });

  local(`D23 two bodies that wait outlive a host that is ${how}, and each runs again for its own answer`, async () => {
    const traits = { readOnly: true };
    const [before, after] = [asker(["name?"], traits), asker(["name?"], traits)];
    const first = await waiting([before.ask], ["ask", "ask"]);
    await snapshotWhere(first.agent, ({ interactions }) => interactions.length === 2);
    const stored = await first.end(how);

    const { agent, requested } = await liveOn(first.disk, { model: scriptedModel(["I see"]), tools: [after.ask] });
    await agent.flush();
    expect(agent.session.seq).toBe(stored);
    expect(requested).toEqual([q(1), q(1, 1)]);
    await agent.respond(q(1, 1), "Bob");
    await snapshotWhere(agent, ({ interactions }) => interactions.length === 1);
    await agent.respond(q(1), "Ada");
    await agent.whenIdle();
    expect(after.log.filter((one) => one === "begins")).toHaveLength(2);
    expect(resultsOf(agent.session).map((one) => "says" in one && one.says)).toEqual(
      expect.arrayContaining(['["Ada"]', '["Bob"]']),
    );
  });

  local(`D23 questions asked at once outlive a host that is ${how}; one answer runs the body again`, async () => {
    const both = (log: JsonValue[]) =>
      tool(
        "ask",
        async (_, call) => {
          log.push("begins");
          return Promise.all([call.ask("name?"), call.ask("age?")]);
        },
        { idempotent: true },
      );
    const first = await waiting([both([])]);
    await snapshotWhere(first.agent, ({ interactions }) => interactions.length === 2);
    await first.end(how);

    const log: JsonValue[] = [];
    const { agent } = await liveOn(first.disk, { model: scriptedModel(["I see"]), tools: [both(log)] });
    expect(log).toEqual([]);
    await agent.respond(q(2), 36);
    await agent.respond(q(1), "Ada");
    await agent.whenIdle();
    expect(log).toEqual(["begins"]);
    expect(dataOf(agent.session, "interaction/requested")).toHaveLength(2);
    expect(resultsOf(agent.session)).toEqual([{ tool: "ask", says: '["Ada",36]' }]);
  });

  local(`D23 a claimed client tool is not parked: a host that is ${how} leaves its outcome unknown`, async () => {
    const first = await waiting([clientTool("where")], ["where"]);
    await first.agent.claim(q(0).replace("/0", "/client"));
    await first.end(how);

    const { agent, requested } = await liveOn(first.disk, { model: scriptedModel([]), tools: [clientTool("where")] });
    expect(requested).toEqual([]);
    expect(resultsOf(agent.session)).toMatchObject([
      { tool: "where", code: how === "killed" ? "TOOL_OUTCOME_UNKNOWN" : "TOOL_ABORTED" },
    ]);
    expect(endOf(agent.session)).toEqual({ kind: how === "killed" ? "interrupted" : "disposed" });
  });

  local(
    `D23 D29 a claimed client tool that is idempotent outlives a host that is ${how}: the claim lapses`,
    async () => {
      const where = clientTool("where", { idempotent: true });
      const first = await waiting([where], ["where"]);
      await first.agent.claim("call_1_1_1_0/client");
      const stored = await first.end(how);

      const { agent, requested } = await liveOn(first.disk, { model: scriptedModel(["I see"]), tools: [where] });
      await agent.flush();
      expect(agent.session.seq).toBe(stored);
      expect(requested).toEqual(["call_1_1_1_0/client"]);
      expect(agent.interactions[0]!.claimedBy).toBeUndefined();
      clientTools(agent, { where: () => "here" });
      await agent.whenIdle();
      expect(resultsOf(agent.session)).toEqual([{ tool: "where", says: "here" }]);
      expect(dataOf(agent.session, "interaction/claimed")).toHaveLength(2);
    },
  );
}

local("D23 an answer of a client that was stored is not lost when its host dies", async () => {
  const { storage, disk, dead, killAfter } = mortal();
  killAfter("interaction/resolved");
  const options = { tools: [clientTool("where")] };
  const doomed = await liveOn(storage, { model: scriptedModel([calls("where"), "on"]), ...options });
  clientTools(doomed.agent, { where: () => "here" });
  doomed.agent.send("go");
  await dead;

  const { agent } = await liveOn(disk, { model: scriptedModel(["I see"]), ...options });
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toEqual([{ tool: "where", says: "here" }]);
  expect(dataOf(agent.session, "interaction/claimed")).toHaveLength(1);
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

local("D23 a body that has its answers and works on is not parked: a death leaves its outcome unknown", async () => {
  const begun = deferred();
  const body = async (_: unknown, call: ToolCallContext): Promise<never> => {
    await call.ask("sure?");
    begun.resolve();
    return new Promise(() => {});
  };
  const first = await waiting([tool("ask", body, { idempotent: true })]);
  await first.agent.respond(q(1), true);
  await begun.promise;
  await first.end("killed");
  const { agent } = await liveOn(first.disk, { model: scriptedModel([]), tools: [asker([]).ask] });
  expect(resultsOf(agent.session)).toMatchObject([{ tool: "ask", code: "TOOL_OUTCOME_UNKNOWN" }]);
  expect(endOf(agent.session)).toEqual({ kind: "interrupted" });
});

local("D23 D16 a turn whose tool is gone when it is opened again is not parked", async () => {
  const first = await waiting([asker(["name?"]).ask]);
  await first.end("killed");
  const { agent } = await liveOn(first.disk, { model: scriptedModel([]) });
  expect(resultsOf(agent.session)).toMatchObject([{ tool: "ask", code: "TOOL_OUTCOME_UNKNOWN" }]);
  expect(dataOf(agent.session, "interaction/resolved")).toEqual([{ id: q(1), outcome: "cancelled" }]);
});

local("D23 a cancel ends a body that was parked over a death, and it is not run again", async () => {
  const after = asker(["name?"]);
  const first = await waiting([asker(["name?"]).ask]);
  await first.end("killed");
  const { agent } = await liveOn(first.disk, { model: scriptedModel([]), tools: [after.ask] });
  agent.cancel("forget it");
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toMatchObject([{ tool: "ask", code: "TOOL_ABORTED" }]);
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "forget it" });
  expect(after.log).toEqual([]);
});

/** A clock that knows who sleeps. */
function watchedClock() {
  const clock = testClock();
  let asleep: number[] = [];
  return {
    ...clock,
    asleep: () => asleep,
    sleep: (ms: number, signal: AbortSignal) => {
      const until = clock.now() + ms;
      asleep.push(until);
      return clock.sleep(ms, signal).finally(() => (asleep = asleep.toSpliced(asleep.indexOf(until), 1)));
    },
  };
}

local("D23 a parked turn keeps no timer, before and after its host is gone", async () => {
  const clock = watchedClock();
  const { storage, disk, kill } = mortal();
  const doomed = await liveOn(storage, { model: scriptedModel([calls("ask")]), tools: [asker(["?"]).ask], clock });
  doomed.agent.send("go");
  await snapshotWhere(doomed.agent, ({ waiting: parked, durable }) => parked && durable === "stored");
  expect(clock.asleep()).toEqual([]);
  kill();
  const { agent } = await liveOn(disk, { model: scriptedModel([]), tools: [asker(["?"]).ask], clock });
  await agent.flush();
  expect(clock.asleep()).toEqual([]);
});

const expiring = (log: JsonValue[] = []) =>
  tool(
    "ask",
    async (_, call) => {
      log.push("begins");
      return call.ask("now?", { expiresInMs: 60_000 });
    },
    { idempotent: true },
  );

local(
  "D23 an interaction that expires keeps one timer, over a death too, and is told when its time has come",
  async () => {
    const clock = watchedClock();
    const { storage, disk, kill } = mortal();
    const doomed = await liveOn(storage, { model: scriptedModel([calls("ask")]), tools: [expiring()], clock });
    doomed.agent.send("go");
    await snapshotWhere(doomed.agent, ({ waiting: parked, durable }) => parked && durable === "stored");
    const expiresAt = clock.now() + 60_000;
    expect(doomed.agent.interactions[0]!.expiresAt).toBe(expiresAt);
    expect(clock.asleep()).toEqual([expiresAt]);
    kill();
    await doomed.handle.dispose();
    expect(clock.asleep()).toEqual([]);

    await clock.advance(20_000);
    const log: JsonValue[] = [];
    const { agent } = await liveOn(disk, { model: scriptedModel(["I see"]), tools: [expiring(log)], clock });
    expect(clock.asleep()).toEqual([expiresAt]);
    await clock.advance(40_000);
    await agent.whenIdle();
    expect(dataOf(agent.session, "interaction/resolved")).toEqual([{ id: q(1), outcome: "expired" }]);
    expect(resultsOf(agent.session)).toMatchObject([{ tool: "ask", code: "INTERACTION_EXPIRED" }]);
    expect(log).toEqual(["begins"]);
    expect(clock.asleep()).toEqual([]);
  },
);

local("D23 an interaction whose time came while nobody was there has expired at the opening", async () => {
  const clock = testClock();
  const { storage, disk, kill } = mortal();
  const doomed = await liveOn(storage, { model: scriptedModel([calls("ask")]), tools: [expiring()], clock });
  doomed.agent.send("go");
  await snapshotWhere(doomed.agent, ({ waiting: parked, durable }) => parked && durable === "stored");
  kill();
  await doomed.handle.dispose();
  await clock.advance(3_600_000);
  const { agent } = await liveOn(disk, { model: scriptedModel(["I see"]), tools: [expiring()], clock });
  await clock.advance(0);
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toMatchObject([{ tool: "ask", code: "INTERACTION_EXPIRED" }]);
  expect((await storedEvents(disk)).at(-1)!.type).toBe("turn/end");
});
