/** Server-sent events behind a Node server and behind a bare route, seen from outside: by handles, and by hand. */
import { connect, type AddressInfo } from "node:net";
import { createHarness, run, type Diagnostic } from "turnloop";
import { scriptedModel } from "turnloop/testing";
import { agentRoute, connectAgent, sse, type Authorize } from "turnloop/transport";
import { expect, onTestFinished, test, vi } from "vitest";
import { handClient, open } from "./sse-parts.ts";
import { ANN } from "./support.ts";

const INNARDS = /node_modules|\.ts\b|at .*\(|hunter2/;
const frame = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const hello = { type: "hello", version: 1, session: "s", client: "by hand" };

test("an agent is driven over HTTP, and the server goes on serving its pages", async () => {
  const { url, server, host } = await open({ model: scriptedModel(["Hello."]) });
  const { agent, dispose } = await connectAgent({ connect: sse(url), session: "s" });
  expect((await run(agent, "Hi").result).text).toBe("Hello.");
  const page = new URL("/", url);
  expect(await (await fetch(page)).text()).toBe("a page");
  await dispose();
  await host.close();
  // The host has gone, and the path belongs to the others again.
  expect(await (await fetch(url)).text()).toBe("a page");
  expect(server.listenerCount("request")).toBe(1);
});

test("a bare route serves an agent to whoever hands it requests", async () => {
  const harness = createHarness({ model: scriptedModel(["From a route."]) });
  const route = agentRoute(harness, { authorize: () => ANN });
  onTestFinished(() => harness.dispose());
  const client = await handClient("http://host.example/any/where/s", route);
  expect(client.response.headers.get("content-type")).toBe("text/event-stream");
  expect((await client.hello()).status).toBe(204);
  await client.got("welcome");
  const command = { kind: "send", id: "m1", content: "Hi" };
  await client.say(frame({ type: "commands", session: "s", commands: [command] }));
  await client.got("done");
  await route.close();
  await client.ended;
  expect(client.frames.at(-1)).toMatchObject({ type: "closed", error: { code: "HOST_CLOSED" }, retry: true });
  const late = await route(new Request("http://host.example/any/where/s"));
  expect(late.status).toBe(503);
  expect(await late.json()).toMatchObject({ error: { code: "HOST_CLOSED" }, retry: true });
});

test("headers and the URL are asked for at each connection, and the headers at each request", async () => {
  const seen = new Set<string>();
  const { url } = await open(
    { model: scriptedModel(["Hello."]) },
    {
      authorize(request) {
        seen.add(`${request.method} ${request.headers.get("authorization")}`);
        return ANN;
      },
    },
  );
  let asked = 0;
  const address = vi.fn<() => string>(() => url);
  const headers = (): Record<string, string> => ({ authorization: `token ${(asked += 1)}` });
  const { agent, dispose } = await connectAgent({ connect: sse(address, { headers }), session: "s" });
  await run(agent, "Hi").result;
  expect(address).toHaveBeenCalledTimes(1);
  expect([...seen]).toEqual(expect.arrayContaining(["GET token 1", "POST token 2", "POST token 3"]));
  await dispose();
});

test("whoever is not let in gets 401, for good, and the session is not touched", async () => {
  const authorize = vi.fn<Authorize>(() => undefined);
  const { url, harness } = await open({ model: scriptedModel([]) }, { authorize });
  await expect(connectAgent({ connect: sse(url), session: "s" })).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  const posted = await fetch(url, { method: "POST", body: frame(hello) });
  expect([posted.status, authorize.mock.calls.map(([, session]) => session)]).toEqual([401, ["s", "s"]]);
  expect(harness.agents.list()).toEqual([]);
});

test("an authorize that throws refuses, and its words stay at the host", async () => {
  const onDiagnostic = vi.fn<(diagnostic: Diagnostic) => void>();
  const { url } = await open({ onDiagnostic }, { authorize: () => Promise.reject(new Error("db://root:hunter2")) });
  const response = await fetch(url);
  expect(response.status).toBe(401);
  expect(await response.text()).not.toMatch(INNARDS);
  expect(onDiagnostic).toHaveBeenCalledWith(expect.objectContaining({ code: "AUTHORIZE_FAILED", sessionId: "s" }));
});

test("who knows a stream that is another's speaks for nobody", async () => {
  const { url } = await open(
    { model: scriptedModel([]) },
    { authorize: (request) => ({ identity: request.headers.get("authorization"), rights: ["drive"] }) },
  );
  const client = await handClient(url);
  const response = await client.say(frame(hello), { authorization: "eve" });
  expect(response.status).toBe(410);
  const elsewhere = await fetch(url.replace(/s$/, "other"), {
    method: "POST",
    headers: { "turnloop-stream": client.stream },
    body: frame(hello),
  });
  expect(elsewhere.status).toBe(410);
  await client.hello();
  expect((await client.got("welcome"))["rights"]).toEqual(["read", "drive"]);
  expect(client.frames.filter(({ type }) => type === "welcome")).toHaveLength(1);
});

test.for([
  ["no JSON", "data: {\n\n", "BAD_FRAME"],
  ["a quotation that is none", "event: quoted\ndata: {\n\n", "BAD_FRAME"],
  ["another version", frame({ ...hello, version: 99 }), "VERSION_MISMATCH"],
  ["a session that it was not let into", frame({ ...hello, session: "other" }), "UNAUTHORIZED"],
  ["a prototype", 'data: {"type":"__proto__"}\n\n', "BAD_FRAME"],
  ["more than a frame may hold", frame({ type: "hello", filler: "x".repeat(1500) }), "FRAME_TOO_LARGE"],
] as const)("a client that says %s is told, and closed", async ([, said, code]) => {
  const { url } = await open({ model: scriptedModel([]) }, { limits: { maxFrameBytes: 1000 } });
  const client = await handClient(url);
  await client.say(said);
  await client.ended;
  expect(client.frames.at(-1)).toMatchObject({ type: "closed", error: { code }, retry: false });
  expect(JSON.stringify(client.frames)).not.toMatch(INNARDS);
  expect((await client.say(frame(hello))).status).toBe(410);
});

test.for([
  ["says its length", (body: string): BodyInit => body],
  ["does not", (body: string): BodyInit => new Blob([body]).stream()],
] as const)("a body far beyond the limit, which %s, is not read to its end", async ([, made]) => {
  const harness = createHarness({ model: scriptedModel([]) });
  const route = agentRoute(harness, { authorize: () => ANN, limits: { maxFrameBytes: 1000 } });
  onTestFinished(async () => {
    await route.close();
    await harness.dispose();
  });
  const url = "http://host.example/s";
  const client = await handClient(url, route);
  const body = made("x".repeat(1_000_000));
  const headers = { "turnloop-stream": client.stream };
  const request = new Request(url, { method: "POST", headers, body, duplex: "half" } as RequestInit);
  const response = await route(request);
  expect(response.status).toBe(413);
  await client.ended;
  expect(client.frames.at(-1)).toMatchObject({ error: { code: "FRAME_TOO_LARGE" } });
});

test("two requests at once are one too many", async () => {
  const { url } = await open({ model: scriptedModel([]) });
  const client = await handClient(url);
  const { port } = new URL(url);
  const slow = connect(Number(port), "127.0.0.1");
  onTestFinished(() => void slow.destroy());
  slow.write(`POST /agents/s HTTP/1.1\r\nHost: h\r\nTurnloop-Stream: ${client.stream}\r\nContent-Length: 99\r\n\r\nda`);
  // The slow one may still be on its way.
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429) statuses.push((await client.say(":\n\n")).status);
  await client.ended;
  expect(client.frames.at(-1)).toMatchObject({ error: { code: "TOO_MANY_COMMANDS" } });
});

