/** `turnloop/mcp`: the tools, resources and prompts of an MCP server, as a plugin. */
import { messageOf, TurnloopError, type Plugin, type Unregister } from "../src/core.ts";
import { createConnection, type McpSource } from "./mcp-connection.ts";
import { createCalls } from "./mcp-calls.ts";
import { offeredTools, type Offered } from "./mcp-tools.ts";

export type { McpQuestion } from "./mcp-elicitation.ts";

export type McpServer = McpSource & {
  /** Begins the names of its tools: `files` and its tool `read` make `files_read`. Letters, digits, `_` or `-`. */
  readonly name: string;
  /** Of the text of one result; what is longer is cut, and the model is told. Default 100,000 characters. */
  readonly maxChars?: number;
};

/** Of one server. What is more is left out. */
const MAX_TOOLS = 500;

/**
 * Offers what a server has. It is connected to when the first agent is made, and
 * waited for (10 seconds at most) before a turn begins or goes on, by streamable HTTP at `url`; a `client`
 * of one's own comes connected (by stdio, say), and stays its owner's to close. `headers` is asked for each request.
 *
 * - Each tool of the server is a tool here. With resources there are `<name>_list_resources` and
 *   `<name>_read_resource`, with prompts `<name>_get_prompt`. Changes are followed from step to step.
 * - The server's hints are believed: `readOnlyHint` and `idempotentHint` become `readOnly` and `idempotent`.
 * - What the server asks of a person in a call is an interaction of the kind `question`; see `McpQuestion`.
 * - A server that is away fails its calls, and nothing else; each turn and each call tries to reach it again.
 *   No call is made twice.
 *
 * Throws INVALID_OPTIONS. Reports MCP_UNAVAILABLE once an outage, and MCP_TOOL_SKIPPED. Calls fail MCP_UNAVAILABLE,
 * MCP_DISCONNECTED (the server may have run it), MCP_TOOL_FAILED.
 */
export function mcp(server: McpServer): Plugin {
  const { name, maxChars = 100_000 } = server;
  if (typeof name !== "string" || !/^[a-zA-Z0-9_-]{1,32}$/.test(name)) {
    throw invalid(`\`name\` must be 1 to 32 letters, digits, "_" or "-"`);
  }
  if (!Number.isSafeInteger(maxChars) || maxChars < 1) throw invalid("`maxChars` must be a whole number above 0");
  if ("url" in server ? !URL.canParse(String(server.url)) : typeof server.client !== "object" || !server.client) {
    throw invalid("needs the `url` of a server, or a `client` that is connected");
  }

  return ({ harness, hooks, tools }) => {
    let over = false;
    const registered = new Map<string, { readonly as: string; readonly off: Unregister }>();
    const calls = createCalls(name);
    const connection = createConnection(server, harness.clock, {
      elicit: calls.elicit,
      list: async (client, signal) => enter(await offeredTools(client, { name, maxChars, connection, calls }, signal)),
      unavailable: (cause) =>
        harness.report({
          code: "MCP_UNAVAILABLE",
          message: `the MCP server "${name}" cannot be reached: ${messageOf(cause)}`,
          cause,
        }),
    });

    /** What has not changed stays, so that the model's tools change only when the server's do. */
    function enter(offered: readonly Offered[]): void {
      if (over) return;
      const wanted = new Map<string, Offered>();
      const left: string[] = [];
      for (const one of offered) {
        if (wanted.has(one.name)) left.push(`another tool is named ${one.name}`);
        else if (wanted.size >= MAX_TOOLS) left.push(`it has more than ${MAX_TOOLS} tools`);
        else wanted.set(one.name, one);
      }
      for (const [tool, { as, off }] of registered) {
        if (wanted.get(tool)?.as === as) continue;
        off();
        registered.delete(tool);
      }
      for (const one of wanted.values()) {
        if (registered.has(one.name)) continue;
        try {
          registered.set(one.name, { as: one.as, off: tools.register(one.define()) });
        } catch (cause) {
          left.push(messageOf(cause));
        }
      }
      for (const why of new Set(left)) skip(why);
    }

    /** Told once, however often the list is read. */
    const skipped = new Set<string>();
    function skip(why: string): void {
      if (skipped.has(why)) return;
      skipped.add(why);
      harness.report({
        code: "MCP_TOOL_SKIPPED",
        message: `a tool of the MCP server "${name}" was left out: ${why}`,
      });
    }

    const offs = [
      hooks.on("agent/created", () => void connection.ready()),
      hooks.on("agent/turn-start", connection.ready),
    ];
    return () => {
      over = true;
      for (const off of [...offs, ...[...registered.values()].map((one) => one.off)]) off();
      registered.clear();
      connection.close();
    };
  };
}

function invalid(problem: string): TurnloopError {
  return new TurnloopError("INVALID_OPTIONS", `mcp: ${problem}`);
}
