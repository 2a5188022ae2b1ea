/** A history of UI messages, as the beginning of a session. */
import { eventsFromMessages } from "../../src/index.ts";
import { TurnloopError, type ContentBlock, type JsonValue, type Message, type SessionEvent } from "../../src/core.ts";
import { fileOf, plainJson } from "./ai-sdk-ui-blocks.ts";

/**
 * Session events for `create({ seed })` of messages that were stored for `useChat`, `UIMessage[]` of the AI SDK.
 * Text, reasoning, files, sources and tool calls with what they answered are kept; system messages (the agent has a
 * prompt of its own), data parts and calls that were never written to the end are left out; a call without an answer
 * is answered TOOL_OUTCOME_UNKNOWN. Throws INVALID_CONTENT for what is no message, telling which.
 */
export function eventsFromUIMessages(messages: readonly unknown[]): SessionEvent[] {
  return eventsFromMessages(messages.flatMap(messagesOf));
}

type Fields = Readonly<Record<string, unknown>>;

function messagesOf(message: unknown, place: number): Message[] {
  const { role, parts } = fieldsOf(message);
  const isRole = role === "system" || role === "user" || role === "assistant";
  if (!isRole || !Array.isArray(parts)) {
    const wanted = "a role (system, user or assistant) and an array of parts";
    throw new TurnloopError("INVALID_CONTENT", `message ${place} of the history needs ${wanted}`);
  }
  if (role === "system") return [];
  const said = parts.map((part: unknown) => fieldsOf(part));
  if (role === "user") return [{ role, content: said.flatMap(blockOf) }];
  return stepsOf(said).flatMap((step) => {
    const content = step.flatMap((part) => (isTool(part) ? callOf(part) : blockOf(part)));
    const results = step.flatMap((part) => (isTool(part) ? resultOf(part) : []));
    const answer: Message = { role: "assistant", content };
    return results.length > 0 ? [answer, { role: "tool", content: results }] : [answer];
  });
}

/** Each request of the turn was a step of its own. */
function stepsOf(parts: readonly Fields[]): Fields[][] {
  const steps: Fields[][] = [[]];
  for (const part of parts) {
    if (part["type"] === "step-start") steps.push([]);
    else steps.at(-1)!.push(part);
  }
  return steps;
}

function blockOf(part: Fields): ContentBlock[] {
  const { type, text, url, title } = part;
  if ((type === "text" || type === "reasoning") && typeof text === "string" && text !== "") return [{ type, text }];
  if (typeof url !== "string") return [];
  if (type === "source-url") return [{ type: "source", url, ...(typeof title === "string" && { title }) }];
  return type === "file" ? [fileOf(url, textOr(part["mediaType"], ""), textOr(part["filename"], ""))] : [];
}

function isTool({ type, toolCallId }: Fields): boolean {
  return (
    typeof toolCallId === "string" &&
    (type === "dynamic-tool" || (typeof type === "string" && type.startsWith("tool-")))
  );
}

function nameOf({ type, toolName }: Fields): string {
  return type === "dynamic-tool" ? textOr(toolName, "") : String(type).slice("tool-".length);
}

function callOf(part: Fields): ContentBlock[] {
  const { toolCallId, input, state, providerExecuted } = part;
  if (state === "input-streaming") return [];
  const callId = String(toolCallId);
  const args = input === undefined ? "" : JSON.stringify(plainJson(input));
  const name = nameOf(part);
  if (providerExecuted !== true) return [{ type: "tool-call", callId, name, arguments: args }];
  const call: ContentBlock = { type: "provider-tool", name, data: { type: "call", id: callId, input: args } };
  const answered = answerOf(part);
  if (!answered) return [call];
  const { value: result, isError } = answered;
  return [call, { type: "provider-tool", name, data: { type: "result", id: callId, result, isError } }];
}

function resultOf(part: Fields): ContentBlock[] {
  const answered = part["providerExecuted"] === true ? undefined : answerOf(part);
  if (!answered) return [];
  const { value, isError } = answered;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const content: ContentBlock[] = [{ type: "text", text }];
  return [{ type: "tool-result", callId: String(part["toolCallId"]), name: nameOf(part), content, isError }];
}

function answerOf({ state, output, errorText, approval }: Fields): { value: JsonValue; isError: boolean } | undefined {
  if (state === "output-available") return { value: plainJson(output), isError: false };
  if (state === "output-error") return { value: textOr(errorText, "the tool failed"), isError: true };
  if (state !== "output-denied") return undefined;
  return { value: `Error: ${textOr(fieldsOf(approval)["reason"], "the call was denied")}`, isError: true };
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}
