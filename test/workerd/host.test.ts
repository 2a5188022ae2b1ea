/** Agents in Durable Objects, in workerd itself, driven by handles over WebSockets and by RPC. */
import { run, type Agent } from "turnloop";
import { afterAll, beforeAll, expect, test } from "vitest";
import { endOf, snapshotWhere } from "../support/wait.ts";
import { addressOf, connect, dial, held, seen } from "./host-clients.ts";
import { createHostMachine, type HostMachine } from "./host-machine.ts";

let machine: HostMachine;

beforeAll(async () => {
  machine = await createHostMachine();
}, 60_000);

afterAll(() => machine.close());

const types = (agent: Agent): string[] => agent.session.events.map(({ type }) => type);

test("an agent is driven through a WebSocket; an alarm is armed while it works, and none when it rests", async () => {
  const model = held(machine);
  const { agent } = await connect(machine, "chat");
  const { result } = run(agent, "Hi");
  await model.asked;
  expect(await machine.ask("armed", "chat")).toEqual(expect.any(Number));
  model.answer("Hello, Ann.");
  expect((await result).text).toBe("Well. Hello, Ann.");
  const message = agent.session.events.find(({ type }) => type === "user/message");
  expect(message?.data).toMatchObject({ source: { kind: "user", identity: { name: "ann" } } });
  await expect.poll(() => machine.ask("armed", "chat")).toBeNull();
});

test("an alarm that rings while the model works disturbs nothing, and is armed again", async () => {
  const model = held(machine);
  const { agent } = await connect(machine, "beating");
  const { result } = run(agent, "Hi");
  await model.asked;
  const before = (await machine.ask("armed", "beating")) as number;
  expect(await machine.ask("hurry", "beating")).toBe(true);
  await expect.poll(() => machine.ask("armed", "beating")).toBeGreaterThan(before);
  model.answer("Done.");
  expect((await result).text).toBe("Well. Done.");
  expect(types(agent)).not.toContain("turn/resumed");
  expect((await seen(machine, "beating")).instances).toBe(1);
});

test("a turn in which the object has died is continued by the alarm, with nobody connected", async () => {
  const model = held(machine);
  await machine.ask("send", "dying", "Hi");
  await model.asked;
  await machine.ask("abort", "dying");
  machine.play(() => "Still here.");
  expect(await machine.ask("hurry", "dying")).toBe(true);
  await expect.poll(() => machine.ask("armed", "dying")).toBeNull();
  const { agent } = await connect(machine, "dying");
  expect(types(agent)).toContain("turn/resumed");
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  expect(agent.session.deriveMessages().at(-1)!.content).toEqual([{ type: "text", text: "Well. Still here." }]);
});

test("a turn that kills its object each time is given up, however far it came", async () => {
  for (let life = 1; life <= 3; life += 1) {
    const model = held(machine);
    await (life === 1 ? machine.ask("send", "deadly", "Hi") : machine.ask("hurry", "deadly"));
    await model.asked;
    await machine.ask("abort", "deadly");
  }
  let asked = 0;
  machine.play(() => {
    asked += 1;
    return "Never asked for.";
  });
  expect(await machine.ask("hurry", "deadly")).toBe(true);
  await expect.poll(() => machine.ask("armed", "deadly")).toBeNull();
  const { agent } = await connect(machine, "deadly");
  expect(endOf(agent.session)).toEqual({ kind: "interrupted" });
  expect(asked).toBe(0);
});

test("an object that cannot even begin is not tried for ever; a message tries once more", async () => {
  const model = held(machine);
  await machine.ask("send", "brittle", "Hi");
  await model.asked;
  await machine.ask("abort", "brittle");
  await machine.ask("break", "brittle");
  let rings = 0;
  while (await machine.ask("hurry", "brittle")) {
    rings += 1;
    const isAnswered = async (): Promise<boolean> => {
      const armed = (await machine.ask("armed", "brittle")) as number | null;
      return armed === null || armed > Date.now() + 10_000;
    };
    await expect.poll(isAnswered).toBe(true);
  }
  expect(rings).toBe(6);
  await machine.ask("mend", "brittle");
  machine.play(() => "Mended.");
  await machine.ask("send", "brittle", "Again");
  await expect.poll(() => machine.ask("snapshot", "brittle")).toMatchObject({ status: "idle", queue: [] });
  const { agent } = await connect(machine, "brittle");
  expect(agent.session.events.filter(({ type }) => type === "turn/end").length).toBe(2);
});

