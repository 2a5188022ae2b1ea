/** What the scripted model makes of a history: the task at hand, and how far it has come. */
import type { ContentBlock, Message } from "turnloop";
import { draftOf, type Attached } from "./draft.ts";
import { textOf } from "./text.ts";

export interface Conversation {
  /** What the person wants. */
  readonly task: string;
  /** What came with it. */
  readonly files: readonly Attached[];
  /** What was said while the task was under way. */
  readonly steering: readonly string[];
  /** The last message is steering that no answer has taken up yet. */
  readonly steered: boolean;
  /** What the tools answered since the task was set, in order. */
  readonly results: readonly Result[];
  /** The answer so far, when a stopped turn goes on. */
  readonly soFar: string | undefined;
}

export interface Result {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isError: boolean;
}

export function readConversation(messages: readonly Message[]): Conversation {
  const begin = beginOfTask(messages);
  const [first, ...rest] = messages.slice(begin);
  const calls = new Map<string, { readonly name: string; readonly arguments: string }>();
  const results: Result[] = [];
  const steering: string[] = [];
  for (const message of rest) {
    if (message.role === "user") steering.push(textOf(message.content));
    for (const block of message.content) {
      if (block.type === "tool-call") calls.set(block.callId, block);
      if (block.type === "tool-result") {
        const args = argumentsOf(calls.get(block.callId)?.arguments);
        results.push({ tool: block.name, args, text: textOf(block.content), isError: block.isError });
      }
    }
  }
  const last = messages.at(-1);
  const { text: task, files } = draftOf(first?.content ?? []);
  return {
    task,
    files,
    steering,
    steered: last?.role === "user" && rest.length > 0,
    results,
    soFar: last?.role === "assistant" ? textOf(last.content) : undefined,
  };
}

/** A task begins with a message from a person that no unfinished work stands before. */
function beginOfTask(messages: readonly Message[]): number {
  for (let at = messages.length - 1; at > 0; at -= 1) {
    const before = messages[at - 1]!;
    if (messages[at]!.role === "user" && before.role !== "user" && !isUnderWay(before)) return at;
  }
  return 0;
}

function isUnderWay({ role, content }: Message): boolean {
  return role === "tool" && !content.some((block) => block.type === "tool-result" && wasStopped(block));
}

function wasStopped(block: ContentBlock & { type: "tool-result" }): boolean {
  return block.isError && /cancel|abort|stopped|interrupted/i.test(textOf(block.content));
}

function argumentsOf(text: string | undefined): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text ?? "{}") as Record<string, unknown>;
  } catch {
    return {};
  }
}
