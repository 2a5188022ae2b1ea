/** Who may do what over a wire, and for how long. */
import { run } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { connectAgent, type Grant } from "turnloop/transport";
import { expect, onTestFinished, test } from "vitest";
import { calls, tool } from "../support/calls.ts";
import { testClock } from "../support/clock.ts";
import { codeOf } from "../support/lifecycle.ts";
import { dataOf } from "../support/scene.ts";
import { snapshotWhere } from "../support/wait.ts";
import { ANN, rawClient, serve } from "./support.ts";

const READER: Grant = { identity: "bob", rights: [] };

test("D31 a verb without its right throws UNAUTHORIZED, and the host would not do it either", async () => {
  const served = serve({ model: scriptedModel([]) });
  const ann = await served.connect();
  ann.agent.inject("there is a session");
  await ann.agent.flush();
  const { agent } = await served.connect({ grant: READER });
  expect(agent.getSnapshot().rights).toEqual(["read"]);
  expect(agent.session.seq).toBe(3);
  for (const verb of [
    () => agent.send("go"),
    () => agent.steer("go"),
    () => agent.inject("go"),
    () => agent.continue(),
    () => agent.configure({ temperature: 1 }),
    () => agent.withdraw("m"),
    () => agent.cancel(),
    () => agent.respond("x", true),
    () => agent.claim("x"),
  ])
    expect(await codeOf(async () => verb())).toBe("UNAUTHORIZED");
  const client = rawClient(served.dial("s", READER));
  client.hello();
  await client.got("welcome");
  client.say({ type: "commands", session: "s", commands: [{ kind: "send", id: "m", content: "go" }] });
  expect((await client.got("refused")).error.code).toBe("UNAUTHORIZED");
  client.say({
    type: "commands",
    session: "s",
    commands: [{ kind: "respond", id: "r", interaction: "x", value: { decision: "allow" } }],
  });
  expect((await client.got("refused", ({ id }) => id === "r"))["error"].code).toBe("UNAUTHORIZED");
  expect(ann.agent.session.seq).toBe(3);
});

test("a run that the host refuses says why", async () => {
  const served = serve({ model: scriptedModel([]) });
  const { agent } = await served.connect({ grant: { ...ANN, rights: ["drive"] } });
  const { result } = run(agent, "go");
  served.server.disconnect((identity) => identity === "ann");
  await expect(result).rejects.toMatchObject({ code: "UNAUTHORIZED" });
});

test("who may only answer answers, and drives nothing", async () => {
  const ask = tool("ask", (_args, call) => call.ask("sure?"));
  const served = serve({ model: scriptedModel([calls("ask"), "done"]), tools: [ask] });
  const ann = await served.connect();
  const { agent } = await served.connect({ grant: { identity: "bob", rights: ["answer"] } });
  ann.agent.send("go");
  await snapshotWhere(agent, ({ waiting }) => waiting);
  await agent.respond(agent.interactions[0]!.id, "yes");
  await ann.agent.whenIdle();
  expect(await codeOf(() => agent.send("more"))).toBe("UNAUTHORIZED");
});

test("the host says who speaks, whatever the sender claims", async () => {
  const { connect, dial, harness } = serve({ model: scriptedModel(["hi"]) });
  const { agent } = await connect();
  agent.send("go", { source: { kind: "system", identity: "root" } });
  await agent.whenIdle();
  expect(dataOf(agent.session, "user/message")[0]!.source).toEqual({ kind: "user", identity: "ann" });
  expect(dial).toBeTypeOf("function");
  await harness.dispose();
});

test("who may only read wakes no session that does not exist", async () => {
  const { connect, harness } = serve();
  expect(await codeOf(connect({ grant: READER, session: "nowhere" }))).toBe("SESSION_NOT_FOUND");
  expect((await harness.sessions.list()).sessions).toEqual([]);
});

test("a grant that has run out ends the connection, and the next one goes on where it was", async () => {
  const clock = testClock();
  const served = serve({ model: scriptedModel(["one", "two"]), clock });
  let grants = 0;
  const { agent, dispose } = await connectAgent({
    session: "s",
    connect: () => served.dial("s", { ...ANN, expiresAt: clock.now() + 1000 * (grants += 1) }),
  });
  onTestFinished(dispose);
  await run(agent, "a").result;
  await clock.advance(1500);
  agent.send("b");
  await agent.flush();
  expect(grants).toBe(2);
  await agent.whenIdle();
  expect(dataOf(agent.session, "user/message")).toHaveLength(2);
});

test("who is disconnected is out for good; the others and the agent go on", async () => {
  const served = serve({ model: scriptedModel([{ text: "on and on", hang: "polite" }]) });
  const ann = await served.connect();
  const bob = await served.connect({ grant: { identity: "bob", rights: ["drive"] } });
  bob.agent.send("go");
  await snapshotWhere(ann.agent, ({ status }) => status === "running");
  served.server.disconnect((identity) => identity === "bob");
  await snapshotWhere(bob.agent, ({ connection }) => connection === "closed");
  expect(bob.agent.getSnapshot()).toMatchObject({ status: "disposed", error: { code: "UNAUTHORIZED" } });
  expect(await codeOf(() => bob.agent.send("more"))).toBe("AGENT_DISPOSED");
  expect(ann.agent.getSnapshot()).toMatchObject({ status: "running", connection: "open" });
  ann.agent.cancel();
  await ann.agent.whenIdle();
});
