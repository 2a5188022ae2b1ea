/** Agents in Durable Objects, in workerd itself, driven by handles over WebSockets and by RPC. */
import { run, type Agent, type AgentHandle } from "turnloop";
import { connectAgent, type Connection } from "turnloop/transport";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { socketConnection } from "../../adapters/transport/socket.ts";
import { deferred, endOf, snapshotWhere } from "../support/wait.ts";
import { createHostMachine, type HostMachine } from "./host-machine.ts";

let machine: HostMachine;

beforeAll(async () => {
  machine = await createHostMachine();
}, 60_000);

afterAll(() => machine.close());

function addressOf(session: string): URL {
  const url = new URL(`/agents/${session}?token=ann`, machine.address);
  url.protocol = "ws:";
  return url;
}

async function connect(session: string, dialled?: (connection: Connection) => void): Promise<AgentHandle> {
  const handle = await connectAgent({
    session,
    async connect() {
      const connection = await dial(addressOf(session));
      dialled?.(connection);
      return connection;
    },
  });
  onTestFinished(() => handle.dispose());
  return handle;
}

async function dial(url: URL, headers: Readonly<Record<string, string>> = {}): Promise<Connection> {
  const socket = new WebSocket(url, { headers });
  const connection = socketConnection(socket);
  await new Promise<void>((resolve, reject) => {
    socket.once("open", () => resolve());
    socket.once("error", reject);
  });
  return connection;
}

/** How many instances of the object there were, and how often anybody was authorised. */
async function seen(object: string): Promise<{ instances: number; asked: number }> {
  return (await machine.ask("seen", object)) as { instances: number; asked: number };
}

const types = (agent: Agent): string[] => agent.session.events.map(({ type }) => type);

/** A model that does not answer before it is let go. */
function held(): { readonly asked: Promise<void>; answer(text: string): void } {
  const asked = deferred();
  const answer = deferred<string>();
  machine.play(() => {
    asked.resolve();
    return answer.promise;
  });
  return { asked: asked.promise, answer: answer.resolve };
}

test("an agent is driven through a WebSocket; an alarm is armed while it works, and none when it rests", async () => {
  const model = held();
  const { agent } = await connect("chat");
  const { result } = run(agent, "Hi");
  await model.asked;
  expect(await machine.ask("armed", "chat")).toEqual(expect.any(Number));
  model.answer("Hello, Ann.");
  expect((await result).text).toBe("Well. Hello, Ann.");
  const message = agent.session.events.find(({ type }) => type === "user/message");
  expect(message?.data).toMatchObject({ source: { kind: "user", identity: "ann" } });
  await expect.poll(() => machine.ask("armed", "chat")).toBeNull();
});

test("an alarm that rings while the model works disturbs nothing, and is armed again", async () => {
  const model = held();
  const { agent } = await connect("beating");
  const { result } = run(agent, "Hi");
  await model.asked;
  const before = (await machine.ask("armed", "beating")) as number;
  expect(await machine.ask("hurry", "beating")).toBe(true);
  await expect.poll(() => machine.ask("armed", "beating")).toBeGreaterThan(before);
  model.answer("Done.");
  expect((await result).text).toBe("Well. Done.");
  expect(types(agent)).not.toContain("turn/resumed");
  expect((await seen("beating")).instances).toBe(1);
});

test("a turn in which the object has died is continued by the alarm, with nobody connected", async () => {
  const model = held();
  await machine.ask("send", "dying", "Hi");
  await model.asked;
  await machine.ask("abort", "dying");
  machine.play(() => "Still here.");
  expect(await machine.ask("hurry", "dying")).toBe(true);
  await expect.poll(() => machine.ask("armed", "dying")).toBeNull();
  const { agent } = await connect("dying");
  expect(types(agent)).toContain("turn/resumed");
  expect(endOf(agent.session)).toEqual({ kind: "completed" });
  expect(agent.session.deriveMessages().at(-1)!.content).toEqual([{ type: "text", text: "Well. Still here." }]);
});