test("a flood of commands is told, and closed", async () => {
  const { url } = await open({ model: scriptedModel([]) }, { limits: { commandsPerSecond: 1 } });
  const client = await handClient(url);
  await client.hello();
  await client.got("welcome");
  const commands = (id: number): string =>
    frame({ type: "commands", session: "s", commands: [{ kind: "withdraw", id: `${id}`, message: "m" }] });
  await client.say(Array.from({ length: 100 }, (_, id) => commands(id)).join(""));
  await client.ended;
  expect(client.frames.at(-1)).toMatchObject({ type: "closed", error: { code: "TOO_MANY_COMMANDS" } });
});

test("a request that breaks off ends the connection, which may be made again", async () => {
  const { url } = await open({ model: scriptedModel([]) });
  const client = await handClient(url);
  const broken = connect(Number(new URL(url).port), "127.0.0.1");
  const head = `POST /agents/s HTTP/1.1\r\nHost: h\r\nTurnloop-Stream: ${client.stream}\r\nContent-Length: 99\r\n\r\n`;
  broken.write(`${head}da`, () => broken.resetAndDestroy());
  await client.ended;
  expect(client.frames.at(-1)).toMatchObject({ type: "closed", retry: true });
});

test("somebody who signs out loses the stream for good", async () => {
  const { url, host } = await open({ model: scriptedModel([]) });
  const { agent, dispose } = await connectAgent({ connect: sse(url), session: "s" });
  const ended = new Promise<void>((resolve) => {
    agent.subscribe(() => agent.getSnapshot().error && resolve());
  });
  host.disconnect((identity) => identity === "ann");
  await ended;
  expect(agent.getSnapshot().error).toMatchObject({ code: "UNAUTHORIZED" });
  await dispose();
});

