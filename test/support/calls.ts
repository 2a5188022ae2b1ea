/** Tools, their calls and what came of them, in few words. */
import {
  defineTool,
  type Agent,
  type HarnessOptions,
  type JsonValue,
  type Model,
  type SessionView,
  type ToolCallContext,
  type ToolTraits,
} from "turnloop";
import type { ScriptedParts } from "turnloop/testing";
import { harnessWith } from "./fixture.ts";
import { textOf } from "./wait.ts";

type Traits = Omit<Partial<ToolTraits<Record<string, JsonValue>>>, "name">;
type Body = (args: Record<string, JsonValue>, call: ToolCallContext) => unknown;

/** A tool that takes any object. */
export function tool(name: string, execute: Body = () => "done", traits: Traits = {}): ReturnType<typeof defineTool> {
  return defineTool({ name, description: name, inputSchema: { type: "object" }, execute, ...traits });
}

/** A tool whose body is a client's. */
export function clientTool(name: string, traits: Traits = {}): ReturnType<typeof defineTool> {
  return defineTool({ name, description: name, inputSchema: { type: "object" }, runsAt: "client", ...traits });
}

/** A body that tells when it runs, and never ends. */
export function deafBody(first: Body = () => {}): { readonly body: Body; readonly running: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const body: Body = (args, call) => {
    first(args, call);
    resolve();
    return new Promise<never>(() => {});
  };
  return { body, running: promise };
}

/** A model's answer that calls these tools. */
export function calls(
  ...wanted: readonly (string | { readonly name: string; readonly args: unknown })[]
): ScriptedParts {
  return { toolCalls: wanted.map((one) => (typeof one === "string" ? { name: one, args: {} } : one)) };
}

/** What a result says, or how it fails. */
export type Told =
  | { readonly tool: string; readonly says: string }
  | { readonly tool: string; readonly fails: string; readonly code?: string };

/** What the results of the log say, in its order. */
export function resultsOf(session: SessionView): Told[] {
  const names = new Map<string, string>();
  return session.events.flatMap((event): Told[] => {
    if (event.type === "tool/call") names.set(event.data.callId, event.data.name);
    if (event.type !== "tool/result") return [];
    const { callId, content, isError, error } = event.data;
    const told = { tool: names.get(callId)!, text: textOf(content) };
    if (!isError) return [{ tool: told.tool, says: told.text }];
    return [{ tool: told.tool, fails: told.text, ...(error && { code: error.code }) }];
  });
}

/** Sends, and waits until all is done. */
export async function talk(agent: Agent, text = "go"): Promise<SessionView> {
  agent.send(text);
  await agent.whenIdle();
  return agent.session;
}

/** An agent, and what a plugin has of its harness. */
export async function staged<M extends Model>(options: HarnessOptions & { readonly model: M }, id = "session") {
  const harness = harnessWith(options);
  const handle = await harness.agents.open({ id });
  const { agent } = handle;
  const { hooks, diagnostics } = harness;
  return { harness, handle, agent, session: agent.session, hooks, diagnostics, model: options.model };
}
