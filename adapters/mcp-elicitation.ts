/** A server's question to a person, as an interaction, and the answer as the server takes it. */
import type { ElicitRequest, ElicitResult } from "@modelcontextprotocol/client";
import { jsonCopy, TurnloopError, type JsonValue, type ToolCallContext } from "../src/core.ts";

/**
 * `payload` of its interactions, of the kind `question`. `schema` is JSON Schema of a flat form. Answer with the
 * form's values as an object; for a form of one field, with its bare value; with null to decline. Or say it in full:
 * `{ action: "accept", content }`, `{ action: "decline" }`, `{ action: "cancel" }`.
 */
export type McpQuestion = {
  readonly question: string;
  /** The name that the plugin was given. */
  readonly server: string;
  readonly schema: { readonly [key: string]: JsonValue };
};

type Content = NonNullable<ElicitResult["content"]>;

/** Nobody to ask, or nobody who answers, is a `cancel`; the server then decides. */
export async function askPerson(
  server: string,
  { params }: ElicitRequest,
  call: ToolCallContext,
): Promise<ElicitResult> {
  if (!("requestedSchema" in params)) return { action: "cancel" };
  const schema = jsonCopy(params.requestedSchema) as unknown as McpQuestion["schema"];
  try {
    return resultOf(
      await call.ask({ question: params.message, server, schema }),
      Object.keys(schema["properties"] ?? {}),
    );
  } catch (error) {
    if (call.signal.aborted || !TurnloopError.is(error)) throw error;
    return { action: "cancel" };
  }
}

function resultOf(answer: JsonValue, fields: readonly string[]): ElicitResult {
  if (answer === null) return { action: "decline" };
  if (typeof answer === "object" && !Array.isArray(answer)) {
    const { action, content } = answer as { readonly [key: string]: JsonValue };
    if (fields.includes("action") && content === undefined) return accepted(answer);
    if (action === "decline" || action === "cancel") return { action };
    return accepted(action === "accept" ? (content ?? {}) : answer);
  }
  const [field, more] = fields;
  return field !== undefined && more === undefined ? accepted({ [field]: answer }) : { action: "cancel" };
}

/** The library checks it against the protocol, and the server against its schema. */
function accepted(content: JsonValue): ElicitResult {
  return { action: "accept", content: content as Content };
}