test("a connection outlives the sleep of its object: it is not made anew, and misses nothing", async () => {
  let opened = 0;
  let next = 0;
  machine.play(() => "Yes.");
  const { agent } = await connect(machine, "sleepy", {
    dialled(connection) {
      opened += 1;
      connection.onMessage((text) => {
        const frame = JSON.parse(text) as { type: string; from: number; events: readonly unknown[] };
        if (frame.type !== "events") return;
        expect(frame.from, "the first event of a frame: nothing is sent twice").toBe(next);
        next += frame.events.length;
      });
    },
  });
  await run(agent, "Awake?").result;
  await expect.poll(() => machine.ask("armed", "sleepy")).toBeNull();
  await machine.ask("sleep", "sleepy");
  // Woken by a client, and then by somebody else.
  expect((await run(agent, "And now?").result).text).toBe("Well. Yes.");
  await expect.poll(() => machine.ask("armed", "sleepy")).toBeNull();
  await machine.ask("sleep", "sleepy");
  await machine.ask("send", "sleepy", "From a webhook");
  await expect.poll(() => agent.session.events.filter(({ type }) => type === "turn/end").length).toBe(3);
  expect(next).toBe(agent.session.seq);
  expect(opened).toBe(1);
  expect((await seen(machine, "sleepy")).instances).toBe(3);
});

test("a claim lapses with the instance of the object: its connection, which outlives it, hears of it", async () => {
  machine.play(({ role }) => (role === "tool" ? "There." : "call locate"));
  let opened = 0;
  const { agent } = await connect(machine, "claimed", { dialled: () => void (opened += 1) });
  agent.send("Where am I?");
  await snapshotWhere(agent, ({ waiting }) => waiting);
  const { id } = agent.interactions[0]!;
  await agent.claim(id);
  await snapshotWhere(agent, ({ interactions }) => interactions[0]?.claimedBy !== undefined);
  await expect.poll(() => machine.ask("armed", "claimed")).toBeNull();
  await machine.ask("sleep", "claimed");
  await machine.ask("snapshot", "claimed");
  await snapshotWhere(agent, ({ interactions }) => interactions[0]?.claimedBy === undefined);
  await agent.claim(id);
  await agent.respond(id, { value: "here" });
  await agent.whenIdle();
  expect(opened).toBe(1);
});

test("a ping is answered without waking the object", async () => {
  const { agent } = await connect(machine, "pinged");
  await agent.flush();
  const connection = await dial(addressOf(machine, "pinged"));
  await machine.ask("sleep", "pinged");
  const before = await seen(machine, "pinged");
  const answer = new Promise((resolve) => connection.onMessage(resolve));
  connection.send('{"type":"ping"}');
  expect(await answer).toBe('{"type":"pong"}');
  expect(await seen(machine, "pinged")).toEqual(before);
  connection.close();
});

test("what is sent by RPC is stored when the call returns, and once for an id; a cancel ends the turn", async () => {
  const model = held(machine);
  expect(await machine.ask("send", "hooked", "Hi", { id: "delivery-1" })).toBe("delivery-1");
  await model.asked;
  await machine.ask("send", "hooked", "Hi", { id: "delivery-1" });
  await machine.ask("cancel", "hooked", "enough");
  await expect.poll(() => machine.ask("snapshot", "hooked")).toMatchObject({ status: "idle", queue: [] });
  await expect.poll(() => machine.ask("armed", "hooked")).toBeNull();
  const { agent } = await connect(machine, "hooked");
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "enough" });
  expect(types(agent).filter((type) => type === "user/message")).toHaveLength(1);
  await expect(machine.ask("respond", "hooked", "nothing", true)).rejects.toThrow("never asked");
});

test("a class with an alarm of its own shares the single one: the earlier of both is set", async () => {
  const far = Date.now() + 3_600_000;
  await machine.ask("own/remind", "own", far);
  const model = held(machine);
  await machine.ask("own/send", "own", "Hi");
  await model.asked;
  expect(await machine.ask("own/armed", "own")).toBeLessThan(far);
  await machine.ask("abort", "own");
  machine.play(() => "Back.");
  expect(await machine.ask("own/hurry", "own")).toBe(true);
  await expect.poll(() => machine.ask("own/armed", "own")).toBe(far);
  expect(await machine.ask("own/snapshot", "own")).toMatchObject({ status: "idle" });
  // Its own time has come: the agent is not touched.
  await machine.ask("own/remind", "own", Date.now());
  await expect.poll(() => machine.ask("own/reminded", "own")).toBe(true);
  expect(await machine.ask("own/armed", "own")).toBeNull();
});
