/** Tools written for the AI SDK, as tools of this package. */
import {
  TurnloopError,
  defineTool,
  toolResult,
  type ContentBlock,
  type JsonSchema,
  type JsonValue,
  type ToolCallContext,
  type ToolDefinition,
} from "../../src/core.ts";
import { keptFile } from "./ai-sdk-files.ts";
import { plainJson } from "./ai-sdk-provider-tool.ts";

/** What is read of a tool; the rest of the AI SDK's fields says nothing to the loop. */
interface AiSdkTool {
  readonly type?: unknown;
  readonly description?: unknown;
  readonly inputSchema?: unknown;
  readonly needsApproval?: boolean | ((input: unknown, options: object) => boolean | Promise<boolean>);
  readonly execute?: (input: unknown, options: object) => unknown;
  readonly toModelOutput?: (options: { toolCallId: string; input: unknown; output: unknown }) => unknown;
}

/** The AI SDK's own schema object, made by its `jsonSchema`, `zodSchema` and others. */
interface AiSdkSchema {
  readonly jsonSchema: unknown;
  readonly validate?: (value: unknown) => Validation | Promise<Validation>;
}
type Validation =
  | { readonly success: true; readonly value: unknown }
  | { readonly success: false; readonly error: Error };

/** Of either kind: defineTool tells them apart as it runs, not by this type. */
interface Input {
  readonly inputSchema: JsonSchema;
  validate?(args: unknown): unknown;
}

/**
 * Takes a tool set of the AI SDK: `description`, `inputSchema`, `execute`, `needsApproval`, `toModelOutput`. A
 * tool without `execute` runs at the client. Of a body that is a generator, the last yield is the result, and
 * what came before is progress. A body gets `toolCallId`, `abortSignal`, `context`, and an empty `messages`.
 * Throws INVALID_TOOL; tools that a provider runs belong to `aiSdkModel`, as `providerTools`.
 */
export function aiSdkTools(tools: Readonly<Record<string, unknown>>): ToolDefinition[] {
  return Object.entries(tools).map(([name, tool]) => toolOf(name, (tool ?? {}) as AiSdkTool));
}

function toolOf(name: string, tool: AiSdkTool): ToolDefinition {
  if (tool.type === "provider" || tool.type === "provider-defined") {
    throw invalid(name, "is run by its provider; give it to aiSdkModel as one of its `providerTools`");
  }
  const { description = "", needsApproval } = tool;
  if (typeof description !== "string") throw invalid(name, "needs a description that is text");
  const traits = {
    name,
    description,
    ...inputOf(name, tool.inputSchema),
    ...(needsApproval === undefined
      ? undefined
      : {
          needsApproval:
            typeof needsApproval === "function"
              ? (args: unknown, call: ToolCallContext) => needsApproval.call(tool, args, optionsOf(call))
              : needsApproval,
        }),
  };
  if (!tool.execute) return defineTool({ ...traits, runsAt: "client" });
  return defineTool({ ...traits, execute: (args: unknown, call: ToolCallContext) => execute(tool, args, call) });
}

async function execute(tool: AiSdkTool, input: unknown, call: ToolCallContext): Promise<unknown> {
  const answer = await tool.execute?.(input, optionsOf(call));
  const output = isAsyncIterable(answer) ? await lastOf(answer, call) : answer;
  if (!tool.toModelOutput) return output;
  return modelOutput(await tool.toModelOutput({ toolCallId: call.callId, input, output }));
}

async function lastOf(values: AsyncIterable<unknown>, call: ToolCallContext): Promise<unknown> {
  let last: { readonly value: unknown } | undefined;
  for await (const value of values) {
    // Only what JSON can say is logged; the core replaces the rest.
    if (last) call.progress(last.value as JsonValue);
    last = { value };
  }
  return last?.value;
}

/** What a tool has prepared for the model, as `execute` of this package answers it. */
function modelOutput(output: unknown): unknown {
  const { type, value, reason } = (output ?? {}) as { type?: unknown; value?: unknown; reason?: unknown };
  switch (type) {
    case "content":
      return toolResult((Array.isArray(value) ? value : []).flatMap(contentBlock));
    case "error-text":
    case "error-json":
      throw new Error(typeof value === "string" ? value : JSON.stringify(value));
    case "execution-denied":
      throw new Error(typeof reason === "string" ? reason : "the call was denied");
    default:
      return value;
  }
}

function contentBlock(item: unknown): ContentBlock[] {
  const { type, text, data, url, mediaType = "image/*" } = (item ?? {}) as Readonly<Record<string, unknown>>;
  if (type === "text") return [{ type, text: String(text) }];
  // V4 has one `file`; before it there were `media`, `file-data`, `file-url`, `image-data` and `image-url`.
  const file = typeof url === "string" ? { url } : keptFile(data);
  return file ? [{ type: "file", mediaType: String(mediaType), data: file }] : [];
}

function inputOf(name: string, schema: unknown): Input {
  if (schema === undefined) return { inputSchema: { type: "object", properties: {} } };
  if (isStandard(schema)) return { inputSchema: schema };
  // A function makes its schema when it is first asked.
  const made: unknown = typeof schema === "function" ? schema() : schema;
  if (isStandard(made)) return { inputSchema: made };
  const { jsonSchema, validate } = (made ?? {}) as Partial<AiSdkSchema>;
  if (typeof jsonSchema !== "object" || jsonSchema === null || "then" in jsonSchema) {
    throw invalid(name, "needs an inputSchema that is known at once: of zod, or made by jsonSchema() from an object");
  }
  // Plain JSON: what zod makes of a schema is still a schema of zod in secret.
  const inputSchema = plainJson(jsonSchema) as JsonSchema;
  return validate ? { inputSchema, validate: (args) => accepted(validate, args) } : { inputSchema };
}

async function accepted(validate: NonNullable<AiSdkSchema["validate"]>, args: unknown): Promise<unknown> {
  const verdict = await validate(args);
  if (!verdict.success) throw verdict.error;
  return verdict.value;
}

function optionsOf({ callId, signal, context }: ToolCallContext): object {
  return { toolCallId: callId, messages: [], abortSignal: signal, context, experimental_context: context };
}

function isStandard(schema: unknown): schema is JsonSchema {
  return ((typeof schema === "object" && schema !== null) || typeof schema === "function") && "~standard" in schema;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

function invalid(name: string, problem: string): TurnloopError {
  return new TurnloopError("INVALID_TOOL", `aiSdkTools: "${name}" ${problem}`);
}
