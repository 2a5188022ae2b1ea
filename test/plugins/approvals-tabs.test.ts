/** Approvals with several tabs on one agent, over real transports: one execution at most, and each is told why. */
import {
  approvals,
  createHarness,
  memoryStorage,
  type Agent,
  type AgentHandle,
  type ModelRequest,
  type SessionStorage,
} from "turnloop";
import { connectAgent, messagePort, serveAgents, type Connection } from "turnloop/transport";
import { scriptedModel, type ScriptedAnswer } from "turnloop/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { calls, resultsOf, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { dataOf } from "../support/scene.ts";
import { endOf, eventOf, snapshotWhere } from "../support/wait.ts";
import { socketPairs } from "../transport/sockets.ts";
import { ANN } from "../transport/support.ts";

const ID = "call_1_1_1_0/approval";
const ALLOW = { decision: "allow" } as const;

const answer = ({ messages }: ModelRequest): ScriptedAnswer => (messages.length === 1 ? calls("pay") : "done");

interface Pair {
  readonly client: Connection;
  readonly host: Connection;
}

const transports: Record<string, () => Promise<() => Pair | Promise<Pair>>> = {
  "message ports": async () => () => {
    const { port1, port2 } = new MessageChannel();
    return { client: messagePort(port1), host: messagePort(port2) };
  },
  WebSockets: async () => {
    const sockets = await socketPairs();
    onTestFinished(() => sockets.close());
    return () => sockets.pair();
  },
};

