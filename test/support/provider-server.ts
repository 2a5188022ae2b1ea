/** A provider on the loopback that answers as its address says: recorded streams, bad answers, silence. */
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Answer } from "./provider-answers.ts";
import { answersIn } from "./provider-answers.ts";

/** Where the recorded streams are; they are no part of the project, and tests skip without them. */
export const fixtures =
  process.env["TURNLOOP_FIXTURES"] ?? resolve(import.meta.dirname, "../../../shared/fixtures/streams");
export const haveFixtures = existsSync(fixtures);

/** The body of a request: whatever JSON the client wrote. */
// oxlint-disable-next-line typescript/no-explicit-any -- tests look into it at every depth
export type SentBody = Readonly<Record<string, any>>;

export interface ProviderServer {
  /** Without a slash at its end; see `providerUrl`. */
  readonly url: string;
  /** The bodies that were sent to an address, oldest first. */
  requests(baseUrl: string): readonly SentBody[];
  /** Resolves when the address has got its n-th request (from 1). */
  asked(baseUrl: string, n?: number): Promise<void>;
  /** Resolves when the client has let go of a request to the address that was not answered to its end. */
  abandoned(baseUrl: string): Promise<void>;
  close(): Promise<void>;
}

interface Place {
  readonly requests: SentBody[];
  readonly loseable: Set<ServerResponse>;
  abandoned: number;
  readonly waiting: Set<() => void>;
}

export async function startProviderServer(): Promise<ProviderServer> {
  const places = new Map<string, Place>();
  const placeAt = (path: string): Place => {
    const known = places.get(path);
    if (known) return known;
    const place: Place = { requests: [], loseable: new Set(), abandoned: 0, waiting: new Set() };
    places.set(path, place);
    return place;
  };
  const until = (place: Place, holds: () => boolean): Promise<void> =>
    new Promise((done) => {
      const look = (): void => {
        if (!holds()) return;
        place.waiting.delete(look);
        done();
      };
      place.waiting.add(look);
      look();
    });
  const tell = (place: Place): void => place.waiting.forEach((look) => look());

  const server = createServer((request, response) => {
    void (async () => {
      const found = answersIn(request.url ?? "");
      if (request.method === "OPTIONS") return preflight(request, response, found?.answers[0]);
      if (!found) return void response.writeHead(404).end("no such address");
      const place = placeAt(found.base);
      if (request.url?.endsWith("/lose")) {
        place.loseable.forEach((lost) => lost.destroy());
        return void response.writeHead(204, CORS).end();
      }
      response.on("close", () => {
        if (!response.writableFinished) place.abandoned += 1;
        tell(place);
      });
      place.requests.push(JSON.parse(await textOf(request)) as SentBody);
      const answer = found.answers[Math.min(place.requests.length, found.answers.length) - 1] ?? {};
      tell(place);
      return send(answer, response, place.loseable);
    })();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const at = (baseUrl: string): Place => placeAt(new URL(baseUrl).pathname);

  return {
    url: `http://127.0.0.1:${port}`,
    requests: (baseUrl) => at(baseUrl).requests,
    asked: (baseUrl, n = 1) => until(at(baseUrl), () => at(baseUrl).requests.length >= n),
    abandoned: (baseUrl) => until(at(baseUrl), () => at(baseUrl).abandoned > 0),
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

function preflight(request: IncomingMessage, response: ServerResponse, answer: Answer | undefined): void {
  const headers =
    answer?.cors === false
      ? {}
      : { ...CORS, "access-control-allow-headers": request.headers["access-control-request-headers"] };
  response.writeHead(204, headers).end();
}

const CORS = { "access-control-allow-origin": "*", "access-control-expose-headers": "*" };

async function send(answer: Answer, response: ServerResponse, loseable: Set<ServerResponse>): Promise<void> {
  if (answer.silent) return;
  const body = Buffer.from(
    answer.stream === undefined ? (answer.body ?? "") : readFileSync(join(fixtures, answer.stream)),
  );
  const { status = 200, headers = {}, cors = true, end = "close", sent = body.length } = answer;
  response.writeHead(status, { "content-type": "text/event-stream", ...(cors ? CORS : {}), ...headers });
  response.flushHeaders();
  if (end === "drop-later") loseable.add(response);
  for (const piece of cut(body.subarray(0, sent), answer.seed)) {
    response.write(piece);
    await nextTurn();
  }
  if (end === "close") response.end();
  if (end === "drop") response.destroy();
}

/** The same bytes in small pieces, at most some hundreds, the same for the same seed; whole without one. */
export function* cut(bytes: Buffer, seed: number | undefined): Generator<Buffer> {
  if (seed === undefined) return yield bytes;
  const random = randomOf(seed);
  const most = Math.max(97, bytes.length / 100);
  for (let at = 0; at < bytes.length;) {
    const length = 1 + Math.floor(random() * random() * most);
    yield bytes.subarray(at, at + length);
    at += length;
  }
}

/** Numbers from 0 to 1, the same row for the same seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString() || "null";
}
