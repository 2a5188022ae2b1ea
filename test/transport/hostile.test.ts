/** Clients that are broken, hostile, slow or dead, and hosts that are. */
import { run } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { connectAgent, messagePort, serveAgents, type Connection } from "turnloop/transport";
import { expect, onTestFinished, test } from "vitest";
import { testClock } from "../support/clock.ts";
import { harnessWith } from "../support/fixture.ts";
import { codeOf } from "../support/lifecycle.ts";
import { dataOf } from "../support/scene.ts";
import { eventOf, snapshotWhere } from "../support/wait.ts";
import { ANN, rawClient, serve } from "./support.ts";

test("a peer of another version is refused, and told what is the matter", async () => {
  const client = rawClient(serve().dial());
  client.hello({ version: 2 });
  expect(await client.got("closed")).toMatchObject({ retry: false, error: { code: "VERSION_MISMATCH" } });
  await client.closed;
});

test("a client is refused by a host of another version, and does not come again", async () => {
  let dialled = 0;
  const connecting = connectAgent({
    session: "s",
    connect() {
      dialled += 1;
      const { port1, port2 } = new MessageChannel();
      const host = messagePort(port1);
      host.onMessage(() => {
        const frame = { type: "welcome", version: 9, session: "s", header: {}, rights: [], options: {}, next: 0 };
        host.send(JSON.stringify({ ...frame, maxFrameBytes: 1, seenEvery: 1 }));
      });
      return messagePort(port2);
    },
  });
  expect(await codeOf(connecting)).toBe("VERSION_MISMATCH");
  expect(dialled).toBe(1);
});

const BAD_FRAMES: Readonly<Record<string, unknown>> = {
  "no JSON": "{",
  "a number": 5,
  "an unknown type": { type: "nope" },
  "the type of a prototype": { type: "constructor" },
  "commands that are none": { type: "commands", session: "s", commands: [{ kind: "explode", id: "x" }] },
  "a command without an id": { type: "commands", session: "s", commands: [{ kind: "send", id: "", content: "hi" }] },
  "a command before the hello": { type: "commands", session: "s", commands: [{ kind: "send", id: "x", content: "" }] },
  "another session": { type: "hello", version: 1, session: "another", client: "c" },
  "a seq that is none": { type: "hello", version: 1, session: "s", client: "c", next: -1 },
};

for (const [what, frame] of Object.entries(BAD_FRAMES)) {
  test(`a bad frame gets an error and closes the connection: ${what}`, async () => {
    const { dial, harness } = serve();
    const client = rawClient(dial());
    client.say(frame);
    const { error } = await client.got("closed");
    expect(error.code).toMatch(/BAD_FRAME|UNAUTHORIZED/);
    await client.closed;
    expect(harness.agents.list()).toEqual([]);
  });
}

test("a frame that is too large closes the connection; a handle refuses to send it", async () => {
  const served = serve({ model: scriptedModel(["hi"]), limits: { maxFrameBytes: 1000 } });
  const client = rawClient(served.dial());
  client.say("x".repeat(1001));
  expect((await client.got("closed"))["error"].code).toBe("FRAME_TOO_LARGE");
  const { agent } = await served.connect();
  agent.send("漢".repeat(400));
  expect(await codeOf(agent.flush())).toBe("FRAME_TOO_LARGE");
  expect(agent.getSnapshot()).toMatchObject({ queue: [], error: { code: "FRAME_TOO_LARGE" }, connection: "open" });
  expect((await run(agent, "small").result).text).toBe("hi");
});

test("a command that the host refuses leaves the queue, rejects flush, and stands in the snapshot", async () => {
  const served = serve({ model: scriptedModel([]) });
  const { agent } = await served.connect();
  const [line] = served.connections;
  // What only a broken client would send: nothing at all.
  const { send } = line!;
  Object.assign(line!, { send: (frame: string) => send(frame.replace('"text":"go"', '"words":"go"')) });
  agent.send("go");
  expect(await codeOf(agent.flush())).toBe("INVALID_CONTENT");
  expect(agent.getSnapshot()).toMatchObject({ queue: [], error: { code: "INVALID_CONTENT" }, connection: "open" });
  await agent.whenIdle();
});

