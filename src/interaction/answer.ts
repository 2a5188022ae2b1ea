/** Answers to the interactions of the core, checked before they enter the log. */
import { TurnloopError } from "../errors.ts";
import { isRecord, type JsonValue } from "../json.ts";

/** Throws INVALID_ANSWER. A kind that a plugin has made up takes anything. */
export function checkAnswer(kind: string, value: JsonValue): void {
  const fields: Readonly<Record<string, unknown>> = isRecord(value) ? value : {};
  if (kind === "approval") {
    const { decision, reason, remember } = fields;
    const isOne = decision === "allow" || decision === "deny";
    if (
      !isOne ||
      (reason !== undefined && typeof reason !== "string") ||
      (remember !== undefined && remember !== "session")
    ) {
      throw new TurnloopError(
        "INVALID_ANSWER",
        'an approval is answered with { decision: "allow" } or { decision: "deny", reason?: text }',
      );
    }
  }
  if (kind === "client-tool" && !Object.hasOwn(fields, "value") && typeof fields.error !== "string") {
    throw new TurnloopError("INVALID_ANSWER", "a client tool is answered with { value } or { error }");
  }
}
