/** Defining a tool, and the checked form of it that the loop works with. */
import { isDuration } from "../clock.ts";
import { TurnloopError } from "../errors.ts";
import type { Awaitable } from "../hooks/types.ts";
import { isObject, type JsonSchema } from "../json.ts";
import type { ToolSchema } from "../model/types.ts";
import { inputOf, type Validation } from "../model/schema.ts";
import type { InferOutput, StandardSchema, ToolCallContext, ToolDefinition, ToolInput, ToolTraits } from "./types.ts";

// Plain JSON Schema tells TypeScript nothing: the functions of the tool say what they take.
// oxlint-disable-next-line typescript/no-explicit-any
type Untyped = any;

/**
 * Defines a tool whose input a schema library describes (zod, or any with Standard JSON Schema): the
 * arguments are validated and typed by it. What `execute` answers is said to the model as JSON; undefined
 * becomes "done"; a throw answers it with an error. INVALID_TOOL.
 */
export function defineTool<S extends StandardSchema>(
  tool: ToolTraits<InferOutput<S>> & {
    inputSchema: S;
    execute(args: InferOutput<S>, call: ToolCallContext): unknown;
  },
): ToolDefinition;
/**
 * Defines a tool whose input is plain JSON Schema. The arguments are not validated unless `validate` is
 * given, which answers with them or throws. INVALID_TOOL.
 */
export function defineTool<A = Untyped>(
  tool: ToolTraits<A> & {
    inputSchema: JsonSchema;
    validate?(args: unknown): A;
    execute(args: A, call: ToolCallContext): unknown;
  },
): ToolDefinition;
/** Declares a tool whose body runs at a connected client, which supplies it as one of its `clientTools`. INVALID_TOOL. */
export function defineTool(tool: ToolTraits<Untyped> & { inputSchema: ToolInput; runsAt: "client" }): ToolDefinition;
export function defineTool(tool: object): ToolDefinition {
  return compileTool(tool as ToolDefinition).definition;
}

/** A definition, checked once. */
export interface Tool {
  readonly definition: ToolDefinition;
  readonly name: string;
  /** What the model is shown of it, deeply frozen. */
  readonly schema: ToolSchema;
  readonly client: boolean;
  readonly idempotent: boolean;
  readonly parallel: boolean;
  /** Milliseconds. */
  readonly timeoutMs?: number;
  readonly needsApproval: boolean | ((args: unknown, call: ToolCallContext) => Awaitable<boolean>);
  /** Never throws or rejects. */
  readonly validate: (args: unknown) => Awaitable<Validation>;
  /** Absent where `client` is true, unless the definition brings the body of the client along. */
  readonly execute?: (args: unknown, call: ToolCallContext) => unknown;
  readonly present?: NonNullable<ToolTraits<unknown>["present"]>;
}

/** The fields of a definition, as far as `check` has looked at them. */
interface Fields extends Omit<ToolTraits<unknown>, "present"> {
  inputSchema: ToolInput;
  runsAt?: "client";
  validate?: (args: unknown) => unknown;
  execute?: (args: unknown, call: ToolCallContext) => unknown;
  present?: NonNullable<ToolTraits<unknown>["present"]>;
}

/** What each field is, where it is there. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  description: ["string"],
  execute: ["function"],
  validate: ["function"],
  needsApproval: ["boolean", "function"],
  readOnly: ["boolean"],
  idempotent: ["boolean"],
  parallel: ["boolean"],
  present: ["object"],
};

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const compiled = new WeakMap<ToolDefinition, Tool>();

/** The same tool for the same definition, which is borrowed: later changes to it are not seen. INVALID_TOOL. */
export function compileTool(definition: ToolDefinition): Tool {
  if (!isObject(definition)) throw invalid("a tool", "must be an object");
  const known = compiled.get(definition);
  if (known) return known;
  const tool = compile(definition, check(definition));
  compiled.set(definition, tool);
  return tool;
}

function compile(definition: ToolDefinition, fields: Fields): Tool {
  const { name, description, timeoutMs, needsApproval = false, readOnly = false, execute, present } = fields;
  const { parameters, validate } = input(fields);
  // Called on the definition, which may be an object with a `this` of its own.
  return Object.freeze({
    definition,
    name,
    schema: Object.freeze({ name, description: description.toWellFormed(), parameters }),
    client: fields.runsAt === "client",
    idempotent: readOnly || fields.idempotent === true,
    parallel: readOnly || fields.parallel === true,
    needsApproval:
      typeof needsApproval === "function"
        ? (args: unknown, call: ToolCallContext) => needsApproval.call(definition, args, call)
        : needsApproval,
    validate,
    ...(timeoutMs === undefined ? undefined : { timeoutMs }),
    ...(execute && { execute: (args: unknown, call: ToolCallContext) => execute.call(definition, args, call) }),
    ...(present && { present }),
  });
}

function input(fields: Fields): ReturnType<typeof inputOf> {
  try {
    return inputOf(fields.inputSchema, fields.validate && ((args) => fields.validate!(args)));
  } catch (cause) {
    throw invalid(`tool "${fields.name}"`, (cause as Error).message, cause);
  }
}

/** A definition comes from anywhere: nothing of its type is taken for granted. */
function check(definition: ToolDefinition): Fields {
  const { name, runsAt, execute, timeoutMs } = definition;
  if (typeof name !== "string" || !NAME.test(name)) {
    throw invalid("a tool", `is named by 1 to 64 letters, digits, "_" or "-", not by ${JSON.stringify(name)}`);
  }
  const refuse = (what: string): never => {
    throw invalid(`tool "${name}"`, what);
  };
  if (runsAt !== undefined && runsAt !== "client") refuse('may only say runsAt: "client"');
  if (execute === undefined && runsAt === undefined) refuse('needs an execute function, or runsAt: "client"');
  for (const [field, kinds] of Object.entries(KINDS)) {
    const value = definition[field as keyof ToolDefinition];
    if ((value !== undefined || field === "description") && (value === null || !kinds.includes(typeof value)))
      refuse(`needs ${field} as ${kinds.join(" or ")}`);
  }
  if (timeoutMs !== undefined && !(isDuration(timeoutMs) && timeoutMs > 0))
    refuse("needs a positive timeoutMs, or none");
  // What was just looked at, and `inputSchema`, which `inputOf` looks at.
  return definition as unknown as Fields;
}

function invalid(what: string, problem: string, cause?: unknown): TurnloopError {
  return new TurnloopError("INVALID_TOOL", `${what} ${problem}`, cause === undefined ? undefined : { cause });
}