test("an error of the host goes over the wire without its words", async () => {
  const storage = {
    ...(await import("turnloop")).memoryStorage(),
    load: () => Promise.reject(new Error("/home/ann/key-123 is locked")),
  };
  const { dial } = serve({ storage });
  const client = rawClient(dial());
  client.hello();
  const closed = await client.got("closed");
  expect(closed).toMatchObject({ error: { code: "HOST_FAILED" }, retry: true });
  expect(JSON.stringify(client.frames)).not.toMatch(/home|key-123|at /);
});

test("a connection may reach so many sessions and no more", () => {
  const { server } = serve({ limits: { sessionsPerConnection: 2 } });
  const { port1 } = new MessageChannel();
  const connection = messagePort(port1);
  server.accept(connection, ANN, "a");
  server.accept(connection, ANN, "b");
  expect(() => server.accept(connection, ANN, "c")).toThrow(expect.objectContaining({ code: "TOO_MANY_SESSIONS" }));
  connection.close();
});

test("commands that come too fast wait, in their order; far too many end the connection", async () => {
  const clock = testClock();
  const { dial, harness } = serve({ model: scriptedModel([]), clock, limits: { commandsPerSecond: 2 } });
  const client = rawClient(dial());
  client.hello();
  await client.got("welcome");
  const inject = (n: number): void =>
    client.say({ type: "commands", session: "s", commands: [{ kind: "inject", id: `m${n}`, content: `${n}` }] });
  for (let n = 1; n <= 5; n += 1) inject(n);
  await client.got("done", ({ id }) => id === "m2");
  const { session } = harness.agents.get("s")!;
  const count = (): number => dataOf(session as never, "context/message").length;
  expect(count()).toBe(2);
  await clock.advance(500);
  await client.got("done", ({ id }) => id === "m3");
  expect(count()).toBe(3);
  await clock.advance(1000);
  await client.got("done", ({ id }) => id === "m5");
  for (let n = 6; n < 100; n += 1) inject(n);
  expect((await client.got("closed"))["error"].code).toBe("TOO_MANY_COMMANDS");
});

test("a client that takes nothing is sent nothing more, and slows nobody; when it takes again it misses nothing", async () => {
  const text = Array.from({ length: 3000 }, (_, i) => `word${i}`).join(" ");
  const served = serve({ model: scriptedModel([text]), limits: { maxBufferedBytes: 100_000 } });
  const slow = rawClient(served.dial());
  slow.hello();
  await slow.got("welcome");
  const { agent } = await served.connect();
  expect((await run(agent, "talk").result).text).toBe(text);
  const sizeOf = (frames: readonly object[]): number => JSON.stringify(frames).length;
  const sent = sizeOf(slow.frames);
  expect(sent).toBeLessThan(300_000);
  expect(sizeOf(agent.session.events as object[])).toBeGreaterThan(300_000);
  const seqs = (): number[] =>
    slow.frames.flatMap((frame) =>
      frame.type === "events" ? frame["events"].map((one: { seq: number }) => one.seq) : [],
    );
  while (seqs().length < agent.session.seq) {
    const before = slow.frames.length;
    slow.say({ type: "seen", session: "s", amount: 100_000 });
    await slow.got("events", (frame) => slow.frames.indexOf(frame) >= before);
  }
  expect(seqs()).toEqual(agent.session.events.map(({ seq }) => seq));
});

/** A connection whose other side has died without a word. */
function falls(inner: Connection): Connection & { silence(): void } {
  let silent = false;
  const { send, onMessage } = inner;
  return {
    ...inner,
    send: (frame) => void (silent || send(frame)),
    onMessage: (listener) => onMessage((frame) => void (silent || listener(frame))),
    silence: () => void (silent = true),
  };
}