test("a turn that kills its object each time is given up, however far it came", async () => {
  for (let life = 1; life <= 3; life += 1) {
    const model = held();
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
  const { agent } = await connect("deadly");
  expect(endOf(agent.session)).toEqual({ kind: "interrupted" });
  expect(asked).toBe(0);
});

test("an object that cannot even begin is not tried for ever; a message tries once more", async () => {
  const model = held();
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
  const { agent } = await connect("brittle");
  expect(agent.session.events.filter(({ type }) => type === "turn/end").length).toBe(2);
});

test("an approval is answered after the object slept and died twice: done once, and no alarm meanwhile", async () => {
  let paid = 0;
  machine.play(({ path, role }) => {
    if (path === "pay") return `paid ${(paid += 1)}`;
    return role === "tool" ? "It is paid." : "call pay";
  });
  const { agent } = await connect("shop");
  agent.send("Pay!");
  await snapshotWhere(agent, ({ interactions }) => interactions.length > 0);
  await expect.poll(() => machine.ask("armed", "shop")).toBeNull();
  await machine.ask("sleep", "shop");
  await machine.ask("abort", "shop");
  expect(await machine.ask("snapshot", "shop")).toMatchObject({ status: "running", waiting: true });
  await machine.ask("abort", "shop");
  expect(await machine.ask("armed", "shop")).toBeNull();
  expect(paid).toBe(0);

  const [interaction] = agent.interactions;
  await machine.ask("respond", "shop", interaction!.id, { decision: "allow" });
  await agent.whenIdle();
  await expect.poll(() => endOf(agent.session)).toEqual({ kind: "completed" });
  expect(paid).toBe(1);
  expect(types(agent)).not.toContain("turn/resumed");
  await expect.poll(() => machine.ask("armed", "shop")).toBeNull();
});

test("a connection outlives the sleep of its object: it is not made anew, and misses nothing", async () => {
  let opened = 0;
  let next = 0;
  machine.play(() => "Yes.");
  const { agent } = await connect("sleepy", (connection) => {
    opened += 1;
    connection.onMessage((text) => {
      const frame = JSON.parse(text) as { type: string; from: number; events: readonly unknown[] };
      if (frame.type !== "events") return;
      expect(frame.from, "the first event of a frame: nothing is sent twice").toBe(next);
      next += frame.events.length;
    });
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
  expect((await seen("sleepy")).instances).toBe(3);
});

test("a claim lapses with the instance of the object: its connection, which outlives it, hears of it", async () => {
  machine.play(({ role }) => (role === "tool" ? "There." : "call locate"));
  let opened = 0;
  const { agent } = await connect("claimed", () => void (opened += 1));
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
  const { agent } = await connect("pinged");
  await agent.flush();
  const connection = await dial(addressOf("pinged"));
  await machine.ask("sleep", "pinged");
  const before = await seen("pinged");
  const answer = new Promise((resolve) => connection.onMessage(resolve));
  connection.send('{"type":"ping"}');
  expect(await answer).toBe('{"type":"pong"}');
  expect(await seen("pinged")).toEqual(before);
  connection.close();
});

test("whoever is not let in is told so, and the object is not woken", async () => {
  const url = addressOf("locked");
  url.search = "";
  const connecting = connectAgent({ session: "locked", connect: () => dial(url) });
  await expect(connecting).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  expect((await seen("locked")).instances).toBe(0);
});

test("a page of another origin is refused before anybody is asked, and the object is not woken", async () => {
  const { asked } = await seen("foreign");
  await expect(dial(addressOf("foreign"), { origin: "https://evil.example" })).rejects.toThrow("403");
  expect(await seen("foreign")).toEqual({ instances: 0, asked });
  const own = await dial(addressOf("foreign"), { origin: machine.address.origin });
  own.close();
});

test("what is sent by RPC is stored when the call returns, and once for an id; a cancel ends the turn", async () => {
  const model = held();
  expect(await machine.ask("send", "hooked", "Hi", { id: "delivery-1" })).toBe("delivery-1");
  await model.asked;
  await machine.ask("send", "hooked", "Hi", { id: "delivery-1" });
  await machine.ask("cancel", "hooked", "enough");
  await expect.poll(() => machine.ask("snapshot", "hooked")).toMatchObject({ status: "idle", queue: [] });
  await expect.poll(() => machine.ask("armed", "hooked")).toBeNull();
  const { agent } = await connect("hooked");
  expect(endOf(agent.session)).toEqual({ kind: "aborted", reason: "enough" });
  expect(types(agent).filter((type) => type === "user/message")).toHaveLength(1);
  await expect(machine.ask("respond", "hooked", "nothing", true)).rejects.toThrow("never asked");
});

test("a class with an alarm of its own shares the single one: the earlier of both is set", async () => {
  const far = Date.now() + 3_600_000;
  await machine.ask("own/remind", "own", far);
  const model = held();
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
