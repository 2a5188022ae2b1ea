/** An MCP server that speaks over its standard streams, and dies when it is told to. */
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const server = new McpServer({ name: "sea", version: "1.0.0" });
server.registerTool("look", { inputSchema: z.object({}) }, () => ({ content: [{ type: "text", text: "blue" }] }));
server.registerTool("die", { inputSchema: z.object({}) }, () => process.exit(1));
await server.connect(new StdioServerTransport());
