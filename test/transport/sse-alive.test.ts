/** How the two ends of a stream of server-sent events learn that the other is gone, and what it costs them. */
import { createServer, type ServerResponse } from "node:http";
import { createHarness } from "turnloop";
import { agentRoute, sse, type Connection } from "turnloop/transport";
import { expect, onTestFinished, test, vi } from "vitest";
import { testClock } from "../support/clock.ts";
import { handClient, listening } from "./sse-parts.ts";
import { ANN } from "./support.ts";

const PING = '{"type":"ping"}';
const PONG = '{"type":"pong"}';

test("a client of which nothing is heard is given up, and one that says something is not", async () => {
  const clock = testClock();
  const harness = createHarness({ clock, onDiagnostic() {} });
  const route = agentRoute(harness, { authorize: () => ANN });
  onTestFinished(() => harness.dispose());
  const [silent, loud] = [await handClient("http://h/s", route), await handClient("http://h/s", route)];
  let over = false;
  void silent.ended.then(() => (over = true));
  for (let seconds = 0; seconds < 90; seconds += 30) {
    expect(over).toBe(false);
    await loud.say(`data: ${PING}\n\n`);
    await clock.advance(30_000);
  }
  await silent.ended;
  expect((await silent.say(`data: ${PING}\n\n`)).status).toBe(410);
  expect((await loud.say(`data: ${PING}\n\n`)).status).toBe(204);
});

/** A host by hand: its streams, and what is posted to it. */
async function host(): Promise<{ url: string; streams: ServerResponse[]; posted: string[] }> {
  const streams: ServerResponse[] = [];
  const posted: string[] = [];
  const server = createServer((request, response) => {
    if (request.method === "GET") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("event: open\ndata: 1\n\n");
      streams.push(response);
      return;
    }
    let body = "";
    request.on("data", (bytes: Buffer) => (body += bytes.toString()));
    request.on("end", () => {
      posted.push(body);
      response.writeHead(204).end();
    });
  });
  const url = `http://127.0.0.1:${await listening(server)}/s`;
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url, streams, posted };
}

function heardBy(connection: Connection): string[] {
  const heard: string[] = [];
  connection.onMessage((frame) => void heard.push(frame));
  return heard;
}

test("signs of life answer for the host, and a host without any is silent", async () => {
  const { url, streams, posted } = await host();
  const connection = await sse(url)();
  const heard = heardBy(connection);
  connection.send(PING);
  streams[0]!.write(":\n\ndata: behind the sign\n\n");
  await vi.waitUntil(() => heard.includes("behind the sign"));
  expect(heard).toEqual(["behind the sign"]);
  connection.send(PING);
  await vi.waitUntil(() => heard.includes(PONG));
  // One sign answers once.
  connection.send(PING);
  streams[0]!.write("data: the end\n\n");
  await vi.waitUntil(() => heard.includes("the end"));
  expect(heard.filter((frame) => frame === PONG)).toHaveLength(1);
  connection.send(PONG);
  expect(posted).toEqual([]);
  connection.close();
});

test("every eighth sign of life is answered with a request", async () => {
  const { url, streams, posted } = await host();
  const connection = await sse(url)();
  const heard = heardBy(connection);
  streams[0]!.write(`${":\n\n".repeat(7)}data: seven\n\n`);
  await vi.waitUntil(() => heard.includes("seven"));
  expect(posted).toEqual([]);
  streams[0]!.write(":\n\n");
  await vi.waitUntil(() => posted.length === 1);
  expect(posted).toEqual([`data: ${PING}\n\n`]);
  connection.close();
});

test("what was said before a close is still sent", async () => {
  const { url, posted, streams } = await host();
  const connection = await sse(url)();
  const gone = new Promise<void>((resolve) => streams[0]!.on("close", () => resolve()));
  connection.send("one");
  connection.send("two");
  connection.close();
  connection.send("three");
  await gone;
  expect(posted.join("")).toBe("data: one\n\ndata: two\n\n");
});

test.for([
  [200, "text/html", "CONNECTION_FAILED"],
  [403, "text/html", "UNAUTHORIZED"],
  [502, "text/event-stream", "CONNECTION_FAILED"],
] as const)("an answer of %i with %s is no stream", async ([status, type, code]) => {
  const server = createServer((_, response) => void response.writeHead(status, { "content-type": type }).end("odd"));
  const url = `http://127.0.0.1:${await listening(server)}/s`;
  onTestFinished(() => void server.close());
  await expect(sse(url)()).rejects.toMatchObject({ code });
});

test("a stream that ends before it has begun is no connection, and no host at all neither", async () => {
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).end();
  });
  const url = `http://127.0.0.1:${await listening(server)}/s`;
  await expect(sse(url)()).rejects.toMatchObject({ code: "CONNECTION_FAILED" });
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await expect(sse(url)()).rejects.toMatchObject({ code: "CONNECTION_FAILED" });
});
