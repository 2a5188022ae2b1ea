/** A program of somebody who uses every adapter, with the peers that they need. */
import { createHarness, defineTool, type SessionStorage, type Transcript } from "turnloop";
import { aiSdkModel, aiSdkTools } from "turnloop/ai-sdk";
import { agentChatTransport } from "turnloop/ai-sdk-ui";
import type { AgentNamespace, RouteOptions } from "turnloop/durable-object";
import { indexedDBStorage } from "turnloop/indexeddb";
import { mcp } from "turnloop/mcp";
import { hostAgents } from "turnloop/node";
import { nodeSqliteStorage } from "turnloop/node-sqlite";
import { useAgent, useTranscript } from "turnloop/react";
import { sqlStorage } from "turnloop/sql";
import { openInTabs } from "turnloop/tabs";
import { agentRoute, connectAgent, messagePort, serveAgents } from "turnloop/transport";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";

const order = defineTool({
  name: "order",
  description: "Orders something",
  inputSchema: z.object({ what: z.string() }),
  execute: ({ what }) => what.toUpperCase(),
});

const harness = createHarness({
  model: aiSdkModel(new MockLanguageModelV4()),
  tools: [order, ...aiSdkTools({})],
});

export function useChat(id: string): Transcript {
  const { agent } = useAgent(harness, { id });
  return useTranscript(agent);
}

agentChatTransport(async (id) => (await harness.agents.open({ id })).agent);
mcp({ name: "docs", url: "https://docs.example/mcp" });

/** At the edge, in a Worker alone: its module needs the platform's own. */
export const route: Pick<RouteOptions<{ readonly AGENTS: AgentNamespace }>, "namespace"> = {
  namespace: ({ AGENTS }) => AGENTS,
};

export { hostAgents, openInTabs };

await agentRoute(harness, { authorize: () => undefined }).close();
await harness.dispose();

/** Each platform keeps its sessions in its own way. */
export const storages: Readonly<Record<string, () => SessionStorage>> = {
  page: () => indexedDBStorage({ name: "chats" }),
  server: () => nodeSqliteStorage("chats.db"),
  replica: () => sqlStorage({ dialect: "postgres", read: async () => [], write: async () => [] }),
};

const server = serveAgents(createHarness({ storage: nodeSqliteStorage("wire.db") }));
const { port1, port2 } = new MessageChannel();
server.accept(messagePort(port1), { identity: "ann", rights: ["drive"] }, "chat");
const remote = await connectAgent({ connect: () => messagePort(port2), session: "chat" });
remote.agent.send("hello");
await remote.agent.flush();
await remote.dispose();
await server.close();
