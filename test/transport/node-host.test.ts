/** Agents behind a Node server, seen from outside: by handles, and by clients written by hand. */
import { createServer, get, type Server } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHarness, run, type Diagnostic, type Harness, type HarnessOptions } from "turnloop";
import { hostAgents, type NodeHost, type NodeHostOptions } from "turnloop/node";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { scriptedModel } from "turnloop/testing";
import { connectAgent, webSocket, type Authorize } from "turnloop/transport";
import { expect, onTestFinished, test, vi } from "vitest";
import { WebSocket } from "ws";
import { ANN } from "./support.ts";

interface Place {
  readonly server: Server;
  readonly host: NodeHost;
  readonly harness: Harness;
  readonly port: number;
  close(): Promise<void>;
}

async function open(options: HarnessOptions, hosting: Partial<NodeHostOptions> = {}, port = 0): Promise<Place> {
  const harness = createHarness({ onDiagnostic() {}, ...options });
  const server = createServer((_request, response) => void response.end("a page"));
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const host = hostAgents(server, harness, { authorize: () => ANN, ...hosting });
  const place: Place = {
    server,
    host,
    harness,
    port: (server.address() as AddressInfo).port,
    async close() {
      await host.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await harness.dispose();
    },
  };
  onTestFinished(() => place.close());
  return place;
}

/** What a socket is told until it is closed, and with which code. */
function listen(socket: WebSocket): Promise<{ readonly frames: readonly unknown[]; readonly code: number | string }> {
  const frames: unknown[] = [];
  socket.on("message", (data) => frames.push(JSON.parse((data as Buffer).toString())));
  return new Promise((resolve) => {
    socket.on("close", (code) => resolve({ frames, code }));
    socket.on("error", (error) => resolve({ frames, code: error.message }));
  });
}

const hello = JSON.stringify({ type: "hello", version: 1, session: "s", client: "by hand" });

test("an agent is driven through a socket, and the server goes on serving its pages", async () => {
  const { port, host } = await open({ model: scriptedModel(["Hello."]) });
  const { agent, dispose } = await connectAgent({
    connect: webSocket(`ws://127.0.0.1:${port}/agents/s`),
    session: "s",
  });
  expect((await run(agent, "Hi").result).text).toBe("Hello.");
  expect(agent.session.at(0)?.type).toBe("inbox/queued");
  const page = await new Promise<number | undefined>((resolve) => {
    get(`http://127.0.0.1:${port}/`, (response) => resolve(response.resume().statusCode));
  });
  expect(page).toBe(200);
  await dispose();
  await host.close();
});

