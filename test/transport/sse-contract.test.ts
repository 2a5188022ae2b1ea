/** The contract of transports, over real HTTP on loopback: server-sent events one way, requests the other. */
import { createServer } from "node:http";
import { hostAgents } from "turnloop/node";
import { transportContract } from "turnloop/testing";
import { connectAgent, sse } from "turnloop/transport";
import { describe, test } from "vitest";
import { listening, streamPairs } from "./sse-parts.ts";
import { ANN } from "./support.ts";

describe("sse and hostAgents keep the contract of transports:", () => {
  transportContract({ test }, async () => {
    const pairs = await streamPairs();
    const ends = [pairs.close];
    return {
      pair: pairs.pair,
      async serve(harness) {
        const server = createServer();
        const port = await listening(server);
        const host = hostAgents(server, harness, { authorize: () => ANN });
        ends.unshift(async () => {
          await host.close();
          server.closeAllConnections();
          server.close();
        });
        return { dial: (session) => sse(`http://127.0.0.1:${port}/agents/${encodeURIComponent(session)}`)() };
      },
      connect: connectAgent,
      async destroy() {
        for (const end of ends) await end();
      },
    };
  });
});