test("a host that is silent is given up within seconds, and found again", async () => {
  const clock = testClock();
  const served = serve({ model: scriptedModel(["hi"]) });
  const lines: ReturnType<typeof falls>[] = [];
  const dial = (): Connection => {
    const line = falls(served.dial());
    lines.push(line);
    return line;
  };
  const { agent, dispose } = await connectAgent({ connect: dial, session: "s", clock });
  onTestFinished(dispose);
  lines[0]!.silence();
  agent.send("go");
  for (let ms = 0; ms < 10_000 && lines.length < 2; ms += 500) await clock.advance(500);
  expect(lines).toHaveLength(2);
  await agent.flush();
  await agent.whenIdle();
  expect(dataOf(agent.session, "user/message")).toHaveLength(1);
});

test("a client that is silent is let go within seconds; one that answers the heartbeat is not", async () => {
  const clock = testClock();
  const harness = harnessWith({ clock });
  const server = serveAgents(harness);
  onTestFinished(() => server.close());
  const accepted = (): Connection => {
    const { port1, port2 } = new MessageChannel();
    server.accept(messagePort(port1), ANN, "s");
    return messagePort(port2);
  };
  const dead = rawClient(accepted());
  dead.hello();
  const { agent, dispose } = await connectAgent({ connect: accepted, session: "s" });
  onTestFinished(dispose);
  await dead.got("welcome");
  for (let ms = 0; ms < 30_000; ms += 2000) {
    await clock.advance(2000);
    await new Promise((resolve) => {
      setTimeout(resolve, 2);
    });
  }
  expect(await dead.got("closed")).toMatchObject({ error: { code: "PEER_SILENT" }, retry: true });
  expect(agent.getSnapshot().connection).toBe("open");
});

test("a host that closes is left, and the next one is found", async () => {
  const { harness, server, dial } = serve({ model: scriptedModel(["hi"]) });
  let to = dial;
  const { agent, dispose } = await connectAgent({ connect: () => to(), session: "s" });
  onTestFinished(dispose);
  const next = serveAgents(harness);
  onTestFinished(() => next.close());
  to = () => {
    const { port1, port2 } = new MessageChannel();
    next.accept(messagePort(port1), ANN, "s");
    return messagePort(port2);
  };
  await server.close();
  expect(() => server.accept(dial(), ANN, "s")).toThrow(expect.objectContaining({ code: "HOST_CLOSED" }));
  agent.send("go");
  await snapshotWhere(agent, ({ connection }) => connection === "open");
  await agent.whenIdle();
  expect(dataOf(agent.session, "assistant/message")).toHaveLength(1);
});

test("a session that nobody follows is let go when its agent rests, and opened again on demand", async () => {
  const { harness, connect } = serve({ model: scriptedModel(["one", "two"]) });
  const first = await connect();
  first.agent.send("go");
  await first.agent.flush();
  const gone = new Promise<void>((resolve) => void harness.hooks.on("agent/disposed", () => resolve()));
  const ended = eventOf(harness.agents.get("s")!.session, "turn/end");
  await first.dispose();
  expect((await ended).data.reason).toEqual({ kind: "completed" });
  await gone;
  expect(harness.agents.list()).toEqual([]);
  const { agent } = await connect();
  expect(dataOf(agent.session, "turn/end")).toHaveLength(1);
  expect((await run(agent, "again").result).text).toBe("two");
});

test("connecting can be aborted, and leaves nothing behind", async () => {
  const { connect } = serve();
  const controller = new AbortController();
  const connecting = connect({
    signal: controller.signal,
    connect: () => Promise.reject(new Error("nobody is there")),
  });
  const reason = new Error("changed my mind");
  controller.abort(reason);
  await expect(connecting).rejects.toBe(reason);
});
