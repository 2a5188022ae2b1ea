/** Calls of a server's tools, and the questions that it asks of a person meanwhile. */
import {
  isInputRequiredResult,
  type CallToolResult,
  type Client,
  type ElicitRequest,
  type ElicitResult,
  type InputResponses,
  type Tool,
} from "@modelcontextprotocol/client";
import { TurnloopError, type ToolCallContext } from "../src/core.ts";
import type { Connection } from "./mcp-connection.ts";
import { askPerson } from "./mcp-elicitation.ts";

export interface Calls {
  /** Rejects as `Connection.use` does, and MCP_TOOL_FAILED when the server asks for what nobody gives. */
  call(
    connection: Connection,
    tool: Tool,
    args: Record<string, unknown>,
    call: ToolCallContext,
  ): Promise<CallToolResult>;
  /** A question that names no call. It belongs to the one that runs; among several nobody can tell. */
  elicit(request: ElicitRequest): Promise<ElicitResult>;
}

/** Timeouts are the policy of the program (`toolTimeout`), and a person may take days: the longest there is. */
export const NO_TIMEOUT = 2 ** 31 - 1;
/** A server that is never satisfied. */
const MAX_ROUNDS = 10;

export function createCalls(server: string): Calls {
  const running = new Set<ToolCallContext>();

  async function rounds(client: Client, tool: Tool, args: Record<string, unknown>, call: ToolCallContext) {
    // Questions come in place of a result, which the tool's output schema does not know.
    const { outputSchema: _, ...toolDefinition } = tool;
    let given: { inputResponses?: InputResponses; requestState?: string } = {};
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const result: unknown = await client.callTool(
        { name: tool.name, arguments: args, ...given },
        {
          toolDefinition,
          allowInputRequired: true,
          signal: call.signal,
          timeout: NO_TIMEOUT,
          onprogress: ({ progress, total, message }) =>
            call.progress({
              progress,
              ...(total !== undefined && { total }),
              ...(message !== undefined && { message }),
            }),
        },
      );
      // The library has looked at its shape.
      if (!isInputRequiredResult(result)) return result as CallToolResult;
      const { inputRequests = {}, requestState } = result;
      const inputResponses: InputResponses = Object.create(null);
      for (const [key, request] of Object.entries(inputRequests)) {
        if (request.method !== "elicitation/create") throw refusing(`wants ${request.method}`);
        inputResponses[key] = await askPerson(server, request, call);
      }
      given = { inputResponses: { ...inputResponses }, ...(requestState !== undefined && { requestState }) };
    }
    throw refusing(`has asked for input ${MAX_ROUNDS} times`);
  }

  return {
    call: (connection, tool, args, call) =>
      connection.use(call.signal, async (client) => {
        running.add(call);
        try {
          return await rounds(client, tool, args, call);
        } finally {
          running.delete(call);
        }
      }),
    async elicit(request) {
      const [call, other] = running;
      return call && !other ? askPerson(server, request, call) : { action: "cancel" };
    },
  };
}

function refusing(what: string): TurnloopError {
  return new TurnloopError("MCP_TOOL_FAILED", `the server ${what}, which is not given`);
}
