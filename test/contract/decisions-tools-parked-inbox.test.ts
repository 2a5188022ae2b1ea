/** D23, D13: what is said to a turn that is parked. */
import { scriptedModel } from "turnloop/testing";
import { expect } from "vitest";
import { calls, resultsOf, tool } from "../support/calls.ts";
import { anywhere, local } from "../support/fixture.ts";
import { endings, firstLife, liveOn, typesFrom } from "../support/lives.ts";
import { mortal } from "../support/mortal.ts";
import { dataOf, linesOf } from "../support/scene.ts";
import { endOf, snapshotWhere, textOf } from "../support/wait.ts";

const approval = "call_1_1_1_0/approval";
const pay = tool("pay", () => "paid", { needsApproval: true });

anywhere("D23 steering reaches a turn that waits, once it goes on", async (open) => {
  const agent = await open({ model: scriptedModel([calls("pay"), "done"]), tools: [pay] });
  agent.send("go");
  await snapshotWhere(agent, ({ waiting }) => waiting);
  const id = agent.steer("and hurry");
  expect(agent.queue.map((message) => message.id)).toEqual([id]);
  await agent.respond(approval, { decision: "allow" });
  await agent.whenIdle();
  expect(dataOf(agent.session, "steering/message").map((message) => message.id)).toEqual([id]);
  expect(dataOf(agent.session, "turn/start")).toHaveLength(1);
});

local(
  "D14 D23 a turn that was cancelled is not parked: a host that dies behind the cancel leaves it aborted",
  async () => {
    const { storage, disk, dead, killAfter } = mortal();
    killAfter("agent/cancelled");
    const doomed = await liveOn(storage, { model: scriptedModel([calls("pay")]), tools: [pay] });
    doomed.agent.send("go");
    await snapshotWhere(doomed.agent, ({ waiting }) => waiting);
    doomed.agent.cancel("forget it");
    await dead;

    const { agent, requested } = await liveOn(disk, { model: scriptedModel([]), tools: [pay] });
    expect(requested).toEqual([]);
    expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "forget it" });
    expect(dataOf(agent.session, "interaction/resolved")).toEqual([{ id: approval, outcome: "cancelled" }]);
    expect(resultsOf(agent.session)).toMatchObject([{ tool: "pay", code: "TOOL_NOT_STARTED" }]);
  },
);

for (const how of endings) {
  local(`D13 D23 steering of a parked turn is read once, though its host was ${how}`, async () => {
    const first = await firstLife({ model: scriptedModel([calls("pay")]), tools: [pay] });
    first.agent.send("go");
    await snapshotWhere(first.agent, ({ waiting }) => waiting);
    const id = first.agent.steer("and hurry");
    const stored = await first.end(how);

    const { agent } = await liveOn(first.disk, { model: scriptedModel(["one", "two"]), tools: [pay] });
    await agent.flush();
    expect(agent.session.seq).toBe(stored);
    expect(agent.queue.map((message) => message.id)).toEqual([id]);
    await agent.respond(approval, { decision: "allow" });
    await agent.whenIdle();
    const read = [...dataOf(agent.session, "steering/message"), ...dataOf(agent.session, "user/message")];
    expect(read.filter((message) => message.id === id)).toHaveLength(1);
    expect(agent.queue).toEqual([]);
  });

  local(
    `D13 D23 what is injected into a parked turn lands behind its results, though its host was ${how}`,
    async () => {
      const first = await firstLife({ model: scriptedModel([calls("pay")]), tools: [pay] });
      first.agent.send("go");
      await snapshotWhere(first.agent, ({ waiting }) => waiting);
      first.agent.inject("by the way");
      const stored = await first.end(how);

      const model = scriptedModel(["done"]);
      const { agent } = await liveOn(first.disk, { model, tools: [pay] });
      await agent.flush();
      expect(agent.session.seq).toBe(stored);
      await agent.respond(approval, { decision: "allow" });
      await agent.whenIdle();
      expect(typesFrom(agent.session, stored).slice(0, 5)).toEqual([
        "interaction/resolved",
        "tool/start",
        "tool/result",
        "context/message",
        "step/end",
      ]);
      expect(dataOf(agent.session, "context/message").map(({ content }) => textOf(content))).toEqual(["by the way"]);
      expect(linesOf(model.requests[0]!.messages).slice(-2)).toEqual([
        "tool: paid",
        "user: <user>\nby the way\n</user>",
      ]);
    },
  );
}
