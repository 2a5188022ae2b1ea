/** Tools that a provider runs itself, as its package makes them. */
import type { LanguageModelV4ProviderTool } from "@ai-sdk/provider";
import { TurnloopError } from "../../src/core.ts";

/** By name, from `openai.tools.webSearch()` and the like. Throws INVALID_TOOL. */
export function providerToolsOf(tools: Readonly<Record<string, unknown>> = {}): LanguageModelV4ProviderTool[] {
  return Object.entries(tools).map(([name, tool]) => {
    const { id, args } = (tool ?? {}) as { id?: unknown; args?: unknown };
    if (typeof id !== "string" || !id.includes(".")) {
      throw new TurnloopError(
        "INVALID_TOOL",
        `providerTools: "${name}" is not a tool that a provider runs; give tools with a body to \`tools\`, through aiSdkTools`,
      );
    }
    // Checked just above.
    return { type: "provider", id: id as `${string}.${string}`, name, args: { ...(args as object | undefined) } };
  });
}
