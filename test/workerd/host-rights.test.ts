/** Who may reach an agent in a Durable Object, and for how long. */
import { connectAgent } from "turnloop/transport";
import { afterAll, beforeAll, expect, test } from "vitest";
import { endOf } from "../support/wait.ts";
import { addressOf, connect, dial, seen } from "./host-clients.ts";
import { createHostMachine, type HostMachine } from "./host-machine.ts";

let machine: HostMachine;

beforeAll(async () => {
  machine = await createHostMachine();
}, 60_000);

afterAll(() => machine.close());

test("whoever is not let in is told so, and the object is not woken", async () => {
  const url = addressOf(machine, "locked");
  url.search = "";
  const connecting = connectAgent({ session: "locked", connect: () => dial(url) });
  await expect(connecting).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  expect((await seen(machine, "locked")).instances).toBe(0);
});

test("a page of another origin is refused before anybody is asked, and the object is not woken", async () => {
  const { asked } = await seen(machine, "foreign");
  await expect(dial(addressOf(machine, "foreign"), { origin: "https://evil.example" })).rejects.toThrow("403");
  expect(await seen(machine, "foreign")).toEqual({ instances: 0, asked });
  const own = await dial(addressOf(machine, "foreign"), { origin: machine.address.origin });
  own.close();
});

test("a page of another host is refused by the object too, where a Worker forwards without looking", async () => {
  const { asked } = await seen(machine, "forwarded");
  const url = addressOf(machine, "forwarded");
  url.pathname = "/forwarded/forwarded";
  await expect(dial(url, { origin: "https://evil.example" })).rejects.toThrow("403");
  expect((await seen(machine, "forwarded")).asked).toBe(asked);
  const own = await dial(url, { origin: machine.address.origin });
  own.close();
});

test("who may only read begins nothing and drives nothing", async () => {
  await expect(connect(machine, "read", { token: "reader" })).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  machine.play(() => "Hello.");
  const owner = await connect(machine, "read");
  owner.agent.send("Hi");
  await owner.agent.whenIdle();
  const reader = await connect(machine, "read", { token: "reader" });
  expect(reader.agent.session.seq).toBe(owner.agent.session.seq);
  expect(() => reader.agent.send("Hi")).toThrow(expect.objectContaining({ code: "UNAUTHORIZED" }));
});

test("the connections of whoever has signed out end for good, also while the object sleeps; others stay", async () => {
  machine.play(() => "Hello.");
  const gone = await connect(machine, "shared", { token: "bob" });
  const stays = await connect(machine, "shared");
  stays.agent.send("Hi");
  await stays.agent.whenIdle();
  await expect.poll(() => machine.ask("armed", "shared")).toBeNull();
  await machine.ask("sleep", "shared");
  await machine.ask("sign-out", "bob");
  await machine.ask("disconnect", "shared", { name: "bob" });
  await expect.poll(() => gone.agent.status).toBe("disposed");
  expect(gone.agent.getSnapshot().error).toMatchObject({ code: "UNAUTHORIZED" });
  stays.agent.send("Still there?");
  await stays.agent.whenIdle();
  expect(endOf(stays.agent.session)).toEqual({ kind: "completed" });

  const awake = await connect(machine, "shared", { token: "eve" });
  await machine.ask("sign-out", "eve");
  await machine.ask("disconnect", "shared", { name: "eve" });
  await expect.poll(() => awake.agent.status).toBe("disposed");
  expect(stays.agent.status).toBe("idle");
});

test("a permission that has run out while the object slept is asked for again", async () => {
  machine.play(() => "Hello.");
  let opened = 0;
  const { agent } = await connect(machine, "brief", { dialled: () => void (opened += 1) });
  agent.send("Hi");
  await agent.whenIdle();
  await expect.poll(() => machine.ask("armed", "brief")).toBeNull();
  await machine.ask("sleep", "brief");
  await machine.ask("later", "brief");
  const { asked } = await seen(machine, "brief");
  agent.send("And now?");
  await agent.flush();
  await agent.whenIdle();
  expect(opened).toBe(2);
  // By the Worker, and by the object.
  expect((await seen(machine, "brief")).asked).toBe(asked + 2);
  expect(agent.session.events.filter(({ type }) => type === "turn/end")).toHaveLength(2);
});

test("the connections of an object that cannot begin end, and are made anew when it can", async () => {
  machine.play(() => "Hello.");
  let closed = 0;
  const { agent } = await connect(machine, "unlucky", {
    dialled: (connection) => void connection.onClose(() => void (closed += 1)),
  });
  agent.send("Hi");
  await agent.whenIdle();
  await expect.poll(() => machine.ask("armed", "unlucky")).toBeNull();
  await machine.ask("sleep", "unlucky");
  await machine.ask("break", "unlucky");
  agent.send("Anybody?");
  await expect.poll(() => closed).toBeGreaterThan(1);
  await machine.ask("mend", "unlucky");
  await agent.flush();
  await agent.whenIdle();
  expect(agent.session.events.filter(({ type }) => type === "turn/end")).toHaveLength(2);
});
