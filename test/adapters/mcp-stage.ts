/** MCP servers of both protocols, an agent that has them, and servers that keep to no protocol at all. */
import { createMcpHandler, McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { Agent, HarnessOptions } from "turnloop";
import { afterEach } from "vitest";
import { z } from "zod";
import { scene, type Scene } from "../support/scene.ts";
import { snapshotWhere } from "../support/wait.ts";
import { serve, type Loopback } from "./mcp-server.ts";

/** What is ended after the test, the last first. */
export const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).toReversed()) await one();
});

export type Setup = (server: McpServer) => void;

function made(setup: Setup): McpServer {
  const server = new McpServer({ name: "sea", version: "1.0.0" });
  setup(server);
  return server;
}

/** Of the newest protocol, without sessions: each request has a server of its own. */
export async function modern(setup: Setup): Promise<Loopback & { readonly changed: () => void }> {
  const handler = createMcpHandler(() => made(setup));
  const loopback = await serve((request) => handler.fetch(request));
  undo.push(async () => {
    await handler.close();
    await loopback.kill();
  });
  return { ...loopback, changed: () => handler.notify.toolsChanged() };
}

/** Of the protocol before it: one session, one server. */
export async function legacy(setup: Setup): Promise<Loopback & { readonly server: McpServer }> {
  const server = made(setup);
  const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => crypto.randomUUID() });
  await server.connect(transport);
  const loopback = await serve((request) => transport.handleRequest(request));
  undo.push(async () => {
    await server.close();
    await loopback.kill();
  });
  return { ...loopback, server };
}

interface Asked {
  readonly id?: unknown;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** Says hello as the older protocol has it, and then whatever it likes to what it is asked. */
export async function hostile(say: (method: string, params: Asked["params"]) => unknown): Promise<Loopback> {
  const loopback = await serve(async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const { id, method, params } = (await request.json()) as Asked;
    if (id === undefined) return new Response(null, { status: 202 });
    const said = method === "initialize" ? hello(params) : await say(method, params);
    if (said instanceof Response) return said;
    const answer = said === undefined ? { error: { code: -32_601, message: "unknown" } } : { result: said };
    return Response.json({ jsonrpc: "2.0", id, ...answer });
  });
  undo.push(loopback.kill);
  return loopback;
}

function hello(params: Asked["params"]): object {
  return {
    protocolVersion: params?.["protocolVersion"],
    capabilities: { tools: {} },
    serverInfo: { name: "pirate", version: "1" },
  };
}

export async function stage(answers: Parameters<typeof scene>[0], options: HarnessOptions): Promise<Scene> {
  const one = await scene(answers, options);
  undo.push(() => one.harness.dispose());
  return one;
}

export const look: Setup = (server) =>
  server.registerTool(
    "look",
    { description: "Looks", inputSchema: z.object({ at: z.string() }), annotations: { readOnlyHint: true } },
    ({ at }) => ({ content: [{ type: "text", text: `blue ${at}` }] }),
  );

/** When a question is open: answers it. */
export async function answerNext(agent: Agent, value: Parameters<Agent["respond"]>[1]): Promise<unknown> {
  await snapshotWhere(agent, ({ interactions }) => interactions.length > 0);
  const [open] = agent.interactions;
  await agent.respond(open!.id, value);
  return open!.payload;
}
