/** A tool with which the model asks the person. */
import { defineTool, type JsonValue, type ToolDefinition } from "../core.ts";

export interface AskUserOptions {
  /** Default: `ask_user`. */
  readonly name?: string;
  /** After this nobody has answered, and the model is told so. Milliseconds. Default: as long as it takes. */
  readonly expiresInMs?: number;
}

/** `payload` of its interactions, of the kind `question`. An answer may be any JSON. */
export type AskUserPayload = {
  readonly question: string;
  /** Answers to choose from; another one is as good. */
  readonly options?: readonly string[];
};

const DESCRIPTION =
  "Asks the user one question, and answers with the reply. For what only the user can know or decide; " +
  "offer options where the likely answers are few.";

/** A question survives reloads and the death of its host: its body may be run again, and nothing is asked twice. */
export function askUser({ name = "ask_user", expiresInMs }: AskUserOptions = {}): ToolDefinition {
  return defineTool<AskUserPayload>({
    name,
    description: DESCRIPTION,
    inputSchema: {
      type: "object",
      properties: {
        question: { type: "string" },
        options: { type: "array", items: { type: "string" } },
      },
      required: ["question"],
      additionalProperties: false,
    },
    validate: payloadOf,
    readOnly: true,
    present: { call: ({ question }) => ({ title: question, kind: "question" }) },
    execute: (payload, call): Promise<JsonValue> => call.ask(payload, expiresInMs === undefined ? {} : { expiresInMs }),
  });
}

function payloadOf(args: unknown): AskUserPayload {
  const { question, options } = (typeof args === "object" && args !== null ? args : {}) as Record<string, unknown>;
  if (typeof question !== "string" || question.trim() === "") throw new TypeError("`question` must be a text");
  if (options === undefined) return { question };
  if (!Array.isArray(options) || !options.every((one) => typeof one === "string"))
    throw new TypeError("`options` must be a list of texts");
  return options.length === 0 ? { question } : { question, options };
}
