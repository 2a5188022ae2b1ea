/** The ways to an agent at the other end of a real connection: the tests that hold anywhere hold over each of them. */
import { globSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createHarness, type Harness } from "turnloop";
import { hostAgents } from "turnloop/node";
import { agentRoute, connectAgent, messagePort, serveAgents, sse, webSocket } from "turnloop/transport";
import type { Connection, Grant } from "turnloop/transport";
import { afterAll, beforeAll, onTestFinished } from "vitest";
import { respond } from "../../adapters/host/node-http.ts";
import { systemClock } from "../../src/clock.ts";
import { through, type OpenAgent } from "./fixture.ts";
import { root } from "./package.ts";

/** The peer is this program itself: it says who speaks. */
const SELF: Grant = { identity: null, rights: ["drive", "answer"] };
const authorize = (): Grant => SELF;

/** What serves the agents of one harness: how its clients connect, and its end. */
interface Serving {
  readonly connect: () => Connection | Promise<Connection>;
  close(): Promise<void>;
}

/** Serves the session of a harness. */
type Serve = (harness: Harness, session: string) => Serving;

/** To be called once at the top of a file: its tests are those of the contract, with handles of that way. */
export async function contractOver(serve: Serve): Promise<void> {
  const files = globSync("test/contract/*.test.ts", { cwd: root })
    .map((file) => join(root, file))
    .filter((file) => readFileSync(file, "utf8").includes("anywhere("))
    .toSorted();
  await through(openOver(serve), async () => {
    for (const file of files) await import(/* @vite-ignore */ file);
  });
}

function openOver(serve: Serve): OpenAgent {
  return async ({ id = "session", open, ...options }) => {
    const harness = createHarness({ onDiagnostic() {}, ...options });
    await harness.agents.open({ id, ...open });
    // Connections live in the time of the world, whatever the clock of the agent says.
    const { connect, close } = serve(Object.create(harness, { clock: { value: systemClock } }) as Harness, id);
    const { agent, dispose } = await connectAgent({ session: id, connect, onDiagnostic() {} });
    onTestFinished(async () => {
      await dispose();
      await close();
    });
    return agent;
  };
}

export const overPort: Serve = (harness, session) => {
  const { accept, close } = serveAgents(harness);
  return {
    connect() {
      const { port1, port2 } = new MessageChannel();
      accept(messagePort(port1), SELF, session);
      return messagePort(port2);
    },
    close,
  };
};

/** Sockets of a server for all tests of the file; each has a path of its own. */
export function overSockets(): Serve {
  const server = useServer();
  let count = 0;
  return (harness, session) => {
    const path = `/${(count += 1)}/`;
    const { close } = hostAgents(server, harness, { authorize, path });
    return { connect: webSocket(`ws://${addressOf(server)}${path}${encodeURIComponent(session)}`), close };
  };
}

/** Server-sent events and requests, of a server for all tests of the file; each has a path of its own. */
export function overStreams(): Serve {
  const routes = new Map<string, (request: Request) => Promise<Response>>();
  const server = useServer((path) => routes.get(path));
  let count = 0;
  return (harness, session) => {
    const path = `${(count += 1)}`;
    const route = agentRoute(harness, { authorize });
    routes.set(path, route);
    return { connect: sse(`http://${addressOf(server)}/${path}/${encodeURIComponent(session)}`), close: route.close };
  };
}

type Routing = (path: string) => ((request: Request) => Promise<Response>) | undefined;

function useServer(routeOf: Routing = () => undefined): Server {
  const server = createServer((incoming, outgoing) => {
    const [, path = ""] = incoming.url!.split("/");
    void respond(incoming, outgoing, routeOf(path) ?? (async () => new Response(null, { status: 404 })));
  });
  beforeAll(() => new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve)));
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return server;
}

function addressOf(server: Server): string {
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
