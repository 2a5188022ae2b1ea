/** What an MCP server offers, as tools of this package. */
import type { CallToolResult, Client, Prompt, Tool } from "@modelcontextprotocol/client";
import {
  defineTool,
  toolResult,
  TurnloopError,
  type JsonSchema,
  type ToolCallContext,
  type ToolDefinition,
} from "../src/core.ts";
import { NO_TIMEOUT, type Calls } from "./mcp-calls.ts";
import type { Connection } from "./mcp-connection.ts";
import { blockOf, contentsOf, limited } from "./mcp-content.ts";

export interface Offered {
  readonly name: string;
  /** Equal for equal offers. */
  readonly as: string;
  /** Throws INVALID_TOOL. */
  define(): ToolDefinition;
}

export interface Server {
  readonly name: string;
  readonly maxChars: number;
  readonly connection: Connection;
  readonly calls: Calls;
}

/** The server's own tools first: of two that share a name, the first is taken. */
export async function offeredTools(client: Client, server: Server, signal: AbortSignal): Promise<Offered[]> {
  const has = client.getServerCapabilities() ?? {};
  const fresh = { cacheMode: "refresh", timeout: NO_TIMEOUT, signal } as const;
  const tools = has.tools ? (await client.listTools(undefined, fresh)).tools : [];
  const prompts = has.prompts ? (await client.listPrompts(undefined, fresh)).prompts : [];
  return [
    ...tools.map((tool) => offer(server, tool.name, tool, (name) => serverTool(server, name, tool))),
    ...(has.resources
      ? [
          offer(server, "list_resources", "", (name) => listResources(server, name)),
          offer(server, "read_resource", "", (name) => readResource(server, name)),
        ]
      : []),
    ...(prompts.length > 0 ? [offer(server, "get_prompt", prompts, (name) => getPrompt(server, name, prompts))] : []),
  ];
}

/** What is longer tells a model nothing, and is sent with each request. */
const MAX_DESCRIPTION = 10_000;

function offer(server: Server, own: string, what: unknown, define: (name: string) => ToolDefinition): Offered {
  const name = `${server.name}_${own}`.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64);
  return { name, as: JSON.stringify(what), define: () => define(name) };
}

function serverTool({ connection, calls, maxChars }: Server, name: string, tool: Tool): ToolDefinition {
  const { title, description, inputSchema, annotations = {} } = tool;
  return defineTool({
    name,
    description: (description ?? title ?? tool.name).slice(0, MAX_DESCRIPTION).toWellFormed(),
    inputSchema,
    readOnly: annotations.readOnlyHint === true,
    idempotent: annotations.idempotentHint === true,
    execute: async (args: Record<string, unknown>, call: ToolCallContext) =>
      answerOf(await calls.call(connection, tool, args, call), maxChars),
  });
}

function answerOf({ content, structuredContent, isError }: CallToolResult, maxChars: number): unknown {
  const said = content.map(blockOf);
  if (said.length === 0 && structuredContent !== undefined) {
    said.push({ type: "text", text: JSON.stringify(structuredContent) });
  }
  const blocks = limited(said, maxChars);
  if (!isError) return toolResult(blocks);
  const text = blocks.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  throw new TurnloopError("MCP_TOOL_FAILED", text || "the tool has failed, and does not say why");
}

const NOTHING: JsonSchema = { type: "object", properties: {}, additionalProperties: false };
const text = (description: string): JsonSchema => ({ type: "string", description });

function listResources({ name: server, connection, maxChars }: Server, name: string): ToolDefinition {
  return defineTool({
    name,
    description: `Lists the resources of ${server}, and the templates of their URIs.`,
    inputSchema: NOTHING,
    readOnly: true,
    execute: async (_: unknown, { signal }: ToolCallContext) => {
      const options = { cacheMode: "refresh", signal } as const;
      const { resources } = await connection.use(signal, (client) => client.listResources(undefined, options));
      // Servers without templates may not know the method.
      const { resourceTemplates } = await connection
        .use(signal, (client) => client.listResourceTemplates(undefined, options))
        .catch(() => ({ resourceTemplates: [] }));
      const rows = [
        ...resources.map(({ uri, name: called, description, mimeType }) => ({
          uri,
          name: called,
          description,
          mimeType,
        })),
        ...resourceTemplates.map(({ uriTemplate, name: called, description }) => ({
          uriTemplate,
          name: called,
          description,
        })),
      ];
      return toolResult(limited([{ type: "text", text: JSON.stringify(rows) }], maxChars));
    },
  });
}

function readResource({ name: server, connection, maxChars }: Server, name: string): ToolDefinition {
  return defineTool({
    name,
    description: `Reads a resource of ${server}.`,
    inputSchema: { type: "object", properties: { uri: text("As it is listed") }, required: ["uri"] },
    readOnly: true,
    validate: (args) => ({ uri: stringIn(args, "uri") }),
    execute: async ({ uri }: { uri: string }, { signal }: ToolCallContext) => {
      const options = { signal, timeout: NO_TIMEOUT, cacheMode: "refresh" } as const;
      const { contents } = await connection.use(signal, (client) => client.readResource({ uri }, options));
      return toolResult(limited(contents.map(contentsOf), maxChars));
    },
  });
}

function getPrompt(
  { name: server, connection, maxChars }: Server,
  name: string,
  prompts: readonly Prompt[],
): ToolDefinition {
  const list = prompts.map(({ name: called, description, arguments: args = [] }) =>
    JSON.stringify({ name: called, description, arguments: args.map((one) => one.name) }),
  );
  return defineTool({
    name,
    description: `Gives the instructions that ${server} has prepared for a task:\n${list.join("\n")}`
      .slice(0, MAX_DESCRIPTION)
      .toWellFormed(),
    inputSchema: {
      type: "object",
      properties: {
        name: { type: "string", enum: prompts.map((prompt) => prompt.name) },
        arguments: { type: "object", additionalProperties: { type: "string" } },
      },
      required: ["name"],
    },
    readOnly: true,
    validate: (args) => ({ ...(args as object), name: stringIn(args, "name") }),
    execute: async (args: { name: string; arguments?: Record<string, string> }, { signal }: ToolCallContext) => {
      const options = { signal, timeout: NO_TIMEOUT };
      const { messages } = await connection.use(signal, (client) => client.getPrompt(args, options));
      return toolResult(
        limited(
          messages.map(({ content }) => blockOf(content)),
          maxChars,
        ),
      );
    },
  });
}

function stringIn(args: unknown, key: string): string {
  const value =
    typeof args === "object" && args !== null && Object.hasOwn(args, key) ? (args as never)[key] : undefined;
  if (typeof value !== "string") throw new TypeError(`\`${key}\` must be a text`);
  return value;
}
