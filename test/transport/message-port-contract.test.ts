/** The contract of transports, over real message ports. */
import { transportContract } from "turnloop/testing";
import { connectAgent, messagePort, serveAgents, type AgentServer } from "turnloop/transport";
import { describe, test } from "vitest";
import { ANN } from "./support.ts";

describe("messagePort keeps the contract of transports:", () => {
  transportContract({ test }, async () => {
    const servers: AgentServer[] = [];
    return {
      async pair() {
        const { port1, port2 } = new MessageChannel();
        return { client: messagePort(port1), host: messagePort(port2) };
      },
      async serve(harness) {
        const server = serveAgents(harness);
        servers.push(server);
        return {
          dial(session) {
            const { port1, port2 } = new MessageChannel();
            server.accept(messagePort(port1), ANN, session);
            return messagePort(port2);
          },
        };
      },
      connect: connectAgent,
      async destroy() {
        await Promise.all(servers.map((server) => server.close()));
      },
    };
  });
});
