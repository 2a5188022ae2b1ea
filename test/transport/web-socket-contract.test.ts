/** The contract of transports, over real WebSockets on loopback. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { hostAgents, type NodeHost } from "turnloop/node";
import { transportContract } from "turnloop/testing";
import { connectAgent, webSocket } from "turnloop/transport";
import { describe, test } from "vitest";
import { ANN } from "./support.ts";
import { socketPairs } from "./sockets.ts";

describe("webSocket and hostAgents keep the contract of transports:", () => {
  transportContract({ test }, async () => {
    const ends: (() => Promise<void>)[] = [];
    const pairs = await socketPairs();
    ends.push(pairs.close);
    return {
      pair: pairs.pair,
      async serve(harness) {
        const server = createServer();
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
        const host: NodeHost = hostAgents(server, harness, { authorize: () => ANN });
        ends.unshift(async () => {
          await host.close();
          server.closeAllConnections();
          server.close();
        });
        const { port } = server.address() as AddressInfo;
        return { dial: (session) => webSocket(`ws://127.0.0.1:${port}/agents/${encodeURIComponent(session)}`)() };
      },
      connect: connectAgent,
      async destroy() {
        for (const end of ends) await end();
      },
    };
  });
});
