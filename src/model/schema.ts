/** Schemas as people give them: said as JSON Schema for the model, and the check of what the model wrote. */
import { messageOf, TurnloopError } from "../errors.ts";
import { isThenable } from "../hooks/hooks.ts";
import type { Awaitable } from "../hooks/types.ts";
import { isObject, isRecord, jsonCopy, type JsonSchema } from "../json.ts";

export type Validation =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

export interface InputCheck {
  /** Plain JSON, deeply frozen. */
  readonly parameters: JsonSchema;
  /** Never throws or rejects; a promise only where the schema library answers with one. */
  readonly validate: (args: unknown) => Awaitable<Validation>;
}

/** What is read of a schema that implements Standard Schema, and Standard JSON Schema. */
interface Standard {
  readonly validate?: (value: unknown) => unknown;
  readonly jsonSchema?: { readonly input?: (options: { readonly target: string }) => unknown };
}

const TARGET = "draft-2020-12";
const MOST_ISSUES = 10;

/**
 * Input as a schema library says it, which then validates; or as plain JSON Schema, which is not validated
 * unless `validate` is given: it answers with the arguments or throws. INVALID_TOOL.
 */
export function inputOf(inputSchema: unknown, validate?: (args: unknown) => unknown): InputCheck {
  const own = validatorOf(inputSchema);
  if (own && validate) throw invalid("it validates by itself; `validate` goes with plain JSON Schema");
  return {
    parameters: schemaOf(inputSchema),
    validate: own ?? (validate ? (args) => settle(() => validate(args), accept) : accept),
  };
}

/** As JSON Schema, deeply frozen. INVALID_TOOL for what cannot be said so. */
export function schemaOf(given: unknown): JsonSchema {
  const standard = standardOf(given);
  return plainSchema(standard ? convert(standard) : given);
}

/** The check that a schema of a library brings along. It never throws or rejects. Undefined for plain JSON Schema. */
export function validatorOf(given: unknown): InputCheck["validate"] | undefined {
  const standard = standardOf(given);
  return standard && ((value) => settle(() => standard.validate?.(value), verdictOf));
}

function standardOf(schema: unknown): Standard | undefined {
  if (!isObject(schema) && typeof schema !== "function") return undefined;
  return (schema as { "~standard"?: Standard })["~standard"];
}

function convert({ jsonSchema, validate }: Standard): unknown {
  if (typeof jsonSchema?.input !== "function" || typeof validate !== "function") {
    throw invalid("its schema library cannot say it as JSON Schema; give inputSchema as JSON Schema, and `validate`");
  }
  try {
    return jsonSchema.input({ target: TARGET });
  } catch (cause) {
    throw invalid(`it cannot be said as JSON Schema: ${messageOf(cause)}`, cause);
  }
}

/** As JSON would say it: schema builders leave symbols and undefined fields in what they make. */
function plainSchema(schema: unknown): JsonSchema {
  let copy: unknown;
  try {
    copy = JSON.parse(JSON.stringify(schema) ?? "null");
  } catch (cause) {
    throw invalid(`it is not plain JSON: ${messageOf(cause)}`, cause);
  }
  if (!isRecord(copy)) {
    throw invalid("give JSON Schema, or a schema of a library with Standard JSON Schema");
  }
  const { $schema: _dialect, ...parameters } = copy as { $schema?: unknown };
  return jsonCopy(parameters);
}

/** Runs a validator that may throw, reject or answer late. */
function settle(run: () => unknown, judge: (answer: unknown) => Validation): Awaitable<Validation> {
  try {
    const answer = run();
    return isThenable(answer) ? Promise.resolve(answer).then(judge).catch(refuse) : judge(answer);
  } catch (thrown) {
    return refuse(thrown);
  }
}

function accept(value: unknown): Validation {
  return { ok: true, value };
}

function refuse(thrown: unknown): Validation {
  return { ok: false, message: messageOf(thrown) };
}

function verdictOf(answer: unknown): Validation {
  const { issues, value } = answer as { issues?: readonly unknown[] | undefined; value?: unknown };
  if (!issues) return accept(value);
  const said = issues.slice(0, MOST_ISSUES).map(describe);
  if (issues.length > MOST_ISSUES) said.push(`and ${issues.length - MOST_ISSUES} more`);
  return { ok: false, message: said.join("; ") || "the arguments do not fit the schema" };
}

/** Such as `items[0].city: expected string`. */
function describe(issue: unknown): string {
  const { path = [], message } = issue as { path?: readonly unknown[] | undefined; message?: unknown };
  const place = path.reduce<string>((before, segment) => {
    const key = isObject(segment) ? (segment as { key?: unknown }).key : segment;
    if (typeof key === "number") return `${before}[${key}]`;
    return before === "" ? String(key) : `${before}.${String(key)}`;
  }, "");
  const what = typeof message === "string" && message !== "" ? message : "is not valid";
  return place === "" ? what : `${place}: ${what}`;
}

function invalid(what: string, cause?: unknown): TurnloopError {
  return new TurnloopError("INVALID_TOOL", `inputSchema: ${what}`, cause === undefined ? undefined : { cause });
}
