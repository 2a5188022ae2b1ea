/** One agent on a harness of its own, and short ways to ask what happened in its turns. */
import {
  createHarness,
  defineTool,
  memoryStorage,
  run,
  type Agent,
  type ContentInput,
  type Harness,
  type HarnessOptions,
  type Message,
  type OpenAgentOptions,
  type RunResult,
  type SessionEventMap,
  type SessionEventType,
  type SessionStorage,
  type SessionView,
  type ToolCallContext,
  type ToolDefinition,
} from "turnloop";
import { scriptedModel, type ScriptedAnswer, type ScriptedModel } from "turnloop/testing";
import { textOf } from "./wait.ts";

export interface Scene {
  readonly harness: Harness;
  readonly hooks: Harness["hooks"];
  readonly agent: Agent;
  readonly session: SessionView;
  readonly model: ScriptedModel;
  /** What `agent/error` has told. */
  readonly errors: readonly { readonly turn: number; readonly step: number; readonly error: Error }[];
  /** The codes of what was reported. */
  readonly diagnostics: readonly string[];
  /** Sends, and answers with how its turn ended. */
  say(content: ContentInput): Promise<RunResult["reason"]>;
  dispose(): Promise<void>;
}

/** The model gives the answers; `model` in the options takes its place. */
export async function scene(
  answers: readonly ScriptedAnswer[] = [],
  { id = "session", open, ...options }: HarnessOptions & { id?: string; open?: Omit<OpenAgentOptions, "id"> } = {},
): Promise<Scene> {
  const errors: Scene["errors"][number][] = [];
  const diagnostics: string[] = [];
  const model = scriptedModel(answers);
  const harness = createHarness({ model, onDiagnostic: ({ code }) => diagnostics.push(code), ...options });
  harness.hooks.on("agent/error", ({ turn, step, error }) => void errors.push({ turn, step, error }));
  const { agent, dispose } = await harness.agents.open({ id, ...open });
  return {
    harness,
    hooks: harness.hooks,
    agent,
    session: agent.session,
    model,
    errors,
    diagnostics,
    say: async (content) => (await run(agent, content).result).reason,
    dispose,
  };
}

/** A tool that takes anything. */
export function tool(
  name: string,
  execute: (args: { readonly at?: string }, call: ToolCallContext) => unknown = () => "done",
): ToolDefinition {
  return defineTool({ name, description: name, inputSchema: { type: "object" }, execute });
}

/** What the events of one type hold, in order. */
export function dataOf<T extends SessionEventType>(session: SessionView, type: T): SessionEventMap[T][] {
  return session.events.filter((event) => event.type === type).map((event) => event.data as SessionEventMap[T]);
}

/** The chunks, each by its type. */
export function chunksIn(session: SessionView): string[] {
  return dataOf(session, "assistant/chunk").map(({ chunk }) => chunk.type);
}

/** Messages as lines: `user: hi`. */
export function linesOf(messages: readonly Message[]): string[] {
  return messages.map(({ role, content }) => `${role}: ${textOf(content.flatMap(flat))}`);
}

function flat(block: Message["content"][number]): { type: string; text?: string }[] {
  return block.type === "tool-result" ? [...block.content] : [block];
}

/** A storage that holds the session as it stands now, or a part of it: what a host that dies then leaves. */
export async function leftBehind(session: SessionView, events = session.events): Promise<SessionStorage> {
  const { id, header } = session;
  const storage = memoryStorage();
  const summary = {
    id,
    createdAt: header.createdAt,
    updatedAt: header.createdAt,
    seq: events.length,
    status: "open" as const,
  };
  await storage.append({ id, from: 0, events, header, summary });
  return storage;
}
