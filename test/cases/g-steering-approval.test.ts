/** G: steering, the queue, approvals. */
import type { Agent, JsonValue, SessionEventType } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { expect, test } from "vitest";
import { calls, deafBody, resultsOf, tool } from "../support/calls.ts";
import { heldTool, textsOf } from "../support/held.ts";
import { endings, firstLife, liveOn } from "../support/lives.ts";
import { dataOf, linesOf, scene } from "../support/scene.ts";
import { eventOf, snapshotWhere, typesOf } from "../support/wait.ts";

const approval = (n: number): string => `call_1_1_1_${n}/approval`;
const allow = { decision: "allow" } as const;

/** A tool that has to be approved, and what it was run with. */
function gated(name = "pay") {
  const ran: unknown[] = [];
  return { ran, tool: tool(name, (args) => (ran.push(args), `ran ${ran.length}`), { needsApproval: true }) };
}
const asking = (agent: Agent, count: number): Promise<void> =>
  snapshotWhere(agent, ({ interactions }) => interactions.length === count);

test("B110 B113 steering that comes while tools run is delivered behind all results of the batch", async () => {
  const held = heldTool();
  const one = await scene([calls("held", "rest"), "fine"], { tools: [held.tool, tool("rest")] });
  const said = one.say("go");
  await held.started;
  one.agent.steer("look left");
  held.answer("done");
  await said;
  const order: SessionEventType[] = ["tool/result", "tool/result", "steering/message", "step/end"];
  expect(
    typesOf(one.session)
      .filter((type) => order.includes(type))
      .slice(0, 4),
  ).toEqual(order);
  expect(linesOf(one.model.requests[1]!.messages).slice(-3)).toEqual(["tool: done", "tool: done", "user: look left"]);
});

test("B113 nor does it stand between a call and its result when it comes before the result, or with the stop", async () => {
  const held = heldTool();
  const one = await scene([calls("held"), "fine"], { tools: [held.tool] });
  const said = one.say("go");
  await held.started;
  one.agent.steer("look left");
  one.agent.cancel("enough", { queue: "keep" });
  await said;
  await one.agent.whenIdle();
  expect(linesOf(one.session.deriveMessages()).map((line) => line.split(":")[0])).toEqual([
    "user",
    "assistant",
    "tool",
    "user",
    "assistant",
  ]);
  expect(one.model.requests).toHaveLength(2);
});

/** The types of a plain run with one tool call, each a moment at which something may happen. */
const moments = [
  "inbox/queued",
  "turn/start",
  "user/message",
  "step/start",
  "request/header",
  "assistant/chunk",
  "assistant/message",
  "tool/call",
  "tool/start",
  "tool/result",
  "step/end",
  "turn/end",
] as const;

test.each(moments.flatMap((at) => (["nothing", "drop", "keep"] as const).map((then) => [at, then] as const)))(
  "B112 steering at the moment of %s, and then a cancel (%s), is delivered once, queued, or told as dropped",
  async (at, then) => {
    const one = await scene([calls("add"), "a", "b", "c"], { tools: [tool("add")] });
    const off = one.session.subscribe(({ type }) => {
      if (type !== at) return;
      off();
      one.agent.steer("steered", { id: "s" });
      if (then !== "nothing") one.agent.cancel("enough", { queue: then });
    });
    one.agent.send("go");
    await one.agent.whenIdle();
    const delivered = [...dataOf(one.session, "steering/message"), ...dataOf(one.session, "user/message")].filter(
      ({ id }) => id === "s",
    );
    const dropped = [
      ...dataOf(one.session, "agent/cancelled").flatMap((event) => event.dropped),
      ...dataOf(one.session, "inbox/dropped").flatMap(({ ids }) => ids),
    ];
    const lost = dropped.filter((id) => id === "s");
    expect([delivered.length + lost.length, one.agent.queue]).toEqual([1, []]);
    expect(then === "drop" || delivered.length === 1).toBe(true);
  },
);