test("a session rests once its last stream is gone", async () => {
  const { url, harness } = await open({ model: scriptedModel(["Hello."]) });
  const { agent, dispose } = await connectAgent({ connect: sse(url), session: "s" });
  await run(agent, "Hi").result;
  expect(harness.agents.get("s")).toBeDefined();
  await dispose();
  await vi.waitUntil(() => harness.agents.get("s") === undefined);
});

test.for([
  ["a page of another place", "https://evil.example", undefined, 403],
  ["a page of the same host", "http://HOST", undefined, 200],
  ["a page that is named", "https://chat.example", ["https://chat.example"], 200],
  ["a page that is not named", "http://HOST", ["https://chat.example"], 403],
  ["an origin that is none", "null", undefined, 403],
] as const)("%s", async ([, origin, origins, status]) => {
  const authorize = vi.fn<Authorize>(() => ANN);
  const { server } = await open({ model: scriptedModel([]) }, { authorize, ...(origins && { origins }) });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const response = await fetch(`http://${host}/agents/s`, { headers: { origin: origin.replace("HOST", host) } });
  expect(response.status).toBe(status);
  expect(authorize).toHaveBeenCalledTimes(status === 200 ? 1 : 0);
  expect(response.headers.get("access-control-allow-origin")).toBe(origins && status === 200 ? origin : null);
  await response.body?.cancel();
});

test("a browser that asks first is answered without a look at the session", async () => {
  const authorize = vi.fn<Authorize>(() => ANN);
  const harness = createHarness();
  const route = agentRoute(harness, { authorize, origins: ["https://chat.example"] });
  const asking = { "access-control-request-headers": "turnloop-stream", "access-control-request-method": "POST" };
  const ask = (origin: string): Promise<Response> =>
    route(new Request("http://host.example/s", { method: "OPTIONS", headers: { origin, ...asking } }));
  const [allowed, refused] = [await ask("https://chat.example"), await ask("https://evil.example")];
  expect(allowed.headers.get("access-control-allow-headers")).toBe("turnloop-stream");
  expect([allowed.status, refused.status, refused.headers.has("access-control-allow-headers")]).toEqual([
    204,
    403,
    false,
  ]);
  expect(authorize).not.toHaveBeenCalled();
});

test.for([
  ["PUT", "/s", 405],
  ["GET", "/", 404],
  ["GET", "/%E0%A4%A", 404],
] as const)("%s %s is not served", async ([method, path, status]) => {
  const route = agentRoute(createHarness(), { authorize: () => ANN });
  const response = await route(new Request(`http://host.example${path}`, { method }));
  expect(response.status).toBe(status);
});
