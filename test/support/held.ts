/** Answers and bodies that end when the test says so, and short ways to see what was said. */
import {
  defineTool,
  memoryStorage,
  type AgentStatus,
  type ContentBlock,
  type Harness,
  type SessionEventType,
  type SessionStorage,
  type SessionView,
  type ToolCallContext,
  type ToolDefinition,
  type ToolTraits,
} from "turnloop";
import type { ScriptedAnswer } from "turnloop/testing";
import { dataOf } from "./scene.ts";
import { deferred, textOf } from "./wait.ts";

/** An answer of a model that comes when the test says so. */
export function heldAnswer(answer: ScriptedAnswer): {
  readonly answer: ScriptedAnswer;
  readonly asked: Promise<void>;
  give(): void;
} {
  const asked = deferred();
  const gate = deferred();
  return {
    answer: async () => {
      asked.resolve();
      await gate.promise;
      return answer;
    },
    asked: asked.promise,
    give: () => gate.resolve(),
  };
}

/** The tool `held`, whose body ends when the test says so. */
export function heldTool(traits: Partial<ToolTraits<unknown>> = {}): {
  readonly tool: ToolDefinition;
  readonly started: Promise<ToolCallContext>;
  answer(value: unknown): void;
} {
  const started = deferred<ToolCallContext>();
  const gate = deferred<unknown>();
  return {
    tool: defineTool({
      name: "held",
      description: "Waits for the test",
      ...traits,
      inputSchema: { type: "object" },
      execute: (_args: unknown, call: ToolCallContext) => {
        started.resolve(call);
        return gate.promise;
      },
    }),
    started: started.promise,
    answer: gate.resolve,
  };
}

/** Every status that is told, in order. */
export function statusesOf({ hooks }: Pick<Harness, "hooks">): AgentStatus[] {
  const told: AgentStatus[] = [];
  hooks.on("agent/status", ({ status }) => {
    told.push(status);
  });
  return told;
}

/** The texts of the messages of a type, in the order of the log. */
export function textsOf(
  session: SessionView,
  type: "user/message" | "steering/message" | "context/message" = "user/message",
): string[] {
  return dataOf(session, type).map(({ content }) => textOf(content));
}

/** Content that is one text. */
export function text(value: string): readonly ContentBlock[] {
  return [{ type: "text", text: value }];
}

/** What is stored when the host dies after the first event of the type, or after so many events. */
export async function storedUpTo(session: SessionView, last: SessionEventType | number): Promise<SessionStorage> {
  const { id, header, events } = session;
  const seq = typeof last === "number" ? last : events.findIndex((event) => event.type === last) + 1;
  const storage = memoryStorage();
  const summary = { id, createdAt: header.createdAt, updatedAt: header.createdAt, seq, status: "open" as const };
  await storage.append({ id, from: 0, header, events: events.slice(0, seq), summary });
  return storage;
}

/** Everything that it gives, until its end. */
export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