test.each(endings)("B115 an approval that outlives a host that is %s stores everything once", async (how) => {
  const [before, after] = [gated(), gated()];
  const first = await firstLife({ model: scriptedModel([calls("pay")]), tools: [before.tool] });
  first.agent.send("go");
  await asking(first.agent, 1);
  await first.end(how);
  const model = scriptedModel(["fine"]);
  const { agent } = await liveOn(first.disk, { model, tools: [after.tool] });
  await agent.respond(approval(0), allow);
  await agent.whenIdle();
  for (const type of [
    "assistant/message",
    "tool/call",
    "tool/start",
    "tool/result",
    "interaction/requested",
    "interaction/resolved",
  ] as const) {
    expect([type, dataOf(agent.session, type).length]).toEqual([type, type === "assistant/message" ? 2 : 1]);
  }
  expect([before.ran.length, after.ran.length]).toEqual([0, 1]);
  expect(model.requests[0]!.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
});

/** Calls of one parallel tool that waits; all are asked about at once. */
async function three(decide: "approve" | "ask") {
  const ran: unknown[] = [];
  const pay = tool(
    "pay",
    async ({ n = null }, { ask }) => {
      if (decide === "approve") return (ran.push(n), `paid ${JSON.stringify(n)}`);
      const answer = await ask(n);
      return (ran.push([n, answer]), JSON.stringify(answer));
    },
    { parallel: true, needsApproval: decide === "approve" },
  );
  const one = await scene([calls(...[0, 1, 2].map((n) => ({ name: "pay", args: { n } }))), "fine"], { tools: [pay] });
  const said = one.say("go");
  await asking(one.agent, 3);
  return { ...one, ran, said };
}

test("B116 B124 calls of one tool that wait for approval are answered each by its own id, in any order", async () => {
  const { agent, model, ran, said, session } = await three("approve");
  await agent.respond(approval(2), allow);
  await agent.respond(approval(0), { decision: "deny", reason: "no" });
  await agent.flush();
  expect([model.requests.length, agent.interactions.map(({ id }) => id)]).toEqual([1, [approval(1)]]);
  await agent.respond(approval(1), allow);
  expect(await said).toEqual({ kind: "completed" });
  expect(ran).toEqual([2, 1]);
  expect(linesOf(model.requests[1]!.messages).slice(-3)).toEqual(["tool: Error: no", "tool: paid 1", "tool: paid 2"]);
  expect(resultsOf(session)).toHaveLength(3);
});

test("B118 answers reach the very call that asked, and false, 0 and an empty text are answers", async () => {
  const { agent, ran, said } = await three("ask");
  const answers: [number, JsonValue][] = [
    [1, 0],
    [2, ""],
    [0, false],
  ];
  for (const [n, value] of answers) await agent.respond(`call_1_1_1_${n}/1`, value);
  expect(await said).toEqual({ kind: "completed" });
  expect(ran).toEqual([
    [1, 0],
    [2, ""],
    [0, false],
  ]);
});

test("B118 null is an answer too", async () => {
  const { agent, ran, said } = await three("ask");
  for (const n of [0, 1, 2]) await agent.respond(`call_1_1_1_${n}/1`, null);
  await said;
  expect(ran).toEqual([
    [0, null],
    [1, null],
    [2, null],
  ]);
});

test("B119 a message that comes while an approval waits does not pass it: it waits, or the approval is cancelled first", async () => {
  const { ran, tool: pay } = gated();
  const one = await scene([calls("pay"), "fine"], { tools: [pay] });
  const said = one.say("go");
  await asking(one.agent, 1);
  one.agent.send("never mind");
  await one.agent.flush();
  expect(textsOf(one.session)).toEqual(["go"]);
  one.agent.cancel("changed my mind", { queue: "keep" });
  expect(await said).toMatchObject({ kind: "aborted" });
  await one.agent.whenIdle();
  expect(dataOf(one.session, "interaction/resolved")).toMatchObject([{ id: approval(0), outcome: "cancelled" }]);
  expect(resultsOf(one.session)).toMatchObject([{ tool: "pay", code: "ABORTED_BEFORE_DISPATCH" }]);
  expect(one.model.requests[1]!.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"]);
  await expect(one.agent.respond(approval(0), allow)).rejects.toMatchObject({ code: "INTERACTION_RESOLVED" });
  expect(ran).toEqual([]);
});

test("B121 an approved tool does not run again when the request behind it fails and is tried again", async () => {
  const { ran, tool: pay } = gated();
  const boom = { error: { message: "500" } };
  const one = await scene([calls("pay"), boom, boom, "fine"], { tools: [pay] });
  let tries = 0;
  one.hooks.on("agent/request-error", () => ({ kind: (tries += 1) === 1 ? "retry" : "fail" }));
  const said = one.say("go");
  await asking(one.agent, 1);
  await one.agent.respond(approval(0), allow);
  expect(await said).toMatchObject({ kind: "error" });
  one.agent.continue();
  await one.agent.whenIdle();
  expect([ran.length, one.model.requests.length, resultsOf(one.session).length]).toEqual([1, 4, 1]);
  expect(linesOf(one.model.requests[3]!.messages).at(-1)).toBe("tool: ran 1");
});

test.each(endings)("B121 nor when the host is %s behind it", async (how) => {
  const [before, after] = [gated(), gated()];
  const first = await firstLife({ model: scriptedModel([calls("pay"), { hang: "polite" }]), tools: [before.tool] });
  first.agent.send("go");
  await asking(first.agent, 1);
  await first.agent.respond(approval(0), allow);
  await snapshotWhere(first.agent, ({ interactions }) => interactions.length === 0);
  await eventOf(first.agent.session, "step/end");
  await first.end(how);
  const { agent } = await liveOn(first.disk, { model: scriptedModel(["fine"]), tools: [after.tool] });
  agent.send("go on");
  await agent.whenIdle();
  expect([before.ran.length, after.ran.length]).toEqual([1, 0]);
  expect(agent.interactions).toEqual([]);
});

test.each(endings)(
  "B122 a cancel in an approved tool leaves nothing that would run it again, though the host is %s",
  async (how) => {
    const [before, after] = [deafBody(), deafBody(() => expect.unreachable())];
    const pay = ({ body }: typeof before) => tool("pay", body, { needsApproval: true, idempotent: true });
    const first = await firstLife({ model: scriptedModel([calls("pay")]), tools: [pay(before)] });
    first.agent.send("go");
    await asking(first.agent, 1);
    await first.agent.respond(approval(0), allow);
    await before.running;
    first.agent.cancel();
    await first.agent.whenIdle();
    await first.end(how);
    const { agent, requested } = await liveOn(first.disk, { model: scriptedModel(["fine"]), tools: [pay(after)] });
    agent.send("again");
    await agent.whenIdle();
    expect([requested, agent.interactions]).toEqual([[], []]);
    expect(resultsOf(agent.session)).toMatchObject([{ tool: "pay", code: "TOOL_ABORTED" }]);
    expect(dataOf(agent.session, "tool/start")).toHaveLength(1);
  },
);