describe.each(Object.entries(transports))("over %s", (_, transport) => {
  /** A host whose agent wants to pay, and its tabs. */
  async function stage(storage: SessionStorage = memoryStorage()) {
    const clock = testClock();
    const pair = await transport();
    const paid: string[] = [];
    const harness = createHarness({
      storage,
      clock,
      // By the history, so that another host can go on.
      model: scriptedModel([answer, answer]),
      tools: [tool("pay", (_args, { callId }) => void paid.push(callId))],
      plugins: [approvals({ when: { pay: true }, expiresInMs: 60_000 })],
      onDiagnostic() {},
    });
    const { agent } = await harness.agents.open({ id: "s" });
    const server = serveAgents(harness);
    const opened: AgentHandle[] = [];
    onTestFinished(async () => {
      for (const one of opened) await one.dispose();
      await server.close();
    });
    async function tab(): Promise<AgentHandle> {
      const one = await connectAgent({
        session: "s",
        onDiagnostic() {},
        async connect() {
          const { client, host } = await pair();
          server.accept(host, ANN, "s");
          return client;
        },
      });
      opened.push(one);
      return one;
    }
    return { harness, agent, clock, paid, tab, server };
  }

  const asked = (agent: Agent): Promise<void> => snapshotWhere(agent, ({ interactions }) => interactions.length === 1);
  const done = (agent: Agent): Promise<unknown> => eventOf(agent.session, "turn/end");

  test.each([["allow", "deny"] as const, ["deny", "allow"] as const, ["allow", "allow"] as const])(
    "one tab says %s while another is about to say %s: the first one counts, the other is told",
    async (mine, yours) => {
      const one = await stage();
      const [a, b] = [(await one.tab()).agent, (await one.tab()).agent];
      a.send("go");
      await Promise.all([asked(a), asked(b)]);
      const answers = await Promise.allSettled([a.respond(ID, { decision: mine }), b.respond(ID, { decision: yours })]);
      await Promise.all([done(a), done(b)]);
      const won = answers.findIndex(({ status }) => status === "fulfilled");
      expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      expect(answers.find(({ status }) => status === "rejected")).toMatchObject({
        reason: { code: "INTERACTION_RESOLVED", message: expect.stringContaining("answered already") as string },
      });
      expect(one.paid).toHaveLength([mine, yours][won] === "allow" ? 1 : 0);
      expect([a.interactions, b.interactions]).toEqual([[], []]);
      expect(dataOf(one.agent.session, "interaction/resolved")).toHaveLength(1);
      expect(endOf(one.agent.session)).toEqual({ kind: "completed" });
    },
  );

  test("a tab that is reloaded between question and answer sees the question again", async () => {
    const one = await stage();
    const before = await one.tab();
    before.agent.send("go");
    await asked(before.agent);
    await before.dispose();
    const { agent } = await one.tab();
    expect(agent.interactions).toMatchObject([{ id: ID, kind: "approval", payload: { tool: "pay" } }]);
    await agent.respond(ID, ALLOW);
    await done(agent);
    expect(one.paid).toEqual(["call_1_1_1_0"]);
  });

  test("a tab that is reloaded while its answer is on the way may answer again: the call runs once", async () => {
    const one = await stage();
    const before = await one.tab();
    before.agent.send("go");
    await asked(before.agent);
    const first = before.agent.respond(ID, ALLOW).then(
      () => "stored",
      ({ code }: { code: string }) => code,
    );
    await before.dispose();
    const { agent } = await one.tab();
    const second = await agent.respond(ID, ALLOW).then(
      () => "stored",
      ({ code }: { code: string }) => code,
    );
    await done(agent);
    expect(["stored", "INTERACTION_RESOLVED"]).toContain(second);
    // Whether the first one has come through, its tab was gone too early to hear.
    expect(["stored", "AGENT_DISPOSED", "DISCONNECTED"]).toContain(await first);
    expect(one.paid).toEqual(["call_1_1_1_0"]);
    expect(dataOf(one.agent.session, "interaction/resolved")).toMatchObject([{ outcome: "answered" }]);
  });

  test("an answer after a cancel from another tab is told so, also by a tab that was opened behind it", async () => {
    const one = await stage();
    const [a, b] = [(await one.tab()).agent, (await one.tab()).agent];
    a.send("go");
    await Promise.all([asked(a), asked(b)]);
    a.cancel("no more");
    await done(b);
    const cancelled = { code: "INTERACTION_RESOLVED", message: expect.stringContaining("cancelled already") as string };
    await expect(b.respond(ID, ALLOW)).rejects.toMatchObject(cancelled);
    const late = (await one.tab()).agent;
    await expect(late.respond(ID, ALLOW)).rejects.toMatchObject(cancelled);
    expect(one.paid).toEqual([]);
    expect(resultsOf(one.agent.session)).toMatchObject([{ code: "ABORTED_BEFORE_DISPATCH" }]);
  });

  test("a cancel and an answer at once: the call has run with its leave, or it has not run", async () => {
    const one = await stage();
    const [a, b] = [(await one.tab()).agent, (await one.tab()).agent];
    a.send("go");
    await Promise.all([asked(a), asked(b)]);
    a.cancel("no more");
    const told = await b.respond(ID, ALLOW).then(
      () => "stored",
      ({ code }: { code: string }) => code,
    );
    await done(b);
    const { outcome } = dataOf(one.agent.session, "interaction/resolved")[0]!;
    expect(told).toBe(outcome === "answered" ? "stored" : "INTERACTION_RESOLVED");
    expect(one.paid.length).toBeLessThanOrEqual(outcome === "answered" ? 1 : 0);
    expect(resultsOf(one.agent.session)).toHaveLength(1);
  });

  test("an answer after its time is told so, also when the turn is long over", async () => {
    const one = await stage();
    const { agent } = await one.tab();
    agent.send("go");
    await asked(agent);
    await one.clock.advance(60_000);
    await done(agent);
    for (const tab of [agent, (await one.tab()).agent]) {
      await expect(tab.respond(ID, ALLOW)).rejects.toMatchObject({
        code: "INTERACTION_RESOLVED",
        message: expect.stringContaining("expired already") as string,
      });
    }
    expect(one.paid).toEqual([]);
    expect(resultsOf(one.agent.session)).toMatchObject([{ fails: expect.stringContaining("in time") as string }]);
  });

  test("the host dies between question and answer: a tab of the next one answers, and the call runs once", async () => {
    const storage = memoryStorage();
    const first = await stage(storage);
    const before = await first.tab();
    before.agent.send("go");
    await asked(before.agent);
    await first.server.close();
    await first.harness.dispose();
    const second = await stage(storage);
    const { agent } = await second.tab();
    expect(agent.interactions).toMatchObject([{ id: ID }]);
    await agent.respond(ID, ALLOW);
    await done(agent);
    expect([first.paid, second.paid]).toEqual([[], ["call_1_1_1_0"]]);
  });
});
