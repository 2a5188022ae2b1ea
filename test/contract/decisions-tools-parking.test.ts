/** D23: a turn that waits for somebody outlives its host, by a disposal and by a death alike. */
import type { Plugin, SessionEvent } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, clientTool, resultsOf, tool } from "../support/calls.ts";
import { local } from "../support/fixture.ts";
import { endings, firstLife, liveOn, typesFrom } from "../support/lives.ts";
import { mortal, storedEvents } from "../support/mortal.ts";
import { dataOf } from "../support/scene.ts";
import { deferred, endOf, eventOf, snapshotWhere } from "../support/wait.ts";

// `interrupted: "continue"` is not there yet; the turns here must stand under it as they do under "close".

const idOf = (n: number, what: string | number): string => `call_1_1_1_${n}/${what}`;
const approval = idOf(0, "approval");

/** A tool that needs an approval, and what it was run with. */
function payment(traits = {}) {
  const paid: unknown[] = [];
  return { paid, pay: tool("pay", (args) => (paid.push(args), "paid"), { needsApproval: true, ...traits }) };
}

for (const how of endings) {
  local(`D23 an approval that is waited for outlives a host that is ${how}: nothing is appended`, async () => {
    const { pay } = payment();
    const first = await firstLife({ model: scriptedModel([calls("pay")]), tools: [pay] });
    first.agent.send("go");
    await snapshotWhere(first.agent, ({ waiting }) => waiting);
    const before = first.agent.session.events;
    const stored = await first.end(how);
    expect(stored).toBe(before.length);
    expect(first.agent.session.events).toEqual(before);

    const second = await liveOn(first.disk, { model: scriptedModel(["I see"]), tools: [payment().pay] });
    await second.agent.flush();
    expect(second.agent.session.events).toEqual(before);
    expect(second.requested).toEqual([approval]);
    expect(second.agent.getSnapshot()).toMatchObject({ status: "running", waiting: true, queue: [] });
    expect(second.agent.interactions.map(({ id }) => id)).toEqual([approval]);
  });

  local(`D23 the turn of a host that is ${how} goes on when the answer comes`, async () => {
    const [before, after] = [payment(), payment()];
    const first = await firstLife({ model: scriptedModel([calls("pay")]), tools: [before.pay] });
    first.agent.send("go");
    await snapshotWhere(first.agent, ({ waiting }) => waiting);
    const stored = await first.end(how);

    const model = scriptedModel(["I see"]);
    const { agent } = await liveOn(first.disk, { model, tools: [after.pay] });
    await agent.respond(approval, { decision: "allow" });
    await agent.whenIdle();
    expect(typesFrom(agent.session, stored)).toEqual([
      "interaction/resolved",
      "tool/start",
      "tool/result",
      "step/end",
      "step/start",
      "request/header",
      "assistant/message",
      "step/end",
      "turn/end",
    ]);
    expect(resultsOf(agent.session)).toEqual([{ tool: "pay", says: "paid" }]);
    expect([before.paid, after.paid]).toEqual([[], [{}]]);
    expect(model.requests[0]!.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
  });

  local(`D23 a client tool that nobody has claimed outlives a host that is ${how}`, async () => {
    const first = await firstLife({ model: scriptedModel([calls("where")]), tools: [clientTool("where")] });
    first.agent.send("go");
    await snapshotWhere(first.agent, ({ waiting }) => waiting);
    const stored = await first.end(how);

    const { agent, requested } = await liveOn(first.disk, {
      model: scriptedModel(["I see"]),
      tools: [clientTool("where")],
    });
    await agent.flush();
    expect(agent.session.seq).toBe(stored);
    expect(requested).toEqual([idOf(0, "client")]);
    await agent.claim(idOf(0, "client"));
    await agent.respond(idOf(0, "client"), { value: "here" });
    await agent.whenIdle();
    expect(resultsOf(agent.session)).toEqual([{ tool: "where", says: "here" }]);
    expect(dataOf(agent.session, "tool/start")).toHaveLength(1);
    expect(endOf(agent.session)).toEqual({ kind: "completed" });
  });

  local(`D23 calls that were not started do not count, for a host that is ${how}`, async () => {
    const { paid, pay } = payment();
    const first = await firstLife({ model: scriptedModel([calls("pay", "act")]), tools: [pay, tool("act")] });
    first.agent.send("go");
    await snapshotWhere(first.agent, ({ waiting }) => waiting);
    await first.end(how);

    const second = payment();
    const { agent } = await liveOn(first.disk, {
      model: scriptedModel(["I see"]),
      tools: [second.pay, tool("act", () => "acted")],
    });
    await agent.respond(approval, { decision: "deny", reason: "no" });
    await agent.whenIdle();
    expect(resultsOf(agent.session)).toEqual([
      { tool: "pay", fails: "Error: no" },
      { tool: "act", says: "acted" },
    ]);
    expect([...paid, ...second.paid]).toEqual([]);
  });

  local(`D23 results that are there stay there, for a host that is ${how}`, async () => {
    const { pay } = payment({ parallel: true });
    const ran: string[] = [];
    const act = tool("act", () => void ran.push("act"), { parallel: true });
    const first = await firstLife({ model: scriptedModel([calls("pay", "act")]), tools: [pay, act] });
    first.agent.send("go");
    await eventOf(first.agent.session, "tool/result");
    await snapshotWhere(first.agent, ({ waiting }) => waiting);
    await first.end(how);

    const { agent } = await liveOn(first.disk, { model: scriptedModel(["I see"]), tools: [payment().pay, act] });
    await agent.respond(approval, { decision: "allow" });
    await agent.whenIdle();
    expect(ran).toEqual(["act"]);
    expect(resultsOf(agent.session)).toEqual([
      { tool: "act", says: "done" },
      { tool: "pay", says: "paid" },
    ]);
  });

  local(`D23 a turn with a body under way besides is not parked: a host that is ${how} ends it`, async () => {
    const begun = deferred();
    const act = tool("act", () => (begun.resolve(), new Promise(() => {})), { parallel: true });
    const { pay } = payment({ parallel: true });
    const first = await firstLife({ model: scriptedModel([calls("pay", "act")]), tools: [pay, act] });
    first.agent.send("go");
    await begun.promise;
    await snapshotWhere(first.agent, ({ interactions }) => interactions.length === 1);
    expect(first.agent.getSnapshot().waiting).toBe(false);
    await first.end(how);

    const { agent, requested } = await liveOn(first.disk, { model: scriptedModel([]), tools: [pay, act] });
    expect(requested).toEqual([]);
    expect(dataOf(agent.session, "interaction/resolved")).toEqual([{ id: approval, outcome: "cancelled" }]);
    expect(resultsOf(agent.session)).toMatchObject([
      { tool: "pay", code: how === "killed" ? "TOOL_NOT_STARTED" : "ABORTED_BEFORE_DISPATCH" },
      { tool: "act", code: how === "killed" ? "TOOL_OUTCOME_UNKNOWN" : "TOOL_ABORTED" },
    ]);
    expect(endOf(agent.session)).toEqual({ kind: how === "killed" ? "interrupted" : "disposed" });
  });

  local(`D23 it can wait through any number of hosts that are ${how}`, async () => {
    const { pay } = payment();
    const first = await firstLife({ model: scriptedModel([calls("pay")]), tools: [pay] });
    first.agent.send("go");
    await snapshotWhere(first.agent, ({ waiting }) => waiting);
    const stored = await first.end(how);
    for (let n = 0; n < 3; n += 1) {
      const { agent, handle } = await liveOn(first.disk, { model: scriptedModel([]), tools: [pay] });
      await agent.flush();
      expect(agent.session.seq).toBe(stored);
      await handle.dispose();
    }
    expect(await storedEvents(first.disk)).toHaveLength(stored);
  });
}

local("D23 an answer that was stored is not lost, though its call was not started", async () => {
  const { storage, disk, dead, killAfter } = mortal();
  killAfter("interaction/resolved");
  const [before, after] = [payment(), payment()];
  const doomed = await liveOn(storage, { model: scriptedModel([calls("pay"), "on"]), tools: [before.pay] });
  doomed.agent.send("go");
  await snapshotWhere(doomed.agent, ({ waiting }) => waiting);
  await doomed.agent.respond(approval, { decision: "allow" });
  await dead;
  const stored = await storedEvents(disk);
  expect(stored.at(-1)!.type).toBe("interaction/resolved");

  const { agent, requested } = await liveOn(disk, { model: scriptedModel(["I see"]), tools: [after.pay] });
  await agent.whenIdle();
  expect(requested).toEqual([]);
  expect(typesFrom(agent.session, stored.length)[0]).toBe("tool/start");
  expect(after.paid).toEqual([{}]);
  expect(dataOf(agent.session, "interaction/requested")).toHaveLength(1);
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

local("D23 an answer in the frame of the disposal is not lost either", async () => {
  const [before, after] = [payment(), payment()];
  const first = await firstLife({ model: scriptedModel([calls("pay")]), tools: [before.pay] });
  first.agent.send("go");
  await snapshotWhere(first.agent, ({ waiting }) => waiting);
  const answered = first.agent.respond(approval, { decision: "deny", reason: "no" });
  await first.handle.dispose();
  await answered;
  expect((await storedEvents(first.disk)).at(-1)!.type).toBe("interaction/resolved");

  const { agent } = await liveOn(first.disk, { model: scriptedModel(["I see"]), tools: [after.pay] });
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toEqual([{ tool: "pay", fails: "Error: no" }]);
  expect([...before.paid, ...after.paid]).toEqual([]);
});

local("D23 a cancel ends a turn that was parked over a death", async () => {
  const { pay, paid } = payment();
  const first = await firstLife({ model: scriptedModel([calls("pay")]), tools: [pay] });
  first.agent.send("go");
  await snapshotWhere(first.agent, ({ waiting }) => waiting);
  await first.end("killed");

  const { agent } = await liveOn(first.disk, { model: scriptedModel(["next"]), tools: [pay] });
  agent.cancel("forget it");
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "forget it" });
  expect(resultsOf(agent.session)).toMatchObject([{ tool: "pay", code: "ABORTED_BEFORE_DISPATCH" }]);
  expect(dataOf(agent.session, "interaction/resolved")).toEqual([{ id: approval, outcome: "cancelled" }]);
  expect(paid).toEqual([]);
  agent.send("and now?");
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
});

local("D23 D29 what a policy had asked for is waited for, though that policy is not there any more", async () => {
  const act = tool("act", () => ran.push("act"));
  const ran: string[] = [];
  const first = await firstLife({
    model: scriptedModel([calls("act")]),
    tools: [act],
    plugins: [({ hooks }) => hooks.on("tools/pre-execute", () => ({ kind: "ask" }))],
  });
  first.agent.send("go");
  await snapshotWhere(first.agent, ({ waiting }) => waiting);
  await first.end("killed");

  const { agent } = await liveOn(first.disk, { model: scriptedModel(["I see"]), tools: [act] });
  await agent.flush();
  expect(agent.getSnapshot().waiting).toBe(true);
  expect(ran).toEqual([]);
  await agent.respond(approval, { decision: "deny", reason: "no" });
  await agent.whenIdle();
  expect(ran).toEqual([]);
  expect(resultsOf(agent.session)).toEqual([{ tool: "act", fails: "Error: no" }]);
});

local("D23 guards are asked again about what was approved before the death", async () => {
  const { pay } = payment();
  const first = await firstLife({ model: scriptedModel([calls("pay")]), tools: [pay] });
  first.agent.send("go");
  await snapshotWhere(first.agent, ({ waiting }) => waiting);
  await first.end("killed");

  const after = payment();
  const { agent } = await liveOn(first.disk, {
    model: scriptedModel(["I see"]),
    tools: [after.pay],
    plugins: [({ tools }) => tools.guard(() => "not any more")],
  });
  await agent.respond(approval, { decision: "allow" });
  await agent.whenIdle();
  expect(resultsOf(agent.session)).toEqual([{ tool: "pay", fails: "Error: not any more" }]);
  expect(after.paid).toEqual([]);
});

local("D23 what is sent while a turn is parked waits for its end, over a death too", async () => {
  const { pay } = payment();
  const first = await firstLife({ model: scriptedModel([calls("pay")]), tools: [pay] });
  first.agent.send("go");
  await snapshotWhere(first.agent, ({ waiting }) => waiting);
  const id = first.agent.send("and then?");
  await first.end("killed");

  const { agent } = await liveOn(first.disk, { model: scriptedModel(["I see", "then this"]), tools: [payment().pay] });
  expect(agent.queue.map((message) => message.id)).toEqual([id]);
  expect(dataOf(agent.session, "turn/start")).toHaveLength(1);
  await agent.respond(approval, { decision: "allow" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "turn/start").map(({ messages }) => messages)).toEqual([[expect.any(String)], [id]]);
});

local("D23 the number of a turn's steps goes on behind a parking, and policies see it", async () => {
  const { pay } = payment();
  const first = await firstLife({ model: scriptedModel([calls("act"), calls("pay")]), tools: [pay, tool("act")] });
  first.agent.send("go");
  await snapshotWhere(first.agent, ({ waiting }) => waiting);
  await first.end("killed");

  const steps: number[] = [];
  const { agent } = await liveOn(first.disk, {
    model: scriptedModel(["I see"]),
    tools: [payment().pay, tool("act")],
    plugins: [({ hooks }) => hooks.on("agent/turn-stop", ({ step }) => void steps.push(step))],
  });
  await agent.respond("call_1_2_1_0/approval", { decision: "allow" });
  await agent.whenIdle();
  expect(steps).toEqual([2, 3]);
  expect(dataOf(agent.session, "step/start").map(({ step }) => step)).toEqual([1, 2, 3]);
});

local("D23 D16 a turn that was cut short by max-tokens before it was parked ends as that", async () => {
  const cutShort = { text: "well", finish: "max-tokens" };
  const { pay } = payment();
  const goOn: Plugin = ({ hooks }) =>
    hooks.on("agent/turn-continuation", ({ step }, next) => (step === 1 ? { action: "continue" } : next()));
  const first = await firstLife({ model: scriptedModel([cutShort, calls("pay")]), tools: [pay], plugins: [goOn] });
  first.agent.send("go");
  await snapshotWhere(first.agent, ({ waiting }) => waiting);
  await first.end("killed");

  const { agent } = await liveOn(first.disk, {
    model: scriptedModel(["I see"]),
    tools: [payment().pay],
    plugins: [goOn],
  });
  await agent.respond("call_1_2_1_0/approval", { decision: "allow" });
  await agent.whenIdle();
  expect(endOf(agent.session)).toEqual({ kind: "max-tokens" });
});

local("D23 reading a parked session, listing it and exporting it leave it as it is", async () => {
  const { pay } = payment();
  const first = await firstLife({ model: scriptedModel([calls("pay")]), tools: [pay] });
  first.agent.send("go");
  await snapshotWhere(first.agent, ({ waiting }) => waiting);
  const harness = first.agent.scope!.harness;
  const stored = await first.end("disposed");
  const view = await harness.sessions.load("session");
  expect(view!.seq).toBe(stored);
  const { sessions } = await harness.sessions.list();
  expect(sessions).toMatchObject([{ id: "session", status: "waiting", seq: stored }]);
  const lines: string[] = [];
  for await (const line of harness.sessions.export("session")) lines.push(line);
  expect(lines).toHaveLength(stored + 1);
  expect((JSON.parse(lines.at(-1)!) as SessionEvent).type).toBe("interaction/requested");
});
