/** MCP servers for pages: real ones on the loopback, which allow every origin. */
import { createMcpHandler, McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { z } from "zod";
import { serve } from "./mcp-server.ts";

export interface McpServers {
  readonly urls: { readonly modern: string; readonly legacy: string };
  close(): Promise<void>;
}

export async function startMcpServers(): Promise<McpServers> {
  const handler = createMcpHandler(sea);
  const modern = await serve((request) => allowing(request, () => handler.fetch(request)));
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const legacy = await serve((request) =>
    allowing(request, async () => {
      const known = sessions.get(request.headers.get("mcp-session-id") ?? "");
      if (known) return known.handleRequest(request);
      const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized: (id) => void sessions.set(id, transport),
      });
      await sea().connect(transport);
      return transport.handleRequest(request);
    }),
  );
  return {
    urls: { modern: modern.url, legacy: legacy.url },
    async close() {
      await handler.close();
      for (const transport of sessions.values()) await transport.close();
      await Promise.all([modern.kill(), legacy.kill()]);
    },
  };
}

function sea(): McpServer {
  const server = new McpServer({ name: "sea", version: "1.0.0" });
  server.registerTool("look", { inputSchema: z.object({ at: z.string() }) }, ({ at }) => ({
    content: [{ type: "text", text: `blue ${at}` }],
  }));
  return server;
}

/** What a page may send and read. */
const CORS = {
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET, POST, DELETE",
  "access-control-allow-headers": "*, authorization",
  "access-control-expose-headers": "mcp-session-id, mcp-protocol-version",
};

async function allowing(request: Request, answer: () => Promise<Response>): Promise<Response> {
  const response = request.method === "OPTIONS" ? new Response(null, { status: 204 }) : await answer();
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(CORS)) headers.set(name, value);
  return new Response(response.body, { status: response.status, headers });
}
