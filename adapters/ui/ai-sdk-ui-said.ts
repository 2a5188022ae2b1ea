/** What a page of `useChat` has said since the last time: a new message, or answers to what waits. */
import type { FileUIPart, UIMessage } from "ai";
import { TurnloopError, type Agent, type ContentBlock, type Interaction, type JsonValue } from "../../src/core.ts";
import { fileOf, plainJson } from "./ai-sdk-ui-blocks.ts";

/** The content of a user message. INVALID_CONTENT when it has none that an agent takes. */
export function contentOfMessage({ parts }: UIMessage): readonly ContentBlock[] {
  const content = parts.flatMap((part): ContentBlock[] => {
    if (part.type === "text") return part.text === "" ? [] : [{ type: "text", text: part.text }];
    return part.type === "file" ? [fileOfPart(part)] : [];
  });
  if (content.length > 0) return content;
  throw new TurnloopError("INVALID_CONTENT", "a message needs text or a file: other parts are not sent to an agent");
}

function fileOfPart({ url, mediaType, filename }: FileUIPart): ContentBlock {
  return fileOf(url, mediaType, filename);
}

/** A tool part as any page may hold it. */
interface ToolPart {
  readonly toolCallId: string;
  readonly state: string;
  readonly output?: unknown;
  readonly errorText?: string;
  readonly approval?: { readonly id: string; readonly approved?: boolean; readonly reason?: string };
}

export interface Answers {
  /** The calls that the message shows. */
  readonly shown: ReadonlySet<string>;
  /** One of the calls that are answered. */
  readonly callId: string;
  readonly answers: readonly { readonly id: string; readonly value: JsonValue }[];
}

/** The answers that an assistant message holds to what waits; undefined when it holds none. */
export function answersIn(message: UIMessage, agent: Agent): Answers | undefined {
  const parts = message.parts.filter((part) => "toolCallId" in part) as readonly ToolPart[];
  let callId: string | undefined;
  const answers = parts.flatMap((part) => {
    const open = agent.interactions.filter((one) => one.callId === part.toolCallId);
    // One that has been answered elsewhere meanwhile is followed just so.
    if (part.state === "approval-responded") callId = part.toolCallId;
    return open.flatMap((one) => {
      const value = answerTo(one, part);
      if (value === undefined) return [];
      callId = part.toolCallId;
      return [{ id: one.id, value }];
    });
  });
  return callId === undefined ? undefined : { shown: new Set(parts.map((part) => part.toolCallId)), callId, answers };
}

function answerTo({ id, kind }: Interaction, part: ToolPart): JsonValue | undefined {
  if (kind === "approval") {
    if (part.state !== "approval-responded" || part.approval?.id !== id) return undefined;
    const { approved, reason } = part.approval;
    return { decision: approved ? "allow" : "deny", ...(reason !== undefined && { reason }) };
  }
  if (part.state === "output-error" && kind === "client-tool") return { error: part.errorText ?? "the tool failed" };
  if (part.state !== "output-available") return undefined;
  const value = plainJson(part.output);
  return kind === "client-tool" ? { value } : value;
}