test("the URL is asked for at each connection, and a host that was started again on the same file goes on", async () => {
  const folder = mkdtempSync(join(tmpdir(), "turnloop-node-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "sessions.db");
  const first = await open({ model: scriptedModel(["One."]), storage: nodeSqliteStorage(file) });
  const url = vi.fn<() => Promise<string>>(async () => `ws://127.0.0.1:${first.port}/agents/s`);
  const { agent, dispose } = await connectAgent({ connect: webSocket(url), session: "s" });
  expect((await run(agent, "first").result).text).toBe("One.");
  const { seq } = agent.session;
  await first.close();
  // Said while there is no host: it waits.
  const second = run(agent, "second");
  await open({ model: scriptedModel(["Two."]), storage: nodeSqliteStorage(file) }, {}, first.port);
  expect((await second.result).text).toBe("Two.");
  expect(agent.session.events.map((event) => event.seq)).toEqual(agent.session.events.map((_, index) => index));
  expect(agent.session.seq).toBeGreaterThan(seq);
  expect(agent.session.events.filter(({ type }) => type === "user/message")).toHaveLength(2);
  expect(url.mock.calls.length).toBeGreaterThan(1);
  await dispose();
});

test("whoever is not let in is told so in a frame, and the session is not touched", async () => {
  const asked: string[] = [];
  const { port, harness } = await open(
    { model: scriptedModel([]) },
    {
      authorize(request, session) {
        asked.push(`${new URL(request.url).search} ${request.headers.get("authorization")} ${session}`);
        return undefined;
      },
    },
  );
  const headers = { authorization: "Bearer stolen" };
  const socket = new WebSocket(`ws://127.0.0.1:${port}/agents/a%20b?x=1`, { headers });
  const { frames } = await listen(socket);
  expect(frames).toEqual([
    { type: "closed", error: { code: "UNAUTHORIZED", message: expect.any(String) }, retry: false },
  ]);
  expect(asked).toEqual(["?x=1 Bearer stolen a b"]);
  expect(harness.agents.list()).toEqual([]);
});

test("an authorize that throws refuses, and its words stay at the host", async () => {
  const onDiagnostic = vi.fn<(diagnostic: Diagnostic) => void>();
  const secret = "postgres://root:hunter2@db";
  const { port } = await open({ onDiagnostic }, { authorize: () => Promise.reject(new Error(secret)) });
  const { frames } = await listen(new WebSocket(`ws://127.0.0.1:${port}/agents/s`));
  expect(frames).toHaveLength(1);
  expect(JSON.stringify(frames)).not.toContain("hunter2");
  expect(onDiagnostic).toHaveBeenCalledWith(expect.objectContaining({ code: "AUTHORIZE_FAILED", sessionId: "s" }));
});

test.for([
  ["a page of another place", { origin: "https://evil.example" }, undefined, false],
  ["a page of the same host", { origin: "http://HOST" }, undefined, true],
  ["a page that is named", { origin: "https://chat.example" }, ["https://chat.example"], true],
  ["a page that is not named", { origin: "http://HOST" }, ["https://chat.example"], false],
  ["an origin that is none", { origin: "null" }, undefined, false],
] as const)("%s", async ([, { origin }, origins, isLetIn]) => {
  const authorize = vi.fn<Authorize>(() => ANN);
  const { port } = await open({ model: scriptedModel([]) }, { authorize, ...(origins && { origins }) });
  const host = `127.0.0.1:${port}`;
  const socket = new WebSocket(`ws://${host}/agents/s`, { origin: origin.replace("HOST", host) });
  const opened = new Promise<string>((resolve) => {
    socket.on("open", () => resolve("open"));
    socket.on("error", (error) => resolve(error.message));
  });
  expect(await opened).toBe(isLetIn ? "open" : "Unexpected server response: 403");
  expect(authorize).toHaveBeenCalledTimes(isLetIn ? 1 : 0);
  socket.terminate();
});

test.for([
  ["no JSON", "{", "BAD_FRAME"],
  ["binary", Buffer.from([1, 2, 3]), "BAD_FRAME"],
  ["another version", hello.replace('"version":1', '"version":99'), "VERSION_MISMATCH"],
  ["a session that it was not let into", hello.replace('"s"', '"other"'), "UNAUTHORIZED"],
  ["more than a frame may hold", JSON.stringify({ type: "hello", filler: "x".repeat(1500) }), "FRAME_TOO_LARGE"],
] as const)("a client that says %s is told, and closed", async ([, said, code]) => {
  const { port } = await open({ model: scriptedModel([]) }, { limits: { maxFrameBytes: 1000 } });
  const socket = new WebSocket(`ws://127.0.0.1:${port}/agents/s`);
  const told = listen(socket);
  socket.on("open", () => socket.send(said));
  const { frames } = await told;
  expect(frames.at(-1)).toMatchObject({ error: { code } });
  expect(JSON.stringify(frames)).not.toMatch(/node_modules|\.ts:|at .*\(/);
});

test("a frame far beyond the limit ends the socket, and nothing else", async () => {
  const { port } = await open({ model: scriptedModel(["Fine."]) }, { limits: { maxFrameBytes: 1000 } });
  const socket = new WebSocket(`ws://127.0.0.1:${port}/agents/s`);
  const told = listen(socket);
  socket.on("open", () => socket.send("x".repeat(1_000_000)));
  expect((await told).code).toBe(1009);
  const { agent, dispose } = await connectAgent({
    connect: webSocket(`ws://127.0.0.1:${port}/agents/s`),
    session: "s",
  });
  expect((await run(agent, "Still there?").result).text).toBe("Fine.");
  await dispose();
});

test("somebody who signs out loses the socket for good", async () => {
  const { port, host } = await open({ model: scriptedModel([]) });
  const { agent, dispose } = await connectAgent({
    connect: webSocket(`ws://127.0.0.1:${port}/agents/s`),
    session: "s",
  });
  const ended = new Promise<void>((resolve) => {
    agent.subscribe(() => agent.getSnapshot().error && resolve());
  });
  host.disconnect((identity) => identity === "ann");
  await ended;
  expect(agent.getSnapshot().error).toMatchObject({ code: "UNAUTHORIZED" });
  await dispose();
});

test("a path that is not ours is left to others", async () => {
  const { server, port } = await open({ model: scriptedModel([]) });
  server.on("upgrade", (request, socket) => {
    if (request.url === "/other") socket.end("HTTP/1.1 418 Mine\r\n\r\n");
  });
  const { code } = await listen(new WebSocket(`ws://127.0.0.1:${port}/other`));
  expect(code).toBe("Unexpected server response: 418");
});
